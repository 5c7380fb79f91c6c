"""Training and evaluation with calls of tools and with thoughts, on every environment."""

from itertools import pairwise

import pytest
import small_recipes
from small_training import small

from harness import config as configs
from harness.config import EvaluationConfig, build
from harness.evaluation import defaults
from harness.inference.completers.hf import HFCompleter
from harness.model import tiny
from harness.preflight.defaults import resolve
from harness.reporting import run_and_report
from harness.training import setup
from harness.training.players.player import Player
from harness.types.errors import ConfigError
from tests.harness.evaluation_helpers import config, result

RECIPES = {
    "alfworld-tiny": "window",
    "webshop-tiny": "transcript",
    "sokoban-tiny": "window",
    "visual-sokoban-tiny": "transcript",
    "searchqa-gigpo-3b": "window",
    "appworld-gvpo-tiny": "transcript",
    "sotopia-oprl-tiny": "transcript",
    "tau2-gigpo-tiny": "transcript",
}
STYLES = {
    "tools": ["agent.max_tokens=8"],
    "think": ["agent.max_tokens=12", "agent.max_thought_tokens=4"],
}
"""Prompt styles of models that call tools, and that think."""


@pytest.mark.slow
@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("name", RECIPES)
def test_a_step_of_training_and_an_evaluation(name, style, tmp_path, scorers):
    context = RECIPES[name]
    given = [f"agent.style={style}", f"agent.context={context}", *STYLES[style]]
    if style == "think" and context == "transcript":
        given.append("agent.thoughts=strip")
    trainer = setup.start(small_recipes.small(name, tmp_path, scorers, given))
    trainer.run()
    asked = config(
        tmp_path,
        model__name=str(trainer.folder.path),
        model__device="cpu",
        env__id="",
        env__max_turns=2,
        run__tasks=1,
    )
    agent = result(run_and_report.run(asked))["agent"]
    assert (agent["style"], agent["context"]) == (style, context)
    assert agent.get("tool_format") == ("hermes" if style == "tools" else None)


@pytest.mark.slow
def test_a_tiny_model_learns_to_call_tools(tmp_path):
    """After a warm start calls are made, and a transcript keeps every token."""
    settings = ["agent.style=tools", "agent.max_tokens=40", "agent.context=transcript"]
    settings += ["warmstart.episodes=20", "warmstart.steps=50", "run.steps=1", "env.max_turns=6"]
    settings += ["rollout.tasks_per_step=4", "rollout.group_size=2", "eval.every=0"]
    trainer = setup.start(small(tmp_path, "mine", *settings))
    player = Player(trainer.config, trainer.policy, HFCompleter(trainer.policy))
    played = player.play(0).rollouts
    player.close()
    turns = [turn for rollout in played for turn in rollout.turns]
    called = [turn for turn in turns if turn.feedback != "malformed"]
    assert called
    assert all("<tool_call>" in turn.completion.text for turn in called)
    for rollout in played:
        for before, after in pairwise(turn.completion for turn in rollout.turns):
            read = before.prompt_ids + before.response_ids
            assert after.prompt_ids[: len(read)] == read
    trainer.run()


def test_the_format_is_that_of_the_models_template(tmp_path):
    def resolved(model, *settings):
        given = ["agent.style=tools", f"policy.model='{model}'", *settings]
        return resolve(configs.load("corridor-tiny", given)).agent.tool_format

    for template, found in (("<function=x>", "qwen3_coder"), ("<arg_key>", "glm")):
        tokenizer = tiny.make_tokenizer(["a b"] * 9, 300, (), f"{{# {template} #}}")
        tokenizer.save_pretrained(tmp_path / found)
        assert resolved(tmp_path / found) == found
    tiny.make_tokenizer(["a b"] * 9, 300, (), "no tools").save_pretrained(tmp_path / "none")
    with pytest.raises(ConfigError, match="in no known format: set agent.tool_format to one of"):
        resolved(tmp_path / "none")
    assert resolved(tmp_path / "none", "agent.tool_format=llama3") == "llama3"
    assert resolved("tiny") == "hermes"
    assert resolved(tmp_path / "missing") == "auto"  # what is missing is said where it is loaded


def test_an_evaluation_takes_the_format_of_the_run_or_of_the_template():
    def resolved(trained=None, found="llama3", **agent):
        values = {"env": {"id": "Corridor"}, "model": {"name": "m", "backend": "hf"}}
        return defaults.resolve(
            build(EvaluationConfig, values | {"agent": agent}), trained, found
        ).agent.tool_format

    assert resolved(style="tools") == "llama3"
    assert resolved(style="tools", tool_format="glm") == "glm"
    assert resolved({"agent": {"style": "tools", "tool_format": "hermes"}}) == "hermes"
    with pytest.raises(ConfigError, match="in no known format"):
        resolved(style="tools", found=None)
    assert resolved(found=None) == "auto"


def test_a_wrong_format_is_refused_before_anything_starts(tmp_path):
    given = ["agent.style=tools", "agent.tool_format=hermse", f"run.output='{tmp_path}'"]
    with pytest.raises(ConfigError, match="unknown tool format 'hermse'.*hermes"):
        setup.start(configs.load("corridor-tiny", given))
