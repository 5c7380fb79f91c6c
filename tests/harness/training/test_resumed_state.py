"""A curriculum, Muon and averaged weights: a resumed run equals an uninterrupted one."""

import json
import shutil

import pytest
import torch
from small_training import last_checkpoint, lines, run, small

from harness.evaluation import model_source
from harness.model.policy import Policy
from harness.runs import checkpoints
from harness.training import model_export, setup
from harness.types.errors import CheckpointError

pytestmark = pytest.mark.slow

SETTINGS = [
    "run.steps=3",
    "checkpoint.every=1",
    "checkpoint.keep=3",
    "eval.every=2",
    "eval.tasks=2",
    "rollout.tasks_per_step=3",
    "rollout.group_size=3",
    "rollout.curriculum={by='family', bounds=[0.5, 0.6], shares=[0.3, 0.3]}",
    "optimizer.name='muon'",
    "optimizer.learning_rate=5e-3",
    "policy.ema=0.5",
    "rollout.correction='reject'",
    "rollout.correction_bounds={unit='turn', low=0.9, high=1.1, cap=1.05}",
]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return run(small(tmp_path_factory.mktemp("whole"), "whole", *SETTINGS))


def test_a_run_that_is_killed_after_some_of_its_steps_ends_the_same(whole, tmp_path):
    path = tmp_path / "stopped"
    shutil.copytree(whole.folder.path, path, symlinks=True)
    shutil.rmtree(path / "checkpoints" / "step-000003")
    resumed = setup.resume(path)
    assert resumed.step == 2
    resumed.run()
    assert all(map(torch.equal, resumed.policy.model.parameters(), whole.policy.model.parameters()))
    assert lines(resumed) == lines(whole)
    for name in ("model.safetensors", "average/model.safetensors"):
        own, other = (last_checkpoint(run).folder / name for run in (resumed, whole))
        assert own.read_bytes() == other.read_bytes(), name
    saved = [
        torch.load(last_checkpoint(run).folder / "trainer.pt", weights_only=True)
        for run in (resumed, whole)
    ]
    assert saved[0]["parts"]["curriculum"] == saved[1]["parts"]["curriculum"]
    assert saved[0]["parts"]["curriculum"]["success"]


def test_every_setting_takes_part(whole):
    steps = [line for line in lines(whole) if "update/loss" in line]
    assert any(step["rollout/left_out_tasks"] for step in steps)
    assert all(step["update/mismatch_weight"] > 0 for step in steps)
    assert any(step["update/mismatch_capped_share"] for step in steps)
    assert any(step["update/mismatch_rejected_share"] for step in steps)
    groups = whole.learner.optimizer.param_groups
    assert ["momentum" in group for group in groups] == [True, False]


def test_the_average_is_what_evaluations_play_and_exports_hold(whole, tmp_path):
    own = last_checkpoint(whole).folder
    average = checkpoints.model_of(own)
    assert average == own / "average"
    trained, averaged = (Policy.load(str(folder), "cpu").model for folder in (own, average))
    assert not any(map(torch.equal, trained.parameters(), averaged.parameters()))
    with whole._average.applied():
        assert all(map(torch.equal, averaged.parameters(), whole.policy.model.parameters()))
        again = whole.evaluations.play("valid_seen", 2)
    kept = json.loads((whole.folder.path / "evaluations/step-000003-valid_seen.json").read_text())
    assert again.record()["episodes"] == kept["episodes"]
    for name in (whole.folder.path, own):
        assert model_source.find(str(name)).path == str(average)
    for precision in (None, "float32"):
        folder = tmp_path / str(precision)
        model_export.write(whole.folder.path, folder, precision=precision)
        exported = Policy.load(str(folder), "cpu").model
        assert all(map(torch.equal, exported.parameters(), averaged.parameters()))
        assert not (folder / "average").exists()


def test_a_checkpoint_without_a_part_is_refused(whole, tmp_path):
    path = tmp_path / "run"
    shutil.copytree(whole.folder.path, path, symlinks=True)
    for checkpoint in checkpoints.find_all(path):
        file = checkpoint.folder / "trainer.pt"
        state = torch.load(file, weights_only=True)
        del state["parts"]["curriculum"]
        torch.save(state, file)
        described = json.loads((checkpoint.folder / "checkpoint.json").read_text())
        del described["files"]["trainer.pt"]  # its digest is of other bytes
        (checkpoint.folder / "checkpoint.json").write_text(json.dumps(described))
    with pytest.raises(CheckpointError, match="cannot be used: 'curriculum'"):
        setup.resume(path)
