"""Bias and noise of gradients against the exact one: the scale, and what is off its direction."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from harness.types.arrays import Floats

_SURE: Final = 4.0
"""Standard errors that tell a bias; by chance one of 16,000 exceeds them."""

UNBIASED, SCALED, BIASED, NOTHING = "unbiased", "scaled", "biased", "no gradient"
"""Verdicts: neither part of a bias is found; only the scale; the direction is off; no signal."""


@dataclass(frozen=True, slots=True)
class Bias:
    """A method's mean gradient, compared with the exact one g.

    Attributes:
        scale: The mean gradient along g, as a share of g: c.
        scale_error: The standard error of c.
        off: The mean gradient's part orthogonal to g, as a share of c g; 0 if the noise hides it.
            It, `unseen` and `noise` are nan where c is not told from 0.
        unseen: The share that the noise alone would show on average.
        score: The standard errors by which that part differs from none.
        noise: The deviation of one step's gradient, as a share of c g.
    """

    scale: float
    scale_error: float
    off: float
    unseen: float
    score: float
    noise: float

    @property
    def verdict(self) -> str:
        """One of `UNBIASED`, `SCALED`, `BIASED` and `NOTHING`."""
        if self.score > _SURE:
            return BIASED
        if abs(self.scale) <= _SURE * self.scale_error:
            return NOTHING
        return UNBIASED if abs(self.scale - 1) <= _SURE * self.scale_error else SCALED


def bias_of(gradients: Floats, control: Floats, exact: Floats) -> Bias:
    """Return the bias of gradients of steps.

    Args:
        gradients: The gradient of each step. Shape [M, D], M at least 8.
        control: Gradients of the same steps whose mean is `exact`; what they miss it by is taken
            off. Shape [M, D].
        exact: The exact gradient, not zero. Shape [D].
    """
    length = _dot(exact, exact)
    if length <= 0 or len(gradients) < 8:
        raise ValueError("a bias needs a gradient that is not zero, and 8 steps or more")
    centred, missed = gradients - gradients.mean(axis=0), control - control.mean(axis=0)
    slope = _dot(centred.ravel(), missed.ravel()) / max(
        _dot(missed.ravel(), missed.ravel()), 1e-300
    )
    left = gradients - slope * (control - exact)
    along = np.add.reduce(left * exact, axis=1) / length  # [M]
    scale, scale_error = _mean_and_error(along)
    aside = left - along[:, None] * exact
    halves = aside[0::2], aside[1::2]
    means = [half.mean(axis=0) for half in halves]
    # A direction that one half shows is tested on the other, whose noise is independent.
    scores = [_score(half, mean) for half, mean in zip(halves, means[::-1], strict=True)]
    size = abs(scale) * math.sqrt(length)
    score = sum(scores) / 2  # both have one numerator: their mean has the spread of each
    if abs(scale) <= max(_SURE * scale_error, 1e-12):
        return Bias(scale, scale_error, math.nan, math.nan, score, math.nan)
    off = math.sqrt(max(0.0, _dot(*means))) / size
    unseen = math.sqrt(float(aside.var(axis=0, ddof=1).sum()) / len(aside)) / size
    noise = math.sqrt(float(gradients.var(axis=0, ddof=1).sum())) / size
    return Bias(scale, scale_error, off, unseen, score, noise)


def _score(values: Floats, direction: Floats) -> float:
    """Return the mean along a direction over its standard error; 0 without a direction."""
    length = math.sqrt(_dot(direction, direction))
    if length <= 1e-12:
        return 0.0
    mean, error = _mean_and_error(np.add.reduce(values * (direction / length), axis=1))
    if error <= 1e-12:  # nothing spreads
        return math.copysign(math.inf, mean) if abs(mean) > 1e-12 else 0.0
    return mean / error


def _mean_and_error(values: Floats) -> tuple[float, float]:
    return float(values.mean()), float(values.std(ddof=1)) / math.sqrt(len(values))


def _dot(one: Floats, two: Floats) -> float:
    # Not by a BLAS, whose last digits depend on the machine.
    return float(np.add.reduce(one * two))
