"""SCPO's alignments: which steps of failed rollouts match a success of their group."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

import numpy as np

from harness.credit.groups import encode
from harness.credit.matcher import (
    Credited,
    check_levels,
    credit_of,
    lockstep,
    match_walk,
    next_table,
    run_walk,
    table_walk,
)
from harness.credit.orders import turn_order
from harness.credit.shared import episode_returns
from harness.credit.similarity import Matrix, PairCache, Scorer, checked, pair_scorer
from harness.credit.table import TurnTable
from harness.types.arrays import Bools, Floats, Ints
from harness.types.hyperparameters import number, one_of

NO_OPS: Final = ("Nothing happens.",)
SEPARATOR: Final = " || "


@dataclass(frozen=True, eq=False)
class Alignment:
    """A failed rollout and the success of its group that it is compared with."""

    rollout: int  # of the failure
    reference: int  # the success's rollout
    rows: Ints  # [l], the failure's compared turns, as rows of the table
    reference_rows: Ints  # [m], the success's
    order: Ints  # [l], the steps 0..l-1 in the order of matching
    credited: Sequence[tuple[int, int]] = ()  # (reference position, step), in that order
    credit: Floats | None = None  # [l], in [0, 1]
    similarity: Floats | None = None  # [m, l]; None if not all pairs were scored


def plan(
    turns: TurnTable,
    *,
    theta: float = 0.6,
    lam: float = 0.4,
    scorer: str | Matrix = "exact",
    order: str = "temporal",
    reference: Literal["longest", "shortest"] = "longest",
    monotone: bool = True,
    success_threshold: float = 0.0,
    drop_invalid: bool = True,
    no_ops: Sequence[str] = NO_OPS,
    whole: bool = True,
) -> list[Alignment]:
    """Return the alignment of each failed rollout with a success of its group, if there is one.

    All arguments but `whole` are those of the estimator `scpo`. `whole` scores all pairs of
    positions and steps, for figures.
    """
    check_levels(theta, lam)
    one_of("monotone", monotone, (True, False))
    pairs = sibling_pairs(
        turns,
        order=order,
        reference=reference,
        success_threshold=success_threshold,
        drop_invalid=drop_invalid,
        no_ops=no_ops,
    )
    judge = pair_scorer(scorer)
    if whole:
        return _score_all(turns, pairs, judge, theta, lam, monotone)
    cache = PairCache(judge)  # a batch has one pair of every matcher
    tables = reference_tables(turns, pairs, cache, theta)
    return credited_pairs(turns, pairs, tables, cache, theta, lam, monotone=monotone)


def compared(turns: TurnTable, drop_invalid: bool = True, no_ops: Sequence[str] = NO_OPS) -> Bools:
    """Return a mask of the turns that are compared: appendix A.5. Shape [N]."""
    idle = {_normalised(text) for text in (*no_ops, "")}
    effective = {text: _normalised(_observation(text)) not in idle for text in set(turns.text)}
    kept = np.array([effective[text] for text in turns.text], dtype=bool)
    return kept & turns.valid & ~turns.failed if drop_invalid else kept


def _observation(text: str) -> str:
    return text.partition(SEPARATOR)[2] if SEPARATOR in text else text


def _normalised(observation: str) -> str:
    return observation.strip().rstrip(".").casefold()


def sibling_pairs(
    turns: TurnTable,
    *,
    order: str = "temporal",
    reference: Literal["longest", "shortest"] = "longest",
    success_threshold: float = 0.0,
    drop_invalid: bool = True,
    no_ops: Sequence[str] = NO_OPS,
) -> list[Alignment]:
    """Algorithm 1, lines 1 to 7: each failed rollout and its reference, without credit."""
    number("success_threshold", success_threshold)
    one_of("reference", reference, ("longest", "shortest"))
    one_of("drop_invalid", drop_invalid, (True, False))
    kept, rank, longest = (
        compared(turns, drop_invalid, no_ops),
        turn_order(turns, order),
        reference == "longest",
    )
    won = episode_returns(turns) > success_threshold  # [R]
    group = encode(turns.group[turns.starts]).tolist()  # [R]
    bounds = [*turns.starts.tolist(), len(turns)]
    rows = [np.flatnonzero(kept[a:b]) + a for a, b in itertools.pairwise(bounds)]

    def preference(rollout: int) -> tuple[int, tuple[str, ...]]:
        length = bounds[rollout + 1] - bounds[rollout]
        return (-length if longest else length), tuple(turns.text[rows[rollout]])

    best: dict[int, int] = {}
    for rollout in np.flatnonzero(won).tolist():
        rival = best.setdefault(group[rollout], rollout)
        if rival != rollout and preference(rollout) < preference(rival):
            best[group[rollout]] = rollout
    return [
        Alignment(w, best[group[w]], rows[w], rows[best[group[w]]], np.argsort(rank[rows[w]]))
        for w in np.flatnonzero(~won).tolist()
        if group[w] in best
    ]


def _score_all(
    turns: TurnTable,
    pairs: Sequence[Alignment],
    judge: Scorer,
    theta: float,
    lam: float,
    monotone: bool,
) -> list[Alignment]:
    """Lines 8 to 12, with one matrix for each reference: its texts by those of all its rollouts."""
    by_reference: dict[int, list[Alignment]] = {}
    for pair in pairs:
        by_reference.setdefault(pair.reference, []).append(pair)
    result = {}
    for siblings in by_reference.values():
        own, place = np.unique(turns.text[siblings[0].reference_rows], return_inverse=True)
        rows = np.concatenate([pair.rows for pair in siblings])
        others, step = np.unique(turns.text[rows], return_inverse=True)
        table = next_table(_matrix(judge, own, own)[np.ix_(place, place)], theta).tolist()
        scores = _matrix(judge, own, others)[np.ix_(place, step)]
        ends = np.cumsum([len(pair.rows) for pair in siblings])
        for pair, similarity in zip(siblings, np.split(scores, ends[:-1], axis=1), strict=True):
            walk = match_walk(len(place), pair.order.tolist(), table, theta, monotone)
            result[pair.rollout] = _credited(pair, run_walk(walk, similarity), lam, similarity)
    return [result[pair.rollout] for pair in pairs]


def _matrix(judge: Scorer, texts_a: Any, texts_b: Any) -> Floats:
    shape = (len(texts_a), len(texts_b))
    if 0 in shape:
        return np.zeros(shape)
    return checked(judge(texts_a.tolist(), texts_b.tolist()), shape)


def reference_tables(
    turns: TurnTable, pairs: Sequence[Alignment], score: PairCache, theta: float
) -> dict[int, list[int]]:
    """Line 8: the table of each reference, by its rollout, from the pairs of texts it needs."""
    owns = {pair.reference: turns.text[pair.reference_rows] for pair in pairs}
    own = list(owns.values())
    walks = [table_walk(len(text), theta) for text in own]
    made = lockstep(walks, lambda asked: score([(own[i][a], own[i][b]) for i, (a, b) in asked]))
    return dict(zip(owns, made, strict=True))


def credited_pairs(
    turns: TurnTable,
    pairs: Sequence[Alignment],
    tables: Mapping[int, list[int]],
    score: PairCache,
    theta: float,
    lam: float,
    *,
    monotone: bool = True,
) -> list[Alignment]:
    """Lines 9 to 12 with only the pairs of texts that are needed: the same pairs with credit."""
    texts = [(turns.text[p.reference_rows], turns.text[p.rows]) for p in pairs]
    matchers = [
        match_walk(len(p.reference_rows), p.order.tolist(), tables[p.reference], theta, monotone)
        for p in pairs
    ]
    found = lockstep(
        matchers, lambda asked: score([(texts[i][0][u], texts[i][1][v]) for i, (u, v) in asked])
    )
    return [_credited(pair, one, lam, None) for pair, one in zip(pairs, found, strict=True)]


def _credited(pair: Alignment, found: Credited, lam: float, similarity: Floats | None) -> Alignment:
    return replace(
        pair,
        credited=[(position, step) for position, step, _ in found],
        credit=credit_of(found, len(pair.rows), lam),
        similarity=similarity,
    )
