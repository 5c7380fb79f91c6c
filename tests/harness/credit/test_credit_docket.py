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
        (graft_reference, "graft", {"gamma": 0.8, "lam": 0.0}),
        (graft_reference, "graft", {"sinks": "outcome"}),
        (mt_grpo_reference, "mt_grpo", {}),
        (mt_grpo_reference, "mt_grpo", {"absent": "zero", "alpha": 0.5, "turn_weight": 2.0}),
        (mt_grpo_reference, "mt_grpo", {"absent": "zero", "norm": "mean"}),
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
