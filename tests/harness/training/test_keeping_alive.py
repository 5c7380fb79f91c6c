"""Runs that are killed, stopped, out of memory or out of space, and what is left of them."""

import asyncio
import json
import os
import pty
import resource
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, suppress

import forked_runs
import gymnasium as gym
import numpy as np
import pytest
import torch
from function_actor import FunctionActor
from run_contents import left

from agentgyms.core.errors import EnvUnavailable
from agentgyms.envs.corridor import CorridorEnv
from agentgyms.serving.server import Server
from env_servers import create_app
from harness import config as configs
from harness.config import Config
from harness.distributed.signals import Abandoned, StopSignal
from harness.evaluation.model_source import find
from harness.model.policy import Policy
from harness.rollouts.collect import collect
from harness.rollouts.env_pool import EnvPool
from harness.rollouts.groups import CollectOptions
from harness.runs import checkpoints, file_digests, metrics
from harness.training import phases, saving, setup
from harness.training.learner import Learner
from harness.training.trainer import Trainer
from harness.types.errors import CheckpointError, ConfigError, TrainingError, TrainingStopped
from harness.types.task_draws import TaskDraw

CORRIDOR = "agentgyms/Corridor-v0"
STEPS = 4
TINY = [
    "policy.tiny.layers=1",
    "policy.tiny.hidden=48",
    "policy.tiny.heads=4",
    "policy.tiny.feed_forward=64",
    "warmstart.episodes=20",
    "warmstart.steps=24",
    "warmstart.batch_size=16",
    "warmstart.learning_rate=5e-3",
    "env.max_turns=6",
    "rollout.tasks_per_step=3",
    "run.threads=1",
    f"run.steps={STEPS}",
    "run.keep_rollouts=1",
    "eval.tasks=4",
    "eval.every=2",
    "checkpoint.every=1",
    "checkpoint.keep=2",
    "method.credit={}",
]


def settings(folder, name, *overrides):
    return [f"run.output='{folder}'", f"run.name='{name}'", *TINY, *overrides]


# --- kills ---------------------------------------------------------------------------------------


KILLED = {
    "ppo": (5, ["checkpoint.in_background=true"]),
    "oprl": (5, []),
    "tree_grpo": (
        10,
        [
            "rollout.branch.at='uniform'",
            "rollout.branch.rounds=2",
            "rollout.branch.points=2",
            "run.steps=3",
            "warmstart.steps=4",
            "eval.tasks=1",
        ],
    ),
}
"""Number of kills and settings by method: a critic, a reward model, branches."""


@pytest.fixture(scope="module", params=KILLED)
def whole(request, tmp_path_factory):
    """A run that nothing befell: kills wanted, settings, what is left of it, how long it took."""
    folder = tmp_path_factory.mktemp(request.param)
    kills, own = KILLED[request.param]
    own = [f"method.name='{request.param}'", *own]
    began = time.monotonic()
    assert forked_runs.finished(forked_runs.start, settings(folder, "whole", *own)) == 0
    return kills, own, left(folder / "whole"), time.monotonic() - began


def kill_after(child, seconds):
    """Kill a process after a time, unless it has ended; return whether it was killed."""
    child.join(seconds)
    child.kill()
    child.join()
    return child.exitcode == -signal.SIGKILL


def kill_while_saving(child, folder, step):
    """Kill a process that is saving a step; return whether it had not come to the end of it."""
    partial = folder / "checkpoints" / f".step-{step:06d}.partial"
    while not partial.exists() and child.is_alive():
        time.sleep(0.0005)
    child.kill()
    child.join()
    return partial.exists()


