"""How near failed rollouts' steps are to those of successes, by credit: SCPO's Figures 2 and 5."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from scpo_tsne import tsne

from harness.credit import alignment
from harness.credit.estimators import scpo
from harness.credit.groups import encode
from harness.credit.similarity import Matrix
from harness.credit.table import TurnTable
from harness.reporting import figure
from harness.reporting.table import Table
from harness.types.arrays import Bools, Floats
from harness.types.errors import TableError
from harness.types.hyperparameters import keyword_defaults

_SUCCESS, _CREDITED, _OTHER = "#059669", "#2563eb", "#dc2626"
_PART: Final = 256
"""Rows of a matrix of similarities that are made at a time."""


@dataclass(frozen=True, slots=True, eq=False)
class Neighbourhood:
    """The compared steps of groups that have a success and a failure."""

    success: Bools  # whether a step is of a success [n]
    credited: Bools  # whether SCPO credits it [n]
    exact: Bools  # whether a success of its group has a step with the same text [n]
    distance: Floats  # from the nearest step of a success of its group [n]
    place: Floats  # in the plane, by t-SNE [n, 2]


def find(turns: TurnTable, settings: Mapping[str, Any], encoder: Matrix) -> Neighbourhood:
    """Return the neighbourhood of recorded rollouts, by all hyperparameters of `scpo`.

    The distance of two texts is that of their embeddings of length 1, the root of 2 - 2 similarity;
    the paper does not say which distance it takes. Places are t-SNE's of the distinct texts, begun
    at their principal components; the paper does not give its settings either. Raises `TableError`
    if no group has a success and a failure with steps to compare.
    """
    chosen = {key: settings[key] for key in keyword_defaults(alignment.plan) if key in settings}
    aligned = alignment.plan(turns, **chosen, whole=False)
    kept = alignment.compared(turns, settings["drop_invalid"], settings["no_ops"])
    failed, won = np.zeros((2, len(turns)), dtype=bool)
    for one in aligned:
        failed[one.rows] = True
    group = encode(turns.group)
    with_failure = np.isin(group, group[failed])
    lost = np.isin(turns.rollout, [one.rollout for one in aligned])
    won = kept & with_failure & ~lost
    rows = np.flatnonzero(failed | won)
    if not failed.any() or not won.any():
        raise TableError("no group has steps of a success and of a failure to compare: play more")
    texts, place = np.unique(turns.text[rows], return_inverse=True)
    similarity = _similarities(texts, encoder)
    near = _nearest(similarity, place, won[rows], group[rows])
    return Neighbourhood(
        success=won[rows],
        credited=scpo.credit(turns, aligned)[rows] > 0,
        exact=near >= 2,
        distance=_distance(near),
        place=tsne(_distance(similarity), _principal(similarity))[place],
    )


def _distance(similarity: Floats) -> Floats:
    return np.sqrt(np.clip(2 - 2 * similarity, 0, None))


def _similarities(texts: Any, encoder: Matrix) -> Floats:
    """Return the similarity of all pairs of distinct texts. Shape [m, m]."""
    listed = texts.tolist()
    parts = [encoder(listed[i : i + _PART], listed) for i in range(0, len(listed), _PART)]
    return np.concatenate(parts)


def _nearest(similarity: Floats, place: Any, won: Bools, group: Any) -> Floats:
    """Return the similarity of the nearest step of a success of the group; 2 for its own text."""
    near = np.full(len(place), -1.0)
    for number in np.unique(group):
        own = group == number
        texts = np.unique(place[own & won])
        if len(texts):
            best = similarity[np.ix_(place[own], texts)].max(axis=1)
            near[own] = np.where(np.isin(place[own], texts), 2.0, best)
    return near


def _principal(similarity: Floats) -> Floats:
    """Return coordinates whose products are the centred similarities, the two largest. [m, 2]."""
    centred = similarity - similarity.mean(axis=0)
    centred = centred - centred.mean(axis=1, keepdims=True)
    values, vectors = np.linalg.eigh((centred + centred.T) / 2)
    found = vectors[:, ::-1][:, :2] * np.sqrt(np.clip(values[::-1][:2], 0, None))
    signs = np.sign(found[np.abs(found).argmax(axis=0), np.arange(found.shape[1])])
    placed = np.zeros((len(similarity), 2))
    placed[:, : found.shape[1]] = found * np.where(signs == 0, 1, signs)
    return placed


def text(found: Neighbourhood) -> str:
    """Return counts, shares of exact matches and median distances, with and without those."""
    lines = []
    for name, rows in (
        ("of failures, credited", found.credited),
        ("of failures, others", ~found.credited & ~found.success),
    ):
        medians = [_median(found.distance[chosen]) for chosen in (rows, rows & ~found.exact)]
        share = f"{100 * found.exact[rows].mean():.0f} %" if rows.any() else "-"
        lines.append([name, rows.sum(), share, *medians])
    lines.append(["of successes", found.success.sum()])
    headings = ("steps", "number", "exact", "median", "not exact")
    return Table(headings, lines).text("24", ">8", ">9", ">9", ">11")


def _median(distance: Floats) -> str:
    return f"{np.median(distance):.2f}" if len(distance) else "-"


def draw(path: Path, found: Neighbourhood) -> None:
    """Draw steps by outcome on the left (Figure 2) and by credit on the right (Figure 5)."""
    figure.check_kind(path)
    drawn = figure.new(11, 4.8)
    failed = ~found.success
    panels = {
        "steps by outcome": {"successful": (found.success, _SUCCESS), "failed": (failed, _OTHER)},
        "steps by credit": {
            "successful": (found.success, _SUCCESS),
            "failed, not credited": (failed & ~found.credited, _OTHER),
            "failed, credited": (found.credited, _CREDITED),
        },
    }
    for number, (title, kinds) in enumerate(panels.items(), 1):
        axes = drawn.add_subplot(1, 2, number)
        x, y = found.place[found.success].T
        axes.hexbin(x, y, gridsize=24, cmap="Greens", mincnt=1, bins="log", alpha=0.4)
        for label, (rows, colour) in kinds.items():
            x, y = found.place[rows].T
            axes.scatter(x, y, s=9, alpha=0.6, color=colour, label=label, lw=0)
        axes.set(xticks=[], yticks=[])
        figure.finish(axes, title)
        axes.legend(frameon=False, fontsize=8)
    figure.save(drawn, path)
