"""`docs/papers.md` names every table and figure of the papers, and commands that exist."""

import re
import tomllib
from fnmatch import fnmatch
from pathlib import Path

import click
import papers_page
import pytest

from harness import config as configs
from harness.cli.main import main
from harness.config import ModelConfig, methods
from harness.evaluation import defaults
from harness.losses import is_on_policy
from harness.preflight import defaults as run_defaults
from harness.reporting.results import paper_results
from harness.reporting.results.training_runs import Choice, count_of_last
from harness.types.errors import ConfigError

ROWS = papers_page.rows()
CONTENTS = tomllib.loads(
    Path(__file__).with_name("papers_contents.toml").read_text(encoding="utf-8")
)
CALLS = papers_page.all_calls()
NEEDS = {
    "generated", "GPU", "API", "ALFWorld", "WebShop", "AppWorld", "SOTOPIA", "SearchQA",
    "BGE", "MiniLM",
}  # fmt: skip


def called(name):
    """Arguments of every call of a command of `harness` on the page."""
    return [call[1:] for found in CALLS.values() for call in found if call[0] == name]


def parsed(name, arguments):
    """The values that click reads."""
    with main.commands[name].make_context(name, list(arguments)) as context:
        return context.params


def trained():
    """Configuration of each run that the page trains, by its folder's name."""
    found = {}
    for arguments in called("train"):
        for folder, run in papers_page.runs(arguments):
            config = run_defaults.resolve(configs.load(run.recipe, [*run.settings, *run.swept]))
            assert found.setdefault(folder, config) == config, f"two runs are named {folder}"
    return found


RUNS = trained()
SEVERAL = [call for call in called("train") if {"--seeds", "--sweep"} & set(call)]


def labels(paper):
    """The numbers of a paper's tables, figures and algorithms, as the page writes them."""
    told = CONTENTS[paper]
    parts = told.get("parts", {})
    figures = [f"{n}{part}" for n in told["figures"] for part in parts.get(str(n), [""])]
    named = {"Table": told["tables"], "Figure": figures, "Algorithm": told["algorithms"]}
    return {f"{kind} {number}" for kind, numbers in named.items() for number in numbers}


@pytest.mark.parametrize("paper", CONTENTS)
def test_every_table_and_figure_has_one_row(paper):
    listed = [row.number for row in ROWS if row.paper == paper]
    assert len(listed) == len(set(listed))
    assert set(listed) == labels(paper)


def test_the_page_has_no_other_paper():
    assert {row.paper for row in ROWS} == {"", *CONTENTS}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.paper} {row.number}")
def test_a_row_says_what_makes_it_or_why_nothing_does(row):
    if row.command == papers_page.NONE:
        assert row.reported == "a drawing"
        assert row.missing
    elif row.command.startswith("as "):
        other = re.match(r"as (\w+ \d+\w?)", row.command)[1]
        assert any(r.lines for r in ROWS if (r.paper, r.number) == (row.paper, other))
    else:
        assert row.lines
        assert re.sub(r"`[^`]+`", "", row.command).replace("<br>", "") == ""
    assert row.shows
    assert row.reported
    needed = set(row.needs.split())
    assert needed <= NEEDS
    assert ("generated" not in needed) or needed == {"generated"}


def test_every_command_is_one_of_harness_or_a_study():
    for where, found in CALLS.items():
        assert found, where
        for call in found:
            assert call[0] in (*main.commands, "credit_figures"), where


def test_runs_that_are_trained_exist_and_resolve():
    assert len(RUNS) > 200
    for arguments in called("train"):
        assert parsed("train", arguments)["recipe"] in configs.list_recipes()


def test_several_runs_of_a_command_are_those_that_the_page_means():
    assert len(SEVERAL) > 40
    for arguments in SEVERAL:
        given = parsed("train", arguments)
        made = configs.vary(
            given["recipe"], given["overrides"], given["sweeps"], given["seeds"] or 1
        )
        meant = dict(papers_page.runs(arguments))
        assert [config.run.name for config in made] == list(meant)
        assert [config.run.seed for config in made] == [run.seed for run in meant.values()]


@pytest.mark.parametrize("name", ["report", "credit", "methods"])
def test_the_other_commands_know_their_options(name):
    for arguments in called(name):
        given = parsed(name, arguments)
        if name == "report":
            Choice.parse(given["checkpoint"])


