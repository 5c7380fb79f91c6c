"""Statistics within groups of rows. A group is a set of equal labels; K rows, labels [K]."""

from __future__ import annotations

from typing import Literal

import numpy as np

from harness.credit.table import Floats, Ints, Keys
from harness.errors import ConfigError

Norm = Literal["std", "mean"]


def encode(*columns: Ints | Keys) -> Ints:
    """Label rows: two have equal labels exactly when all columns agree. Shapes [K] each -> [K]."""
    label = np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:
        code = np.unique(column, return_inverse=True)[1].reshape(-1)
        label = np.unique(label * (code.max(initial=0) + 1) + code, return_inverse=True)[1]
    return label.reshape(-1).astype(np.int64)


def group_size(label: Ints) -> Ints:
    """Number of rows in each row's group. Shape [K]."""
    return np.bincount(label)[label].astype(np.int64)


def group_mean(x: Floats, label: Ints) -> Floats:
    """Mean of each row's group. Shapes [K], [K] -> [K]."""
    return (np.bincount(label, weights=x) / np.maximum(np.bincount(label), 1))[label]


def group_std(x: Floats, label: Ints, ddof: int) -> Floats:
    """Standard deviation of each row's group, 0 where it has at most `ddof` rows. Shape [K]."""
    deviation = x - group_mean(x, label)
    total = np.bincount(label, weights=deviation**2)[label]
    degrees = group_size(label) - ddof
    return np.sqrt(np.divide(total, degrees, out=np.zeros_like(total), where=degrees > 0))


def standardise(x: Floats, label: Ints, *, norm: Norm, ddof: int, eps: float) -> Floats:
    """Distance of each row from its group's mean; 0 in a group of one. Shape [K].

    (x - mean) / (std + eps) with `norm="std"`, x - mean with `norm="mean"`. A group whose values
    are equal up to rounding gets exact zeros: dividing rounding errors by eps would make signals of
    them.

    Raises:
        ConfigError: `norm` is neither, or `ddof` is not 0 or 1.
    """
    if norm not in ("std", "mean"):
        raise ConfigError(f"norm must be 'std' or 'mean', got {norm!r}")
    if ddof not in (0, 1):
        raise ConfigError(f"ddof must be 0 (population) or 1 (sample), got {ddof!r}")
    if not len(x):
        return np.zeros(0)
    mean = group_mean(x, label)
    centred = x - mean
    noise = 1e-12 * np.maximum(np.abs(mean), 1e-300)
    centred = np.where((group_size(label) == 1) | (np.abs(centred) <= noise), 0.0, centred)
    if norm == "mean":
        return centred
    return centred / (group_std(centred, label, ddof) + eps)
