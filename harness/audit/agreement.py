"""How well the credit of a method agrees with the true advantages, with intervals over tasks."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from harness.audit.ranks import Ranks, correlation, correlations_within, places, ranks_within
from harness.audit.truth import Truth
from harness.types.arrays import Bools, Floats, Ints
from harness.types.errors import TableError

CLEAR: Final = 0.15
"""A true advantage is clear from this size on, in units of the reward, if it also is at least two
standard errors."""
MOST: Final = 0.1
"""Share of the turns that `precision` and `recall` take, those with the most credit."""
DRAWS: Final = 1000
"""Bootstrap samples of tasks."""

_Statistic = Callable[[Floats], float]
"""Weight of each group in a sample [G] -> the figure, nan where it is not defined."""

_Factory = Callable[[Truth, Floats, Floats], _Statistic]
"""The truth, the advantages that are wanted and those of a method -> their figure."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure of a method.

    Attributes:
        value: Over all tasks; nan where it is not defined.
        interval: 95 % percentile interval by bootstrap over tasks.
        over_first: Difference to the first method's figure.
        over_first_interval: Its interval, by the same samples of tasks.
    """

    value: float
    interval: tuple[float, float]
    over_first: float
    over_first_interval: tuple[float, float]


@dataclass(frozen=True, slots=True)
class Agreement:
    """The figures of all methods.

    Attributes:
        figures: By method and name of the figure, see `NAMES`.
        ceilings: By name of the figure, for correlations: what the truth would reach if it were
            measured a second time with as many continuations; nan where it has no signal.
        clear: Share of turns whose true advantage is clear.
        half_ceilings: What two halves of the continuations reach with each other: the ceilings of
            methods that are credited by one half; empty without such methods.
    """

    figures: Mapping[str, Mapping[str, Figure]]
    ceilings: Mapping[str, float]
    clear: float
    half_ceilings: Mapping[str, float] = field(default_factory=dict)


def agree(
    truth: Truth,
    advantages: Mapping[str, Floats],
    *,
    measured: Collection[str] = (),
    seed: int = 0,
    draws: int = DRAWS,
) -> Agreement:
    """Compare the credit of methods with the truth.

    Args:
        truth: Of N turns.
        advantages: Of each method. Shape [N] each.
        measured: Methods whose credit is made of the first half of the continuations, as
            `Truth.credited` has it: they are compared with the second half alone.
        seed: Of the bootstrap; equal arguments give equal intervals.
        draws: Number of bootstrap samples; each draws as many tasks as there are.

    Raises:
        TableError: A method's advantages have another shape, or are not finite.
    """
    for name, credit in advantages.items():
        if credit.shape != truth.advantage.shape or not np.isfinite(credit).all():
            raise TableError(
                f"{name} gave no finite advantage for each of {len(truth.turns)} turns"
            )
    samples = _samples(int(truth.turns.group.max()) + 1, seed, draws)
    second = truth.half(1)
    against = {name: second if name in measured else truth for name in advantages}
    figures: dict[str, dict[str, Figure]] = {name: {} for name in advantages}
    for title, statistic_of in _STATISTICS.items():
        first: Floats | None = None
        for name, credit in advantages.items():
            wanted = against[name]
            statistic = statistic_of(wanted, wanted.advantage, credit)
            drawn = np.array([statistic(weights) for weights in samples])
            first = drawn if first is None else first
            low, high = _interval(drawn[1:])
            apart = drawn - first
            figures[name][title] = Figure(
                float(drawn[0]), (low, high), float(apart[0]), _interval(apart[1:])
            )
    splits = {title: _splits(truth, _STATISTICS[title], samples[0]) for title in CORRELATIONS}
    ceilings = {title: _ceiling(*both) for title, both in splits.items()}
    of_halves = {title: halves for title, (_, halves) in splits.items() if measured}
    return Agreement(figures, ceilings, float(_clear(truth).mean()), of_halves)


def _samples(groups: int, seed: int, draws: int) -> Floats:
    """Return the weights of the groups: all once, then bootstrap samples. Shape [1 + draws, G]."""
    rng = np.random.default_rng([seed, groups])
    drawn = rng.multinomial(groups, np.full(groups, 1 / groups), size=draws)
    return np.concatenate([np.ones((1, groups)), drawn]).astype(np.float64)


def _interval(values: Floats) -> tuple[float, float]:
    known = values[np.isfinite(values)]
    if not len(known):
        return math.nan, math.nan
    low, high = np.percentile(known, (2.5, 97.5))
    return float(low), float(high)


def _splits(truth: Truth, statistic_of: _Factory, weights: Floats) -> tuple[float, float]:
    """Return the correlations of quarters and of halves of the continuations with each other."""
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
    return by_quarters, by_halves


def _ceiling(by_quarters: float, by_halves: float) -> float:
    """Return the correlation of two measurements with K continuations each.

    Quarters and halves of the K are compared with each other; 1/r is linear in 1/K where the errors
    of K are independent, so it is extrapolated. With 16 to 48 continuations this is 0.01 to 0.02
    too low; the Spearman-Brown formula is 0.01 to 0.045 too high for ranks within few turns.
    """
    if not (by_quarters > 0 and by_halves > 0):
        return math.nan
    inverse = 1.5 / by_halves - 0.5 / by_quarters
    return 1 / inverse if inverse >= 1 else 1.0


def _clear(truth: Truth) -> Bools:
    """Return whether each true advantage is clear. Shape [N]."""
    clear: Bools = np.abs(truth.advantage) >= np.maximum(CLEAR, 2 * truth.error)
    return clear


def _over_all_turns(truth: Truth, wanted: Floats, credit: Floats) -> _Statistic:
    """Return Spearman's correlation over all turns; 0 for constant credit."""
    group, ranks = truth.turns.group, (Ranks(wanted), Ranks(credit))

    def statistic(weights: Floats) -> float:
        rows = weights[group]
        return correlation(ranks[0].of(rows), ranks[1].of(rows), rows)

    return statistic


