"""MileGPO against the paper's equations written one by one, by hand, and what it reduces to."""

import math
from collections import defaultdict

import numpy as np
import pytest
from small_tables import (
    by_key,
    check_against,
    episode_advantages,
    is_last,
    small_tables,
    within,
)

from harness.credit import TurnTable
from harness.credit.estimators.graphs.milegpo import milegpo
from harness.credit.estimators.graphs.milestones import candidates
from harness.credit.estimators.graphs.transitions import Transitions
from harness.credit.estimators.grpo import grpo

TINY = 1e-12
WEBSHOP = {"eta": 1.0, "coverage": 0.5, "shrink": 0.5, "branch_keeps": True, "norm": "mean"}


def reference(
    rows, decay=0.2, shaping=0.25, trap_weight=0.25, eta=0.2, coverage=1.1, shrink=0.0,
    branch_keeps=False, norm="std",
):  # fmt: skip
    plain, mixed = [0.0] * len(rows), [0.0] * len(rows)
    for members in by_key(rows, "group").values():
        r_g, gain = group_credit(
            [(rows[i], is_last(rows, i)) for i in members],
            decay, trap_weight, coverage, shrink, branch_keeps,
        )  # fmt: skip
        for i, value, change in zip(members, r_g, gain, strict=True):
            plain[i], mixed[i] = 10 * value, 10 * value + 10 * shaping * change
    a_g = within(rows, plain, "group", "state_key", norm=norm)
    a_mix = within(rows, mixed, "group", "state_key", norm=norm)
    episode = episode_advantages(rows, norm)
    return [e + g + eta * (m - g) for e, g, m in zip(episode, a_g, a_mix, strict=True)]


def group_credit(turns, decay, trap_weight, coverage, shrink, branch_keeps):  # noqa: C901
    """Return r_G / c and delta+ - w delta- of each turn of one group."""
    steps = [(r["state_key"], "GOAL" if last and r["success"] else r["next_state_key"], r)
             for r, last in turns]  # fmt: skip
    paths = defaultdict(list)
    for (here, there, row), (_, last) in zip(steps, turns, strict=True):
        paths[row["rollout"]] += [here, there] if last else [here]
    won = {row["rollout"]: row["success"] for _, _, row in steps}
    nodes = sorted({node for path in paths.values() for node in path})
    edges = {(here, there) for here, there, _ in steps}
    d = {(u, v): steps_between(u, v, edges) for u in nodes for v in nodes}

    def rate(rollouts):
        return sum(won[r] for r in rollouts) / len(rollouts)

    at = {v: [r for r, path in paths.items() if v in path] for v in nodes}
    on = {e: {row["rollout"] for u, v, row in steps if (u, v) == e} for e in edges}
    p = rate(list(won))
    successes = sum(won.values())
    failures = len(won) - successes
    degree = {v: sum((u == v) + (w == v) for u, w in edges) for v in nodes}
    seen = [v for v in nodes if any(won[r] for r in at[v])]
    most = max([degree[v] for v in seen], default=1)
    m = {v: sum(won[r] for r in at[v]) / max(successes, 1) for v in nodes}

    good, bad = {}, {}
    for v in nodes:
        if v in seen and v != "GOAL":
            good[v] = max(rate(at[v]) - p, 0) + m[v] + 0.25 * degree[v] / most
        again = sum(paths[r].count(v) - 1 for r in at[v])
        if v not in seen and (len(at[v]) > 1 or again):
            often = len(at[v]) / max(failures, 1)
            score = max((1 - rate(at[v])) - (1 - p), 0) + 0.25 * often * again / len(at[v])
            if score >= 0.1 - TINY:
                bad[v] = score

    margin, excess = {}, {}
    for u, v in edges:
        others = [rate(on[e]) for e in edges if e[0] == u and e[1] != v]
        margin[u, v] = rate(on[u, v]) - sum(others) / len(others) if others else 0.0
        excess[u, v] = max(-margin[u, v] if others else p - rate(at[v]), 0)
    largest = max(abs(x) for x in margin.values())
    b, psi = dict.fromkeys(nodes, 0.0), dict.fromkeys(nodes, 0.0)
    for u, v in edges:
        if margin[u, v] > TINY:
            b[v] = max(b[v], margin[u, v] / largest)
        if rate(on[u, v]) > 0:
            ways = d.get((u, "GOAL"), math.inf), d.get((v, "GOAL"), math.inf)
            nearer = ways[0] - ways[1] if math.inf not in ways else 0
            score = nearer + rate(at[v]) - p - excess[u, v]
            psi[v] = max(psi[v], score if score > TINY else 0.0)
    best = max(psi.values()) or 1.0
    for v in good:
        local = psi[v] > 0 or m[v] >= coverage or (branch_keeps and b[v] > 0)
        good[v] *= 1 + b[v] + psi[v] / best if local else shrink

    def potential(s, scores):
        top = max(scores.values(), default=0.0) or 1.0
        return max([x / top * decay ** d[s, v] for v, x in scores.items()], default=0.0)

    change = []
    for here, there, _ in steps:
        up = max(potential(there, good) - potential(here, good), 0)
        down = max(potential(there, bad) - potential(here, bad), 0)
        change.append(up - trap_weight * down)
    return [decay ** d.get((there, "GOAL"), math.inf) for _, there, _ in steps], change


