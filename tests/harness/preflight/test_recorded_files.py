"""Runs that learn from recorded rollouts: which they take, and what is refused before a run."""

import math
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from run_contents import header_of, left
from small_training import last_checkpoint, lines, run, small

from harness.cli.main import main
from harness.model.logprobs import score_tokens
from harness.model.packing import single_turn
from harness.model.policy import Policy
from harness.preflight.recorded_files import read_preferences
from harness.rollouts import rollout_files
from harness.rollouts.search import preferences
from harness.runs.runfolder import RunFolder
from harness.training import setup
from harness.types.errors import ConfigError

FROM = (
    "rollout.tasks_per_step=3",
    "eval.every=0",
    "eval.tasks=1",
    "checkpoint.every=1",
    "checkpoint.keep=4",
)


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """The folder of a run that kept the rollouts of two steps, and of a third as texts."""
    kept = ("run.keep_rollouts=1", "run.steps=2", "method.name='grpo'", "method.loss={}")
    settings = ("rollout.tasks_per_step=4", "rollout.group_size=4", *FROM[1:])
    trainer = run(small(tmp_path_factory.mktemp("source"), "source", *settings, *kept))
    file = trainer.folder.rollouts(2)
    about = {**header_of(file), "tokens": False}
    texts = rollout_files.read(file).rollouts
    rollout_files.write(trainer.folder.rollouts(3), texts, tokens=False, about=about)
    return trainer.folder.path


def learns(source, tmp_path, *overrides, name="dpo"):
    model = last_checkpoint(RunOf(source)).folder
    given = (f"rollout.recorded=['{source}/rollouts']", f"policy.model='{model}'")
    method = (f"method.name={name!r}", "method.credit={}", "method.loss={}", "run.steps=3")
    settings = ("warmstart.episodes=0", *FROM, *given, *method, *overrides)
    return small(tmp_path, "learns", *settings)


class RunOf:
    """What `last_checkpoint` reads of a trainer."""

    def __init__(self, path):
        self.folder = RunFolder(path)


def test_each_group_of_the_files_is_taken_once_in_a_pass(source, tmp_path):
    trainer = setup.start(learns(source, tmp_path))
    files = trainer.config.rollout.recorded
    assert [file[-20:] for file in files] == ["step-000001.jsonl.gz", "step-000002.jsonl.gz"]
    groups = {}
    for file in files:
        for one in rollout_files.read(file).rollouts:
            groups.setdefault((file, one.group), []).append(replace(one, group=0))
    steps = [trainer._player.play(step).rollouts for step in range(8)]
    trainer.close()
    taken = [
        [replace(one, group=0) for one in rollouts if one.group == i]
        for rollouts in steps
        for i in range(3)
    ]
    assert len(groups) == 8
    for first in range(0, 24, 8):  # three passes, over the ends of steps
        one_pass = taken[first : first + 8]
        assert all(one_pass.count(group) == 1 for group in groups.values())
    assert taken[:8] != taken[8:16], "each pass has an order of its own"


@pytest.mark.parametrize(
    "name",
    ["dpo", *(pytest.param(name, marks=pytest.mark.slow) for name in ("kto", "rft", "sft"))],
)
def test_a_run_on_files_that_is_resumed_equals_an_uninterrupted_one(source, tmp_path, name):
    copied = tmp_path / "copied"
    shutil.copytree(source, copied)
    whole = run(learns(copied, tmp_path, name=name))
    steps = [record for record in lines(whole) if "update/loss" in record]
    assert len(steps) == 3
    assert any(record["update/grad_norm"] > 0 for record in steps)
    part = tmp_path / "part"
    shutil.copytree(whole.folder.path, part)
    for step in (2, 3):
        shutil.rmtree(part / f"checkpoints/step-{step:06d}")
    shutil.copy(copied / "rollouts/step-000001.jsonl.gz", copied / "rollouts/step-000000.jsonl.gz")
    resumed = setup.resume(part)
    assert resumed.step == 1
    resumed.run()
    assert lines(resumed) == lines(whole), "files that came into the folder since are not read"
    assert left(part) == left(whole.folder.path)


def test_the_dry_run_counts_no_environment_steps(source):
    given = (f"rollout.recorded=['{source}/rollouts']", "rollout.tasks_per_step=3")
    method = ("method.name=dpo", "method.credit={}", "method.loss={}")
    words = [word for one in (*given, *method) for word in ("--set", one)]
    output = CliRunner().invoke(main, ["train", "corridor-tiny", *words, "--dry-run"]).output
    assert "3 recorded groups a step, of 2 files: no environment steps" in output
    assert "episodes a step" not in output
    assert "nothing is missing" in output


def refused(config):
    with pytest.raises(ConfigError) as caught:
        setup.start(config)
    message = str(caught.value)
    assert len(message) <= 300
    assert "\n" not in message
    assert not (RunFolder.from_config(config).path / "config.json").exists(), "nothing is left"
    return message


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("env", "agentgyms/Sokoban-v0", "the environment of"),
        ("style", "sokoban/compact 0123456789ab", "the prompt style of"),
        ("context", "transcript", "the context of"),
        ("data_version", "2019", "the data version of"),
        ("tokenizer", "0123456789ab", "the tokenizer of"),
        ("tokenizer", None, "is not told"),
    ],
)
def test_files_of_another_run_are_refused(source, tmp_path, field, value, words):
    file = source / "rollouts/step-000001.jsonl.gz"
    about = {**header_of(file), field: value}
    if value is None:
        del about[field]
    other = tmp_path / "other.jsonl.gz"
    rollout_files.write(other, rollout_files.read(file).rollouts, about=about)
    message = refused(learns(source, tmp_path, f"rollout.recorded=['{other}']"))
    assert words in message
    assert str(value or "") in message


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        (("rollout.recorded=['{empty}']",), "holds no rollouts with tokens"),
        (("rollout.recorded=['{empty}/none']",), "there is no file"),
        (("rollout.recorded=['{source}/rollouts/step-000003.jsonl.gz']",), "with tokens"),
        (("rollout.dynamic_sampling=true",), "rollout.dynamic_sampling plays"),
        (("rollout.branch.at='uniform'",), "rollout.branch.at plays"),
    ],
)
def test_what_has_nothing_to_learn_from_is_refused(source, tmp_path, overrides, words):
    empty = tmp_path / "empty"
    empty.mkdir()
    given = [one.format(empty=empty, source=source) for one in overrides]
    with pytest.raises(ConfigError, match=words) as caught:
        setup.start(learns(source, tmp_path, *given))
    assert len(str(caught.value)) <= 300