def _within(parts_of: Callable[[Truth], Ints]) -> _Factory:
    """Return the mean correlation within parts of the turns, weighted by their number of turns.

    Parts in which the truth does not differ are left out; constant credit has 0 there.
    """

    def factory(truth: Truth, wanted: Floats, credit: Floats) -> _Statistic:
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
    """Return the number of each turn's state; states of two groups are different. Shape [N]."""
    turns = truth.turns
    states = [f"{group}/{key}" for group, key in zip(turns.group, turns.state_key, strict=True)]
    return np.unique(np.array(states, dtype=object), return_inverse=True)[1].astype(np.int64)


def _sign(truth: Truth, wanted: Floats, credit: Floats) -> _Statistic:
    """Return the share of clear turns whose credit has the sign of the truth; 0 is wrong."""
    return _share(truth, np.sign(credit) == np.sign(wanted), _clear(truth))


def _share(truth: Truth, right: Bools | Floats, among: Bools | Floats) -> _Statistic:
    """Return the share of `right` in `among`, both weights of rows."""
    groups = int(truth.turns.group.max()) + 1
    hits, all_ = (
        np.bincount(truth.turns.group, weights=np.asarray(value, np.float64), minlength=groups)
        for value in (np.asarray(right, np.float64) * among, among)
    )

    def statistic(weights: Floats) -> float:
        total = float(weights @ all_)
        return float(weights @ hits) / total if total else math.nan

    return statistic


def _taken(credit: Floats) -> Floats:
    """Return how much of each turn is among those with the most credit, in [0, 1]. Shape [N].

    Of equal turns at the limit each has the same share.
    """
    place = places(credit)
    counts = np.bincount(place)
    above = counts[::-1].cumsum()[::-1] - counts
    wanted = math.ceil(MOST * len(credit))
    return np.clip((wanted - above) / counts, 0.0, 1.0)[place]


def _precision(truth: Truth, wanted: Floats, credit: Floats) -> _Statistic:
    """Return the share of clearly good turns among those with the most credit."""
    return _share(truth, _clear(truth) & (wanted > 0), _taken(credit))


def _recall(truth: Truth, wanted: Floats, credit: Floats) -> _Statistic:
    """Return the share of the clearly good turns that are among those with the most credit."""
    return _share(truth, _taken(credit), _clear(truth) & (wanted > 0))


def _gradient(truth: Truth, wanted: Floats, credit: Floats) -> _Statistic:
    """Return the cosine between two policy gradients, by the credit and by the truth.

    They are those of a softmax over the actions of each state: the sum over turns of the advantage
    times (one-hot of the action - probabilities). States of two tasks are different.
    """
    taken, equal = truth.taken, truth.equal
    if taken is None or equal is None:
        return lambda _: math.nan
    turns, state = truth.turns, _state_of(truth)
    groups = int(turns.group.max()) + 1
    first = np.unique(state, return_index=True)[1]
    keys = [f"{s} {a}" for s, a in zip(state, turns.action_key, strict=True)]
    _, of_action, action = np.unique(keys, return_index=True, return_inverse=True)
    state_of_action = state[of_action]

    def sums(values: Floats) -> list[Floats]:
        """Return the sums by action, by state, and by state weighted with the probabilities."""
        by = ((action, values), (state, values), (state, values * taken))
        return [np.bincount(place, parts).astype(np.float64) for place, parts in by]

    def inner(one: list[Floats], two: list[Floats]) -> Floats:
        """Return the inner product of two gradients by group. Shape [G]."""
        by_action = np.bincount(state_of_action, weights=one[0] * two[0])
        rest = one[1] * two[1] * equal[first] - one[1] * two[2] - two[1] * one[2]
        by_group = np.bincount(turns.group[first], weights=by_action + rest, minlength=groups)
        return by_group.astype(np.float64)

    own, true = sums(credit), sums(wanted)
    products = inner(own, true), inner(own, own), inner(true, true)

    def statistic(weights: Floats) -> float:
        both, of_own, of_true = (float(weights @ product) for product in products)
        if of_true <= 1e-12:
            return math.nan
        return both / math.sqrt(of_own * of_true) if of_own > 1e-12 else 0.0

    return statistic


_STATISTICS: Final[dict[str, _Factory]] = {
    "spearman": _over_all_turns,
    "within_rollouts": _within(_rollout_of),
    "within_states": _within(_state_of),
    "gradient": _gradient,
    "sign": _sign,
    "precision": _precision,
    "recall": _recall,
}
NAMES: Final = tuple(_STATISTICS)
CORRELATIONS: Final = NAMES[:4]