@pytest.mark.slow
def test_a_run_killed_at_any_moment_equals_an_uninterrupted_one(whole, tmp_path):
    """Two of the kills come while saving."""
    wanted, own, uninterrupted, seconds = whole
    logged = " ".join(str(key) for record in uninterrupted["metrics"] for key in record)
    assert any(name in logged for name in ("process", "critic", "siblings"))
    rng = np.random.default_rng(5)
    kills = 0
    for number in range(4 * wanted):
        folder = tmp_path / f"run{number}"
        child = forked_runs.process(forked_runs.start, settings(tmp_path, folder.name, *own))
        if kills < 2:
            killed = kill_while_saving(child, folder, int(rng.integers(3)))
        else:
            began = time.monotonic()
            killed = kill_after(child, rng.uniform(0.1, 0.95) * seconds)
            if not killed:  # the machine is faster now
                seconds = time.monotonic() - began
        if not killed or not (folder / "config.json").exists():
            continue
        kills += 1
        assert forked_runs.finished(forked_runs.resume, folder) == 0
        assert left(folder) == uninterrupted
        if kills == wanted:
            return
    raise AssertionError(f"only {kills} kills came in time")


@pytest.mark.slow
@pytest.mark.parametrize("step", [1, 2], ids=["the same step", "the next step"])
def test_at_every_moment_of_saving_a_whole_checkpoint_is_there(tmp_path, step):
    origin = tmp_path / "origin"
    trainer = setup.start(configs.load("corridor-tiny", settings(tmp_path, "origin")))
    trainer.train_step()
    save(trainer, origin, 1, keep=1, validation={"success": 0.1})
    trainer.close()  # another process takes the run up
    report = tmp_path / "report.json"
    assert forked_runs.finished(forked_runs.save_at_every_moment, origin, step, report) == 0
    signals, steps, names = zip(*json.loads(report.read_text()), strict=True)
    assert len(signals) > 20
    assert signals == (signal.SIGKILL,) * (len(signals) - 1) + (0,)
    assert steps == tuple(sorted(steps))
    assert (steps[0], steps[-1]) == (1, step)
    for newest, found in zip(steps, names, strict=True):
        assert set(found) == {f"step-{newest:06d}"}, "taken up, it is there alone, named and linked"


# --- signals -------------------------------------------------------------------------------------


def train(*arguments):
    return subprocess.Popen(
        [sys.executable, "-m", "harness", "train", *arguments],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )


def wait_for(condition, process):
    deadline = time.monotonic() + 120
    while not condition():
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < deadline
        time.sleep(0.01)


def steps_of(folder):
    return [r["step"] for r in metrics.read(folder) if "update/loss" in r]


@pytest.mark.slow
def test_sigterm_and_sigint_save_and_say_how_to_go_on(tmp_path):
    folder = tmp_path / "run"
    overrides = settings(tmp_path, "run", "run.steps=100", "checkpoint.every=100", "eval.every=0")
    process = train("corridor-tiny", *(part for o in overrides for part in ("--set", o)))
    wait_for(lambda: len(steps_of(folder)) >= 2, process)
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 143
    saved = checkpoints.newest(folder).step
    assert saved == steps_of(folder)[-1] >= 2
    assert f"Step {saved} of 100 is saved; go on with: harness train --resume {folder}" in said
    assert "Traceback" not in said
    process = train("--resume", str(folder))
    wait_for(lambda: len(steps_of(folder)) > saved, process)
    process.send_signal(signal.SIGINT)
    assert "stopped by SIGINT" in process.communicate(timeout=60)[1]
    assert process.returncode == 130
    assert checkpoints.newest(folder).step == steps_of(folder)[-1] > saved


@pytest.mark.slow
def test_a_terminal_that_is_closed_saves_too(tmp_path):
    """The shell and the system send a SIGHUP each, and what the run prints has no place to go."""
    folder = tmp_path / "run"
    overrides = settings(tmp_path, "run", "run.steps=100", "checkpoint.every=100", "eval.every=0")
    words = ["corridor-tiny", *(part for o in overrides for part in ("--set", o))]
    terminal, its_end = pty.openpty()
    command = [sys.executable, "-m", "harness", "train", *words]
    state = tmp_path / "state"
    environment = os.environ | {"OMP_NUM_THREADS": "1", "XDG_STATE_HOME": str(state)}
    process = subprocess.Popen(
        command,
        stdout=its_end,
        stderr=its_end,
        env=environment,
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL),  # if tests have `nohup`
    )
    os.close(its_end)
    os.set_blocking(terminal, False)
    wait_for(lambda: drain(terminal) or len(steps_of(folder)) >= 2, process)
    process.send_signal(signal.SIGHUP)
    process.send_signal(signal.SIGHUP)
    os.close(terminal)
    code = process.wait(60)
    assert code == 128 + signal.SIGHUP, [log.read_text() for log in state.rglob("*.log")]
    assert checkpoints.newest(folder).step == steps_of(folder)[-1] >= 2


