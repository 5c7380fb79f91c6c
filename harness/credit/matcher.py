"""SCPO's monotonic matcher: matches steps of a failed rollout to positions of a success."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any, TypeVar

import numpy as np

from harness.credit.similarity import checked, matrix
from harness.types.arrays import Floats, Ints
from harness.types.errors import ConfigError
from harness.types.hyperparameters import number, one_of

Result = TypeVar("Result")

Walk = Generator[tuple[int, int], float, Result]
"""Yields index pairs (reference position, step), receives similarities, and returns a result."""

Credited = list[tuple[int, int, float]]
"""(reference position, step, similarity) of each credited match, in the order of matching."""


def next_table(self_similarity: Floats, theta: float = 0.6) -> Ints:
    """Return the position to continue from if the position after j does not match. Shape [m].

    It is the prefix function of Knuth, Morris and Pratt, with `similarity >= theta` for equality,
    of the similarities M* of the reference positions. Where that is an equivalence, next(j) is the
    longest k < j such that positions 0..k are similar to positions j-k..j one by one, or -1.
    Otherwise it may be another k: position j is compared with k + 1 alone.
    Reference: SCPO, Algorithm 2, line 1, which leaves the construction open; this is the usual one.
    """
    number("theta", theta, 0, 1)
    own = matrix(self_similarity)
    walk = table_walk(len(own), theta)
    table = run_walk(walk, checked(own, (len(own), len(own))))
    return np.asarray(table, dtype=np.int64)


def matches(
    similarity: Floats,
    self_similarity: Floats,
    order: Sequence[int] | Ints,
    theta: float = 0.6,
    lam: float = 0.4,
    monotone: bool = True,
) -> list[tuple[int, int]]:
    """Return the pairs (reference position, step) of `match` in its order; some have credit 0."""
    check_levels(theta, lam)
    found = _credited_matches(similarity, self_similarity, order, theta, monotone)
    return [(position, step) for position, step, _ in found]


def match(
    similarity: Floats,
    self_similarity: Floats,
    order: Sequence[int] | Ints,
    theta: float = 0.6,
    lam: float = 0.4,
    monotone: bool = True,
) -> Floats:
    """Return the credit of each step of a failed rollout, in [0, 1]. Shape [l].

    r_v = max(0, M_jv - lambda) / (1 - lambda) for a step v that matches a reference position j
    after all positions credited before, 0 for other steps.
    Reference: SCPO, section 3.3 and Algorithm 2.

    Args:
        similarity: M, of reference positions and failed steps. Shape [m, l].
        self_similarity: M*, of reference positions with each other. Shape [m, m].
        order: The order in which steps are matched: each of 0..l-1 once. Shape [l].
        theta: The least similarity of a match, in [0, 1].
        lam: The soft base lambda, in [0, 1): a similarity up to it gives credit 0.
        monotone: False credits every match, also at positions credited before: the paper's ablation
            without monotonicity.

    Raises:
        ConfigError: A shape, a similarity, the order or a number does not fit.
    """
    check_levels(theta, lam)
    found = _credited_matches(similarity, self_similarity, order, theta, monotone)
    return credit_of(found, len(order), lam)


def credit_of(found: Credited, size: int, lam: float) -> Floats:
    """Return the credit of `size` steps with these matches. Shape [size]."""
    credit = np.zeros(size)
    for _, step, score in found:
        credit[step] = max(0.0, (score - lam) / (1.0 - lam))
    return credit


def check_levels(theta: float, lam: float) -> None:
    """Refuse theta outside [0, 1] and lambda outside [0, 1), with `ConfigError`."""
    number("theta", theta, 0, 1)
    number("lam", lam, 0, 1)
    if lam == 1:
        raise ConfigError("lam must be below 1: credit is divided by 1 - lam")


def table_walk(size: int, theta: float) -> Walk[list[int]]:
    """Return the table `next` of `size` positions; a walk that yields the pairs it needs."""
    table = [-1] * size
    k = -1
    for position in range(1, size):
        while (yield k + 1, position) < theta:
            if k < 0:
                break
            k = table[k]
        else:
            k += 1
        table[position] = k
    return table


def match_walk(
    size: int, order: Sequence[int], table: Sequence[int], theta: float, monotone: bool
) -> Walk[Credited]:
    """Return the credited matches with a reference of `size` positions; yields pairs it needs."""
    found: Credited = []
    j = frontier = -1
    if not size:
        return found
    for step in order:
        while (score := (yield j + 1, step)) < theta:
            if j < 0:
                break
            j = table[j]
        else:
            j += 1
            if j > frontier or not monotone:
                found.append((j, step, score))
                frontier = max(frontier, j)
        if j == size - 1:
            break
    return found


def run_walk(walk: Walk[Result], similarity: Floats) -> Result:
    """Return the result of a walk, with similarities from a matrix."""
    return lockstep([walk], lambda pairs: [float(similarity[pair]) for _, pair in pairs])[0]


def lockstep(
    walks: Sequence[Walk[Result]],
    answer: Callable[[list[tuple[int, tuple[int, int]]]], Sequence[float]],
) -> list[Result]:
    """Return the results of walks that have not started, with one batch of similarities a step.

    `answer` returns the similarities of pairs (index of the walk, the pair that it yielded).
    """
    results: list[Any] = [None] * len(walks)
    requests: list[tuple[int, tuple[int, int]]] = []
    answers: list[tuple[int, float | None]] = [(index, None) for index in range(len(walks))]
    while answers:
        requests.clear()
        for index, score in answers:
            try:
                walk = walks[index]
                requests.append((index, next(walk) if score is None else walk.send(score)))
            except StopIteration as end:
                results[index] = end.value
        scores = answer(requests) if requests else []
        answers = [(index, score) for (index, _), score in zip(requests, scores, strict=True)]
    return results


def _credited_matches(
    similarity: Floats,
    self_similarity: Floats,
    order: Sequence[int] | Ints,
    theta: float,
    monotone: bool,
) -> Credited:
    one_of("monotone", monotone, (True, False))
    scores = matrix(similarity)
    size, length = scores.shape
    steps = np.asarray(order).tolist()
    if len(steps) != length or set(steps) != set(range(length)):
        raise ConfigError(f"order must hold each of the {length} steps once, got {order!r}")
    own = checked(self_similarity, (size, size))
    walk = match_walk(
        size, [int(v) for v in steps], next_table(own, theta).tolist(), theta, monotone
    )
    return run_walk(walk, checked(scores, (size, length)))
