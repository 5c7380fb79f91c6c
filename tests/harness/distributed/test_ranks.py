"""Several processes that train together: what they do is what one does, and none waits forever."""

import json
import os
import subprocess
import sys
from pathlib import Path

import forked_ranks
import pytest
import torch
from ports import free_port
from ranks_program import copy

from harness import config as configs
from harness.distributed import fsdp
from harness.distributed.process_group import SINGLE_PROCESS, ProcessGroup, torchrun_processes
from harness.model.packing import Sample, padding_sample, to_batch
from harness.model.policy import Policy
from harness.runs import metrics, training_state
from harness.training import setup
from harness.types.errors import ConfigError

PROGRAM = Path(__file__).with_name("ranks_program.py")
LEAVING = Path(__file__).with_name("leaving_program.py")
SMALL = [
    "run.steps=2",
    "run.threads=1",
    "policy.device='cpu'",
    "policy.tiny.layers=2",
    "policy.tiny.hidden=32",
    "policy.tiny.heads=4",
    "policy.tiny.feed_forward=48",
    "warmstart.episodes=8",
    "warmstart.steps=8",
    "warmstart.batch_size=8",
    "warmstart.learning_rate=1e-2",
    "env.max_turns=6",
    "eval.tasks=1",
    "eval.every=9",
    "rollout.tasks_per_step=3",  # one process plays two groups, the other one
    "optimizer.micro_batch_tokens=300",
    "checkpoint.every=1",
    "checkpoint.keep=9",
    "log.outputs=[]",
]
METHODS = {
    "gigpo": [
        "method.loss={kl_coefficient=0.05}",
        "policy.ema=0.5",
        "rollout.curriculum={by='family', bounds=[0.5, 0.6]}",
    ],
    "ppo": [
        *("method.name='ppo'", "policy.gradient_checkpointing=true", "policy.lora.rank=2"),
        *("policy.ema=0.5", "optimizer.packing='shared'", "policy.offload='optimizer'"),
    ],
    "oprl": [
        *("method.name='oprl'", "method.loss={}", "optimizer.packing='packed'"),
        "policy.ema=0.5",  # with weights that are offloaded
    ],
}

OF_SEVERAL = {"oprl": ["policy.offload='parameters'", "checkpoint.in_background=true"]}
RESUMED = ("gigpo", "ppo")
QUIET = {"OMP_NUM_THREADS": "1", "TQDM_DISABLE": "1"}


def settings(home, name, method="gigpo"):
    return [f"run.output='{home}'", f"run.name='{name}'", *SMALL, *METHODS[method]]


def jobs_file(home, jobs):
    file = home / "jobs.json"
    file.write_text(json.dumps(jobs))
    return file


def unwatched(home, jobs, size=2):
    """Do the jobs in processes that nothing ends but themselves; exit codes, and what each said."""
    rendezvous = {
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(free_port()),
        "WORLD_SIZE": str(size),
    }
    call = [sys.executable, str(PROGRAM), str(jobs_file(home, jobs))]
    started = []
    for rank in map(str, range(size)):
        own = {"RANK": rank, "LOCAL_RANK": rank, "PYTHONPATH": str(PROGRAM.parents[1])}
        environment = {**os.environ, **QUIET, **rendezvous, **own}
        with (home / f"said-{rank}").open("w") as said:
            started.append(subprocess.Popen(call, env=environment, stdout=said, stderr=said))
    try:
        codes = [process.wait(120) for process in started]
    finally:
        for process in started:
            process.kill()
            process.wait()
    return codes, [(home / f"said-{rank}").read_text() for rank in range(size)]


def lines(folder):
    return [metrics.repeatable(record) for record in metrics.read(folder)]


def state(folder):
    """Return all tensors and numbers of a run's last checkpoint but random states, by name."""
    last = sorted((folder / "checkpoints").glob("step-*"))[-1]
    kept = training_state.load(last)
    del kept["random"]
    weights = Policy.load(str(last), "cpu").model.state_dict()
    return dict(_leaves({**kept, "weights": weights}, ""))