def drain(terminal):
    """Read what a process has said to a terminal."""
    with suppress(BlockingIOError):
        while os.read(terminal, 4096):
            pass


def test_a_second_sighup_changes_nothing_and_an_ignored_one_stays_so():
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    stop = StopSignal()
    try:
        with stop.listening():
            signal.raise_signal(signal.SIGHUP)
            signal.raise_signal(signal.SIGHUP)
        assert stop.number == signal.SIGHUP
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_DFL
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        under_nohup = StopSignal()
        with under_nohup.listening():
            signal.raise_signal(signal.SIGHUP)
        assert under_nohup.number == 0
    finally:
        signal.signal(signal.SIGHUP, before)


def after(seconds, number=signal.SIGTERM):
    timer = threading.Timer(seconds, os.kill, (os.getpid(), number))
    timer.start()
    return timer


def test_episodes_that_take_too_long_after_a_signal_are_given_up():
    stop, ended = StopSignal(grace_s=0.1), []

    async def episodes():
        try:
            await asyncio.sleep(30)
        finally:
            ended.append(True)

    before = signal.getsignal(signal.SIGTERM)
    with stop.listening():
        after(0.05)
        with pytest.raises(Abandoned):
            stop.run(episodes())
    assert (stop.number, ended) == (signal.SIGTERM, [True])
    assert signal.getsignal(signal.SIGTERM) is before
    patient = StopSignal(grace_s=None)

    async def play_on():
        while not patient.number:
            await asyncio.sleep(0.01)
        return "played"

    with patient.listening():
        after(0.01, signal.SIGINT)
        assert patient.run(play_on()) == "played"
    assert patient.number == signal.SIGINT


def test_a_signal_that_torchrun_passes_on_too_counts_once(monkeypatch):
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "run")
    stop = StopSignal()
    with stop.listening():
        signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGTERM)
        assert stop.run(asyncio.sleep(0, "played")) == "played"
    assert stop.number == signal.SIGTERM


@pytest.mark.slow
def test_a_second_signal_ends_the_process_at_once(tmp_path):
    child = forked_runs.process(forked_runs.sleep_on, tmp_path / "listens")
    while not (tmp_path / "listens").exists():
        time.sleep(0.01)
    os.kill(child.pid, signal.SIGTERM)
    child.join(1.0)
    assert child.is_alive()
    os.kill(child.pid, signal.SIGTERM)
    child.join(30)
    assert child.exitcode == -signal.SIGTERM


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """What is left of a run without annotators that nothing befell."""
    folder = tmp_path_factory.mktemp("plain")
    setup.start(configs.load("corridor-tiny", settings(folder, "run"))).run()
    return left(folder / "run")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("step", "evaluates"), [(0, True), (1, False), (2, True)], ids=["at first", "playing", "later"]
)
def test_what_a_signal_cut_off_is_made_up_for(plain, tmp_path, step, evaluates):
    """The model hangs and SIGTERM comes, in an evaluation or a step: the run lacks nothing then."""
    stopped = setup.start(configs.load("corridor-tiny", settings(tmp_path, "run")))
    stopped.stop.grace_s = 0.0
    complete, asked = stopped.generator.completer.complete, 0

    async def hang(*arguments):
        nonlocal asked
        asked += stopped.step == step and stopped._is_saved != evaluates
        if asked == 5:
            after(0.0)
        if asked >= 5:
            await asyncio.sleep(1000)
        return await complete(*arguments)

    stopped.generator.completer.complete = hang
    with pytest.raises(TrainingStopped, match=f"Step {step} of 4 is saved") as caught:
        stopped.run()
    assert caught.value.exit_code == 143
    setup.resume(stopped.folder.path).run()
    assert left(stopped.folder.path) == plain


