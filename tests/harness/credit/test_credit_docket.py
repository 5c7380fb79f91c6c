"""PGPO, GRAFT, MT-GRPO, turn_credit, ProCredit and OTB against references written row by row."""

import itertools
import math

import numpy as np
import pytest
from small_tables import (
    by_key,
    check_against,
    episode_advantages,
    is_last,
    returns_of,
    scaled,
    small_tables,
    within,
)

from harness import credit
from harness.credit import TurnTable
from harness.credit.estimators.graphs.graft import graft
from harness.credit.estimators.graphs.pgpo import pgpo
from harness.credit.estimators.signals.mt_grpo import mt_grpo
from harness.credit.estimators.signals.otb import otb
from harness.credit.estimators.signals.procredit import procredit
from harness.credit.estimators.signals.turn_credit import turn_credit
from harness.types.errors import ConfigError, TableError


def to_go(rows, values, gamma):
    out = list(values)
    for i in reversed(range(len(rows))):
        if not is_last(rows, i):
            out[i] += gamma * out[i + 1]
    return out


def rollouts_of(rows):
    return [members for _, members in sorted(by_key(rows, "rollout").items())]


def pgpo_reference(
    rows, potential_gamma=1.0, alpha=2.0, beta=1.0, gamma=0.95, norm="std", invalid_penalty=0.1
):
    step = to_go(rows, [row["reward"] for row in rows], gamma)
    step = [x - (0 if row["valid"] else invalid_penalty) for x, row in zip(step, rows, strict=True)]
    states = by_key(rows, "group", "state_key")
    potential = {key: sum(step[i] for i in found) / len(found) for key, found in states.items()}
    gain = []
    for i, row in enumerate(rows):
        here = potential[row["group"], row["state_key"]]
        after = (
            row["reward"] if is_last(rows, i) else potential[row["group"], row["next_state_key"]]
        )
        gain.append(potential_gamma * after - here)
    guided = within(rows, gain, "group", "state_key", norm=norm)
    out = within(rows, step, "group", "state_key", norm=norm)
    for members in by_key(rows, "group").values():
        won = {rows[i]["rollout"]: rows[i]["success"] for i in members}
        weight = beta * (1 - sum(won.values()) / len(won)) ** alpha
        for i in members:
            out[i] += weight * guided[i]
    return out


def graft_reference(rows, gamma=0.99, lam=0.95, sinks="state", eps=1e-6):
    out = [0.0] * len(rows)
    for members in by_key(rows, "group").values():
        edges, worth = {}, {}
        for i in members:
            row, end = rows[i], is_last(rows, i)
            to = row["next_state_key"]
            if end and sinks == "outcome":
                to = ("end", row["success"])
            edges[i] = (row["state_key"], to)
            if end:
                worth.setdefault(to, []).append(float(row["success"]))
        value = solved(list(edges.values()), {k: sum(v) / len(v) for k, v in worth.items()}, gamma)
        gain = {i: gamma * value[v] - value[u] for i, (u, v) in edges.items()}
        total = {}
        for i, (_, v) in edges.items():
            length = sum(rows[j]["rollout"] == rows[i]["rollout"] for j in members)
            total[i], there = gain[i], {v}
            for k in range(1, length - rows[i]["turn"]):
                far = [j for j in members if edges[j][0] in there]
                if not far:
                    break
                total[i] += (gamma * lam) ** k * sum(gain[j] for j in far) / len(far)
                there = {edges[j][1] for j in far}
        for same in by_key([rows[i] for i in members], "state_key").values():
            turns = [members[j] for j in same]
            values = [0.0 if abs(total[i]) < 1e-11 else total[i] for i in turns]
            found = scaled(values) if len(values) > 1 else [values[0] / (abs(values[0]) + eps)]
            for i, x in zip(turns, found, strict=True):
                out[i] = x
    return out


