"""A number that several processes add to and read, each when it likes: no collective."""

from __future__ import annotations

from itertools import count
from typing import Any, Final

_NUMBERS: Final = count()
"""Numbers the counts of a process group, because its store keeps earlier ones."""


class SharedCount:
    """A number in the store of the process group, 0 at first; no call waits for another process.

    All processes make their counts in the same order, as they call collectives.
    """

    def __init__(self) -> None:
        self._key = f"harness/shared_count/{next(_NUMBERS)}"

    def add(self) -> int:
        """Add 1 and return the number."""
        return int(_store().add(self._key, 1))

    def value(self) -> int:
        """Return the number."""
        return int(_store().add(self._key, 0))  # `get` would wait for somebody's first `add`


def _store() -> Any:
    from torch.distributed import distributed_c10d

    return distributed_c10d._get_default_store()
