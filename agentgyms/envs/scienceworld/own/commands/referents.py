"""The words that mean an object, what the agent can reach, and words that mean one object only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from agentgyms.envs.scienceworld.own.objects.base import EnvObject
from agentgyms.envs.scienceworld.own.objects.portals import Portal
from agentgyms.envs.scienceworld.own.sets import FrozenSet, MutableSet, distinct, settled

STOP_WORDS: Final = frozenset(("a", "an", "the"))
BLANKS: Final = "".join(map(chr, range(33)))  # what Java's trim takes away
_BETWEEN: Final = str.maketrans(dict.fromkeys("\t\n\x0b\f\r", " "))  # what Java's \s means
_STEADY_ATTEMPTS: Final = 10
_LUCKY_ATTEMPTS: Final = 10


class Names(NamedTuple):
    """The words that mean an object.

    `listed` are sorted, as the lists of objects take them. `heard` and `known` have no articles;
    `heard` is in the order of the engine's set, as the parser takes it.
    """

    listed: tuple[str, ...]
    heard: tuple[str, ...]
    known: frozenset[str]


def tokenize(text: str) -> list[str]:
    """Return the words of a text without articles."""
    words = text.strip(BLANKS).translate(_BETWEEN).split(" ")
    return [word for word in words if word and word not in STOP_WORDS] or [""]


def names_of(objs: Iterable[EnvObject], perspective: EnvObject) -> list[Names]:
    """Return the words that mean each of the objects, for one who stands in a place."""
    around: dict[EnvObject, tuple[str, ...]] = {}
    out = []
    for obj in objs:
        container = obj.container()
        places: tuple[str, ...] = ()
        if container is not None:
            places = around.get(container, ())
            if not places:
                places = around[container] = container.referents().items()
        out.append(_names(obj.referents_from(perspective).items(), places))
    return out


@lru_cache(maxsize=4096)
def _names(words: tuple[str, ...], around: tuple[str, ...]) -> Names:
    out: MutableSet[str] = MutableSet()
    for word in words:
        if not word.strip(BLANKS):
            continue
        out.add(word.lower())
        for place in around:
            out.add(f"{word} in {place}".lower())
            out.add(f"{word} on {place}".lower())
    known = FrozenSet(out).filter(_has_two_letters)
    heard = tuple(" ".join(tokenize(word)) for word in known)
    return Names(tuple(sorted(known)), heard, frozenset(heard))


def _has_two_letters(word: str) -> bool:
    return len(word) > 1


# --- what is where -------------------------------------------------------------------------------


def collect_objects(root: EnvObject, include_hidden: bool = False) -> list[EnvObject]:
    """Return all objects in a tree, also those in closed things, and the ends of its ways."""
    out = _root_and_ways(root, include_hidden)
    if include_hidden or not root.is_hidden():
        for obj in root.contained_objects_and_portals():
            if obj.portals() or obj.contained_objects(include_hidden):
                out.update(dict.fromkeys(collect_objects(obj, include_hidden)))
            elif include_hidden or not obj.is_hidden():
                out[obj] = None
    return settled(list(out))


def collect_accessible_objects(root: EnvObject, include_hidden: bool = False) -> list[EnvObject]:
    """Return the objects that one can reach in a tree, and the ends of its root's ways."""
    out = _root_and_ways(root, include_hidden)
    if include_hidden or not root.is_hidden():
        out.update(dict.fromkeys(root.contained_accessible_objects(include_hidden)))
    return settled(list(out))


def _root_and_ways(root: EnvObject, include_hidden: bool) -> dict[EnvObject, None]:
    out: dict[EnvObject, None] = {}
    if include_hidden or not root.is_hidden():
        out[root] = None
    for portal in root.portals():
        out[portal] = None
        there = portal.connects_to(root) if isinstance(portal, Portal) else None
        if there is not None:
            out[there] = None
    return out


def joined(first: Sequence[EnvObject], second: Iterable[EnvObject]) -> list[EnvObject]:
    """Return the members of the sum of two mutable sets."""
    return settled(distinct((*first, *second)))


# --- words that mean one object only -------------------------------------------------------------


def all_unique_referents(
    root: EnvObject, include_hidden: bool, recursive: bool = False
) -> list[tuple[str, EnvObject]]:
    """Return the objects in a tree with a word for each, sorted by it; may draw at random.

    `recursive` also looks into closed things and at ways further off.
    """
    if recursive:
        objs: Sequence[EnvObject] = root.contained_objects_and_portals_recursive(
            include_hidden, include_portal_connections=True
        )
    else:
        objs = collect_accessible_objects(root, include_hidden)
    chosen = unique_referents(objs, root)
    return sorted(zip(chosen, objs, strict=True), key=_first)


def _first(pair: tuple[str, EnvObject]) -> str:
    return pair[0]


def unique_referents(objs: Sequence[EnvObject], perspective: EnvObject) -> list[str]:
    """Return a word for each object, of its own as far as the engine finds one."""
    steady = _steady(tuple(names.listed for names in names_of(objs, perspective)))
    options, places = steady.options, list(steady.places)
    for _ in range(_LUCKY_ATTEMPTS if steady.clash else 0):
        for at in _clashing(options, places):
            places[at] = objs[at].world.random.next_int(len(options[at]))
    return [words[place] for words, place in zip(options, places, strict=True)]


Options = tuple[tuple[str, ...], ...]
"""The words of which one is picked for each object."""


class _Steady(NamedTuple):
    """The words picked by the attempts without luck, and whether some are picked twice."""

    options: Options
    places: tuple[int, ...]
    clash: bool


@lru_cache(maxsize=512)
def _steady(names: Options) -> _Steady:
    options = _without_shared(names)
    places = [0] * len(options)
    for _ in range(_STEADY_ATTEMPTS):
        for at in _clashing(options, places):
            places[at] = (places[at] + 1) % len(options[at])
    return _Steady(options, tuple(places), bool(_clashing(options, places)))


def _clashing(options: Options, places: list[int]) -> list[int]:
    """Return the numbers of the objects whose words others have, too."""
    picked = [words[place] for words, place in zip(options, places, strict=True)]
    uses = Counter(picked)
    if len(uses) == len(picked):
        return []
    return [at for at, word in enumerate(picked) if uses[word] > 1]


def _without_shared(names: Options) -> Options:
    """Return the tuples without words of several objects; those with no other keep all."""
    uses = Counter(word for words in names for word in words)
    return tuple(tuple(word for word in words if uses[word] <= 1) or words for words in names)
