"""Arguments and dates of chat templates before a run, in dry runs, and in evaluations of it."""

import asyncio
import json
import shutil

import pytest

from harness import config as configs
from harness.config import Config, EvaluationConfig, TinyConfig, build, replace, to_dict
from harness.evaluation.open_model import open_model
from harness.model import tiny
from harness.model.chat_templates import clock, trusted
from harness.model.policy import Policy
from harness.preflight import checks
from harness.preflight.defaults import resolve
from harness.types.errors import ConfigError

DATED = "{{ strftime_now('%Y-%m-%d') }}{{ mode }}" + trusted.TINY
SIZE = TinyConfig(layers=1, hidden=32, heads=4, feed_forward=32, max_length=512)
ASK = [{"role": "user", "content": "look"}]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    tokenizer = tiny.make_tokenizer(["look 2024"] * 9, 300, (), DATED)
    home = tmp_path_factory.mktemp("dated")
    Policy(tiny.make_model(SIZE, tokenizer, seed=1), tokenizer, "cpu").save(home)
    return str(home)


def corridor(model, **arguments):
    config = configs.load("corridor-tiny", ["warmstart.episodes=0", "policy.device='cpu'"])
    return replace(
        config, policy=replace(config.policy, model=model, chat_template_kwargs=arguments)
    )


def test_a_misspelt_argument_is_refused_before_the_run(folder):
    with pytest.raises(
        ConfigError, match=r"no argument 'mod': expected mode, strftime_now; did you mean mode"
    ):
        checks.check(resolve(corridor(folder, mod="fast")))
    tiny_one = replace(configs.load("corridor-tiny"), policy=corridor("tiny", mod=1).policy)
    with pytest.raises(ConfigError, match="no argument 'mod': it has none"):
        checks.check(resolve(tiny_one))
    checks.check(resolve(corridor(folder, mode="fast")))


def test_the_run_keeps_the_date_that_its_template_is_told(folder):
    kept = resolve(corridor(folder, mode="fast")).policy.chat_template_kwargs
    assert kept == {"mode": "fast", "strftime_now": clock.DATE}
    own = resolve(corridor(folder, strftime_now="2026-01-31"))
    assert own.policy.chat_template_kwargs == {"strftime_now": "2026-01-31"}
    assert resolve(own) == own
    assert resolve(corridor("tiny")).policy.chat_template_kwargs == {}


@pytest.mark.parametrize(
    ("template", "error"),
    [
        ("{{ (" + "(" * 9999, "calls or nests itself too deep"),
        ("{% include 'x' %}", "refers to other templates"),
        ("{{ 1 ? 2 }}", "is no Jinja template"),
    ],
)
def test_a_hostile_template_is_refused_by_a_dry_run(folder, tmp_path, template, error):
    model = tmp_path / "model"
    shutil.copytree(folder, model)
    (model / "chat_template.jinja").write_text(template)
    with pytest.raises(ConfigError, match=rf"chat template \(.*model\) {error}"):
        resolve(corridor(str(model)))


def test_an_evaluation_of_a_run_is_told_the_runs_date(folder, tmp_path):
    values = to_dict(replace(Config(), policy=corridor(folder, strftime_now="2026-01-31").policy))
    step = tmp_path / "run" / "checkpoints" / "step-000001"
    Policy.load(folder, "cpu").save(step)
    (step / "checkpoint.json").write_text(json.dumps({"step": 1, "files": {}}))
    (tmp_path / "run" / "config.json").write_text(json.dumps(values))

    def prompt(**extra):
        model = {"name": str(tmp_path / "run"), "extra": extra, "device": "cpu"}
        opened = asyncio.run(open_model(build(EvaluationConfig, {"model": model})))
        return opened.completer.policy.chat_encoder.render(ASK)

    assert prompt().startswith("2026-01-31look")
    assert prompt(chat_template_kwargs={"mode": "!"}).startswith("2026-01-31!look")
    with pytest.raises(ConfigError, match="no argument 'mod'"):
        prompt(chat_template_kwargs={"mod": "!"})
