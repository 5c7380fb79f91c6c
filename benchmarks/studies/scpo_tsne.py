"""t-SNE of a matrix of distances, exact: for pictures of some thousand points."""

from __future__ import annotations

from typing import Final

import numpy as np

from harness.types.arrays import Bools, Floats

_ITERATIONS: Final = 1000
_EXAGGERATED: Final = 250
_EXAGGERATION: Final = 12.0
_BISECTIONS: Final = 60
_TINY: Final = 1e-12


def tsne(distance: Floats, start: Floats, perplexity: float = 30.0) -> Floats:
    """Return places in the plane, shape [n, 2], that keep near points near.

    `distance` has shape [n, n]; of the places to begin with, [n, 2], only directions matter.
    The perplexity is the effective number of neighbours, at most (n - 1) / 3. Equal arguments
    give equal places; fewer than 5 points give zeros. Reference: van der Maaten and Hinton
    2008, "Visualizing Data using t-SNE", with scikit-learn's settings.
    """
    n = len(distance)
    if n < 5:
        return np.zeros((n, 2))
    p = _joint(distance**2, min(perplexity, (n - 1) / 3))
    rate = max(n / _EXAGGERATION / 4, 50.0)
    place = start / max(start[:, 0].std(), _TINY) * 1e-4
    speed, gain = np.zeros((n, 2)), np.ones((n, 2))
    for iteration in range(_ITERATIONS):
        early = iteration < _EXAGGERATED
        slope = _slope(place, p * _EXAGGERATION if early else p)
        gain = np.where(np.sign(slope) == np.sign(speed), gain * 0.8, gain + 0.2).clip(0.01)
        speed = (0.5 if early else 0.8) * speed - rate * gain * slope
        place = place + speed
    centred: Floats = place - place.mean(axis=0)
    return centred


def _joint(squared: Floats, perplexity: float) -> Floats:
    """Return the joint probabilities of pairs, by Gaussians of one perplexity. Shape [n, n]."""
    n = len(squared)
    low, high = np.zeros((n, 1)), np.full((n, 1), np.inf)
    beta = 1 / np.maximum(squared.mean(axis=1, keepdims=True), _TINY)  # [n, 1], the precisions
    others = ~np.eye(n, dtype=bool)
    for _ in range(_BISECTIONS):
        conditional = _conditional(squared, beta, others)
        entropy = -(conditional * np.log(np.maximum(conditional, _TINY))).sum(1, keepdims=True)
        wide = entropy > np.log(perplexity)
        low, high = np.where(wide, beta, low), np.where(wide, high, beta)
        beta = np.where(np.isinf(high), 2 * beta, (low + np.minimum(high, 1e300)) / 2)
    conditional = _conditional(squared, beta, others)
    return np.maximum((conditional + conditional.T) / (2 * n), _TINY)


def _conditional(squared: Floats, beta: Floats, others: Bools) -> Floats:
    nearest = np.where(others, squared, np.inf).min(axis=1, keepdims=True)
    weight = np.where(others, np.exp(-beta * (squared - nearest)), 0.0)
    scaled: Floats = weight / weight.sum(axis=1, keepdims=True)
    return scaled


def _slope(place: Floats, p: Floats) -> Floats:
    """Return the gradient of the Kullback-Leibler divergence in the places. Shape [n, 2]."""
    squares = (place**2).sum(axis=1)
    kernel = 1 / (1 + np.maximum(squares[:, None] + squares - 2 * place @ place.T, 0))
    np.fill_diagonal(kernel, 0.0)
    pull = (p - np.maximum(kernel / kernel.sum(), _TINY)) * kernel
    slope: Floats = 4 * (pull.sum(axis=1)[:, None] * place - pull @ place)
    return slope
