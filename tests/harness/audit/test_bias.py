"""The bias laboratory: exact gradients, estimators without a bias, and with one that is known."""

import itertools
import json
import math
import runpy
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from harness.audit import bias
from harness.audit.bias.figures import BIASED, NOTHING, SCALED, UNBIASED, bias_of
from harness.audit.bias.sampling import draw
from harness.cli.main import main
from harness.reporting.credit_view import bias_text, compare

CHAIN = bias.make("chain-stop", 4)


def found(world, name, steps=600, size=8, objective="success", **settings):
    """What is found about an estimator."""
    given = [f"{name}.{key}={value}" for key, value in settings.items()]
    ((_, estimate),) = bias_text.estimators(compare.choose([name], given)).items()
    cells, _ = bias.measure(world, {name: estimate}, size=size, steps=steps, objective=objective)
    return cells[0].bias


@pytest.mark.parametrize("objective", ["success", "environment"])
@pytest.mark.parametrize("name", bias.NAMES)
def test_the_exact_gradient_is_that_of_finite_differences(name, objective):
    for task in bias.make(name, 5).tasks:
        exact, step = task.gradient(objective), 1e-4
        for place in itertools.islice(zip(*np.nonzero(task.model.legal), strict=True), 24):
            ends = []
            for sign in (1, -1):
                logits = task.logits.copy()
                logits[place] += sign * step
                ends.append(replace(task, logits=logits).value(objective))
            assert (ends[0] - ends[1]) / (2 * step) == pytest.approx(exact[place], abs=1e-6)


def episodes(task):
    """All episodes of a task: probability, success, and the gradient of their log-probability."""
    model, policy = task.model, task.policy
    open_ones = [(1.0, 0, np.zeros(task.logits.shape))]
    for _ in range(model.horizon):
        going = []
        for chance, state, score in open_ones:
            for action in np.flatnonzero(model.legal[state]):
                grown = score.copy()
                grown[state] -= policy[state]
                grown[state, action] += 1
                for b in np.flatnonzero(model.probability[state, action]):
                    way = state, action, b
                    likely = chance * policy[state, action] * model.probability[way]
                    if model.over[way]:
                        yield likely, model.rewards["success"][way], grown
                    else:
                        going.append((likely, int(model.after[way]), grown))
        open_ones = going
    yield from ((chance, 0.0, score) for chance, _, score in open_ones)


def test_the_mean_over_all_pairs_of_episodes_is_the_exact_gradient():
    """RLOO of two episodes is half the difference of their returns; nothing is drawn."""
    task = bias.make("chain-stop", 2).tasks[0]
    every = list(episodes(task))
    assert sum(chance for chance, _, _ in every) == pytest.approx(1)
    pairs = sum(
        p * q * ((won - lost) * score + (lost - won) * other) / 2
        for (p, won, score), (q, lost, other) in itertools.product(every, every)
    )
    assert pairs == pytest.approx(task.gradient(), abs=1e-12)


def test_drawn_columns_have_the_exact_means():
    drawn = draw(CHAIN, 400, 4, 8, np.random.default_rng(0), continuations=4)
    turns = drawn.turns
    starts = turns.starts
    for number, task in enumerate(CHAIN.tasks):
        own = starts[[key.startswith(f"{number}:") for key in turns.state_key[starts]]]
        chance = task.value()
        error = math.sqrt(chance * (1 - chance) / len(own))
        assert turns.success[own].mean() == pytest.approx(chance, abs=4 * error)
        assert turns.value[own] == pytest.approx(10 * chance)
        assert turns.state_value[own].mean() == pytest.approx(10 * chance, abs=20 * error)
    # Values of the states after a turn are martingales.
    after = np.where(turns.goes_on, np.append(turns.value[1:], 0), turns.reward)
    surprise = after - turns.value
    assert surprise.mean() == pytest.approx(
        (10 * drawn.advantage).mean(), abs=4 * surprise.std() / math.sqrt(len(turns))
    )
    # Given what came of it, the chances of an action have its chance as their mean.
    assert (turns.hindsight <= 1).all()
    assert turns.energy == pytest.approx(
        ((np.eye(2)[(drawn.places[0] - drawn.places[1])] - drawn.policy) ** 2).sum(1)
    )


def test_unbiased_estimators_are_found_unbiased():
    usual = {"rloo": {}, "oracle": {"scale": "none"}, "gae": {"whiten": "false"}}
    for name, settings in usual.items():
        assert found(CHAIN, name, **settings).verdict == UNBIASED
    grpo = found(CHAIN, "grpo", size=4, norm="mean")
    assert grpo.verdict == SCALED
    # The own return is a quarter of the mean that is subtracted.
    assert grpo.scale == pytest.approx(3 / 4, abs=4 * grpo.scale_error)