def solved(edges, worth, gamma):
    """Return the values of a graph's nodes, by elimination."""
    nodes = list(dict.fromkeys(node for edge in edges for node in edge))
    place = {node: k for k, node in enumerate(nodes)}
    system = [[float(j == k) for j in range(len(nodes))] + [0.0] for k in range(len(nodes))]
    for node, k in place.items():
        if node in worth:
            system[k][-1] = worth[node]
            continue
        ways = [v for u, v in edges if u == node]
        for v in ways:
            system[k][place[v]] -= gamma / len(ways)
    for k in range(len(nodes)):
        pivot = max(range(k, len(nodes)), key=lambda r: abs(system[r][k]))
        system[k], system[pivot] = system[pivot], system[k]
        for r in range(len(nodes)):
            if r != k and system[r][k]:
                factor = system[r][k] / system[k][k]
                system[r] = [a - factor * b for a, b in zip(system[r], system[k], strict=True)]
    return {node: system[k][-1] / system[k][k] for node, k in place.items()}


def mt_grpo_reference(rows, turn_weight=1.0, alpha=1.0, absent="skip", norm="std"):
    outcome = episode_advantages(rows, norm)
    out = [0.0] * len(rows)
    for members in by_key(rows, "group").values():
        turns = {
            r: [i for i in members if rows[i]["rollout"] == r]
            for r in {rows[i]["rollout"] for i in members}
        }
        longest = max(map(len, turns.values()))
        own = {r: {} for r in turns}
        for index in range(longest):
            here = {
                r: rows[found[index]]["process_reward"] if index < len(found) - 1 else 0.0
                for r, found in turns.items()
                if absent == "zero" or index < len(found) - 1
            }
            for r, x in zip(here, scaled(list(here.values()), norm), strict=True):
                own[r][index] = turn_weight * x
        for r, found in turns.items():
            last = len(found) - 1
            for t, i in enumerate(found):
                later = sum(alpha ** (k - t) * x for k, x in own[r].items() if k >= t)
                out[i] = later + alpha ** (last - t) * outcome[i]
    return out


def mean_of(atoms):
    return sum(map(float, atoms.values())) / len(atoms)


def turn_credit_reference(rows, smear=0.9, beta=1.0, start="first"):
    progress, out = [0.0] * len(rows), [0.0] * len(rows)
    for members in rollouts_of(rows):
        begun = rows[members[0]]["atoms"]
        last = None if start == "first" else mean_of(begun) if begun else 0.0
        for i in members:
            if rows[i]["next_atoms"]:
                score = mean_of(rows[i]["next_atoms"])
                progress[i] = 0.0 if last is None else score - last
                last = score
    scores = returns_of(rows)
    for i, row in enumerate(rows):
        scores[row["rollout"]] += progress[i]
    level = episode_advantages(rows, "mean", scores)
    for members in rollouts_of(rows):
        got = dict.fromkeys(members, 0.0)
        for place, i in enumerate(members):
            weights = [smear**d for d in range(place + 1)]
            for d, weight in enumerate(weights):
                got[members[place - d]] += progress[i] * weight / sum(weights)
        tokens = sum(rows[i]["length"] for i in members)
        mean = sum(got[i] * rows[i]["length"] for i in members) / tokens
        for i in members:
            out[i] = level[i] + beta * (got[i] - mean)
    return out


def procredit_reference(rows, progress_weight=0.5, turn_weight=1.0, gamma=1.0):
    earned = [0.0] * len(rows)
    for members in rollouts_of(rows):
        begun, before = rows[members[0]]["atoms"], 0.0
        for i in members:
            atoms = rows[i]["next_atoms"]
            if atoms:
                missing = [name for name in atoms if begun.get(name, 0.0) < 1]
                gained = [
                    (atoms[name] - begun.get(name, 0.0)) / (1 - begun.get(name, 0.0))
                    for name in missing
                ]
                after = sum(gained) / len(gained) if gained else 0.0
                earned[i], before = progress_weight * (after - before), after
            earned[i] += is_last(rows, i) and rows[i]["success"]
    scores = dict.fromkeys((row["rollout"] for row in rows), 0.0)
    for i, row in enumerate(rows):
        scores[row["rollout"]] += earned[i]
    out = episode_advantages(rows, scores=scores)
    left = to_go(rows, earned, gamma)
    among = within(rows, left, "group", norm="mean")
    return [a + turn_weight * b for a, b in zip(out, among, strict=True)]