@pytest.mark.parametrize("name", ["grpo", "gigpo", "ppo"])
def test_methods_on_policy_are_refused_with_the_reason(source, tmp_path, name):
    assert f"method {name} is on-policy" in refused(learns(source, tmp_path, name=name))


def test_turns_that_the_model_cannot_read_are_refused(source, tmp_path):
    bare = tmp_path / "bare.jsonl"
    file = source / "rollouts/step-000001.jsonl.gz"
    rollout_files.write(
        bare, rollout_files.read(file).rollouts, tokens=False, about=header_of(file)
    )
    assert "a turn without tokens" in refused(
        learns(source, tmp_path, f"rollout.recorded=['{bare}']")
    )
    policy = Policy.load(str(last_checkpoint(RunOf(source)).folder), "cpu")
    policy.model.config.max_position_embeddings = 4
    policy.save(tmp_path / "short")
    short = learns(source, tmp_path, f"policy.model='{tmp_path}/short'")
    assert "the model reads 4" in refused(short)


def from_preferences(source, tmp_path, *overrides, name="dpo", pairs=None):
    """A run on a file of preferences."""
    file = tmp_path / "preferences.jsonl"
    if pairs is None:
        pairs = [pair(f"task {i}", "<action>left</action>", "left", 1.0, 0.5) for i in range(5)]
    preferences.write(file, pairs)
    return learns(source, tmp_path, f"rollout.recorded=['{file}']", *overrides, name=name)


def pair(task, chosen, rejected, better, worse):
    messages = ({"role": "user", "content": f"Go on: {task}."},)
    return preferences.Preference(task, 0, messages, chosen, rejected, better, worse, 1)


@pytest.mark.parametrize(
    "name", ["dpo", *(pytest.param(name, marks=pytest.mark.slow) for name in ("ipo", "kto"))]
)
def test_the_chosen_answer_of_a_preference_becomes_likelier(source, tmp_path, name):
    rate = ("optimizer.learning_rate=1e-3", "optimizer.mini_batches=1", "run.steps=4")
    config = from_preferences(source, tmp_path, *rate, name=name)
    trainer = setup.start(config)
    rollouts = trainer._player.play(0).rollouts
    assert len(rollouts) == 6
    decode = trainer.policy.decode
    assert [decode(one.turns[0].completion.response_ids) for one in rollouts[:2]] == [
        "<action>left</action>",
        "left",
    ]
    rows = [single_turn(one.turns[0].completion, 0.0) for one in rollouts]

    def margins():
        scores = [one.logprob.sum() for one in score_tokens(trainer.policy, rows, 1.0, 4096)]
        return [a - b for a, b in zip(scores[::2], scores[1::2], strict=True)]

    before = margins()
    trainer.run()
    assert all(after > first for after, first in zip(margins(), before, strict=True))
    steps = [record for record in lines(trainer) if "update/loss" in record]
    if name != "kto":
        assert [record["credit/pairs"] for record in steps] == [3] * 4
    if name == "dpo":
        assert steps[0]["credit/preference_loss"] == pytest.approx(math.log(2), abs=1e-6)


def test_the_preference_in_the_documentation_is_read(tmp_path):
    page = (Path(__file__).parents[3] / "docs" / "training.md").read_text(encoding="utf-8")
    (text,) = re.findall(r"```json\n(.*?)```", page, re.DOTALL)
    (tmp_path / "pairs.jsonl").write_text(text)
    (found,) = read_preferences(str(tmp_path / "pairs.jsonl"))
    assert found.chosen == "<action>open door</action>"


def test_preferences_that_cannot_be_learned_from_are_refused(source, tmp_path):
    none = refused(from_preferences(source, tmp_path, pairs=[]))
    assert "or one of preferences" in none
    turned = [pair("one", "a", "b", 0.5, 1.0)]
    assert "preference 1 of" in refused(from_preferences(source, tmp_path, pairs=turned))
    long = [pair("one " * 5000, "a", "b", 1.0, 0.5)]
    assert "and the model reads" in refused(from_preferences(source, tmp_path, pairs=long))
    assert "would imitate both" in refused(from_preferences(source, tmp_path, name="sft"))
    assert "is on-policy" in refused(from_preferences(source, tmp_path, name="grpo"))
    damaged = from_preferences(source, tmp_path)
    with (tmp_path / "preferences.jsonl").open("a") as file:
        file.write("{}")
    assert "line 6: " in refused(damaged)


def test_preferences_lie_beside_rollouts(source, tmp_path):
    file = tmp_path / "preferences.jsonl"
    both = f"rollout.recorded=['{source}/rollouts', '{file}']"
    player = setup.start(from_preferences(source, tmp_path, both))._player
    apart = setup.start(learns(source, tmp_path, "run.name=apart"))._player
    assert len(player._groups) == len(apart._groups) + 5
