"""Configuration: recipes parse, mistakes are named."""

import dataclasses
import json

import pytest

from agentgyms.errors import AgentGymsError, DataMissing
from harness import checks, methods, settings
from harness import config as configs
from harness.errors import ConfigError


@pytest.mark.parametrize("path", sorted(configs.RECIPES.glob("*.toml")), ids=lambda p: p.stem)
def test_every_recipe_parses_and_its_settings_exist(path):
    config = settings.resolve(configs.load(path.stem))
    try:
        checks.check(config)
    except DataMissing:
        assert config.env.kwargs["source"] == "official"
    assert path.read_text().startswith("# "), "the first line says what the recipe is"
    assert configs.from_dict(json.loads(json.dumps(configs.to_dict(config)))) == config


def test_overrides():
    config = configs.load(
        "corridor-tiny",
        ["run.seed=7", "run.name=other", "env.kwargs.url='http://x'", "optimizer.betas=[0.8, 0.9]"],
    )
    assert (config.run.seed, config.run.name) == (7, "other")
    assert config.env.kwargs == {"url": "http://x"}
    assert config.optimizer.betas == (0.8, 0.9)


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("run.sead=7", "unknown configuration key run.sead.*did you mean run.seed"),
        ("rum.seed=7", "unknown configuration key rum.*did you mean run"),
        ("run.seed=x", "run.seed must be of type int, got 'x'"),
        ("run.seed=true", "run.seed must be of type int, got True"),
        ("run.seed", "an override has the form section.key=value"),
        ("run.seed.deep=1", "'seed' is no section"),
        ("optimizer.betas=[0.9]", "optimizer.betas needs 2 values"),
        ("policy.tiny=3", "policy.tiny must be a section"),
        ("eval.final_splits=['a', 3]", "eval.final_splits must be of type str"),
        ("method.name='gippo'", "unknown method 'gippo'"),
        ("method.reward='score'", "unknown method.reward 'score': expected one of environment"),
        ("method.preset='own'", "unknown preset 'own'"),
        ("method.credit.gama=1", "no hyperparameter 'gama'"),
        ("method.loss.clip=1", "no hyperparameter 'clip'"),
        ("agent.style='terse'", "unknown prompt style 'terse'"),
        ("method.credit.norm='max'", "norm must be"),
        ("method.credit.gamma='x'", "method gigpo cannot use its settings"),
        ("method.loss.num_tokens=7", "no hyperparameter 'num_tokens'"),
        ("method.loss.clip_low='x'", "method gigpo cannot use its settings"),
        ("rollout.group_size=0", "rollout.group_size must be at least 1"),
        ("rollout.max_batch=0", "rollout.max_batch must be at least 1"),
        ("run.seed=-1", "run.seed must be at least 0"),
        ("optimizer.learning_rate=-1.0", "optimizer.learning_rate must be greater than 0"),
        ("optimizer.learning_rate=nan", "optimizer.learning_rate must be greater than 0"),
        ("optimizer.betas=[0.9, 1.0]", r"optimizer.betas must be in \[0, 1\)"),
        ("agent.temperature=0", "agent.temperature must be greater than 0"),
        ("eval.tasks=0", "eval.tasks must be at least 1"),
        ("eval.split='valid_sen'", "no split 'valid_sen'"),
        ("env.train_split='tain'", "no split 'tain'"),
        ("env.id='agentgyms/Corrido-v0'", "cannot be made.*Corridor"),
        ("env.kwargs.foo=1", "cannot be made.*foo"),
        ("policy.device='gpu'", "policy.device 'gpu' cannot be used"),
        ("policy.tiny.heads=5", "policy.tiny.hidden must be a multiple"),
        ("warmstart.steps=0", "warmstart.steps must be at least 1"),
        ("warmstart.noise=1.0", r"warmstart.noise must be in \[0, 1\)"),
        ("warmstart.episodes=0", "a tiny model needs warmstart.episodes"),
    ],
)
def test_mistakes_are_named(override, message):
    with pytest.raises(AgentGymsError, match=message):
        checks.check(configs.load("corridor-tiny", ["run.seed=1", override]))


def test_files_that_are_no_recipes(tmp_path):
    with pytest.raises(
        ConfigError, match=r"no recipe nothing: expected a TOML file or one of alfworld-"
    ):
        configs.load("nothing")
    (tmp_path / "bad.toml").write_text("[run\n")
    with pytest.raises(ConfigError, match="not valid TOML"):
        configs.load(tmp_path / "bad.toml")


def test_presets_come_first_and_recipes_last():
    config = configs.load(
        "corridor-tiny", ["method.preset='verl_agent'", "method.credit.gamma=0.5"]
    )
    chosen = settings.credit_settings(config)
    assert chosen["statistics"] == "turn"
    assert chosen["gamma"] == 0.5
    assert settings.loss_settings(config)["kl_coefficient"] == 0.0


def test_a_resolved_configuration_leaves_nothing_to_defaults():
    config = settings.resolve(configs.load("corridor-tiny", ["method.loss={}"]))
    assert config.method.credit["gamma"] == 0.95
    assert config.method.credit["statistics"] == "rollout"
    assert config.method.loss == {"clip_low": 0.2, "clip_high": 0.2, "kl_coefficient": 0.01}
    assert settings.resolve(config) == config


def test_the_table_of_methods_refers_to_what_exists():
    for name, method in methods.METHODS.items():
        config = configs.load("corridor-tiny", [f"method.name={name!r}"])
        checks.check(config)
        assert dataclasses.is_dataclass(method)
