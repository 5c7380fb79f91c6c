"""Time of every credit estimator, its growth, and the pairs of texts that SCPO has scored.

    python benchmarks/credit.py [--rounds 5] [--most 102400]

Tables are made up: groups of eight rollouts of 50 turns that walk about in one house, so that
states, texts and actions repeat as they do in ALFWorld. A training step has 16 groups, 6,400 turns.
Times are CPU times of this process, the least of several rounds: what else runs on a machine only
adds to them. Beside them stands what the papers report for a training step of theirs, and GiGPO
written row by row in plain Python, measured in the same run.

Pairs of texts are counted in games of ALFWorld, generated and played by an expert that stumbles.
Each figure stands beside its bound; one that misses it makes the exit code 1.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import math
import random
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

import gymnasium as gym
import numpy as np

import agentgyms
from harness import credit
from harness.credit import TurnTable
from harness.credit.estimators import scpo
from harness.credit.matcher import match_walk, next_table, run_walk
from harness.credit.registry import hyperparameters_of
from harness.credit.similarity import Exact, Lexical, Scorer

NUM_GROUPS, GROUP_SIZE, NUM_TURNS = 16, 8, 50
MOST_MS, MOST_GROWTH, LEAST_SAVED = 50.0, 1.5, 3.0
PAPERS = {
    "grpo": "0.53 s (ECPO, B.3)",
    "gigpo": "0.66 s (ECPO, B.3)",
    "ecpo": "0.96 s (ECPO, B.3)",
    "salt": "0.15 s + 0.05 s of its base (SALT, 4.3)",
    "scpo": "28 s, its cross-encoder's 27.7 s included (SCPO, Table 5)",
}
VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "gigpo, similarity .95": ("gigpo", {"similarity": 0.95}),
    "scpo, lexical": ("scpo", {"scorer": "lexical"}),
    "scpo, balanced(4)": ("scpo", {"order": "balanced(4)"}),
    "scpo on ecpo": ("scpo", {"base": "ecpo"}),
    "salt on gigpo": ("salt", {"base": "gigpo"}),
}


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--most", type=int, default=102_400, help="turns of the largest table")
    chosen = options.parse_args()
    missed = [
        *report_times(chosen.rounds, chosen.most),
        *report_matcher(chosen.rounds),
        *report_pairs(),
    ]
    for line in missed:
        print(f"MISSED: {line}")
    return 1 if missed else 0


def report_times(rounds: int, most: int) -> list[str]:
    """Print the table of times, and return the bounds that were missed."""
    sizes = [NUM_GROUPS]
    while 2 * sizes[-1] * GROUP_SIZE * NUM_TURNS <= most:
        sizes.append(2 * sizes[-1])
    tables = [walks(size, seed=0) for size in sizes]
    turns = [len(table) for table in tables]
    allowed = turns[-1] * math.log(turns[-1]) / (turns[0] * math.log(turns[0]))
    print(f"| estimator | {turns[0]:,} turns | at most | ", end="")
    print(f"x for {turns[-1]:,} turns (n log n: {allowed:.1f}) | per doubling | papers |")
    print("|---|--:|--:|--:|---|---|")
    missed = []
    for label, (name, settings) in estimators().items():
        estimate = functools.partial(credit.get(name), **settings)
        ms = [1e3 * seconds(functools.partial(estimate, table), rounds) for table in tables]
        growth = ms[-1] / ms[0]
        steps = ", ".join(f"{b / a:.1f}" for a, b in itertools.pairwise(ms))
        paper = PAPERS.get(label, "")
        print(f"| {label} | {ms[0]:.1f} ms | {MOST_MS:g} ms | {growth:.1f} | {steps} | {paper} |")
        if ms[0] > MOST_MS:
            missed.append(f"{label} takes {ms[0]:.1f} ms, more than {MOST_MS:g} ms")
        if growth > MOST_GROWTH * allowed:
            missed.append(f"{label} grows {growth:.1f} x, more than {MOST_GROWTH} n log n")
    plain = 1e3 * seconds(lambda: gigpo_in_plain_python(tables[0]), rounds)
    print(f"| gigpo in plain Python, row by row | {plain:.1f} ms | | | | |")
    np.testing.assert_allclose(gigpo_in_plain_python(tables[0]), credit.get("gigpo")(tables[0]))
    return missed


def estimators() -> dict[str, tuple[str, dict[str, Any]]]:
    """Return what is measured: all estimators with their defaults, and some of their variants."""
    return {**{name: (name, {}) for name in credit.names()}, **VARIANTS}


def seconds(call: Callable[[], Any], rounds: int) -> float:
    """Return the least CPU seconds of a call."""
    times = []
    for _ in range(rounds):
        before = time.process_time()
        call()
        times.append(time.process_time() - before)
    return min(times)


def walks(num_groups: int, seed: int) -> TurnTable:
    """Return the table of rollouts that walk about, a house for each group."""
    rng = random.Random(seed)
    columns: dict[str, list[Any]] = defaultdict(list)
    for rollout in range(num_groups * GROUP_SIZE):
        group, place, solved = rollout // GROUP_SIZE, 0, rng.random() < 0.5
        for turn in range(NUM_TURNS):
            there = min(int(rng.expovariate(0.25)), 19)  # some places are visited more often
            valid = rng.random() > 0.1
            action = f"go to shelf {there}" if valid else "fly"
            seen = f"On the shelf {there}, you see {there % 4} mugs." if valid else "No."
            columns["rollout"].append(rollout)
            columns["group"].append(group)
            columns["turn"].append(turn)
            columns["reward"].append(10.0 * (solved and turn == NUM_TURNS - 1))
            columns["valid"].append(valid)
            columns["failed"].append(not valid and rng.random() < 0.5)
            columns["state_key"].append(f"house {group} shelf {place}")
            place = there if valid else place
            columns["next_state_key"].append(f"house {group} shelf {place}")
            columns["next_atoms"].append({f"shelf {place % 4}": 1.0})
            columns["action_key"].append(action)
            columns["text"].append(f"{action} || {seen}")
    numbers = np.random.default_rng(seed).uniform(0.05, 1, (9, len(columns["rollout"])))
    names = ("value", "process_reward", "entropy", "hindsight", "kl", "length", "state_value")
    names += ("teacher_kl", "energy")
    return TurnTable.from_columns(**columns, **dict(zip(names, numbers, strict=True)))


def gigpo_in_plain_python(turns: TurnTable) -> list[float]:
    """Return GiGPO's advantages as one would write them first: row by row, group by group."""
    settings = hyperparameters_of("gigpo")
    returns: dict[int, float] = defaultdict(float)
    groups: dict[int, set[int]] = defaultdict(set)
    anchors: dict[tuple[int, str], list[int]] = defaultdict(list)
    to_go = [0.0] * len(turns)
    later = 0.0
    for row in reversed(range(len(turns))):
        last = row + 1 == len(turns) or turns.rollout[row + 1] != turns.rollout[row]
        later = float(turns.reward[row]) + (0.0 if last else settings["gamma"] * later)
        to_go[row] = later - (0.0 if turns.valid[row] else settings["invalid_penalty"])
        rollout, group = int(turns.rollout[row]), int(turns.group[row])
        returns[rollout] += float(turns.reward[row])
        groups[group].add(rollout)
        anchors[group, turns.state_key[row]].append(row)
    episode = {}
    for members in groups.values():
        episode.update(standardised({r: returns[r] for r in members}, settings["eps"]))
    advantage = [episode[int(rollout)] for rollout in turns.rollout]
    for rows in anchors.values():
        for row, value in standardised({r: to_go[r] for r in rows}, settings["eps"]).items():
            advantage[row] += settings["step_weight"] * value
    return advantage


