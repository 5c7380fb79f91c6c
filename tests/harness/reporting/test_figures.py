"""Figures of an evaluation, its breakdowns and comparisons, against counts by hand."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_results import episode, episodes, result

from harness.evaluation import breakdowns
from harness.evaluation.figures import summarise
from harness.evaluation.pairing import pair
from harness.evaluation.statistics import bootstrap, wilson
from harness.types.errors import PairingError
from harness.types.rollout import StopReason, Usage


def figures(records, env_id="agentgyms/Corridor-v0", seeds=(0,), trials=1, prices=None):
    return summarise(records, env_id=env_id, seeds=seeds, trials=trials, prices=prices)


def test_one_seed_by_hand():
    records = [
        episode("a", True, index=0, family="heat", turns=4, invalid=1, usage=Usage(1000, 40, 4)),
        episode("b", False, index=1, family="heat", score=0.25, turns=10, invalid=2, failed=5),
        episode("c", False, index=2, family="cool", turns=6, unfinished=1, cut=4),
    ]
    found = figures(records, prices=(2.0, 10.0))
    assert found["success"] == {
        "mean": 1 / 3,
        "interval": list(wilson(1 / 3, 3)),
        "kind": "wilson",
        "count": 3,
        "per_seed": [1 / 3],
        "std": None,
    }
    assert found["score"]["mean"] == pytest.approx(1.25 / 3)
    assert found["turns"] == 20 / 3
    shares = ("invalid_share", "failed_share", "unfinished_share", "cut_share")
    assert [found[name] for name in shares] == [3 / 20, 5 / 20, 1 / 20, 4 / 20]
    assert found["stop_reasons"] == {"terminated": 1, "turn_limit": 2}
    assert found["tokens"] == {"prompt": 1200, "response": 60, "calls": 6}
    assert found["cost"] == pytest.approx(1200 * 2e-6 + 60 * 10e-6)
    assert list(found["families"]) == ["heat", "cool"], "in the order of the papers"
    assert found["families"]["heat"]["success"]["mean"] == 0.5
    assert found["families"]["heat"]["count"] == 2
    assert found["breakdowns"] == {}


def test_several_seeds_have_a_bootstrap_over_tasks_and_a_deviation():
    wins = [(0, (1, 1, 0, 0)), (1, (1, 0, 0, 0)), (2, (1, 1, 1, 0))]
    records = [
        episode(f"t{i}", bool(won), index=i, seed=seed)
        for seed, row in wins
        for i, won in enumerate(row)
    ]
    success = figures(records, seeds=(0, 1, 2))["success"]
    assert success["per_seed"] == [0.5, 0.25, 0.75]
    assert (success["mean"], success["std"]) == (0.5, 0.25)  # 0.0625 * 2 / 2
    assert (success["kind"], success["count"]) == ("bootstrap", 12)
    numbers = [float(won) for _, row in wins for won in row]
    assert success["interval"] == list(bootstrap(numbers, [f"t{i}" for i in range(4)] * 3))


def test_no_interval_has_no_width():
    # All solved with all seeds: samples are all alike, but 20 tasks tell less than certainty.
    records = [r for seed in (0, 1) for r in episodes({str(i): True for i in range(20)}, seed=seed)]
    success = figures(records, seeds=(0, 1))["success"]
    assert (success["mean"], success["kind"]) == (1, "wilson")
    assert success["interval"] == list(wilson(1, 20))


def test_a_seed_that_finished_nothing_counts_nowhere():
    success = figures(episodes({"a": True, "b": False}), seeds=(0, 1))["success"]
    assert success["per_seed"] == [0.5, None]
    assert (success["mean"], success["std"], success["count"]) == (0.5, None, 2)


def test_nothing_finished_is_nothing_known():
    found = figures([], trials=2, prices=(1.0, 1.0))
    assert found["success"]["mean"] is found["success"]["interval"] is found["turns"] is None
    assert found["invalid_share"] is None
    assert found["cost"] == 0
    assert "NaN" not in json.dumps(found)


def test_trials_are_one_unit_and_their_turns_all_count():
    records = [
        episode("a", False, index=0, trial=1, score=0.5, invalid=2),
        episode("a", True, index=0, trial=2),
        episode("b", False, index=1, trial=1, score=0.75),
        episode("b", False, index=1, trial=2, score=0.25),
        episode("b", False, index=1, trial=3, score=0.5),
        episode("c", True, index=2, trial=1, turns=8),
    ]
    found = figures(records, trials=3)
    assert found["success"]["count"] == 3
    assert found["success"]["mean"] == 2 / 3
    assert found["score"]["mean"] == pytest.approx((1 + 0.5 + 1) / 3)
    assert [t["trial"] for t in found["trials"]] == [1, 2, 3]
    assert [t["success"]["mean"] for t in found["trials"]] == [1 / 3, 2 / 3, 2 / 3]
    assert [t["success"]["count"] for t in found["trials"]] == [3, 3, 3]
    assert found["turns"] == 18 / 6
    assert found["invalid_share"] == 2 / 18
    assert found["tokens"] == {"prompt": 600, "response": 60, "calls": 6}


def test_metrics_leave_out_what_is_not_known():
    records = [
        episode("a", True, index=0, metrics={"r_type": 1.0, "searches": 2.0}),
        episode("b", False, index=1, metrics={"r_type": math.nan, "searches": 1.0}),
        episode("c", False, index=2, metrics={"r_type": 0.5}),
        episode("d", False, index=3, metrics={"never": math.nan}),
    ]
    found = figures(records)
    assert found["metrics"] == {"never": None, "r_type": 0.75, "searches": 1.5}
    assert found["metric_counts"] == {"never": 0, "r_type": 2, "searches": 2}


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 2)), min_size=1, max_size=30), st.data())
def test_the_order_of_episodes_changes_nothing(outcomes, data):
    records = [
        episode(f"t{i // 3}", won, index=i // 3, seed=i % 3, family=str(family))
        for i, (won, family) in enumerate(outcomes)
    ]
    moved = data.draw(st.permutations(records))
    assert figures(moved, seeds=(0, 1, 2)) == figures(records, seeds=(0, 1, 2))


def means(group):
    return {k: v["mean"] for k, v in group.items() if isinstance(v, dict)}


def test_sokoban_by_boxes():
    wins = {"valid/6x6-1-2f19-00000": True, "valid/6x6-2-00ab-00001": False}
    found = figures(episodes(wins), "agentgyms/VisualSokoban-v0")["breakdowns"]["Boxes"]
    assert {k: v["success"]["mean"] for k, v in found.items()} == {"1": 1, "2": 0}
    of_peers = [
        *episodes({"seed-7": True}, family="1-box"),
        episode("seed-8", False, index=1, family="3-boxes"),
    ]
    found = figures(of_peers, "agentgyms/Sokoban-v0")["breakdowns"]["Boxes"]
    assert list(found) == ["1", "3"]
    assert figures(episodes({"test/levels/0001": True}), "agentgyms/Sokoban-v0")["breakdowns"] == {}


def test_searchqa_by_data_set_in_the_papers_order():
    outcomes = {"musique": (1, 0.5), "nq": (1, 1.0), "own": (0, 0.25), "hotpotqa": (0, 0.0)}
    records = [
        episode(f"{name}/1", bool(em), index=i, family=name, metrics={"em": float(em), "f1": f1})
        for i, (name, (em, f1)) in enumerate(outcomes.items())
    ]
    found = figures(records, "agentgyms/SearchQA-v0")["breakdowns"]["Data set"]
    assert list(found) == ["NQ", "HotpotQA", "MuSiQue", "own", "All"]
    assert means(found["MuSiQue"]) == {"EM": 1, "F1": 0.5}
    assert means(found["All"]) == {"EM": 0.5, "F1": 0.4375}


def test_appworld_counts_scenarios_whole_or_not_at_all():
    won = {"aa_1": 1, "aa_2": 1, "aa_3": 1, "bb_1": 1, "bb_2": 0, "bb_3": 1, "cc_1": 1, "cc_2": 1}
    hard = {"aa": 1.0, "bb": 3.0, "cc": 3.0}
    records = [
        episode(t, bool(w), index=i, metrics={"difficulty": hard[t[:2]]})
        for i, (t, w) in enumerate(won.items())
    ]
    found = figures(records, "agentgyms/AppWorld-v0")["breakdowns"]["Difficulty"]
    assert list(found) == ["1", "3", "All"]
    assert means(found["All"]) == {"TGC": 7 / 8, "SGC": 1 / 2}
    assert found["All"]["SGC"]["count"] == 2
    assert found["All"]["incomplete_scenarios"] == 1
    assert means(found["3"]) == {"TGC": 4 / 5, "SGC": 0}
    # Of two seeds, a scenario has to be solved whole within one of them.
    again = [*records[:3], *episodes({"aa_1": True, "aa_2": True, "aa_3": False}, seed=1)]
    found = figures(again, "agentgyms/AppWorld-v0", seeds=(0, 1))["breakdowns"]["Difficulty"]
    assert list(found) == ["All"], "the second seed does not tell the difficulty"
    assert found["All"]["SGC"]["per_seed"] == [1, 0]


def test_sotopia_has_goals_and_dimensions_and_leaves_out_unrated_episodes():
    outcomes = [
        ("hard", 4.0, -1.0),
        ("hard", 6.0, 3.0),
        ("", 8.0, math.nan),
        ("", math.nan, math.nan),
    ]
    records = [
        episode(str(i), goal > 6, index=i, family=f, metrics={"goal": goal, "relationship": other})
        for i, (f, goal, other) in enumerate(outcomes)
    ]
    found = figures(records, "agentgyms/SOTOPIA-v0")["breakdowns"]
    assert means(found["Goal"]["Hard"]) == {"Mean": 5}
    assert means(found["Goal"]["All"]) == {"Mean": 6}
    assert found["Goal"]["All"]["Mean"]["count"] == 3
    assert found["Goal"]["All"]["Mean"]["kind"] == "bootstrap"
    low, high = found["Goal"]["All"]["Mean"]["interval"]
    assert 4 <= low < 6 < high <= 8
    assert len(found["Dimension"]) == 7
    assert means(found["Dimension"]["Relationship"]) == {"Mean": 1}
    assert found["Dimension"]["Secret"]["Mean"]["mean"] is None


def test_names_of_environments():
    ids = ("agentgyms/ALFWorld-v0", "Own-v12", "mine.envs:mine/Own-v1", "mine:Own-v0")
    assert [breakdowns.env_name(env_id) for env_id in ids] == ["ALFWorld", "Own", "Own", "Own"]


def test_a_comparison_by_hand():
    first = episodes({"a": True, "b": True, "c": False, "d": True, "e": False})
    second = episodes({"a": True, "b": False, "c": False, "d": False, "f": True}, score=0.5)
    paired = pair(result(first), result(second))
    assert (paired.units, paired.tasks, paired.only_first, paired.only_second) == (4, 4, 1, 1)
    assert (paired.wins, paired.losses, paired.ties) == (2, 0, 2)
    assert (paired.both, paired.neither) == (1, 1)
    assert paired.success.mean == 0.5
    assert paired.score.mean == pytest.approx((0.5 + 0.5 - 0.5 + 0.5) / 4)
    assert paired.p_value == 0.5  # two heads of two coins, or two tails
    assert [(c.task_id, c.first) for c in paired.changed] == [("b", True), ("d", True)]
    turned = pair(result(second), result(first))
    assert (turned.wins, turned.losses, turned.success.mean) == (0, 2, -0.5)


def test_seeds_of_a_comparison_are_paired_and_trials_count_once():
    first = [
        episode("a", False, seed=0),
        episode("a", True, seed=0, trial=2),
        episode("a", True, seed=1),
    ]
    second = [episode("a", False, seed=0), episode("a", True, seed=1), episode("a", True, seed=2)]
    paired = pair(result(first, seeds=(0, 1), trials=2), result(second, seeds=(0, 1, 2)))
    assert (paired.units, paired.tasks, paired.wins, paired.losses) == (2, 1, 1, 0)
    assert paired.only_second == 1
    assert paired.p_value is None
    assert paired.success.interval is None, "one task alone has no spread"


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"split": "valid_unseen"}, "different splits"),
        ({"env_id": "agentgyms/WebShop-v0"}, "different environments"),
        ({"data_version": "made-2"}, "different data versions"),
    ],
)
def test_evaluations_of_different_things_are_not_compared(other, message):
    records = episodes({"a": True})
    with pytest.raises(PairingError, match=message):
        pair(result(records), result(records, **other))


def test_evaluations_without_a_common_unit_are_not_compared():
    with pytest.raises(
        PairingError, match=r"1 tasks with seeds 0, the second 1 tasks with seeds 3"
    ):
        pair(result(episodes({"a": True})), result(episodes({"a": True}, seed=3), seeds=(3,)))


def test_stop_reasons_are_of_every_trial():
    records = [
        episode("a", False, trial=1, stop_reason=StopReason.CONTEXT_LIMIT),
        episode("a", True, trial=2),
    ]
    assert figures(records, trials=2)["stop_reasons"] == {"context_limit": 1, "terminated": 1}
