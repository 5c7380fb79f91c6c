"""How well the credit of a method agrees with the true advantages, with intervals over tasks."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Final

import numpy as np

from harness.audit import evidence, gradients, intervals, spread
from harness.audit.evidence import MINIMUM, Evidence, Minimum
from harness.audit.intervals import UNKNOWN, Figure, Kind, Statistic, weighted
from harness.audit.ranks import (
    Ranks,
    correlation,
    correlations_within,
    places,
    ranks_within,
    signs,
)
from harness.audit.truth import Truth
from harness.types.arrays import Bools, Floats, Ints
from harness.types.errors import TableError

MOST: Final = 0.1
"""Share of the turns that `precision` and `recall` take, those with the most credit."""

_Factory = Callable[[Truth, Floats, Floats], Statistic]
"""The truth, the advantages that are wanted and those of a method -> their figure."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """The figures of all methods."""

    # By method and name of the figure, see `NAMES` and `spread.NAMES`.
    figures: Mapping[str, Mapping[str, Figure]]
    # By name of the figure, for correlations: what the truth would reach if it were measured a
    # second time with as many continuations; nan where it has no signal. For `snr` that of the true
    # advantages.
    ceilings: Mapping[str, float]
    evidence: Evidence  # the evidence; a figure without enough of it is nan, and so is its ceiling
    # The agreement of two halves of the continuations: methods that are credited by continuations
    # take one half and are compared with the other; else empty.
    half_ceilings: Mapping[str, float] = field(default_factory=dict)


def agree(
    truth: Truth,
    advantages: Mapping[str, Floats],
    *,
    measured: Collection[str] = (),
    fresh: Ints | None = None,
    minimum: Minimum = MINIMUM,
) -> Agreement:
    """Compare the credit of methods with the truth of N turns.

    `advantages` has the shape [N] for each method. Methods in `measured` are credited by the first
    half of the continuations, as `Truth.credited` has it, so they are compared with the second half
    alone. `fresh`, the group of each turn in which its credit was computed, adds the figures of
    `spread.NAMES`. A figure needs the evidence `minimum`. Raises `TableError` if advantages have
    another shape or are not finite.
    """
    for name, credit in advantages.items():
        if credit.shape != truth.advantage.shape or not np.isfinite(credit).all():
            raise TableError(
                f"{name} gave no finite advantage for each of {len(truth.turns)} turns"
            )
    weights = intervals.samples(int(truth.turns.group.max()) + 1)
    of_all = _statistics(truth, fresh)
    found = evidence.collect(truth, _bearing(truth, fresh), fresh, minimum)
    of_second = _statistics(truth.half(1), fresh) if measured else of_all
    figures: dict[str, dict[str, Figure]] = {name: {} for name in advantages}
    for title in of_all:
        if not found.enough(title):
            for own in figures.values():
                own[title] = UNKNOWN
            continue
        of_methods = {
            name: (of_second if name in measured else of_all)[title](credit)
            for name, credit in advantages.items()
        }
        kind, tasks = KINDS.get(title, Kind.NUMBER), found.of[title].tasks
        for name, figure in intervals.figures(weights, of_methods, kind, tasks).items():
            figures[name][title] = figure
    ceilings = {title: _ceiling(truth, _STATISTICS[title], weights[0]) for title in CORRELATIONS}
    if fresh is not None:
        ceilings["snr"] = of_all["snr"](truth.advantage)(weights[0])
    half = truth.half(0).advantage
    of_halves = {title: of_second[title](half)(weights[0]) for title in CORRELATIONS}

    def told(values: Mapping[str, float]) -> dict[str, float]:
        return {name: one if found.enough(name) else math.nan for name, one in values.items()}

    return Agreement(figures, told(ceilings), found, told(of_halves) if measured else {})


def _bearing(truth: Truth, fresh: Ints | None) -> dict[str, Bools]:
    """Return the turns that bear each figure. Shape [N] each."""
    every = np.ones(len(truth.turns), np.bool_)
    clear = evidence.clear(truth)
    good = clear & (truth.advantage > 0)
    found = {"spearman": every, "gradient": every, "sign": clear, "precision": good, "recall": good}
    for title, parts_of in (("within_rollouts", _rollout_of), ("within_states", _state_of)):
        part = parts_of(truth)
        ranks = ranks_within(part, truth.advantage)
        found[title] = np.isfinite(correlations_within(ranks, ranks, part))[part]
    found = {title: found[title] for title in NAMES}
    return found if fresh is None else found | dict.fromkeys(spread.NAMES, every)


def _statistics(truth: Truth, fresh: Ints | None) -> dict[str, Callable[[Floats], Statistic]]:
    found: dict[str, Callable[[Floats], Statistic]] = {
        title: partial(statistic_of, truth, truth.advantage)
        for title, statistic_of in _STATISTICS.items()
    }
    return found if fresh is None else found | spread.statistics(truth, fresh)


def _ceiling(truth: Truth, statistic_of: _Factory, weights: Floats) -> float:
    """Return the correlation of two measurements with K continuations each.

    Quarters and halves of the K are compared with each other; 1/r is linear in 1/K where the errors
    of K are independent, so it is extrapolated. With 16 to 48 continuations this is 0.01 to 0.02
    too low; the Spearman-Brown formula is 0.01 to 0.045 too high for ranks within few turns.
    """
    quarters = [np.arange(i, truth.returns.shape[1], 4) for i in range(4)]

    def mean_of(splits: list[tuple[Ints, Ints]]) -> float:
        found = [
            statistic_of(truth, truth.advantage_by(one), truth.advantage_by(two))(weights)
            for one, two in splits
        ]
        return math.fsum(found) / len(found)

    by_quarters = mean_of(list(itertools.combinations(quarters, 2)))
    by_halves = mean_of(
        [
            (np.append(quarters[0], quarters[i]), np.append(*(quarters[j] for j in others)))
            for i, others in ((1, (2, 3)), (2, (1, 3)), (3, (1, 2)))
        ]
    )
    if not (by_quarters > 0 and by_halves > 0):
        return math.nan
    inverse = 1.5 / by_halves - 0.5 / by_quarters
    return 1 / inverse if inverse >= 1 else 1.0


def _over_all_turns(truth: Truth, wanted: Floats, credit: Floats) -> Statistic:
    """Return Spearman's correlation over all turns; 0 for constant credit."""
    group, ranks = truth.turns.group, (Ranks(wanted), Ranks(credit))

    def statistic(weights: Floats) -> float:
        rows = weights[group]
        return correlation(ranks[0].of(rows), ranks[1].of(rows), rows)

    return statistic


