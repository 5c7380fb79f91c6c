"""`harness export`: a trained model for others, with its card, to a folder and to a hub."""

import json
import os
import subprocess
import sys
from importlib import metadata

import pytest
import torch
import yaml
from click.testing import CliRunner
from hub_server import HubServer
from small_training import run, small
from transformers import AutoModelForCausalLM, AutoTokenizer

from agentgyms.core.errors import AgentGymsError
from harness.cli.main import main
from harness.evaluation import model_source
from harness.model.policy import Policy
from harness.runs import checkpoints

SETTINGS = ["run.steps=1", "rollout.tasks_per_step=2", "rollout.group_size=2", "eval.every=1"]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """The folder of a training run of one step."""
    return run(small(tmp_path_factory.mktemp("runs"), "mine", *SETTINGS)).folder.path


def called(*words):
    return CliRunner().invoke(main, ["export", *map(str, words)])


def refused(*words):
    error = called(*words).exception
    assert isinstance(error, AgentGymsError)
    assert "\n" not in str(error)
    assert len(str(error)) <= 300
    return str(error)


def pushed(hub, token, *words):
    """Return what a process of its own did: huggingface_hub reads its settings when imported."""
    settings = {"HF_ENDPOINT": hub.url, "HF_TOKEN": token, "HF_HUB_OFFLINE": "0"}
    return subprocess.run(
        [sys.executable, "-m", "harness", "export", *map(str, words), "--push", "me/walker"],
        env={**os.environ, **settings, "HF_HUB_DISABLE_XET": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_an_export_is_the_model_with_a_card_and_no_state_of_training(trained, tmp_path):
    done = called(trained, tmp_path / "model")
    assert done.exit_code == 0, done.output
    assert done.output == f"step 1 of {trained} in {tmp_path / 'model'}\n"
    saved = checkpoints.newest(trained).folder
    names = {file.name for file in (tmp_path / "model").iterdir()}
    of_model = {f.name for f in saved.iterdir()} - {"trainer.pt", "checkpoint.json"}
    assert names == of_model | {"README.md", "training_run.json"}
    assert model_source.digest(tmp_path / "model") == model_source.digest(saved)
    ours, theirs = (AutoModelForCausalLM.from_pretrained(f) for f in (saved, tmp_path / "model"))
    for one, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        assert torch.equal(one, other)
    AutoTokenizer.from_pretrained(tmp_path / "model")


def test_it_is_played_as_it_was_trained(trained, tmp_path):
    called(trained, tmp_path / "model")
    exported, saved = (model_source.find(str(f)) for f in (tmp_path / "model", trained))
    assert (exported.step, exported.trained) == (saved.step, saved.trained)
    assert exported.trained is not None


def test_the_card_tells_evaluations_settings_and_versions(trained, tmp_path):
    called(trained, tmp_path / "model")
    card = (tmp_path / "model/README.md").read_text()
    _, front, body = card.split("---\n", 2)
    assert yaml.safe_load(front) == {
        "library_name": "transformers",
        "pipeline_tag": "text-generation",
        "tags": ["agentgyms", "gigpo"],
    }
    config = json.loads((trained / "config.json").read_text())
    assert json.loads(body.split("```json\n")[1].split("```")[0]) == config
    for evaluation in sorted((trained / "evaluations").glob("*.json")):
        told = json.loads(evaluation.read_text())
        assert f"| {told['split']} | {told['step']} |" in body
    assert f"| torch | {metadata.version('torch')} |" in body
    assert "harness eval --model FOLDER --env agentgyms/Corridor-v0" in body


def in_bfloat16(run_folder, folder):
    """Check that an export in bfloat16 has the weights of the newest checkpoint, merged."""
    done = called(run_folder, folder, "--precision", "bfloat16")
    assert done.exit_code == 0, done.output
    found = AutoModelForCausalLM.from_pretrained(folder, dtype="auto").state_dict()
    saved = Policy.load(str(checkpoints.newest(run_folder).folder), "cpu")
    wanted = dict(saved.named_weights())
    assert found.keys() == wanted.keys()
    assert {weight.dtype for weight in found.values()} == {torch.bfloat16}
    for name, weight in wanted.items():
        torch.testing.assert_close(found[name].float(), weight.detach(), rtol=2**-7, atol=1e-3)
    assert (folder / "training_run.json").is_file()


def test_an_export_in_bfloat16_has_the_same_weights(trained, tmp_path):
    in_bfloat16(trained, tmp_path / "model")


@pytest.mark.slow
def test_an_export_in_bfloat16_has_adapters_merged_in(tmp_path):
    folder = run(small(tmp_path, "mine", *SETTINGS, "policy.lora.rank=2")).folder.path
    in_bfloat16(folder, tmp_path / "model")


def test_what_is_wrong_is_one_line_and_leaves_nothing(trained, tmp_path):
    used = tmp_path / "used"
    used.mkdir()
    (used / "mine.txt").write_text("mine")
    assert f"{used} is in use" in refused(trained, used)
    assert [file.name for file in used.iterdir()] == ["mine.txt"]
    assert "has no checkpoint of step 7" in refused(trained, tmp_path / "x", "--checkpoint", "7")
    assert "no evaluation yet" in refused(empty_run(tmp_path / "empty"), tmp_path / "x")
    assert "cannot be written" in refused(trained, used / "mine.txt" / "model")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty", "used"]


def empty_run(folder):
    folder.mkdir()
    sections = ("run", "env", "method", "policy")
    (folder / "config.json").write_text(json.dumps({name: {} for name in sections}))
    return folder


def test_a_damaged_checkpoint_is_not_exported(tmp_path):
    folder = run(small(tmp_path, "mine", *SETTINGS)).folder.path
    weights = checkpoints.newest(folder).folder / "model.safetensors"
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(content)
    assert "is damaged" in refused(folder, tmp_path / "model")
    assert not (tmp_path / "model").exists()


@pytest.fixture
def of_a_file(tmp_path, monkeypatch):
    """The folder of a run of one step that began with a GGUF file, and that file."""
    gguf_files = pytest.importorskip("gguf_files", reason="needs the package gguf")
    monkeypatch.setenv("AGENTGYMS_DATA", str(tmp_path / "home"))
    file, _ = gguf_files.written(tmp_path, "qwen2")
    given = [*SETTINGS, "agent.max_context=512", "agent.max_tokens=4", "warmstart.steps=2"]
    config = small(tmp_path, "mine", *given, f"policy.model='{file}'")
    return run(config).folder.path, file


def weights_of(file):
    return {name: weight.detach() for name, weight in Policy.load(str(file), "cpu").named_weights()}


def test_a_run_that_began_with_a_gguf_file_gives_one(of_a_file, tmp_path):
    folder, file = of_a_file
    new = tmp_path / "trained.gguf"
    done = called(folder, new)
    assert done.exit_code == 0, done.output
    assert done.output == f"step 1 of {folder} in {new}\n"
    found, saved = weights_of(new), weights_of(checkpoints.newest(folder).folder)
    before = weights_of(file)
    assert found.keys() == saved.keys()
    assert all(torch.equal(found[name], saved[name]) for name in saved)
    assert any(not torch.equal(found[name], before[name]) for name in before)
    played, saved_run = (model_source.find(str(one)) for one in (new, folder))
    assert (played.step, played.trained) == (saved_run.step, saved_run.trained)
    assert f"{new} is in use" in refused(folder, new)
    # A run that goes on from an export knows the file, too.
    assert called(folder, tmp_path / "exported").exit_code == 0
    given = ["warmstart.episodes=0", "agent.max_context=512", "agent.max_tokens=4"]
    onward = small(tmp_path, "on", *SETTINGS, *given, f"policy.model='{tmp_path / 'exported'}'")
    assert called(run(onward).folder.path, tmp_path / "onward.gguf").exit_code == 0
    assert weights_of(tmp_path / "onward.gguf").keys() == saved.keys()


def test_a_gguf_file_without_an_original_is_refused(trained, of_a_file, tmp_path):
    folder, file = of_a_file
    new = tmp_path / "new.gguf"
    assert "the run began with 'tiny', no GGUF file" in refused(trained, new)
    assert "is not of the model that was trained" in refused(trained, new, "--like", file)
    assert "--like is for a GGUF file: give new.gguf" in refused(
        folder, tmp_path / "new", "--like", file
    )
    assert called(folder, new, "--push", "me/walker").exit_code == 2
    assert not new.exists()
    assert called(folder, new, "--like", file, "--precision", "bfloat16").exit_code == 0
    assert sorted(one.name for one in tmp_path.iterdir() if one.suffix != ".gguf") == [
        "home",
        "mine",
    ]


@pytest.mark.slow
def test_a_pushed_model_is_at_the_hub_file_by_file(trained, tmp_path):
    with HubServer("secret") as hub:
        done = pushed(hub, "secret", trained, tmp_path / "model")
        assert done.returncode == 0, done.stderr
        assert done.stdout.endswith(f"uploaded to {hub.url}/me/walker\n")
        assert hub.repositories == {"me/walker": True}
        assert {owner for owner, _ in hub.files} == {"me/walker"}
        files = {path: content for (_, path), content in hub.files.items()}
        assert files == {f.name: f.read_bytes() for f in (tmp_path / "model").iterdir()}


@pytest.mark.slow
def test_a_refused_upload_keeps_the_folder(trained, tmp_path):
    with HubServer("secret") as hub:
        done = pushed(hub, "wrong", trained, tmp_path / "model")
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "is written, and not uploaded to me/walker: " in done.stderr
    assert "401" in done.stderr
    assert (tmp_path / "model/README.md").is_file()
