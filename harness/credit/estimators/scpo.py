"""SCPO: steps of failed rollouts get credit where they match a success of the group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from harness.credit.alignment import NO_OPS, SEPARATOR, Alignment, plan
from harness.credit.matcher import match, matches, next_table
from harness.credit.registry import Base, base_estimator, estimator
from harness.credit.similarity import Matrix
from harness.credit.table import TurnTable
from harness.types.arrays import Floats
from harness.types.hyperparameters import number

__all__ = [
    "NO_OPS",
    "SEPARATOR",
    "Alignment",
    "credit",
    "match",
    "matches",
    "next_table",
    "plan",
    "scpo",
]


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
    """Base's advantage on step returns with failed rollouts' new progress added. Shape [N].

    R~_t = R_t + alpha * r_t at a failed rollout's own step t, not discounted back; then the base.
    r is the monotonic credit of `matcher.match` against a successful rollout of the same group;
    a group without success is left as it is, and so is the episode part of the base.
    Reference: SCPO, Eq. 4, Algorithms 1 and 2, Table 4.
    Departs from it: the paper's order (`balanced(4)`, see `orders.turn_order`; set by the preset
    `paper`) and scorer (a cross-encoder, see `harness.annotators.semantic`) are not the defaults,
    which need neither a number of workers nor a model.

    Args:
        turns: The turn table; reads actions and texts.
        base: An estimator on step returns: `gigpo`, `hgpo`, `ecpo`..., or one built on those.
        alpha: The weight of the credit, at least 0; the paper: 0.5 on ALFWorld, 1 on WebShop.
        theta: The least similarity of a match, in [0, 1].
        lam: The soft base lambda, in [0, 1): a similarity up to it gives credit 0.
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
        settings: The hyperparameters of the base.
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
