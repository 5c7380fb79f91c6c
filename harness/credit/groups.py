"""Groups of rows, and statistics within them.

A group is a set of rows with equal labels, [K]. `states` groups turns by key or similar text.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import Final, Literal

import numpy as np
from rapidfuzz import fuzz, process

from harness.credit.table import TurnTable
from harness.types.arrays import Bools, Floats, Ints, Keys
from harness.types.errors import ConfigError
from harness.types.hyperparameters import number, one_of

Norm = Literal["std", "mean"]

_NOISE: Final = 1e-12
"""Largest difference of a value from its group's mean that counts as 0, relative to mean or 1."""


def encode(*columns: Ints | Keys) -> Ints:
    """Return labels of rows, 0, 1... in any order, equal exactly when all columns agree. [K]."""
    label = _codes(columns[0])
    for column in columns[1:]:
        code = _codes(column)
        label = _codes(label * (code.max(initial=0) + 1) + code)
    return label


def _codes(column: Ints | Keys) -> Ints:
    if column.dtype != np.object_:
        return np.unique(column, return_inverse=True)[1].reshape(-1).astype(np.int64)
    seen: dict[object, int] = {}  # looking keys up is linear, sorting strings is not
    codes = (seen.setdefault(key, len(seen)) for key in column.tolist())
    return np.fromiter(codes, dtype=np.int64, count=len(column))


def group_size(label: Ints) -> Ints:
    """Number of rows in each row's group. Shape [K]."""
    return np.bincount(label)[label].astype(np.int64)


def group_weight(weight: Floats, label: Ints) -> Floats:
    """Sum of the weights of each row's group, a whole number. Shapes [K], [K] -> [K]."""
    return np.rint(np.bincount(label, weights=weight))[label]


def label_mean(x: Floats, label: Ints, weight: Floats | None = None) -> Floats:
    """Mean of the values of each of L labels, weighted if weights are given; 0 of none. Shape [L].

    The mean of equal values is exactly their value. So the sum is of distances from one of them: a
    sum of the values, divided by their number, need not give it. A label's weights sum to a whole
    number.
    """
    one = np.zeros(label.max(initial=-1) + 1)
    one[label] = x  # any value of each label
    distance = x - one[label]
    if weight is None:
        total = np.bincount(label, weights=distance)
        return one + total / np.maximum(np.bincount(label), 1)
    total = np.bincount(label, weights=distance * weight)
    return one + total / np.maximum(np.rint(np.bincount(label, weights=weight)), 1)


def group_mean(x: Floats, label: Ints, weight: Floats | None = None) -> Floats:
    """Mean of each row's group; see `label_mean`. Shapes [K] each -> [K]."""
    return label_mean(x, label, weight)[label]


def group_std(x: Floats, label: Ints, ddof: int, weight: Floats | None = None) -> Floats:
    """Standard deviation of each row's group, 0 where it has at most `ddof` rows. Shape [K]."""
    weight = np.ones(len(x)) if weight is None else weight
    deviation = x - group_mean(x, label, weight)
    total = np.bincount(label, weights=weight * deviation**2)[label].astype(np.float64)
    degrees = group_weight(weight, label) - ddof
    return np.sqrt(np.divide(total, degrees, out=np.zeros_like(total), where=degrees > 0))


def standardise(
    x: Floats, label: Ints, *, norm: Norm, ddof: int, eps: float, weight: Floats | None = None
) -> Floats:
    """Distance of each row from its group's mean; 0 in a group of one. Shape [K].

    (x - mean) / (std + eps) with `norm="std"`, x - mean with `norm="mean"`. A group whose values
    are equal up to rounding gets exact zeros: dividing rounding errors by eps would make signals of
    them. The size of a group is the sum of its weights, a whole number.
    """
    one_of("norm", norm, ("std", "mean"))
    one_of("ddof", ddof, (0, 1))
    number("eps", eps, 0)
    if not len(x):
        return np.zeros(0)
    weight = np.ones(len(x)) if weight is None else weight
    mean = group_mean(x, label, weight)
    centred = np.where(group_weight(weight, label) > 1, distance(x, mean), 0.0)
    if norm == "mean":
        return centred
    scale = group_std(centred, label, ddof, weight) + eps
    return np.divide(centred, scale, out=np.zeros_like(centred), where=scale > 0)


def differs(x: Floats, mean: Floats) -> Bools:
    """Return which values differ from their mean by more than rounding errors. Shapes [K] each."""
    return np.abs(x - mean) > _NOISE * np.maximum(np.abs(mean), 1.0)


