"""The words that mean an object."""

from __future__ import annotations

from functools import lru_cache

from agentgyms.envs.scienceworld.own.sets import FrozenSet, MutableSet


@lru_cache(maxsize=4096)
def plain_words(name: str, shown: str) -> FrozenSet[str]:
    """Return the words for an object that has no others."""
    return MutableSet(["object", name, shown]).frozen()


@lru_cache(maxsize=16384)
def with_places(words: tuple[str, ...], around: tuple[str, ...]) -> FrozenSet[str]:
    """Return words, alone and with the words of what their object is in or on."""
    out: MutableSet[str] = MutableSet()
    for word in words:
        if not word.strip():
            continue
        out.add(word.lower())
        for place in around:
            out.add(f"{word} in {place}".lower())
            out.add(f"{word} on {place}".lower())
    return out.frozen().filter(_has_two_letters)


def _has_two_letters(word: str) -> bool:
    return len(word) > 1