@pytest.mark.slow
def test_equal_seeds_leave_equal_files(plain, tmp_path):
    setup.start(configs.load("corridor-tiny", settings(tmp_path, "run"))).run()
    assert left(tmp_path / "run") == plain
    assert len(list((tmp_path / "run" / "rollouts").iterdir())) == STEPS


# --- checkpoints ---------------------------------------------------------------------------------


class Saved:
    """What is needed to save a policy."""

    def __init__(self, policy):
        self.policy = policy
        self.learner = Learner(policy, None, configs.OptimizerConfig(), "clipped", {}, 1.0)


def save(trainer, run, step, **options):
    return saving.begin(run, step, trainer.policy, trainer.learner.optimizer, **options).finish()


def steps_in(run):
    return [checkpoint.step for checkpoint in checkpoints.find_all(run)]


@pytest.fixture
def saved(policy):
    return Saved(policy)


def test_a_run_goes_on_while_a_checkpoint_reaches_the_disk(tmp_path, monkeypatch):
    """Its files are flushed once the next step has begun, and count when that has ended."""
    begun, waited, counted = threading.Event(), [], []
    flush, step = file_digests.flushed, Trainer.train_step

    def flushed(folder, names):
        if folder.name == ".step-000001.partial":
            waited.append(begun.wait(60))
        return flush(folder, names)

    def train_step(trainer):
        counted.append(steps_in(tmp_path / "run"))
        if trainer.step == 1:
            begun.set()
        return step(trainer)

    monkeypatch.setattr(file_digests, "flushed", flushed)
    monkeypatch.setattr(Trainer, "train_step", train_step)
    more = ("run.steps=3", "checkpoint.in_background=true", "checkpoint.keep=9")
    setup.start(configs.load("corridor-tiny", settings(tmp_path, "run", *more))).run()
    assert waited == [True]
    assert counted == [[], [0], [0, 1]]
    assert steps_in(tmp_path / "run") == [0, 1, 2, 3]


def test_the_newest_and_the_best_are_kept(saved, tmp_path):
    figures = [0.2, 0.9, None, 0.9, float("nan"), 0.1]
    for step, success in enumerate(figures):
        validation = {} if success is None else {"success": success, "score": -float(step)}
        save(saved, tmp_path, step, keep=2, keep_best=1, validation=validation)
    assert steps_in(tmp_path) == [1, 4, 5], "of equal ones the earlier is the best"
    assert find(str(tmp_path / "checkpoints" / "best")).step == 1
    last = save(saved, tmp_path, 6, keep=1, keep_best=2, best="score", validation={"score": 0.0})
    assert steps_in(tmp_path) == [1, 6]
    assert (tmp_path / "checkpoints" / "best").readlink().name == last.folder.name
    save(saved, tmp_path, 7, keep=1)
    assert steps_in(tmp_path) == [7]
    assert not (tmp_path / "checkpoints" / "best").exists()


def test_a_checkpoint_is_not_taken_up_where_nothing_can_be_changed(saved, tmp_path):
    save(saved, tmp_path, 1, keep=1, validation={"success": 0.5})
    blocked = tmp_path / "checkpoints" / ".best.partial"
    blocked.mkdir()
    with pytest.raises(CheckpointError, match=r"from step 1, .* cannot be changed"):
        checkpoints.finish_save(tmp_path, keep=1)
    blocked.rmdir()
    assert checkpoints.finish_save(tmp_path, keep=1).step == 1


