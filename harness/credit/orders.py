"""Orders in which SCPO's matcher processes the steps of a failed rollout."""

from __future__ import annotations

import hashlib
import itertools
import re
from collections.abc import Sequence
from typing import Final

import numpy as np

from harness.credit.balance import partitions
from harness.credit.table import TurnTable
from harness.types.arrays import Ints
from harness.types.errors import ConfigError

FORMS: Final = "'temporal', 'length', 'balanced(PARTS)' with PARTS >= 1, 'random(SEED)'"
_CALL: Final = re.compile(r"(balanced|random)\((\d+)\)")


def turn_order(turns: TurnTable, order: str) -> Ints:
    """Return the sort key of each turn within its rollout, lowest first. Shape [N].

    - `temporal`: as they were played.
    - `length`: longest text first, equally long ones as they were played.
    - `balanced(PARTS)`: the table's turns are spread over parts of equally many turns and nearly
      equal total length, as for PARTS workers; a rollout's turns come part by part, inside a part
      as they were played. `balanced(1)` is `temporal`.
    - `random(SEED)`: shuffled by a generator of the seed and the rollout's texts.

    None depends on the order of the rollouts in the table: for the balanced order they are taken
    sorted by their texts, and rollouts with equal texts have equal keys.
    Reference: SCPO, section 3.4 and appendix B.2. Its default ("reordered") is what verl's
    `balance_batch` left behind on four GPUs, hence `balanced(4)`.
    Departs from it: lengths are those of the turns' texts in characters, not of tokens.
    """
    if order == "temporal":
        return turns.turn
    lengths = np.array([len(text) for text in turns.text], dtype=np.int64)
    if order == "length":
        return _positions(np.lexsort((turns.turn, -lengths)))
    form = _CALL.fullmatch(order) if isinstance(order, str) else None
    if form is None or (form[1] == "balanced" and int(form[2]) < 1):
        raise ConfigError(f"order must be one of {FORMS}, got {order!r}")
    if form[1] == "random":
        return _shuffled(turns, int(form[2]))
    return _balanced(turns, lengths, int(form[2]))


def _balanced(turns: TurnTable, lengths: Ints, parts: int) -> Ints:
    spans = _spans(turns)
    texts = [tuple(turns.text[first:end]) for first, end in spans]
    by_text = sorted(range(len(spans)), key=texts.__getitem__)
    rows = [row for rollout in by_text for row in range(*spans[rollout])]
    split = partitions(lengths[rows].tolist(), parts)
    place = _positions(np.array([row for part in split for row in part], dtype=np.int64))
    result = np.empty(len(turns), dtype=np.int64)
    result[rows] = place
    first_of: dict[tuple[str, ...], int] = {}
    for rollout in by_text:
        first, end = spans[rollout]
        twin = spans[first_of.setdefault(texts[rollout], rollout)]
        result[first:end] = result[slice(*twin)]
    return result


def _shuffled(turns: TurnTable, seed: int) -> Ints:
    result = np.empty(len(turns), dtype=np.int64)
    for first, end in _spans(turns):
        texts = "\0".join(turns.text[first:end]).encode("utf-8", "surrogatepass")
        digest = hashlib.blake2b(texts, digest_size=8).digest()
        rng = np.random.default_rng([seed, int.from_bytes(digest, "big")])
        result[first:end] = rng.permutation(end - first)
    return result


def _spans(turns: TurnTable) -> Sequence[tuple[int, int]]:
    """Return the first row of each rollout, and the row after its last."""
    bounds = [*turns.starts.tolist(), len(turns)]
    return list(itertools.pairwise(bounds))


def _positions(sorted_rows: Ints) -> Ints:
    """Return the position of each row in `sorted_rows`."""
    place = np.empty(len(sorted_rows), dtype=np.int64)
    place[sorted_rows] = np.arange(len(sorted_rows))
    return place
