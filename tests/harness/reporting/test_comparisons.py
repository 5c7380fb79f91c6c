"""Runs that `docs/papers.md` reports together differ in the method alone.

`harness/config/comparisons.toml` names what is a method's own.
"""

from collections import defaultdict
from fnmatch import fnmatch
from functools import cache
from itertools import combinations
from pathlib import Path

import papers_page
import pytest

from harness import config as configs
from harness.config import comparisons, methods
from harness.preflight import defaults
from harness.reporting.results.loading import LoadedEvaluation
from harness.reporting.results.run_differences import run_differences

TOLD = comparisons.tables()
CALLS = papers_page.all_calls()
WITHOUT_EFFECT = {"run.name", "run.seed", "swept", "run.keep_rollouts", "method.name"}


def called(name):
    return [call for found in CALLS.values() for call in found if call[0] == name]


RUNS = {name: run for call in called("train") for name, run in papers_page.runs(call[1:])}
EVALUATED = {
    name: papers_page.options(call, "--model")[0].removeprefix("runs/")
    for call in called("eval")
    for name in papers_page.options(call, "--name")
}


@cache
def config(recipe, given):
    return configs.to_dict(defaults.resolve(configs.load(recipe, given)))


def resolved(name):
    return comparisons.flat(config_of(name))


def config_of(name):
    return config(RUNS[name].recipe, (*RUNS[name].settings, *RUNS[name].swept))


def loaded(name, group):
    """A run of the page, as a report reads its folder, without its figures."""
    config = config_of(name)
    result = {"environment": {"id": config["env"]["id"], "split": ""}, "config": config}
    return LoadedEvaluation(Path(name), result, name, group)


def reported(call):
    """The runs of a report, one of each run's seeds."""
    names = set()
    for word in call:
        root, _, pattern = word.partition("/")
        if root == "runs":
            names |= {name for name in RUNS if fnmatch(name, pattern)}
        if root == "evaluations":
            names |= {model for name, model in EVALUATED.items() if fnmatch(name, pattern)}
    first = {}
    for name in sorted(names):
        first.setdefault((RUNS[name].recipe, RUNS[name].settings, RUNS[name].swept), name)
    return [*first.values()]


def together():
    """The sets of runs that the page reports together, by row, environment and model."""
    found = defaultdict(set)
    for (row, _), calls in CALLS.items():
        if not row.paper:  # what papers share is prompting
            continue
        for call in calls:
            groups = defaultdict(list)
            for name in reported(call) if call[0] == "report" else ():
                groups[resolved(name)["env.id"], resolved(name)["policy.model"]].append(name)
            for names in groups.values():
                if len(names) > 1:
                    found[f"{row.paper}, {row.number}"].add(tuple(names))
    return found


TOGETHER = together()
SETS = [(row, names) for row, sets in TOGETHER.items() for names in sorted(sets)]


def comparison_of(row):
    (found,) = [one for one in TOLD["comparison"] if row in one["rows"]]
    return found


def named_by_the_page(row, key, runs):
    """Whether a row varies a setting on purpose, for all methods or for one of the two."""
    comparison = comparison_of(row)
    sets = comparison.get("sets", {})
    by_one = any(key in sets.get(run["method.name"], ()) for run in runs)
    return by_one or key in comparison.get("varies", ())


def unnamed(row, first, second):
    """The settings in which two runs differ and that nothing names."""
    pair = resolved(first), resolved(second)
    differing = {key for run in pair for key in run if comparisons.differs(key, *pair)}
    found = {key for key in differing - WITHOUT_EFFECT if not named_by_the_page(row, key, pair)}
    if pair[0]["method.name"] == pair[1]["method.name"]:  # a version of one method is varied
        return found
    return {key for key in found if not comparisons.is_own(key, *pair)}


@pytest.mark.parametrize(("row", "names"), SETS, ids=[f"{row}-{names[0]}" for row, names in SETS])
def test_runs_in_one_table_differ_in_the_method_alone(row, names):
    found = {pair: unnamed(row, *pair) for pair in combinations(names, 2)}
    assert not {pair: sorted(keys) for pair, keys in found.items() if keys}


@pytest.mark.parametrize(("row", "names"), SETS, ids=[f"{row}-{names[0]}" for row, names in SETS])
def test_a_report_of_one_table_warns_of_what_the_page_varies_alone(row, names):
    runs = [loaded(name, number) for number, name in enumerate(names)]
    (told,) = run_differences(runs)
    pages = {key for key in told.unexplained if named_by_the_page(row, key, map(resolved, names))}
    assert set(told.unexplained) == pages


def test_every_set_of_runs_has_its_comparison_and_no_other_does():
    listed = [row for one in TOLD["comparison"] for row in one["rows"]]
    assert sorted(listed) == sorted(TOGETHER)
    assert len(SETS) > 40


ALL = [resolved(name) for _, names in SETS for name in names]


@pytest.mark.parametrize("comparison", TOLD["comparison"], ids=lambda one: one["rows"][0])
def test_what_a_comparison_names_differs_in_its_rows(comparison):
    sets = [[resolved(n) for n in names] for row in comparison["rows"] for names in TOGETHER[row]]
    named = [(None, key) for key in comparison.get("varies", [])]
    named += [(m, key) for m, keys in comparison.get("sets", {}).items() for key in keys]
    for method, key in named:
        differing = [runs for runs in sets if len({str(run.get(key)) for run in runs}) > 1]
        assert any(method in (None, run["method.name"]) for runs in differing for run in runs), key


@pytest.mark.parametrize("method", TOLD["methods"])
def test_what_a_method_names_is_its_own_somewhere(method):
    told, own = TOLD["methods"][method], [run for run in ALL if run["method.name"] == method]
    assert own, "no run on the page is of it"
    for key in [f"method.credit.{key}" for key in told["credit"]] + [*told.get("sets", {})]:
        assert any(key in run for run in own), key
        assert len({str(run.get(key)) for run in ALL}) > 1, key


def test_what_rows_set_of_a_run_differs_for_loop_alone():
    """DAPO's and GVPO's ways to collect are those of all methods beside them."""
    found = set()
    for row, names in SETS:
        for pair in combinations(map(resolved, names), 2):
            keys = {key for run in pair for key in methods.get(run["method.name"]).run}
            differing = {key for key in keys if comparisons.differs(key, *pair)}
            found |= {key for key in differing if not named_by_the_page(row, key, pair)}
    assert found == {"optimizer.epochs"}


@pytest.mark.parametrize(
    ("change", "key"),
    [
        ("method.credit.statistics=rollout", "method.credit.statistics"),
        ("method.credit.invalid_penalty=0.0", "method.credit.invalid_penalty"),
        ("method.credit.gamma=1.0", "method.credit.gamma"),
        ("optimizer.mini_batch_size=256", "optimizer.mini_batch_size"),
        ("agent.window=3", "agent.window"),
    ],
)
def test_a_difference_that_is_not_the_methods_is_noticed(change, key, monkeypatch):
    given = RUNS["webshop-scpo-1.5b-seed0"]
    changed = papers_page.Run(given.recipe, (*given.settings, change), (), 0)
    monkeypatch.setitem(RUNS, "changed", changed)
    assert unnamed("SCPO, Table 1", "webshop-gigpo-1.5b-seed0", "changed") == {key}