def _within(parts_of: Callable[[Truth], Ints]) -> _Factory:
    """Return the mean correlation within parts with unequal truth, weighted by their turns."""

    def factory(truth: Truth, wanted: Floats, credit: Floats) -> Statistic:
        part = parts_of(truth)
        every = correlations_within(ranks_within(part, wanted), ranks_within(part, credit), part)
        known = np.isfinite(every)
        first = np.unique(part, return_index=True)[1]
        groups, values = truth.turns.group[first][known], every[known]
        sizes = np.bincount(part)[known].astype(np.float64)

        def statistic(weights: Floats) -> float:
            rows = weights[groups] * sizes
            return float((rows * values).sum() / rows.sum()) if rows.sum() else math.nan

        return statistic

    return factory


def _rollout_of(truth: Truth) -> Ints:
    return truth.turns.rollout


def _state_of(truth: Truth) -> Ints:
    return gradients.states_of(truth.turns, truth.turns.group)


def _sign(truth: Truth, wanted: Floats, credit: Floats) -> Statistic:
    """Return the share of clear turns whose credit has the sign of the truth; 0 is wrong."""
    return _share(truth, signs(credit) == np.sign(wanted), evidence.clear(truth))


def _share(truth: Truth, right: Bools | Floats, among: Bools | Floats) -> Statistic:
    """Return the share of `right` in `among`, both weights of rows."""
    groups = int(truth.turns.group.max()) + 1
    hits, all_ = (
        np.bincount(
            truth.turns.group, weights=np.asarray(value, np.float64), minlength=groups
        ).astype(np.float64)
        for value in (np.asarray(right, np.float64) * among, among)
    )

    def statistic(weights: Floats) -> float:
        total = weighted(weights, all_)
        return weighted(weights, hits) / total if total else math.nan

    return statistic


def _among_most(truth: Truth, wanted: Floats, credit: Floats, *, of_good: bool) -> Statistic:
    """Return the share of clearly good turns among those with the most credit, or the reverse."""
    group, place = truth.turns.group, places(credit)
    good = evidence.clear(truth) & (wanted > 0)
    most = math.ceil(MOST * len(credit))

    def statistic(weights: Floats) -> float:
        rows = weights[group]
        counts: Floats = np.bincount(place, weights=rows).astype(np.float64)
        hits: Floats = np.bincount(place, weights=rows * good).astype(np.float64)
        above = counts[::-1].cumsum()[::-1] - counts
        limit = most * float(rows.sum() / len(rows))
        taken = np.clip((limit - above) / np.maximum(counts, 1.0), 0.0, 1.0)
        total = float(hits.sum()) if of_good else weighted(taken, counts)
        return weighted(taken, hits) / total if total else math.nan

    return statistic


_STATISTICS: Final[dict[str, _Factory]] = {
    "spearman": _over_all_turns,
    "within_rollouts": _within(_rollout_of),
    "within_states": _within(_state_of),
    "gradient": gradients.cosine,
    "sign": _sign,
    "precision": partial(_among_most, of_good=False),
    "recall": partial(_among_most, of_good=True),
}
NAMES: Final = tuple(_STATISTICS)
CORRELATIONS: Final = NAMES[:4]
KINDS: Final = (
    dict.fromkeys(CORRELATIONS, Kind.CORRELATION)
    | dict.fromkeys(NAMES[4:], Kind.SHARE)
    | {"gradient": Kind.COSINE}
)
"""The kinds of the figures; all others are numbers."""