def test_a_bias_is_found_at_its_size():
    exact = np.array([3.0, 4.0, 0.0])
    rng = np.random.default_rng(0)
    noise = rng.normal(0, 1, (4000, 3))
    wrong = bias_of(noise + 0.5 * exact + [0, 0, 0.2], noise + exact, exact)
    assert (wrong.verdict, wrong.scale) == (BIASED, pytest.approx(0.5))
    # The control takes all noise off.
    assert wrong.off == pytest.approx(0.2 / 2.5)
    own = rng.normal(0, 1, (4000, 3))
    assert bias_of(own + exact + [0, 0, 0.2], noise + exact, exact).verdict == BIASED
    assert bias_of(own + exact, noise + exact, exact).verdict == UNBIASED
    assert bias_of(own, noise + exact, exact).verdict == NOTHING
    with pytest.raises(ValueError, match="not zero"):
        bias_of(own, noise, np.zeros(3))


def test_unbiased_gradients_are_rarely_called_biased():
    exact = np.array([1.0, 0.0, 0.0, 0.0])
    rng = np.random.default_rng(1)
    scores = [
        bias_of(rng.normal(0, 1, (60, 4)) + exact, rng.normal(0, 1, (60, 4)) + exact, exact).score
        for _ in range(500)
    ]
    assert np.mean(scores) == pytest.approx(0, abs=0.2)
    assert np.std(scores) == pytest.approx(1, abs=0.15)


@pytest.mark.parametrize("absent", ["skip", "zero"])
def test_mt_grpo_is_biased_where_the_policy_stops(absent):
    """verl's issue 7244; `zero` is this package's remedy."""
    settings = {"objective": "environment", "norm": "mean", "absent": absent, "size": 16}
    stops = found(CHAIN, "mt_grpo", **settings)
    assert stops.verdict == (BIASED if absent == "skip" else SCALED)
    fixed = found(bias.make("chain-fixed", 4), "mt_grpo", **settings)
    assert fixed.verdict in (UNBIASED, SCALED)
    assert fixed.scale == pytest.approx(15 / 16, abs=4 * fixed.scale_error)


def test_what_depends_on_the_batch_is_credited_step_by_step():
    def whitened(turns):
        return turns.reward - turns.reward.mean()

    (cell,), _ = bias.measure(CHAIN, {"own": whitened}, steps=600, size=4)
    assert cell.steps < 600
    (again,), _ = bias.measure(CHAIN, {"own": whitened}, steps=600, size=4)
    assert again == cell


def run(*words):
    return CliRunner().invoke(main, ["credit", "bias", *words], catch_exceptions=False)


def test_the_command_prints_equal_digits_and_names_what_it_leaves_out(tmp_path):
    words = ["corridor", "--methods", "grpo,mt_grpo", "--steps", "20", "--lengths", "6"]
    first = run(*words, "--json", "-")
    cells = json.loads(first.stdout)
    assert [cell["name"] for cell in cells] == ["grpo norm=std", "grpo norm=mean"]
    assert {cell["length"] for cell in cells} == {6}
    assert run(*words, "--json", "-").stdout == first.stdout
    picture = tmp_path / "bias.svg"
    shown = run(*words, "--figure", str(picture), "--csv", str(tmp_path / "bias.csv"))
    assert "mt_grpo norm=std: needs process_reward" in shown.output
    assert picture.stat().st_size > 1000
    assert (tmp_path / "bias.csv").read_text().count("\n") == 3


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["nowhere"], "unknown world 'nowhere': expected one of chain-stop"),
        (["--lengths", "1"], "at least 2 turns, got 1"),
        (["--group-sizes", "1", "--methods", "rloo"], "groups have 2 or more episodes, got 1"),
        (["--groups", "3", "--methods", "rloo"], "a multiple of the 2 tasks, got 3"),
        (["--lengths", "2", "corridor", "--methods", "rloo"], "the gradient of success is zero"),
    ],
)
def test_wrong_words_are_told(words, told):
    with pytest.raises(ValueError, match=told):
        run(*words)


@pytest.mark.slow
def test_the_study_of_what_foretells_runs_on_little(capsys, monkeypatch):
    study = Path(__file__).parents[3] / "benchmarks/studies/foretell.py"
    little = ["--seeds", "2", "--steps", "2", "--measured", "8", "--turns", "3"]
    monkeypatch.setattr(sys, "argv", [str(study), "chain-stop", *little])
    runpy.run_path(str(study), run_name="__main__")
    methods, correlations = capsys.readouterr().out.split("\n\n")
    assert "| rloo |" in methods
    assert correlations.count("| ") > 9
