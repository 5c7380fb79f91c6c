"""SCPO: steps of failed rollouts get credit where they match a success of the group."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

import numpy as np

from harness.credit.groups import encode
from harness.credit.matcher import (
    Credited,
    check_levels,
    credit_of,
    lockstep,
    match,
    match_walk,
    matches,
    next_table,
    run_walk,
    table_walk,
)
from harness.credit.orders import turn_order
from harness.credit.registry import Base, base_estimator, estimator
from harness.credit.returns import episode_returns
from harness.credit.similarity import Matrix, Scorer, checked, pair_scorer
from harness.credit.table import TurnTable
from harness.types.arrays import Bools, Floats, Ints
from harness.types.hyperparameters import number, one_of

__all__ = ["Alignment", "match", "matches", "next_table", "plan", "scpo"]

NO_OPS: Final = ("Nothing happens.",)
SEPARATOR: Final = " || "


@dataclass(frozen=True, eq=False)
class Alignment:
    """A failed rollout and the success of its group that it is compared with.

    Attributes:
        rollout: Index of the failed rollout.
        reference: Index of the success.
        rows: The failed rollout's compared turns, as rows of the table. Shape [l].
        reference_rows: The compared turns of the success. Shape [m].
        order: Steps, 0..l-1, in the order of matching. Shape [l].
        credited: (reference position, step) pairs, 0..m-1 and 0..l-1, in the order of matching.
        credit: Credit of each step, in [0, 1]. Shape [l].
        similarity: M, of each position and step; None if not all pairs were scored. Shape [m, l].
    """

    rollout: int
    reference: int
    rows: Ints
    reference_rows: Ints
    order: Ints
    credited: Sequence[tuple[int, int]] = ()
    credit: Floats | None = None
    similarity: Floats | None = None


@estimator("scpo", step_returns="changes", preset={"order": "balanced(4)"})
def scpo(
    turns: TurnTable,
    *,
    base: Base = "gigpo",
    alpha: float = 0.5,
    theta: float = 0.6,
    lam: float = 0.4,
    scorer: str | Matrix = "exact",
    order: str = "temporal",
    reference: Literal["longest", "shortest"] = "longest",
    monotone: bool = True,
    success_threshold: float = 0.0,
    drop_invalid: bool = True,
    no_ops: Sequence[str] = NO_OPS,
    **settings: Any,
) -> Floats:
    """Advantage of the base on step returns to which failed rollouts' new progress is added.

    R~_t = R_t + alpha * r_t at a failed rollout's own step t, not discounted back; then the base.
    r is the monotonic credit of `matcher.match` against a successful rollout of the same group;
    a group without success is left as it is, and so is the episode part of the base.
    Reference: SCPO, Eq. 4, Algorithms 1 and 2, Table 4.
    Departs from it: the paper's order (`balanced(4)`, see `orders.turn_order`; set by the preset
    `paper`) and scorer (a cross-encoder, see `harness.annotators.semantic`) are not the defaults,
    which need neither a number of workers nor a model.

    Args:
        turns: N turns of R rollouts.
        base: An estimator on step returns: `gigpo`, `hgpo`, `ecpo`..., or one built on those.
        alpha: Weight of the credit, at least 0; the paper: 0.5 on ALFWorld, 1 on WebShop.
        theta: Least similarity of a match, in [0, 1].
        lam: Soft base lambda, in [0, 1): a similarity up to it gives credit 0.
        scorer: `exact`, `lexical`, or a callable (texts_a, texts_b) -> matrix of similarities in
            [0, 1]. It scores only pairs that the matcher needs, each once; a `similarity.Scorer`
            those of all rollouts in one batch, other callables one row at a time.
        order: `temporal`, `length`, `balanced(PARTS)` or `random(SEED)`; see `orders.turn_order`.
        reference: The `longest` or the `shortest` success, in turns; of equally long ones, that
            whose texts come first in the alphabet.
        monotone: False credits a position repeatedly: the paper's ablation.
        success_threshold: A rollout with a greater return is a success; the paper: 0, and 9 on
            WebShop, whose scores go up to 10 there.
        drop_invalid: Leave out turns whose action was malformed, inadmissible or failed.
        no_ops: Observations whose turns are left out; turns with an empty one always are.
        settings: Hyperparameters of the base.

    Returns:
        Advantage of each turn. Shape [N].
    """
    number("alpha", alpha, 0)
    aligned = plan(
        turns,
        theta=theta,
        lam=lam,
        scorer=scorer,
        order=order,
        reference=reference,
        monotone=monotone,
        success_threshold=success_threshold,
        drop_invalid=drop_invalid,
        no_ops=no_ops,
        whole=False,
    )
    bonus = alpha * credit(turns, aligned)
    if turns.return_bonus is not None:
        bonus = bonus + turns.return_bonus
    return base_estimator(base, settings)(replace(turns, return_bonus=bonus))


def credit(turns: TurnTable, aligned: Sequence[Alignment]) -> Floats:
    """Return the credit r of each turn of the table. Shape [N]."""
    total = np.zeros(len(turns))
    for one in aligned:
        if one.credit is not None:
            total[one.rows] = one.credit
    return total


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
    """Return the alignment of each failed rollout with a success of its group.

    Failed rollouts of groups without success are left out. All arguments except `whole` are those
    of `scpo`. `whole` scores all pairs of positions and steps, for figures, not only those that the
    matcher needs.

    Raises:
        ConfigError: A hyperparameter is out of its range, or the scorer returns invalid scores.
    """
    check_levels(theta, lam)
    number("success_threshold", success_threshold)
    one_of("reference", reference, ("longest", "shortest"))
    for name, switch in (("monotone", monotone), ("drop_invalid", drop_invalid)):
        one_of(name, switch, (True, False))
    judge = pair_scorer(scorer)
    kept = _kept(turns, drop_invalid, no_ops)
    pairs = _pair_rollouts(
        turns, kept, turn_order(turns, order), reference == "longest", success_threshold
    )
    score = _score_all if whole else _score_as_needed
    return score(turns, pairs, judge, theta, lam, monotone)


def _kept(turns: TurnTable, drop_invalid: bool, no_ops: Sequence[str]) -> Bools:
    """Return a mask of the turns that are compared: appendix A.5. Shape [N]."""
    idle = {_normalised(text) for text in (*no_ops, "")}
    effective = {text: _normalised(_observation(text)) not in idle for text in set(turns.text)}
    kept = np.array([effective[text] for text in turns.text], dtype=bool)
    return kept & turns.valid & ~turns.failed if drop_invalid else kept


def _observation(text: str) -> str:
    return text.partition(SEPARATOR)[2] if SEPARATOR in text else text


def _normalised(observation: str) -> str:
    return observation.strip().rstrip(".").casefold()


def _pair_rollouts(
    turns: TurnTable, kept: Bools, rank: Ints, longest: bool, success_threshold: float
) -> list[Alignment]:
    """Algorithm 1, lines 1 to 7: each failed rollout and its reference, without credit."""
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
    of_reference: dict[int, list[Alignment]] = {}
    for pair in pairs:
        of_reference.setdefault(pair.reference, []).append(pair)
    result = {}
    for siblings in of_reference.values():
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


def _score_as_needed(
    turns: TurnTable,
    pairs: Sequence[Alignment],
    judge: Scorer,
    theta: float,
    lam: float,
    monotone: bool,
) -> list[Alignment]:
    """The same with only the needed pairs, each once: a batch has one pair of every matcher."""
    score = _PairCache(judge)
    texts = [(turns.text[p.reference_rows], turns.text[p.rows]) for p in pairs]
    owns = {p.reference: text for p, (text, _) in zip(pairs, texts, strict=True)}
    own = list(owns.values())
    walks = [table_walk(len(text), theta) for text in own]
    made = lockstep(walks, lambda pairs: score([(own[i][a], own[i][b]) for i, (a, b) in pairs]))
    tables = dict(zip(owns, made, strict=True))
    matchers = [
        match_walk(len(p.reference_rows), p.order.tolist(), tables[p.reference], theta, monotone)
        for p in pairs
    ]
    found = lockstep(
        matchers, lambda pairs: score([(texts[i][0][u], texts[i][1][v]) for i, (u, v) in pairs])
    )
    return [_credited(pair, one, lam, None) for pair, one in zip(pairs, found, strict=True)]


class _PairCache:
    """Scores pairs of texts, each distinct one once."""

    def __init__(self, judge: Scorer) -> None:
        self._judge = judge
        self._known: dict[tuple[str, str], float] = {}

    def __call__(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        known = self._known
        new = [pair for pair in dict.fromkeys(pairs) if pair not in known]
        if new:
            scores = self._judge.pairs([a for a, _ in new], [b for _, b in new])
            known.update(zip(new, checked(scores, (len(new),)).tolist(), strict=True))
        return [known[pair] for pair in pairs]


def _credited(pair: Alignment, found: Credited, lam: float, similarity: Floats | None) -> Alignment:
    return replace(
        pair,
        credited=[(position, step) for position, step, _ in found],
        credit=credit_of(found, len(pair.rows), lam),
        similarity=similarity,
    )
