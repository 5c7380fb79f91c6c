"""GraphGPO against a search written row by row, by hand, and what it reduces to."""

import numpy as np
import pytest
from small_tables import check_against, episode_advantages, is_last, small_tables, within

from harness.credit import TurnTable
from harness.credit.estimators.graphs.graphgpo import graphgpo
from harness.credit.estimators.graphs.transitions import Transitions
from harness.credit.estimators.grpo import grpo
from harness.credit.registry import preset


def reference(rows, decay=0.1, edge_cost=1.0, success_reward=10.0, norm="std", step_weight=1.0):
    to = []
    for i, row in enumerate(rows):
        won = is_last(rows, i) and row["success"]
        to.append("GOAL" if won else row["next_state_key"])
    distance = {(row["group"], "GOAL"): 0 for row, t in zip(rows, to, strict=True) if t == "GOAL"}
    changed = True
    while changed:
        changed = False
        for row, target in zip(rows, to, strict=True):
            here, there = (row["group"], row["state_key"]), (row["group"], target)
            if there in distance and distance[there] + 1 < distance.get(here, 10**9):
                distance[here], changed = distance[there] + 1, True
    far = {}
    for (group, _), steps in distance.items():
        far[group] = max(far.get(group, 0), steps + 1)
    value = []
    for row, target in zip(rows, to, strict=True):
        group = row["group"]
        steps = distance.get((group, target), far.get(group))
        found = 0.0 if steps is None else success_reward * decay ** (steps + edge_cost)
        value.append(found)
    step = within(rows, value, "group", "state_key", norm=norm)
    episode = episode_advantages(rows, norm)
    return [e + step_weight * s for e, s in zip(episode, step, strict=True)]


@pytest.mark.parametrize(
    "settings",
    [{}, {"decay": 0.5, "norm": "mean"}, {"edge_cost": 0.0, "step_weight": 0.3, "decay": 0.9}],
)
def test_graphgpo_is_the_reference(settings):
    check_against(reference, "graphgpo", **settings)


def crossing():
    """One success a b c, one failure that leaves its path at b for a dead end."""
    return TurnTable.from_columns(
        rollout=[0, 0, 0, 1, 1, 1],
        reward=[0, 0, 10, 0, 0, 0],
        state_key=["a", "b", "c", "a", "b", "x"],
        next_state_key=["b", "c", "done", "b", "x", "x"],
    )


def test_graphgpo_by_hand():
    # Distances: c 1, b 2, a 3, x 4 (the largest plus 1). Only b has turns that lead elsewhere.
    graph = Transitions.of(crossing())
    steps = graph.distances()
    assert steps[graph.source].tolist() == [3, 2, 1, 3, 2, np.inf]
    step = graphgpo(crossing(), decay=0.5, norm="mean") - grpo(crossing(), norm="mean")
    to_c, to_x = 10 * 0.5**2, 10 * 0.5**5
    np.testing.assert_allclose(step, [0, (to_c - to_x) / 2, 0, 0, (to_x - to_c) / 2, 0])


def test_a_failure_gets_credit_where_it_goes_the_way_of_a_success():
    table = TurnTable.from_columns(
        rollout=[0, 1, 1, 2],
        reward=[10, 0, 0, 0],
        state_key=["b", "a", "b", "a"],
        next_state_key=["done", "b", "x", "x"],
    )
    step = graphgpo(table, step_weight=1.0) - grpo(table)
    assert step[1] > 0 > step[3]


def test_without_a_success_there_is_the_episode_alone():
    for rows, table in small_tables()[:100]:
        lost = TurnTable.from_columns(
            **{name: [row[name] for row in rows] for name in rows[0]} | {"success": [0] * len(rows)}
        )
        np.testing.assert_array_equal(graphgpo(lost), grpo(lost))
        np.testing.assert_array_equal(graphgpo(table, step_weight=0.0), grpo(table))


def test_presets_have_the_papers_and_the_codes_distance():
    assert preset("paper", "graphgpo")["edge_cost"] == 1.0
    assert preset("verl_agent", "graphgpo")["edge_cost"] == 0.0


def test_a_potential_is_the_largest_decayed_weight():
    graph = Transitions.of(crossing())
    weight = np.zeros(len(graph.group))
    weight[graph.source[2]] = 1.0  # c
    potential = graph.decayed(weight, 0.5)
    assert potential[graph.source].tolist() == [0.25, 0.5, 1.0, 0.25, 0.5, 0.0]
    assert graph.decayed(weight, 1.0)[graph.source].tolist() == [1, 1, 1, 1, 1, 0]