def otb_reference(rows, gamma=1.0, zero_tail=True, singleton="zero"):
    left = to_go(rows, [row["reward"] for row in rows], gamma)
    spent = list(itertools.accumulate(row["energy"] for row in rows))
    for members in rollouts_of(rows):
        before = spent[members[0]] - rows[members[0]]["energy"]
        for i in members:
            rows[i]["spent"] = spent[i] - before
    out = [0.0] * len(rows)
    for members in by_key(rows, "group").values():
        lone = len({rows[i]["rollout"] for i in members}) == 1
        for i in members:
            same = [j for j in members if rows[j]["turn"] == rows[i]["turn"]]
            energy = sum(rows[j]["spent"] for j in same)
            baseline = sum(left[j] * rows[j]["spent"] for j in same) / energy
            if len(same) == 1 and zero_tail:
                baseline = 0.0
            out[i] = left[i] - baseline
            if lone:
                out[i] = left[i] if singleton == "raw" else 0.0
    for row in rows:
        del row["spent"]
    return out


@pytest.mark.parametrize(
    ("reference", "name", "settings"),
    [
        (pgpo_reference, "pgpo", {}),
        (
            pgpo_reference,
            "pgpo",
            {"potential_gamma": 0.5, "alpha": 0.5, "beta": 2.0, "gamma": 0.8, "norm": "mean"},
        ),
        (graft_reference, "graft", {}),
        (graft_reference, "graft", {"sinks": "outcome"}),
        (mt_grpo_reference, "mt_grpo", {}),
        (mt_grpo_reference, "mt_grpo", {"absent": "zero", "alpha": 0.5, "turn_weight": 2.0}),
        (turn_credit_reference, "turn_credit", {}),
        (turn_credit_reference, "turn_credit", {"smear": 1.0, "beta": 2.0, "start": "reset"}),
        (procredit_reference, "procredit", {}),
        (procredit_reference, "procredit", {"progress_weight": 2.0, "gamma": 0.9}),
        (otb_reference, "otb", {}),
        (otb_reference, "otb", {"gamma": 0.9, "zero_tail": False, "singleton": "raw"}),
    ],
)
def test_an_estimator_is_its_reference(reference, name, settings):
    check_against(reference, name, **settings)


def tables(count=40):
    return [table for _, table in small_tables()[:count]]


def test_pgpo_without_its_potential_is_gigpos_step_part():
    for table in tables():
        step = credit.get("gigpo")(table) - credit.get("grpo")(table)
        np.testing.assert_allclose(pgpo(table, beta=0.0), step, atol=1e-9)


def test_pgpo_tells_failures_in_one_state_apart_by_where_they_lead():
    """Two failures open and close a cabinet; a success went on from the open one."""
    table = TurnTable.from_columns(
        rollout=[0, 1, 2, 2],
        reward=[0, 0, 0, 10],
        success=[0, 0, 1, 1],
        state_key=["hall", "hall", "hall", "open"],
        next_state_key=["open", "shut", "open", "end"],
    )
    one = pgpo(table, gamma=1.0, norm="mean")
    # Phi(hall) = 10/3 and Phi(open) = 10; failures end with their reward of 0.
    weight = (2 / 3) ** 2
    gains = np.array([-10 / 3, -10 / 3, 20 / 3])
    expected = gains + weight * gains  # the step returns less their mean are the same numbers
    np.testing.assert_allclose(one, [*expected, 0.0])
    longer = TurnTable.from_columns(
        rollout=[0, 0, 1, 1, 2, 2],
        reward=[0, 0, 0, 0, 0, 10],
        success=[0, 0, 0, 0, 1, 1],
        state_key=["hall", "open", "hall", "shut", "hall", "open"],
    )
    first, second = pgpo(longer, gamma=1.0)[[0, 2]]
    assert first > second
    plain = pgpo(longer, gamma=1.0, beta=0.0)
    assert plain[0] == plain[2]


