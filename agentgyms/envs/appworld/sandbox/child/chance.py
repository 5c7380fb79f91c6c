"""Deterministic random numbers: the same in every run of an episode.

If a process is lost, another one runs the earlier code again, which must lead to the same records.
So `uuid`, `secrets`, `os.urandom` and `random` without a seed use a generator that the task seeds,
instead of the system's source of randomness.
"""

from __future__ import annotations

import os
import random
import uuid
from typing import Any, Final

# The bit that is set marks an address that belongs to no network card.
_NODE: Final = 0x010000000000
_seed: Final = random.Random.seed
_generator: Final = random.Random(0)


def replace() -> None:
    """Replace the system's source of randomness with the generator."""
    for module, name in ((os, "urandom"), (os, "getrandom"), (random, "_urandom")):
        if hasattr(module, name):
            setattr(module, name, _bytes)
    random.Random.seed = _seeded  # type: ignore[method-assign]
    random.seed = random._inst.seed
    # uuid1 then uses these, the frozen clock and a counter.
    setattr(uuid, "_generate_time_safe", None)  # noqa: B010 (the stubs do not know it)
    setattr(uuid, "_node", _NODE)  # noqa: B010 (see above)


def begin(seed: str) -> None:
    """Seed the generator, and make the process ids constant.

    Args:
        seed: Its seed; episodes with equal seeds have equal random numbers.
    """
    _seed(_generator, seed)
    os.getpid = os.getppid = lambda: 1


def _bytes(size: int, _flags: int = 0) -> bytes:
    return _generator.randbytes(size)


def _seeded(self: random.Random, a: Any = None, version: int = 2) -> None:
    _seed(self, int.from_bytes(_bytes(64), "big") if a is None else a, version)