def _leaves(value, name):
    if isinstance(value, dict | list | tuple):
        pairs = value.items() if isinstance(value, dict) else enumerate(value)
        for key, one in pairs:
            yield from _leaves(one, f"{name}/{key}")
    else:
        yield name, value


def check_alike(one, other, within=1e-5):
    """Compare two runs: every figure of every step, and all that is kept at the end."""
    a, b = lines(one), lines(other)
    assert [record.keys() for record in a] == [record.keys() for record in b]
    for x, y in zip(a, b, strict=True):
        for name, value in x.items():
            # OPRL divides small rewards by their deviation, which makes more of their rounding.
            factor = 10 if name.startswith("credit/") else 1
            assert y[name] == pytest.approx(value, rel=factor * within, abs=factor * within), name
    x, y = state(one), state(other)
    assert x.keys() == y.keys()
    for name, value in x.items():
        if isinstance(value, torch.Tensor):
            torch.testing.assert_close(y[name], value, rtol=within, atol=within)
        else:
            assert y[name] == value


@pytest.mark.slow
def test_two_processes_do_what_one_does_and_go_on_from_each_others_checkpoints(tmp_path):
    for method in METHODS:
        setup.start(configs.load("corridor-tiny", settings(tmp_path, f"{method}-1", method))).run()
    jobs = [["start", [*settings(tmp_path, f"{m}-2", m), *OF_SEVERAL.get(m, [])]] for m in METHODS]
    for method in RESUMED:
        alone, shared = str(tmp_path / f"{method}-1"), str(tmp_path / f"{method}-2")
        jobs.append(["go_on", alone, str(tmp_path / f"{method}-1-2"), 1])
        jobs.append(["go_on", shared, str(tmp_path / f"{method}-2-2"), 1])
    jobs.append(["score_one", str(tmp_path / "gigpo-2/reference"), str(tmp_path / "scored.json")])
    code, said = forked_ranks.torchrun(2, jobs, tmp_path)
    assert code == 0, said[-3000:]
    for method in METHODS:
        one, two = tmp_path / f"{method}-1", tmp_path / f"{method}-2"
        steps = [record for record in lines(one) if "update/loss" in record]
        assert len(steps) == 2
        assert any(record["update/grad_norm"] > 0 for record in steps)
        check_alike(one, two)
    for method in RESUMED:
        one, two = tmp_path / f"{method}-1", tmp_path / f"{method}-2"
        check_alike(one, tmp_path / f"{method}-1-2")  # from one process to two
        check_alike(two, tmp_path / f"{method}-2-2", within=0)  # the same processes: to the bit
        copy(two, tmp_path / f"{method}-2-1", 1)
        setup.resume(tmp_path / f"{method}-2-1").run()
        check_alike(two, tmp_path / f"{method}-2-1")
    scored = json.loads((tmp_path / "scored.json").read_text())
    assert all(count == 1 and gap < 1e-5 for count, gap, _ in scored)
    assert all(0.4 < share < 0.6 for *_, share in scored)  # each holds its half


@pytest.mark.slow
def test_one_two_and_four_processes_go_on_from_each_others_checkpoints(tmp_path):
    def settings_of(name):
        return [*settings(tmp_path, name), "rollout.tasks_per_step=4"]

    def going_on(size, *others):
        return [["go_on", str(tmp_path / x), str(tmp_path / f"{x}-{size}"), 1] for x in others]

    setup.start(configs.load("corridor-tiny", settings_of("1"))).run()
    for size, *jobs in (
        (4, ["start", settings_of("4")], *going_on(4, "1")),
        (2, ["start", settings_of("2")], *going_on(2, "4")),
        (4, *going_on(4, "2", "4")),
    ):
        code, said = forked_ranks.torchrun(size, jobs, tmp_path)
        assert code == 0, said[-3000:]
    copy(tmp_path / "4", tmp_path / "4-1", 1)
    setup.resume(tmp_path / "4-1").run()
    assert any(record.get("update/grad_norm", 0) > 0 for record in lines(tmp_path / "1"))
    for other in ("2", "4", "1-4", "4-2", "2-4", "4-1"):
        check_alike(tmp_path / "1", tmp_path / other)
    check_alike(tmp_path / "4", tmp_path / "4-4", within=0)  # the same processes: to the bit


