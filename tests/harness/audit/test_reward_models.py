"""An audit with a run's reward model: its scores are Eq. 1 of OPRL, and `oprl` gets a row."""

import json
import shutil

import numpy as np
import pytest
from click.testing import CliRunner
from small_training import run, small

from harness.audit.reward_models import process_rewards
from harness.audit.truth_sets import read
from harness.cli.main import main
from harness.model.packing import single_turn, to_batch
from harness.rollouts import rollout_files
from harness.runs import checkpoints
from harness.types.errors import CheckpointError, ConfigError


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("oprl")
    own = ("method.name=oprl", "run.steps=2", "method.annotators.process_reward.learning_rate=1e-2")
    return run(small(folder, "oprl", *own, "run.keep_rollouts=1"))


def audit(*words):
    played = ("--tasks", "1", "--group-size", "4", "--continuations", "4")
    result = CliRunner().invoke(main, ["credit", "audit", *played, *map(str, words)])
    if isinstance(result.exception, Exception):
        raise result.exception
    return result


def test_scores_are_the_log_ratio_of_the_two_models(trained):
    """Each turn alone in its batch, by the models as the run left them."""
    path = trained.folder.path
    rollouts = rollout_files.read(sorted((path / "rollouts").glob("*"))[-1]).rollouts
    policy, annotator = trained.policy, trained.credit.annotators["process_reward"]
    found = process_rewards(path, policy, rollouts, 1.0)
    expected = []
    for turn in (turn for rollout in rollouts for turn in rollout.turns):
        batch = to_batch([single_turn(turn.completion, 1.0)], policy.pad_id)
        new, old = (one.logprobs(batch, 1.0)[0].sum().item() for one in (annotator.model, policy))
        expected.append(0.05 * (new - old))
    np.testing.assert_allclose(found, expected, atol=2e-6)
    assert found.std() > 1e-4


def test_the_command_scores_oprl(trained, tmp_path):
    path, kept, values = trained.folder.path, tmp_path / "truth.npz", tmp_path / "audit.json"
    words = ("--methods", "oprl,grpo", "--process-reward", path, "--save", kept, "--json", values)
    result = audit("--model", path, *words)
    assert result.exit_code == 0, result.output
    first = json.loads(values.read_text())
    assert set(first["methods"]) == {"oprl", "grpo"}
    assert np.isfinite(read(kept).truth.turns.process_reward).all()
    words = ("--truth", kept, "--methods", "oprl,grpo", "--json", values)
    again = CliRunner().invoke(main, ["credit", "audit", *map(str, words)])
    assert again.exit_code == 0, again.output
    assert json.loads(values.read_text())["methods"] == first["methods"]


def test_what_has_no_reward_model_is_refused_before_anything_is_played(trained, tmp_path):
    path = trained.folder.path
    config = tmp_path / "config.json"
    for given, model, why in (
        (None, path, "no training run's folder"),
        ({}, path, "trained no process reward model"),
        ({"process_reward": {"objective": "ce"}}, path, "objective 'ce'"),
        ({}, "expert", "the backend is expert"),
    ):
        if given is not None:
            config.write_text(json.dumps({"method": {"annotators": given}}))
        words = ("--env", "Corridor", "--model", model, "--process-reward", tmp_path)
        with pytest.raises(ConfigError, match=why):
            audit(*words)


def test_a_damaged_checkpoint_is_named(trained, tmp_path):
    run = tmp_path / "copy"
    shutil.copytree(trained.folder.path, run)
    (checkpoints.find_all(run)[-1].folder / "trainer.pt").write_bytes(b"no model")
    with pytest.raises(CheckpointError, match=r"trainer\.pt cannot be used"):
        process_rewards(run, trained.policy, [], 1.0)
