"""The dry run compares a run's paths on a small random model of the same configuration."""

import json

import pytest
from click.testing import CliRunner
from transformers import AutoConfig

from harness import config as configs
from harness.cli.main import main
from harness.preflight import model_shapes, small_trial
from tests.harness.any_model import SIZE


def dry_run(tmp_path, kind, *changes, **fields):
    """The dry run of a folder that has a configuration alone."""
    config = AutoConfig.for_model(kind, **SIZE | {"vocab_size": 320} | fields)
    (tmp_path / "config.json").write_text(json.dumps(config.to_dict()))
    set_ = [f"policy.model={json.dumps(str(tmp_path))}", "warmstart.episodes=0", *changes]
    words = ["train", "corridor-tiny", "--dry-run"]
    for change in set_:
        words += ["--set", change]
    return CliRunner().invoke(main, words)


@pytest.mark.parametrize("kind", ["gemma2", "falcon"])
def test_paths_that_agree_are_named(kind, tmp_path):
    shown = dry_run(tmp_path, kind).output
    assert f"paths: padded batch, cached decoding agree on a small random {kind}" in shown
    assert "the model " not in shown.partition("cannot start")[2]


def test_a_packed_row_that_leaks_cannot_start(tmp_path):
    shown = dry_run(tmp_path, "stablelm", "optimizer.packing='packed'")
    assert shown.exit_code == 2
    assert "paths: a small random stablelm is refused" in shown.output
    told = " ".join(shown.output.split())
    assert "type stablelm gives other log-probabilities by its packed row" in told
    assert "set optimizer.packing to 'padded'" in told


def test_a_model_that_sees_later_tokens_cannot_start(tmp_path):
    shown = dry_run(tmp_path, "bert")
    assert shown.exit_code == 2
    assert "type bert gives other" in " ".join(shown.output.split())


@pytest.mark.parametrize(
    ("packing", "path"), [("packed", "packed row"), ("shared", "shared prefixes")]
)
def test_all_paths_of_a_run_are_tried(packing, path):
    config = configs.load("corridor-tiny", [f"optimizer.packing={packing}"])
    tried = small_trial.try_paths(config, model_shapes.shape_of(config.policy))
    named = f"padded batch, cached decoding, {path}"
    assert tried.line == f"paths: {named} agree on a small random qwen2"
    assert not tried.refused


def test_a_model_without_a_miniature_is_compared_when_it_is_loaded():
    config = configs.load("visual-sokoban-oprl-7b")
    tried = small_trial.try_paths(config, model_shapes.shape_of(config.policy))
    assert tried.line.endswith("can be made; they are compared when it is loaded")
    assert not tried.refused