def test_graft_by_hand():
    """A fork: one way wins, one loses, and a third rollout is lost on the winning way."""
    table = TurnTable.from_columns(
        rollout=[0, 0, 1, 2, 2],
        reward=[0, 1, 0, 0, 0],
        success=[1, 1, 0, 0, 0],
        state_key=["fork", "near", "fork", "fork", "near"],
        next_state_key=["near", "won", "lost", "near", "lost"],
    )
    near, fork = 0.5 * 0.5, 0.5 * (2 * 0.25) / 3  # gamma 1/2
    gain = [0.5 * near - fork, 0.5 - near, -fork, 0.5 * near - fork, -near]
    middle = sum(gain[i] for i in (0, 2, 3)) / 3
    got = graft(table, gamma=0.5, norm="mean")
    expected = [gain[0] - middle, gain[1], gain[2] - middle, gain[3] - middle, gain[4]]
    np.testing.assert_allclose(got, expected, atol=1e-12)
    alone = TurnTable.from_columns(
        rollout=[0, 0],
        reward=[0, 0],
        success=[0, 0],
        state_key=["a", "b"],
        next_state_key=["b", "c"],
    )
    assert graft(alone).tolist() == [0.0, 0.0]


def test_grafts_later_gains_are_nothing_but_behind_sinks_that_are_passed():
    for table in tables():
        for lam in (0.5, 1.0):
            got = graft(table, sinks="outcome", lam=lam)
            np.testing.assert_allclose(got, graft(table, sinks="outcome", lam=0.0), atol=1e-6)
    apart = [np.abs(graft(table, lam=1.0) - graft(table, lam=0.0)).max() for table in tables(100)]
    assert max(apart) > 0.1


def test_grafts_values_solve_a_graph_with_a_loop():
    """The policy turns round in one state nine times in ten, then wins."""
    table = TurnTable.from_columns(
        rollout=[0] * 10,
        reward=[0.0] * 9 + [1.0],
        success=[1] * 10,
        state_key=["loop"] * 10,
        next_state_key=["loop"] * 9 + ["won"],
    )
    gamma = 0.99
    value = 0.1 * gamma / (1 - 0.9 * gamma)
    gain = [(gamma - 1) * value] * 9 + [gamma - value]
    np.testing.assert_allclose(graft(table, norm="mean"), gain, atol=1e-12)
    with pytest.raises(ConfigError, match="gamma is 1.0"):
        graft(table, gamma=1.0)


def test_mt_grpo_of_two_turns_is_the_papers():
    table = TurnTable.from_columns(
        rollout=[0, 0, 1, 1],
        reward=[0, 1, 0, 0],
        process_reward=[0.0, 9.0, 1.0, 9.0],
    )
    outcome, own = math.sqrt(0.5), math.sqrt(0.5)
    expected = [-2 * own + 0.5 * outcome, outcome, 2 * own - 0.5 * outcome, -outcome]
    got = mt_grpo(table, alpha=0.5, turn_weight=2.0)
    np.testing.assert_allclose(got, expected, atol=1e-5)
    np.testing.assert_allclose(mt_grpo(table, alpha=0.5, turn_weight=2.0, absent="zero"), got)
    for other in tables():
        plain = credit.get("grpo")(other)
        np.testing.assert_allclose(mt_grpo(other, turn_weight=0.0), plain, atol=1e-12)


def test_the_means_that_mt_grpo_subtracts_follow_the_length_unless_absent_turns_count():
    """Both turns of the longer rollout earn 1, what ends it or not earns the same outcome."""
    table = TurnTable.from_columns(
        rollout=[0, 0, 0, 1],
        reward=[0, 0, 1, 1],
        process_reward=[1.0, 1.0, 0.0, 0.0],
    )
    assert mt_grpo(table, norm="mean").tolist() == [0.0] * 4  # alone at their index
    got = mt_grpo(table, norm="mean", absent="zero")
    np.testing.assert_allclose(got, [1.0, 0.5, 0.0, -1.0])  # returns 2 and 0, less their mean