def test_a_damaged_checkpoint_is_passed_over(saved, tmp_path, caplog):
    one, two, three = (save(saved, tmp_path, step, keep=3) for step in (1, 2, 3))
    weights = three.folder / "model.safetensors"
    content = weights.read_bytes()
    weights.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    assert checkpoints.newest(tmp_path) == two
    assert "model.safetensors is damaged" in caplog.text
    (two.folder / "trainer.pt").write_bytes(b"cut off")
    (three.folder / "checkpoint.json").write_text("{")
    assert checkpoints.newest(tmp_path) == one
    (one.folder / "trainer.pt").unlink()
    with pytest.raises(CheckpointError, match="no checkpoint of .* is whole.*is missing"):
        checkpoints.newest(tmp_path)
    again = save(saved, tmp_path, 3, keep=1)
    assert checkpoints.newest(tmp_path) == again
    assert [path.name for path in (tmp_path / "checkpoints").iterdir()] == ["step-000003"]


def test_a_checkpoint_without_digests_is_damaged(saved, tmp_path):
    old = save(saved, tmp_path, 1, keep=1)
    (old.folder / "checkpoint.json").write_text('{"step": 1}')
    with pytest.raises(CheckpointError, match="checkpoint.json is damaged: 'files'"):
        checkpoints.newest(tmp_path)
    assert checkpoints.newest(tmp_path / "nothing") is None


@contextmanager
def files_of_at_most(size):
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("size", [1000, 10_000, 50_000])
def test_a_disk_without_room_leaves_what_was_saved(saved, tmp_path, size):
    first = save(saved, tmp_path, 1, keep=1)
    with (
        files_of_at_most(size),
        pytest.raises(TrainingError, match="step 2 cannot be written.*make room"),
    ):
        save(saved, tmp_path, 2, keep=1)
    assert checkpoints.newest(tmp_path) == first
    assert [path.name for path in (tmp_path / "checkpoints").iterdir()] == ["step-000001"]


@pytest.mark.slow
def test_a_run_that_was_not_saved_yet_begins_again_but_not_one_that_lost_its_checkpoints(tmp_path):
    config = configs.load("corridor-tiny", settings(tmp_path, "run"))
    folder = setup.start(config).folder.path
    again = setup.resume(folder)
    assert again.step == 0
    again.log.write(1, {"update/loss": 0.0})
    with pytest.raises(CheckpointError, match="has no checkpoint any more"):
        setup.resume(folder)


# --- advice --------------------------------------------------------------------------------------


def test_no_memory_is_advice():
    config = Config()
    with (
        pytest.raises(TrainingError, match=r"to learn .*micro_batch_tokens \(now 8192\)"),
        phases.with_hints(config, "learn"),
    ):
        torch.empty(1 << 50)
    with (
        pytest.raises(TrainingError, match=r"to collect .*rollout.max_batch \(now 256\)"),
        phases.with_hints(config, "collect"),
    ):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB\nmore")
    with pytest.raises(RuntimeError, match="another"), phases.with_hints(config, "learn"):
        raise RuntimeError("another error")


@pytest.mark.slow
def test_a_run_that_diverges_stops_with_advice(tmp_path):
    overrides = settings(tmp_path, "run", "eval.every=0")
    trainer = setup.start(configs.load("corridor-tiny", overrides))
    wild = trainer.config.optimizer.model_copy(update={"learning_rate": 1e30})  # out of its range
    trainer.config = trainer.config.model_copy(update={"optimizer": wild})
    trainer.learner.config = wild
    told = r"is (nan|-?inf).*learning_rate \(now 1e\+30\)"
    with np.errstate(all="ignore"), pytest.raises(TrainingError, match=told) as caught:
        trainer.run()
    done = len(steps_of(trainer.folder.path))
    assert f"Step {done} of 4 is saved; go on with: harness train --resume" in str(caught.value)
    assert all(torch.isfinite(value).all() for value in trainer.policy.model.state_dict().values())


@pytest.mark.slow
def test_a_policy_that_says_nan_stops_the_run(tmp_path):
    trainer = setup.start(configs.load("corridor-tiny", settings(tmp_path, "run")))
    with torch.no_grad():
        trainer.policy.model.get_output_embeddings().weight.fill_(float("nan"))
    with pytest.raises(TrainingError, match="log-probability of turn 0 of this step is nan"):
        trainer.train_step()


