"""pass@k, pass^k and average@k; AppWorld's look-ups; all are counted again when loaded."""

import copy
import itertools

import pytest
from made_results import episode, keep, result

from harness.evaluation.units import Units, pass_all, pass_at
from harness.reporting.results.loading import load
from harness.reporting.tables import details
from harness.types.errors import ResultError

APPWORLD = "agentgyms/AppWorld-v0"
WON = {"a": (1, 0, 0, 0), "b": (1, 1, 0, 0), "c": (0, 0, 0, 0), "d": (1, 1, 1, 1)}


def played(won=WON, **more):
    return [
        episode(task_id, bool(success), index=index, seed=seed, **more)
        for index, (task_id, of) in enumerate(won.items())
        for seed, success in enumerate(of)
    ]


def means(records, seeds):
    found = Units.collect(records, seeds).samples()
    return found, [one["success"]["mean"] for one in found["pass"]]


@pytest.mark.parametrize("won", range(6))
def test_pass_k_is_the_share_of_draws_with_a_success_and_of_those_with_no_other(won):
    for k in range(1, 6):
        draws = list(itertools.combinations([True] * won + [False] * (5 - won), k))
        assert pass_at(5, won, k) == pytest.approx(sum(map(any, draws)) / len(draws))
        assert pass_all(5, won, k) == pytest.approx(sum(map(all, draws)) / len(draws))


def test_the_means_are_over_tasks():
    found, passed = means(played(), (0, 1, 2, 3))
    # By task: 1/4, 2/4, 0, 1; with two draws 1/2, 5/6, 0, 1; with three 3/4, 1, 0, 1.
    assert passed == [0.4375, pytest.approx(7 / 12), 0.6875, 0.75]
    # All of one draw as above; of two 0, 1/6, 0, 1; of more 0, 0, 0, 1.
    kept = [one["success"]["mean"] for one in found["all"]]
    assert kept == [0.4375, pytest.approx(7 / 24), 0.25, 0.25]
    assert (found["n"], found["average"]["mean"]) == (4, 0.4375)
    assert found["average"]["per_seed"] == [0.75, 0.5, 0.25, 0.25]
    low, high = found["pass"][3]["success"]["interval"]
    assert low < 0.75 < high
    assert found["pass"][3]["success"]["kind"] == "bootstrap"
    assert found["pass"][3]["success"]["std"] is None


def test_tasks_with_fewer_samples_than_k_are_left_out():
    found, passed = means(played({"a": (1, 0, 0), "b": (0,)}), (0, 1, 2))
    assert passed == [pytest.approx(1 / 6), pytest.approx(2 / 3), 1.0]
    assert [one["success"]["count"] for one in found["pass"]] == [2, 1, 1]


def test_all_trials_at_a_task_are_one_sample():
    records = [episode("a", won, trial=n, seed=s) for s in (0, 1) for n, won in ((1, 0), (2, s))]
    assert means(records, (0, 1))[1] == [0.5, 1.0]


def test_nothing_finished_has_no_samples():
    assert means([], (0, 1))[0]["pass"] == []


def kept(tmp_path, records, **more):
    return result(records, **more), tmp_path / "e"


def test_the_table_is_shown_and_held_to_the_outcomes(tmp_path):
    given, folder = kept(tmp_path, played(), seeds=(0, 1, 2, 3))
    text = details.to_markdown(load(keep(folder, given)))
    assert "| average@4 | 43.8 (" in text
    assert "| pass@4 | 75.0 (" in text
    assert "| pass^4 | 25.0 (" in text
    edited = copy.deepcopy(given)
    edited["figures"]["samples"]["pass"][1]["success"]["mean"] = 0.9
    with pytest.raises(ResultError, match=r"figures\.samples\.pass\[1\]\.success\.mean is 0\.9"):
        load(keep(folder, edited))
    edited = copy.deepcopy(given)
    del edited["figures"]["samples"]["all"]
    with pytest.raises(ResultError, match="damaged: KeyError"):
        load(keep(folder, edited))
    edited = copy.deepcopy(given)
    del edited["figures"]["samples"]["average"]
    with pytest.raises(ResultError, match="damaged: KeyError"):
        load(keep(folder, edited))
    del edited["figures"]["samples"]
    assert "average@" not in details.to_markdown(load(keep(folder, edited)))


def test_one_seed_has_no_samples():
    assert "samples" not in result(played({"a": (1,)}))["figures"]


def test_look_ups_are_counted_per_episode_and_turn(tmp_path):
    looked = {"show_api_doc": 1, "show_api_descriptions": 0}
    records = [
        episode("a_1", True, turns=4, lookups=looked, metrics={"difficulty": 1.0}),
        episode("b_1", True, index=1, turns=6, lookups=looked, metrics={"difficulty": 1.0}),
    ]
    given, folder = kept(tmp_path, records, env_id=APPWORLD)
    assert given["figures"]["documentation"] == {
        "show_api_doc": {"calls": 1.0, "share": 0.2},
        "show_api_descriptions": {"calls": 0.0, "share": 0.0},
    }
    text = details.to_markdown(load(keep(folder, given)))
    told = "- documentation look-ups: show_api_doc 1.0 per episode (20.0 % of the turns), show_api_"
    assert told in text
    assert "documentation" not in result(played())["figures"]
