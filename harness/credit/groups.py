"""Statistics within groups of rows. A group is a set of equal labels; K rows, labels [K]."""

from __future__ import annotations

from typing import Final, Literal

import numpy as np

from harness.credit.arguments import number, one_of
from harness.credit.table import Bools, Floats, Ints, Keys

Norm = Literal["std", "mean"]

_NOISE: Final = 1e-12
"""What a value may differ from its group's mean by, relative to the mean or 1, and be equal."""


def encode(*columns: Ints | Keys) -> Ints:
    """Label rows: two have equal labels exactly when all columns agree. Shapes [K] each -> [K].

    Labels are 0, 1... without gaps; their order means nothing.
    """
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


def group_mean(x: Floats, label: Ints) -> Floats:
    """Mean of each row's group. Shapes [K], [K] -> [K]."""
    return (np.bincount(label, weights=x) / np.maximum(np.bincount(label), 1))[label]


def group_std(x: Floats, label: Ints, ddof: int) -> Floats:
    """Standard deviation of each row's group, 0 where it has at most `ddof` rows. Shape [K]."""
    deviation = x - group_mean(x, label)
    total = np.bincount(label, weights=deviation**2)[label].astype(np.float64)
    degrees = group_size(label) - ddof
    return np.sqrt(np.divide(total, degrees, out=np.zeros_like(total), where=degrees > 0))


def standardise(x: Floats, label: Ints, *, norm: Norm, ddof: int, eps: float) -> Floats:
    """Distance of each row from its group's mean; 0 in a group of one. Shape [K].

    (x - mean) / (std + eps) with `norm="std"`, x - mean with `norm="mean"`. A group whose values
    are equal up to rounding gets exact zeros: dividing rounding errors by eps would make signals of
    them.

    Raises:
        ConfigError: `norm` is neither, `ddof` is not 0 or 1, or `eps` is negative.
    """
    one_of("norm", norm, ("std", "mean"))
    one_of("ddof", ddof, (0, 1))
    number("eps", eps, 0)
    if not len(x):
        return np.zeros(0)
    mean = group_mean(x, label)
    centred = np.where((group_size(label) > 1) & differs(x, mean), x - mean, 0.0)
    if norm == "mean":
        return centred
    scale = group_std(centred, label, ddof) + eps
    return np.divide(centred, scale, out=np.zeros_like(centred), where=scale > 0)


def differs(x: Floats, mean: Floats) -> Bools:
    """Tell which values are away from their mean by more than rounding errors. Shapes [K] each."""
    return np.abs(x - mean) > _NOISE * np.maximum(np.abs(mean), 1.0)


def members(label: Ints) -> list[Ints]:
    """Return the rows of each label 0, 1..., in order. Shape [K] -> one array for each label."""
    if not len(label):
        return []
    rows = np.argsort(label, kind="stable").astype(np.int64)
    return np.split(rows, np.cumsum(np.bincount(label))[:-1])


def whiten(x: Floats, counted: Bools, *, ddof: int, eps: float) -> Floats:
    """Distance from the mean of all counted rows, in their standard deviations. Shape [K].

    (x - mean) / (std + eps) where `counted`, 0 elsewhere.
    """
    rows = np.flatnonzero(counted)
    white = np.zeros(len(x))
    one_group = np.zeros(len(rows), dtype=np.int64)
    white[rows] = standardise(x[rows], one_group, norm="std", ddof=ddof, eps=eps)
    return white
