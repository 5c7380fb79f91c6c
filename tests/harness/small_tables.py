"""Random small tables, as plain rows and as turn tables, for references in plain Python."""

import functools
import math
import random
from collections import defaultdict

import numpy as np

from harness import credit
from harness.credit import TurnTable

COUNT, BATCH = 1000, 250


@functools.cache
def many_rows():
    """Return the rows of 1,000 tables: groups of one to four rollouts that walk over few states."""
    rng, later = random.Random(0), random.Random(1)
    return [with_atoms(small_rows(rng), later) for _ in range(COUNT)]


@functools.cache
def small_tables():
    """Return pairs of rows and table: the first hundred of them."""
    return [(rows, TurnTable.from_columns(**columns_of(rows))) for rows in many_rows()[:100]]


def small_rows(rng):
    rows, rollout = [], 0
    for group in range(rng.randint(1, 2)):
        for _ in range(rng.randint(1, 4)):
            rows += one_rollout(rng, rollout, group)
            rollout += 1
    return rows


def one_rollout(rng, rollout, group):
    success, state = rng.random() < 0.5, "s0"
    rows, turns = [], rng.randint(1, 6)
    for turn in range(turns):
        after = f"s{rng.randint(0, 3)}"
        last = turn + 1 == turns
        action, word = f"a{rng.randint(0, 2)}", rng.choice(("mug", "red mug", "door", "a"))
        rows.append(
            {
                "rollout": rollout,
                "group": group,
                "turn": turn,
                "reward": rng.choice((0.0, 0.0, 0.5)) + 10.0 * (last and success),
                "success": success,
                "valid": rng.random() < 0.8,
                "state_key": state,
                "next_state_key": after,
                "action_key": action,
                "text": f"{action} || you see {word} at {after}",
                "value": rng.gauss(0, 1),
                "process_reward": rng.choice((0.0, 0.0, 0.25, -0.5)),
                "entropy": rng.uniform(0, 2),
                "length": float(rng.randint(1, 9)),
                "state_value": rng.uniform(0, 10),
            }
        )
        state = after
    return rows


def with_atoms(rows, rng):
    """Add parts of a goal, of which some hold at the start and some turns know nothing."""
    atoms = {}
    for row in rows:
        if row["turn"] == 0:
            atoms = {
                "clean": rng.random() < 0.2,
                "in place": False,
                "worth": rng.choice((0.0, 0.5)),
            }
            atoms |= {"told": True} if rng.random() < 0.3 else {}
        row["atoms"] = {} if row["turn"] == 0 and rng.random() < 0.2 else atoms
        if rng.random() < 0.8:
            changed = rng.choice(sorted(atoms))
            atoms = atoms | {changed: rng.choice((True, False))}
            row["next_atoms"] = atoms
        else:
            row["next_atoms"] = {}
        row["energy"] = rng.uniform(0, 2)
        row["teacher_kl"] = rng.gauss(0, 1)
    return rows


def columns_of(rows):
    return {name: [row[name] for row in rows] for name in rows[0]}


def check_against(reference, name, **settings):
    """Compare an estimator with `reference(rows, **settings)` over all small tables.

    The estimator gets hundreds of them as one table, whose groups are all different.
    """
    expected = [reference(rows, **settings) for rows in many_rows()]
    for start in range(0, COUNT, BATCH):
        got = credit.get(name)(joined(start)[1], **settings)
        wanted = [x for found in expected[start : start + BATCH] for x in found]
        np.testing.assert_allclose(got, wanted, atol=1e-6, rtol=1e-6)


@functools.cache
def joined(start):
    """Return the rows of the small tables from one on, and one table of them."""
    rows, rollouts, groups = [], 0, 0
    for table in many_rows()[start : start + BATCH]:
        moved = [
            row | {"rollout": row["rollout"] + rollouts, "group": row["group"] + groups}
            for row in table
        ]
        rows += moved
        rollouts, groups = moved[-1]["rollout"] + 1, moved[-1]["group"] + 1
    return rows, TurnTable.from_columns(**columns_of(rows))


def by_key(rows, *names):
    """Return the rows' numbers by what they have in these columns."""
    found = defaultdict(list)
    for i, row in enumerate(rows):
        found[tuple(row[name] for name in names)].append(i)
    return found


def scaled(values, norm="std", eps=1e-6, ddof=1):
    """Return values less their mean, over their standard deviation; 0 for one or equal ones."""
    if len(values) < 2 or max(values) - min(values) < 1e-11:
        return [0.0] * len(values)
    mean = sum(values) / len(values)
    spread = math.sqrt(sum((x - mean) ** 2 for x in values) / (len(values) - ddof))
    return [(x - mean) / (spread + eps if norm == "std" else 1.0) for x in values]


def within(rows, values, *names, norm="std"):
    """Return the scaled values of the rows, group by group of equal columns."""
    out = [0.0] * len(rows)
    for members in by_key(rows, *names).values():
        for i, x in zip(members, scaled([values[i] for i in members], norm), strict=True):
            out[i] = x
    return out


def episode_advantages(rows, norm="std", scores=None):
    """Return GRPO's advantage of each row; `scores` are the rollouts', their returns by default."""
    if scores is None:
        scores = returns_of(rows)
    groups = defaultdict(list)
    for rollout, members in by_key(rows, "rollout").items():
        groups[rows[members[0]]["group"]].append(rollout[0])
    advantage = {}
    for rollouts in groups.values():
        values = scaled([scores[r] for r in rollouts], norm)
        advantage.update(zip(rollouts, values, strict=True))
    return [advantage[row["rollout"]] for row in rows]


def returns_of(rows):
    """Return the undiscounted return of each rollout."""
    total = defaultdict(float)
    for row in rows:
        total[row["rollout"]] += row["reward"]
    return total


def is_last(rows, i):
    return i + 1 == len(rows) or rows[i + 1]["rollout"] != rows[i]["rollout"]