def standardised(values: dict[int, float], eps: float) -> dict[int, float]:
    if len(values) == 1 or max(values.values()) == min(values.values()):
        return dict.fromkeys(values, 0.0)
    mean, std = statistics.fmean(values.values()), statistics.stdev(values.values())
    return {key: (value - mean) / (std + eps) for key, value in values.items()}


def report_matcher(rounds: int) -> list[str]:
    """Print the time of SCPO's matcher alone, with the similarities at hand."""
    table = walks(NUM_GROUPS, seed=0)
    plans = scpo.plan(table, scorer="lexical")
    texts = [table.text[one.reference_rows] for one in plans]
    tables = [next_table(Lexical()(text, text)).tolist() for text in texts]

    def match() -> None:
        for one, after in zip(plans, tables, strict=True):
            assert one.similarity is not None
            walk = match_walk(len(one.reference_rows), one.order.tolist(), after, 0.6, True)
            run_walk(walk, one.similarity)

    ms = 1e3 * seconds(match, rounds)
    print(f"\nSCPO's matcher alone, {len(plans)} failed rollouts: {ms:.1f} ms (its Table 5: 4 ms)")
    return [f"the matcher takes {ms:.1f} ms, more than {MOST_MS:g} ms"] if ms > MOST_MS else []


class Counting(Scorer):
    """Counts the pairs that a scorer is asked for."""

    def __init__(self, scorer: Scorer) -> None:
        self.scorer, self.count = scorer, 0

    def pairs(self, texts_a: Sequence[str], texts_b: Sequence[str]) -> Any:
        """Return the scorer's answer."""
        self.count += len(texts_a)
        return self.scorer.pairs(texts_a, texts_b)


