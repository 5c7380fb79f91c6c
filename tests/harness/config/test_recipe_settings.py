"""What recipes come to, and what the settings of an evaluation have as digest."""

import json
import re
from pathlib import Path

import pytest

from harness import config as configs
from harness.evaluation import defaults, results
from harness.types.errors import ConfigError

EVALUATIONS = {
    "alfworld": "e0e90ebd4558",
    "webshop": "4e1ccd585088",
    "sokoban": "55f57ead8c73",
    "visualsokoban": "d0b9bf8bc7f1",
    "searchqa": "5971bb3a1ca1",
    "appworld": "76659c926c64",
    "sotopia": "9ee786adcd90",
    "tau2": "e51d2a5530dc",
    "corridor": "00c8980bdd29",
}
"""By environment: the digest of an evaluation with the papers' settings, in every folder of one."""


@pytest.mark.parametrize("env", EVALUATIONS)
def test_an_evaluation_has_the_digest_that_it_had(env):
    values = {
        "run": {"seeds": [0, 1]},
        "env": {"id": env},
        "model": {"name": "m", "url": "http://127.0.0.1:1"},
        "sampling": {"temperature": 1},
    }
    config = defaults.resolve(configs.build(configs.EvaluationConfig, values))
    assert results.digest(config) == EVALUATIONS[env]
    kept = json.loads(json.dumps(results.config_to_json(config)))
    assert configs.build(configs.EvaluationConfig, kept) == config


def written(folder, name, text):
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)
    return folder / name


def test_a_recipe_extends_a_file_beside_it(tmp_path):
    written(
        tmp_path, "bases/first.toml", "[run]\nsteps = 3\nseed = 1\n[env.kwargs]\na = 1\nb = 2\n"
    )
    written(tmp_path, "second.toml", "extends = 'bases/first.toml'\n[run]\nseed = 2\n")
    third = written(
        tmp_path,
        "deep/third.toml",
        "extends = '../second.toml'\n[env]\nkwargs = { b = 3, c = 4 }\n",
    )
    config = configs.load(third, ["run.steps=5", "env.kwargs.c=6"])
    assert (config.run.steps, config.run.seed) == (5, 2)
    assert config.env.kwargs == {"a": 1, "b": 3, "c": 6}
    assert configs.load(third, ["env.kwargs={}"]).env.kwargs == {}


def test_a_recipe_extends_a_built_in_one(tmp_path):
    mine = written(tmp_path, "mine.toml", "extends = 'corridor-tiny'\n[run]\nname = 'mine'\n")
    config, base = configs.load(mine), configs.load("corridor-tiny")
    assert config.run.name == "mine"
    assert configs.replace(config, run=base.run) == base


def test_the_recipe_in_the_documentation_extends_a_built_in_one(tmp_path):
    page = (Path(__file__).parents[3] / "docs" / "training.md").read_text(encoding="utf-8")
    (text,) = re.findall(r"^```toml\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    config = configs.load(written(tmp_path, "mine.toml", text))
    assert (config.run.name, config.run.steps) == ("longer", 300)
    assert config.method == configs.load("alfworld-gigpo-1.5b").method


@pytest.mark.parametrize(
    ("base", "message"),
    [
        ("'mine.toml'", "extend each other in a circle: .*mine.toml extends .*mine.toml"),
        ("'other.toml'", "in a circle: .*mine.toml extends .*other.toml extends .*mine.toml"),
        ("'corridor-tin'", r"mine.toml extends 'corridor-tin', but there is no recipe .*corridor"),
        ("['corridor-tiny']", r"extends of .*mine.toml must be .*, got \['corridor-tiny'\]"),
        ("'broken.toml'", "broken.toml is not valid TOML"),
    ],
)
def test_what_cannot_be_extended_is_named(tmp_path, base, message):
    mine = written(tmp_path, "mine.toml", f"extends = {base}\n")
    written(tmp_path, "other.toml", "extends = 'mine.toml'\n")
    written(tmp_path, "broken.toml", "[run\n")
    with pytest.raises(ConfigError, match=message):
        configs.load(mine)


def test_what_is_only_extended_is_no_recipe_of_its_own():
    bases = list((configs.RECIPES / "bases").glob("*.toml"))
    assert bases
    assert not {base.stem for base in bases} & configs.list_recipes().keys()
    files = [*bases, *configs.RECIPES.glob("*.toml")]
    extended = " ".join(file.read_text(encoding="utf-8") for file in files)
    assert all(f'extends = "bases/{base.stem}"' in extended for base in bases), "none is idle"


@pytest.mark.parametrize("model", configs.list_models())
def test_every_recipe_takes_every_model_of_its_kind(model):
    own = configs.files.read(configs.files.MODELS / f"{model}.toml")["policy"]["model"]
    for name in configs.list_recipes():
        config, plain = configs.load(f"{name}+{model}"), configs.load(name)
        assert config.run.name == f"{plain.run.name}-{model}"
        assert config.policy.model == own
        policy = configs.replace(config.policy, model="", chat_template_kwargs={})
        assert policy == configs.replace(plain.policy, model="")
        assert configs.replace(config, run=plain.run, policy=plain.policy) == plain


def test_a_model_joins_a_recipe_of_ones_own(tmp_path):
    mine = written(tmp_path, "mine.toml", "extends = 'alfworld-gigpo-1.5b'\n[run]\nname = 'mine'\n")
    config = configs.load(f"{mine}+qwen3-4b", ["policy.lora.rank=8"])
    assert (config.run.name, config.policy.lora.rank) == ("mine-qwen3-4b", 8)
    odd = written(tmp_path, "a+qwen3-4b", "[run]\nname = 'odd'\n")
    assert configs.load(odd).run.name == "odd"


def test_a_model_that_no_recipe_knows_is_named():
    with pytest.raises(
        ConfigError, match=r"no model 'qwen9' .*one of qwen2.5-0.5b, .*--set policy"
    ):
        configs.load("alfworld-gigpo-1.5b+qwen9")
    with pytest.raises(ConfigError, match="there is no recipe alfworld-gigpo-1"):
        configs.load("alfworld-gigpo-1+qwen3-4b")
