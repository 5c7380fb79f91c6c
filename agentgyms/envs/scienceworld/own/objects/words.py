"""The words that mean an object."""

from __future__ import annotations

from functools import lru_cache

from agentgyms.envs.scienceworld.own.sets import FrozenSet, MutableSet


@lru_cache(maxsize=4096)
def plain_words(name: str, shown: str) -> FrozenSet[str]:
    """Return the words for an object that has no others."""
    return MutableSet(["object", name, shown]).frozen()