def distance(x: Floats, mean: Floats) -> Floats:
    """Return x - mean, exactly 0 where that is no more than rounding errors. Shapes [K] each."""
    return np.where(differs(x, mean), x - mean, 0.0)


def members(label: Ints) -> list[Ints]:
    """Return the rows of each label 0, 1..., in order. Shape [K] -> one array for each label."""
    if not len(label):
        return []
    rows = np.argsort(label, kind="stable").astype(np.int64)
    return np.split(rows, np.cumsum(np.bincount(label))[:-1])


def whiten(x: Floats, counted: Bools, *, ddof: int, eps: float) -> Floats:
    """(x - mean) / (std + eps) over all counted rows, 0 elsewhere. Shape [K]."""
    rows = np.flatnonzero(counted)
    white = np.zeros(len(x))
    one_group = np.zeros(len(rows), dtype=np.int64)
    white[rows] = standardise(x[rows], one_group, norm="std", ddof=ddof, eps=eps)
    return white


_SEPARATOR: Final = " || "
_SLACK: Final = 1e-3
"""Percent by which the bound, in single precision, may be rounded."""


def states(turns: TurnTable, similarity: float | None = None) -> Ints:
    """Return labels of turns, equal exactly when their states are. Shape [N].

    States are equal when the turns are of one group and the keys agree. With `similarity`, in (0,
    1], also when the states' texts are similar. The distinct texts of a group are then taken in
    alphabetical order. Each is added to the first cluster whose first text has a difflib ratio of
    at least `similarity` with it, or starts a new one. GiGPO's released code takes texts in the
    order of its rows; alphabetical order makes the result independent of that order.

    A state's text is the observation that the turn before reached (the part of the column `text`
    behind "||"), the alphabetically first if there are several. A state that was never reached by a
    turn, like the initial one, or a table without texts has the key for its text.
    """
    exact = encode(turns.group, turns.state_key)
    if similarity is None:
        return exact
    number("similarity", similarity, 0, 1)
    if similarity == 0:
        raise ConfigError("similarity must be above 0, or all states are equal")
    first = np.unique(exact, return_index=True)[1]  # a row of each of S states
    texts = state_texts(turns, exact, first)
    owners = defaultdict(list)
    for state, group in enumerate(turns.group[first].tolist()):
        owners[group].append(state)
    cluster = np.zeros(len(first), dtype=np.int64)
    begun = 0
    for same_group in owners.values():
        found = first_fit([texts[state] for state in same_group], similarity)
        cluster[same_group] = found + begun
        begun += len(same_group)
    return cluster[exact]


def first_fit(texts: Sequence[str], similarity: float) -> Ints:
    """Return the cluster of each text, by greedy first fit in alphabetical order. Shape [S]."""
    leaders: list[str] = []
    cluster_of: dict[str, int] = {}
    for text in sorted(set(texts)):
        cluster_of[text] = _fitting(text, leaders, similarity)
        if cluster_of[text] == len(leaders):
            leaders.append(text)
    return np.array([cluster_of[text] for text in texts], dtype=np.int64)


def _fitting(text: str, leaders: Sequence[str], similarity: float) -> int:
    """Return the index of the first similar leader, or the number of leaders."""
    if not leaders:
        return 0
    # The longest common subsequence is never shorter than the blocks that difflib finds: so
    # rapidfuzz's ratio is an upper bound, and few pairs are left for difflib.
    cutoff = 100 * similarity - _SLACK
    bound = process.cdist([text], leaders, scorer=fuzz.ratio, score_cutoff=cutoff)[0]
    for index in np.flatnonzero(bound).tolist():  # what is below the cut-off is 0
        if SequenceMatcher(None, text, leaders[index]).ratio() >= similarity:
            return int(index)
    return len(leaders)


def state_texts(turns: TurnTable, exact: Ints, first: Ints) -> list[str]:
    """Return each state's text; `exact` [N] has the turns' states, `first` [S] a row of each."""
    known: dict[int, str] = {}
    states_of, owner = exact.tolist(), turns.rollout.tolist()
    for row, text in enumerate(turns.text.tolist()[:-1]):
        _, separator, observation = str(text).partition(_SEPARATOR)
        if separator and owner[row] == owner[row + 1]:
            state = states_of[row + 1]
            known[state] = min(known.get(state, observation), observation)
    keys = turns.state_key[first].tolist()
    return [known.get(state, str(key)) for state, key in enumerate(keys)]
