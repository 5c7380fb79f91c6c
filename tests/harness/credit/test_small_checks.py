"""The small checks of the papers' claims: on bundled rollouts, on their page, by short runs."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from harness.annotators import semantic
from harness.reporting.credit_view import recordings

ROOT = Path(__file__).resolve().parents[3]
STUDIES = ROOT / "benchmarks" / "studies"
SHRUNK = [
    "run.steps=3",
    "run.keep_rollouts=1",
    "warmstart.steps=20",
    "warmstart.episodes=40",
    "warmstart.batch_size=8",
    "rollout.tasks_per_step=1",
    "env.max_turns=6",
    "eval.every=0",
    "eval.tasks=3",
    "eval.max_turns=6",
    "policy.tiny.layers=1",
    "policy.tiny.hidden=64",
    "policy.tiny.heads=4",
    "policy.tiny.feed_forward=64",
]


@pytest.fixture(scope="module")
def checks():
    spec = importlib.util.spec_from_file_location("papers_small", STUDIES / "papers_small.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look it up
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


@pytest.fixture(scope="module")
def series(checks):
    """Figures of two steps: the bundled rollouts, and those of their first groups."""
    whole, scorer = recordings.example_rollouts(), semantic.open_scorer("lexical")
    groups = sorted({rollout.group for rollout in whole})
    half = [rollout for rollout in whole if rollout.group in groups[: len(groups) // 2]]
    steps = [dict(checks.figures(one, scorer)) for one in (half, whole)]
    return {name: np.array([step[name] for step in steps]) for name in steps[0]}


def test_the_figures_are_those_of_the_estimators(checks, series):
    rates = [series[f"merged {history}"][1] for history in checks.HISTORIES]
    assert rates == sorted(rates, reverse=True), "a longer history merges fewer edges"
    assert rates[0] > rates[-1]
    repeated, once = series["credited repeated"], series["credited default"]
    assert (repeated >= once).all(), "without monotonicity nothing loses its credit"
    assert 0 < series["range 8"][1] < 1, "shrinkage narrows the range"
    assert all(np.isfinite(values).all() for values in series.values())


def test_a_claim_holds_where_the_interval_over_seeds_is_above_0(checks, series):
    claim = checks.Claim("A paper", "it rises", ("kept",), lambda kept: checks.rise(kept["x"]))

    def told(*rises):
        return claim.row([{"kept": {"x": np.array([1.0, 1.0 + rise])}} for rise in rises])

    assert told(0.9, 1.0, 1.1) == "| A paper | it rises | +1 | +0.752 to +1.25 | holds |"
    assert told(-0.9, -1.0, -1.1).endswith("| the opposite |")
    assert told(-1.0, 0.1, 1.0).endswith("| not told apart from 0 |")
    assert told(1.0).endswith("| one seed |")


def test_each_claim_reads_figures_that_are_there(checks, series):
    logged = {"credit/process_reward_mean": np.arange(4.0), "credit/episode_return": np.arange(4.0)}
    calls = ("failed_turns", "show_api_doc_calls", "show_api_descriptions_calls")
    logged |= {f"credit/{name}": np.ones(4) for name in calls}
    runs = dict.fromkeys(("oprl", "gvpo", "grpo", "dr_grpo"), logged) | {"kept": series}
    rows = [claim.row([runs, runs, runs]) for claim in checks.claims()]
    assert len(rows) == len(set(rows)) == 20
    assert any("correlation" in row and row.endswith("| holds |") for row in rows)


def test_the_page_has_every_claim_and_reads_its_intervals(checks):
    text = (ROOT / "docs" / "papers_small.md").read_text(encoding="utf-8")
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines()]
    told = {(row[0], row[1]): row[2:] for row in rows if len(row) == 5}
    for claim in checks.claims():
        figure, interval, verdict = told[claim.place, claim.text]
        low, high = (float(number) for number in interval.split(" to "))
        assert low <= float(figure) <= high
        assert verdict == (
            "holds" if low > 0 else "the opposite" if high < 0 else "not told apart from 0"
        )


@pytest.mark.slow
def test_the_pages_runs_train_and_are_judged(tmp_path, harness_program):
    chosen = {"SEEDS": "0", "HARNESS": harness_program}
    run = ["bash", str(STUDIES / "papers_small.sh"), str(tmp_path), *SHRUNK]
    for _ in range(2):  # the second time finds all of them done
        told = subprocess.run(
            run, env=os.environ | chosen, check=True, capture_output=True, text=True
        ).stdout
    assert not told
    table = [sys.executable, str(STUDIES / "papers_small.py"), str(tmp_path)]
    table += ["--seeds", "0", "--scorer", "lexical"]
    told = subprocess.run(table, check=True, capture_output=True, text=True).stdout
    assert told.count("| one seed |") == 20
