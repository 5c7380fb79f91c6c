"""Configuration: recipes parse, mistakes are named."""

import dataclasses
import json

import pytest

from harness import config as configs
from harness import methods, starting
from harness.errors import ConfigError


@pytest.mark.parametrize("path", sorted(configs.RECIPES.glob("*.toml")), ids=lambda p: p.stem)
def test_every_recipe_parses_and_its_settings_exist(path):
    config = configs.load(path.stem)
    starting.check(config)
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
        ("method.preset='own'", "unknown preset 'own'"),
        ("method.credit.gama=1", "no hyperparameter 'gama'"),
        ("method.loss.clip=1", "no hyperparameter 'clip'"),
        ("agent.style='terse'", "unknown prompt style 'terse'"),
        ("rollout.group_size=0", "rollout.group_size must be at least 1"),
        ("warmstart.episodes=0", "a tiny model needs warmstart.episodes"),
    ],
)
def test_mistakes_are_named(override, message):
    with pytest.raises(ConfigError, match=message):
        starting.check(configs.load("corridor-tiny", ["run.seed=1", override]))


def test_files_that_are_no_recipes(tmp_path):
    with pytest.raises(
        ConfigError, match=r"no recipe nothing: expected a TOML file or one of alfworld-tiny"
    ):
        configs.load("nothing")
    (tmp_path / "bad.toml").write_text("[run\n")
    with pytest.raises(ConfigError, match="not valid TOML"):
        configs.load(tmp_path / "bad.toml")


def test_presets_come_first_and_recipes_last():
    config = configs.load(
        "corridor-tiny", ["method.preset='verl_agent'", "method.credit.gamma=0.5"]
    )
    settings = starting.credit_settings(config)
    assert settings["statistics"] == "turn"
    assert settings["gamma"] == 0.5
    assert starting.loss_settings(config) == {"kl_coefficient": 0.0}


def test_the_table_of_methods_refers_to_what_exists():
    for name, method in methods.METHODS.items():
        config = configs.load("corridor-tiny", [f"method.name={name!r}"])
        starting.check(config)
        assert dataclasses.is_dataclass(method)