def test_turn_credit_moves_credit_and_adds_none():
    for table in tables():
        got = turn_credit(table)
        level = turn_credit(table, beta=0.0)
        total = np.bincount(table.rollout, weights=got * table.length)
        np.testing.assert_allclose(
            total, np.bincount(table.rollout, weights=level * table.length), atol=1e-9
        )


def test_turn_credit_of_a_spike_by_hand():
    """Progress that is lost again adds nothing to the return; the turns are told apart."""
    told = [{"clean": False}, {"clean": True}, {"clean": False}, {"clean": False}]
    table = TurnTable.from_columns(
        rollout=[0, 0, 0, 1], reward=[0.0] * 4, length=[1.0] * 4, next_atoms=told
    )
    spread = np.array([0.5, 0.5, 0.0]) - 1 / 3  # smear 1
    np.testing.assert_allclose(turn_credit(table, smear=1.0), [*spread - spread.mean(), 0.0])
    now = np.array([0.0, 1.0, -1.0])  # smear 0: a turn answers for itself
    np.testing.assert_allclose(turn_credit(table, smear=0.0), [*now, 0.0])
    with pytest.raises(TableError, match="length is 0"):
        turn_credit(
            TurnTable.from_columns(rollout=[0], reward=[0], length=[0], next_atoms=[{"a": True}])
        )


def test_procredit_differs_between_turns_by_what_the_first_one_gained():
    for table in tables():
        got = procredit(table, progress_weight=0.5)
        more = procredit(table, progress_weight=0.5, turn_weight=0.0)
        among = got - more
        for row in np.flatnonzero(table.goes_on):
            assert abs(among[row] - among[row + 1]) <= 0.5 * 1.5 + 1e-9  # an atom may lose a half
        bare = procredit(table, progress_weight=0.0, turn_weight=0.0)
        won = TurnTable.from_columns(
            rollout=table.rollout, group=table.group, reward=table.success * ~table.goes_on
        )
        np.testing.assert_allclose(bare, credit.get("grpo")(won), atol=1e-9)


def test_procredit_by_hand():
    """What holds at the start does not count, and what is lost is paid back."""
    start = {"clean": True, "hot": False, "in place": False}
    told = [start | {"hot": True}, start | {"hot": True}, start]
    table = TurnTable.from_columns(
        rollout=[0, 0, 0], reward=[0.0] * 3, success=[0] * 3, atoms=[start] * 3, next_atoms=told
    )
    returns = np.array([0.0, -0.25, -0.25])  # half of 1/2, lost in the last turn
    np.testing.assert_allclose(procredit(table), returns - returns.mean())


def test_otb_of_equal_energies_is_the_mean_at_each_index():
    table = TurnTable.from_columns(rollout=[0, 1, 2], reward=[3.0, 0, 0], energy=[0.5] * 3)
    np.testing.assert_allclose(otb(table), credit.get("dr_grpo")(table))
    uneven = TurnTable.from_columns(rollout=[0, 1], reward=[1.0, 0.0], energy=[1.5, 0.5])
    np.testing.assert_allclose(otb(uneven), [0.25, -0.75])


def test_otb_leaves_the_tail_of_the_longest_rollout_its_return():
    columns = {"rollout": [0, 0, 1], "reward": [0.0, 1.0, 0.0], "energy": [1.0, 1.0, 1.0]}
    table = TurnTable.from_columns(**columns)
    np.testing.assert_allclose(otb(table), [0.5, 1.0, -0.5])
    np.testing.assert_allclose(otb(table, zero_tail=False), [0.5, 0.0, -0.5])
    lone = TurnTable.from_columns(rollout=[0], reward=[1.0], energy=[1.0])
    assert (otb(lone).tolist(), otb(lone, singleton="raw").tolist()) == ([0.0], [1.0])
    with pytest.raises(TableError, match="energy is -1.0 in row 0"):
        otb(TurnTable.from_columns(rollout=[0], reward=[1.0], energy=[-1.0]))
