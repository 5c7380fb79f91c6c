"""The boards of a split: dealt by numbers, held-out ones first, and no board in two splits."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Final, NamedTuple

from agentgyms.core.errors import BadOption

SPLITS: Final = ("train", "valid_seen", "valid_unseen", "sample")
"""`valid_seen` has boards of the kinds that `train` has, `valid_unseen` of another kind."""

_FIRST: Final = {"valid_seen": 1_000_000, "valid_unseen": 2_000_000, "train": 0}
"""The number of a split's first board, in the order in which the splits are dealt."""
_TRIES: Final = 200
"""Boards dealt for each that is wanted, before there are held to be no more."""


class Board(NamedTuple):
    """What a task begins with, and its family."""

    family: str
    content: Hashable  # plain numbers, texts and tuples


Deal = Callable[[int, bool], Board]
"""Returns the board of a number, of the kind of `valid_unseen` or of the other splits."""


def dealt(
    deal: Deal, counts: Mapping[str, int], split: str, *, repeats: bool = False
) -> dict[str, Board]:
    """Return the boards of a split by task id, such as `train/4x4-0007`.

    `counts` has their numbers; a kind with fewer boards has fewer. With `repeats` boards are drawn
    with replacement, so that they come as often as their game deals them.

    Raises:
        BadOption: A split has no board.
    """
    seen: set[Hashable] = set()
    wanted = "train" if split == "sample" else split
    for one, first in _FIRST.items():  # the held-out ones first, also where train is wanted
        boards: dict[str, Board] = {}
        for number in range(first, first + _TRIES * counts[one]):
            if len(boards) == counts[one]:
                break
            family, content = deal(number, one == "valid_unseen")
            if repeats or content not in seen:
                seen.add(content)
                boards[f"{split}/{family}-{len(boards):04d}"] = Board(family, content)
        if one == wanted:
            break
    if not boards:
        raise BadOption(f"split {split!r} has no board with these arguments: give other ones")
    return dict(list(boards.items())[: counts[split]])