def report_pairs() -> list[str]:
    """Print how many pairs of texts are scored in a step, and return the bounds that were missed.

    Naively a cross-encoder reads each turn of each failed rollout beside each turn of its
    reference, and the turns of each reference beside each other.
    """
    table = games(seed=0)
    plans = scpo.plan(table)
    own = {one.reference: len(one.reference_rows) ** 2 for one in plans}
    naive = sum(len(one.rows) * len(one.reference_rows) for one in plans) + sum(own.values())
    most = NUM_GROUPS * GROUP_SIZE * NUM_TURNS
    print(
        f"\n{len(plans)} of {len(table.starts)} rollouts of ALFWorld are compared with a success."
    )
    print(f"\n| pairs of texts scored | number | of {naive:,} | of 128 rollouts x 50 turns |")
    print("|---|--:|--:|--:|")
    print(f"| all steps by all positions | {naive:,} | 1 x | {most / naive:.2f} x |")
    missed = []
    for label, scorer, order, whole in (
        ("distinct texts, whole matrices", Exact(), "temporal", True),
        ("those that the matcher looks at, exact", Exact(), "temporal", False),
        ("  lexical", Lexical(), "temporal", False),
        ("  lexical, balanced(4)", Lexical(), "balanced(4)", False),
    ):
        counting = Counting(scorer)
        scpo.plan(table, scorer=counting, order=order, whole=whole)
        saved = most / counting.count
        print(f"| {label} | {counting.count:,} | {naive / counting.count:.0f} x | {saved:.1f} x |")
        if not whole and saved < LEAST_SAVED:
            missed.append(f"{label}: {counting.count:,} pairs, less than {LEAST_SAVED:g} x saved")
    return missed


def games(seed: int) -> TurnTable:
    """Return the table of ALFWorld games that an expert plays, who often does something else."""
    rng = random.Random(seed)
    env = gym.make("agentgyms/ALFWorld-v0", max_turns=NUM_TURNS).unwrapped
    columns: dict[str, list[Any]] = defaultdict(list)
    for rollout in range(NUM_GROUPS * GROUP_SIZE):
        _, info = env.reset(seed=rollout // GROUP_SIZE)
        expert, ended, skill = agentgyms.expert(env), False, rng.uniform(0, 0.3)
        while not ended:
            knows = rng.random() < skill
            action = expert() if knows else rng.choice(info["admissible_actions"])
            columns["rollout"].append(rollout)
            columns["group"].append(rollout // GROUP_SIZE)
            columns["state_key"].append(info["state_key"])
            observation, reward, terminated, truncated, info = env.step(action)
            ended = terminated or truncated
            columns["reward"].append(10.0 * float(reward))
            columns["next_state_key"].append(info["state_key"])
            columns["action_key"].append(info["action_key"])
            columns["text"].append(f"{action} || {observation}")
    return TurnTable.from_columns(**columns)


if __name__ == "__main__":
    sys.exit(main())