def test_a_mean_over_evaluations_has_as_many():
    """Runs evaluate before training and every `eval.every` steps."""
    asked = [parsed("report", arguments) for arguments in called("report")]
    means = [given for given in asked if given["checkpoint"].startswith("last-")]
    assert means
    for given in means:
        count = Choice.parse(given["checkpoint"]).count
        for path in given["paths"]:
            found = [run for name, run in RUNS.items() if fnmatch(name, path.name)]
            assert found, path
            assert all(run.run.steps // run.eval.every >= count for run in found), path


def test_sweeps_are_drawn_of_runs_that_were_swept():
    drawn = [given for call in called("report") if (given := parsed("report", call))["sweep"]]
    assert drawn
    swept = {
        folder for call in SEVERAL if "--sweep" in call for folder, _ in papers_page.runs(call)
    }
    for given in drawn:
        for path in given["paths"]:
            assert {name for name in RUNS if fnmatch(name, path.name)} <= swept, path


def test_evaluations_resolve():
    for arguments in called("eval"):
        given = parsed("eval", arguments)
        model = given["model"]
        if model.startswith("runs/"):
            wanted = given["checkpoint"] or "newest"
            assert count_of_last(wanted) or ModelConfig(checkpoint=wanted)
            assert model.removeprefix("runs/") in RUNS, model
            continue
        values = {
            "env": {"id": given["env"], "split": given["split"] or "", "kwargs": _pairs(given)},
            "model": {"name": model, "url": given["url"]},
            "agent": {"kind": given["agent"]},
        }
        if not given["split"]:
            del values["env"]["split"]
        defaults.resolve(configs.build(configs.EvaluationConfig, values), None)


def _pairs(given):
    return dict(argument.split("=", 1) for argument in given["env_args"])


def test_folders_are_of_runs_and_evaluations_on_the_page():
    evaluations = {name for call in called("eval") for name in papers_page.options(call, "--name")}
    known = {"runs": set(RUNS), "evaluations": evaluations}
    for name in ("report", "credit"):
        for arguments in called(name):
            for word in arguments:
                root, _, rest = word.partition("/")
                if root in known and rest:
                    pattern = rest.partition("/")[0]
                    assert any(fnmatch(folder, pattern) for folder in known[root]), word


def test_what_is_read_from_rollouts_keeps_them():
    for arguments in called("credit"):
        for word in arguments:
            if word.startswith("runs/"):
                assert RUNS[word.split("/")[1]].run.keep_rollouts, word


BASES = [name for name in RUNS if "-base-" in name and not name.endswith(("-seed1", "-seed2"))]


@pytest.mark.parametrize("name", BASES)
def test_what_a_method_is_compared_with_differs_from_it_in_the_method_alone(name):
    """SALT, section 4.1, and OPRL, appendix C: all methods share their settings."""
    other = RUNS[name]
    first = RUNS[re.sub(r"-base-\w+?(?=-\d)", "", name)]
    if other.method.name == "ppo":  # 128 tasks, once each
        assert first.rollout.tasks_per_step * first.rollout.group_size == 128
        other = configs.replace(other, rollout=first.rollout)
    if other.method.name == "sft":  # official tasks have no expert
        other = configs.replace(other, env=first.env)
    if name.startswith("visual-sokoban"):  # its reward model reads the grid
        other = configs.replace(other, env=first.env)
    if not is_on_policy(methods.get(other.method.name).loss):  # has no ratio to correct
        corrected = configs.replace(
            other.rollout,
            correction=first.rollout.correction,
            correction_bounds=first.rollout.correction_bounds,
        )
        other = configs.replace(other, rollout=corrected)
    for section in ("env", "policy", "agent", "rollout", "optimizer", "warmstart", "eval"):
        assert getattr(other, section) == getattr(first, section), section
    assert other.run.steps == first.run.steps
    assert (other.method.reward, other.method.reward_scale) == (
        first.method.reward,
        first.method.reward_scale,
    )
    for key in ("invalid_penalty", "penalty_on"):
        assert other.method.credit.get(key, first.method.credit[key]) == first.method.credit[key]
    kept = {"kl_coefficient", "clip_low", "clip_high", "dual_clip", "entropy_coefficient"}
    for key in kept & other.method.loss.keys() & first.method.loss.keys():
        assert other.method.loss[key] == first.method.loss[key], key


def test_numbers_told_are_those_that_were_reported():
    printed = {}
    for row in paper_results.load():
        for number in row.numbers.values():
            mean = f"{number.mean:.{number.decimals}f}"
            std = "" if number.std is None else f"±{number.std:.{number.decimals}f}"
            printed.setdefault(row.source, set()).update((mean, mean + std))
    checked = 0
    for row in ROWS:
        source = f"{row.paper}, {row.number}"
        told = re.sub(r"(Qwen)?\d\.\d(-\d\w|B)", "", row.reported)
        for number in re.findall(r"\d+\.\d+(?:±\d+\.\d+)?", told):
            assert source not in printed or number in printed[source], (source, number)
            checked += source in printed
    assert checked > 60


def test_a_recipe_or_setting_that_does_not_exist_is_noticed():
    with pytest.raises(ConfigError, match="no recipe"):
        configs.load("alfworld-scpo-2b", [])
    with pytest.raises(ConfigError, match="credit2"):
        configs.load("alfworld-scpo-1.5b", ["method.credit2.theta=0.5"])
    with pytest.raises(ConfigError, match="thetta"):
        run_defaults.resolve(configs.load("alfworld-scpo-1.5b", ["method.credit.thetta=0.5"]))
    with pytest.raises(click.ClickException):
        parsed("report", ["runs/x", "--no-such-option"])