@pytest.mark.slow
@pytest.mark.parametrize(
    ("job", "told"),
    [
        ("fail", "process 1 of 2 failed: ValueError: the model has left"),
        ("die", "process 0 of 2 lost another process"),
    ],
)
def test_one_process_that_fails_or_dies_ends_all(tmp_path, job, told):
    codes, said = unwatched(tmp_path, [[job, settings(tmp_path, job)]])  # joining.TIMEOUT is longer
    assert all(codes), codes
    assert told in said[0]


@pytest.mark.slow
def test_four_processes_stop_once_enough_groups_of_all_have_ended(tmp_path):
    """One of them plays nothing but groups that wait for the others to have ended."""
    codes, said = forked_ranks.run(4, [["collect_enough", str(tmp_path)]], tmp_path)
    assert not any(codes), said
    whole = [[group, member] for group in (0, 1, 2, 4, 5, 6) for member in range(2)]
    for told in ("told-0.json", "told-1.json"):  # the second begins to count at 0 again
        assert json.loads((tmp_path / told).read_text()) == whole


@pytest.mark.slow
def test_processes_that_leave_at_once_end_well():
    call = [sys.executable, str(LEAVING), *(str(free_port()) for _ in range(8))]
    done = subprocess.run(call, capture_output=True, text=True, timeout=240, check=True)
    assert json.loads(done.stdout) == [0] * 16, done.stderr[-3000:]


def test_micro_batches_are_dealt_so_that_all_get_equally_many():
    for count in range(6):
        for size in (1, 2, 3):
            items = list(range(count))
            dealt = [list(ProcessGroup(rank, size).padded_share(items, -1)) for rank in range(size)]
            assert len({len(own) for own in dealt}) == 1
            assert sorted(i for own in dealt for i in own if i >= 0) == items
            assert all(own.count(-1) <= 1 for own in dealt)


def test_a_row_without_weight_trains_nothing():
    row = Sample((5, 6, 7), (8, 9), (-1.0, -2.0), 3.0)
    batch = to_batch([padding_sample(row)], pad_id=0)
    assert batch.tokens.tolist() == [[5]]
    assert not batch.action_mask.any()
    assert not batch.advantage.any()


def test_alone_nothing_is_exchanged():
    assert SINGLE_PROCESS.gather(3) == [3]
    assert SINGLE_PROCESS.run_on_first(lambda: 4) == 4
    assert not SINGLE_PROCESS.any(False)
    with pytest.raises(ZeroDivisionError):
        SINGLE_PROCESS.run_on_all(lambda: 1 / 0)
    with torchrun_processes() as processes:
        assert processes is SINGLE_PROCESS


def test_half_of_torchruns_variables_are_refused(monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.delenv("RANK", raising=False)
    with pytest.raises(ConfigError, match="torchrun"), torchrun_processes():
        pass


def test_an_optimizer_is_kept_by_names_and_older_files_still_load():
    first, second = (torch.nn.Linear(3, 2) for _ in range(2))
    optimizers = [torch.optim.AdamW(module.parameters(), lr=0.1) for module in (first, second)]
    first(torch.ones(3)).sum().backward()
    optimizers[0].step()
    kept = fsdp.optimizer_state(optimizers[0], first.named_parameters())
    assert set(kept["state"]) == {"weight", "bias"}
    for found in (kept, optimizers[0].state_dict()):
        fsdp.load_optimizer_state(optimizers[1], second.named_parameters(), found)
        moments = [o.state[p] for o, p in zip(optimizers, (first.bias, second.bias), strict=True)]
        assert torch.equal(moments[0]["exp_avg"], moments[1]["exp_avg"])
    kept["param_groups"][0]["fused"] = True  # saved on a GPU
    fsdp.load_optimizer_state(optimizers[1], second.named_parameters(), kept)
    assert optimizers[1].param_groups[0]["fused"] is None
    kept["param_groups"][0]["params"][0] = "other"
    with pytest.raises(RuntimeError, match="another model"):
        fsdp.load_optimizer_state(optimizers[1], second.named_parameters(), kept)