# --- lost members --------------------------------------------------------------------------------


class Breaking(CorridorEnv):
    """Its infrastructure fails at given steps, counted over all environments."""

    fails, steps, resets, starts = frozenset(), 0, 0, {}

    def begin(self, task, rng):
        Breaking.resets += 1
        outcome = super().begin(task, rng)
        self._position = Breaking.starts.get(Breaking.resets, 0)
        return self._outcome(outcome.observation)

    def act(self, action):
        Breaking.steps += 1
        if Breaking.steps in Breaking.fails:
            raise EnvUnavailable("the server is gone")
        return super().act(action)


def play_breaking(fails=(), starts=None, **options):
    if "test/Breaking-v0" not in gym.registry:
        gym.register("test/Breaking-v0", Breaking)
    Breaking.fails, Breaking.steps, Breaking.resets = frozenset(fails), 0, 0
    Breaking.starts = starts or {}
    pool = EnvPool("test/Breaking-v0", 4, 8, max_turns=6)
    draws = [TaskDraw("train/free-000", 3), TaskDraw("train/locked-001", 4)]
    actor = FunctionActor(lambda view, seed: ("left", "right", "take key")[seed % 3])
    rollouts = asyncio.run(
        collect(pool, draws, actor, seed=2, options=CollectOptions(pause_s=0, **options))
    )
    assert len({id(env) for group in pool._free for env in group.envs}) == 4 * len(pool._free)
    return rollouts


def test_only_the_lost_member_is_played_again():
    undisturbed = play_breaking()
    steps = Breaking.steps
    assert play_breaking([5, 20, 21]) == undisturbed
    assert Breaking.steps < steps + 3 * 6, "others were played again"
    assert Breaking.resets == 2 + 3


def test_a_member_that_begins_elsewhere_costs_its_group(caplog):
    undisturbed = play_breaking()
    assert play_breaking([5], starts={3: 1}) == undisturbed
    assert "GroupMismatch: member" in caplog.text
    assert Breaking.resets == 4


def test_a_group_that_cannot_be_completed_is_dropped_whole():
    one, *others = play_breaking(range(30, 1000), retries=1)
    assert len(others) in (0, 4)
    assert {r.error for r in (one, *others)} - {""} == {"EnvUnavailable: the server is gone"}
    assert all(len(r.turns) == 0 for r in (one, *others) if r.error)


def test_no_more_episodes_are_live_than_the_servers_hold():
    def going_left(pool, groups):
        draws = [TaskDraw(f"train/free-{2 * i:03d}", i) for i in range(groups)]
        actor = FunctionActor(lambda view, seed: "left")
        return asyncio.run(collect(pool, draws, actor, seed=0))

    apps = [create_app(CORRIDOR, token="", max_sessions=n) for n in (3, 2)]
    with Server(apps[0]) as one, Server(apps[1]) as two:
        pool = EnvPool(CORRIDOR, 2, 64, url=[one.url, two.url], max_turns=3)
        began = time.monotonic()
        rollouts = going_left(pool, 8)
        assert time.monotonic() - began < 5, "nobody waited for a place"
        assert asyncio.run(pool.max_open_groups()) == 2
        assert [len(rollout.turns) for rollout in rollouts] == [3] * 16
        pool.close()
        wide = EnvPool(CORRIDOR, 6, 64, url=one.url, max_turns=3)
        with pytest.raises(ConfigError, match="3 sessions, one group needs 6"):
            going_left(wide, 1)


def test_a_checkpoint_is_a_policy(saved, tmp_path):
    folder = save(saved, tmp_path, 1, keep=1).folder
    loaded = Policy.load(str(folder), "cpu").model.state_dict()
    assert all(
        torch.equal(value, loaded[name]) for name, value in saved.policy.model.state_dict().items()
    )
    assert json.loads((folder / "checkpoint.json").read_text())["step"] == 1