def steps_between(start, end, edges):
    """Return the length of the shortest path, inf if there is none."""
    reached, count = {start}, 0
    while end not in reached:
        further = reached | {v for u, v in edges if u in reached}
        if further == reached:
            return math.inf
        reached, count = further, count + 1
    return count


@pytest.mark.parametrize("settings", [{}, WEBSHOP])
def test_milegpo_is_the_reference(settings):
    check_against(reference, "milegpo", **settings)


def tied():
    """Two successes by b, and a failure that turns back at c: c is as near to the goal as b."""
    return TurnTable.from_columns(
        rollout=[0, 0, 1, 1, 2, 2, 3, 3],
        reward=[0, 10, 0, 10, 0, 10, 0, 0],
        state_key=["a", "b", "a", "b", "a", "c", "a", "c"],
        next_state_key=["b", "w", "b", "w", "c", "w", "c", "a"],
    )


def test_milestones_break_ties_of_the_distance_to_the_goal():
    # b: rate 1, group 3/4, coverage 2/3, degree 2 of 3. c: rate 1/2, coverage 1/3, degree 3 of 3.
    graph = Transitions.of(tied())
    found = candidates(tied(), graph)
    b, c = graph.source[1], graph.source[5]
    assert found.milestone[b] == pytest.approx(1 / 4 + 2 / 3 + 0.25 * 2 / 3)
    assert found.milestone[c] == pytest.approx(1 / 3 + 0.25)
    assert not found.trap.any()
    plain = milegpo(tied(), eta=0.0) - grpo(tied())
    mixed = milegpo(tied(), eta=1.0) - grpo(tied())
    assert plain[[0, 2, 4, 6]].tolist() == [0, 0, 0, 0]
    np.testing.assert_allclose(mixed[[2, 6]], mixed[[0, 4]])
    assert mixed[0] > 0 > mixed[4]


def test_a_place_where_failures_turn_round_is_a_trap():
    table = TurnTable.from_columns(
        rollout=[0, 1, 1, 1],
        reward=[10, 0, 0, 0],
        state_key=["a", "a", "x", "x"],
        next_state_key=["w", "x", "x", "y"],
    )
    graph = Transitions.of(table)
    found = candidates(table, graph)
    # Failure rate 1 of the visitors, 1/2 of the group; all failures come here, once again each.
    assert found.trap[graph.source[2]] == pytest.approx(1 / 2 + 0.25)
    assert (found.trap > 0).sum() == 1
    step = milegpo(table, norm="mean", eta=1.0) - grpo(table, norm="mean")
    assert step[0] > 0 > step[1]


def test_without_the_correction_it_compares_the_ways_to_the_goal():
    for _, table in small_tables()[:50]:
        np.testing.assert_allclose(
            milegpo(table, eta=0.0), milegpo(table, shaping=0.0, eta=1.0), atol=1e-9
        )
        np.testing.assert_array_equal(milegpo(table, step_weight=0.0), grpo(table))
