"""All settings listed: on the command line and in the documentation, made from the schema."""

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from harness.cli.main import main
from harness.config import Config, EvaluationConfig, reference

PAGE = Path(__file__).parents[3] / "docs" / "settings.md"


@pytest.mark.parametrize("kind", [Config, EvaluationConfig])
def test_every_setting_and_section_has_words(kind):
    for name, about, settings in reference.sections(kind):
        assert about.endswith("."), name
        for one in settings:
            assert one.description.endswith("."), one.key
            assert one.allowed, one.key


def test_the_page_of_settings_is_what_the_schema_says():
    told = "write it anew: python -m harness.config > docs/settings.md"
    assert PAGE.read_text(encoding="utf-8") == reference.as_markdown(), told


@pytest.mark.parametrize(("command", "kind"), [("train", Config), ("eval", EvaluationConfig)])
def test_all_settings_are_listed_on_the_command_line(command, kind):
    done = CliRunner().invoke(main, [command, "--help-config"], catch_exceptions=False)
    assert done.exit_code == 0
    listed = re.findall(r"^  ([\w.]+) = ", done.output, re.MULTILINE)
    assert listed == [".".join(path) for path in paths(kind().model_dump()) if path != ("swept",)]
    assert max(map(len, done.output.splitlines())) <= 110


FREE = (
    "kwargs",
    "chat_template_kwargs",
    "engine",
    "correction_bounds",
    "budget",
    "extra",
    "annotators",
    "credit",
    "loss",
)


def paths(values, before=()):
    """Yield the keys of nested settings, those of a section before those of sections in it."""
    tables = {k for k, v in values.items() if isinstance(v, dict) and k not in FREE}
    for key in [k for k in values if k not in tables]:
        yield (*before, key)
    for key in [k for k in values if k in tables]:
        yield from paths(values[key], (*before, key))


def test_a_setting_is_listed_with_what_it_may_be():
    settings = {one.key: one for kind in reference.sections(Config) for one in kind[2]}
    assert settings["rollout.backend"].allowed == '"hf", "vllm", "server"'
    assert settings["method.rows"].allowed == 'None, "turn", "token"'
    assert settings["optimizer.betas"].allowed == "list of 2 float in [0, 1)"
    assert settings["rollout.enough_share"].allowed == "float in (0, 1] or None"
    assert settings["policy.tiny.vocabulary"].allowed == "int at least 300"
    assert settings["optimizer.learning_rate"].allowed == "float in (0, 10]"
    assert settings["optimizer.max_grad_norm"].allowed == "float greater than 0"
    assert settings["eval.final_splits"].allowed == "list of str"
    named = 'list of "pictures", "tensorboard", "trackio", "wandb"'
    assert settings["log.outputs"].allowed == named
    assert settings["env.kwargs"].allowed == "table"
    assert settings["rollout.sleep"].default == "false"
