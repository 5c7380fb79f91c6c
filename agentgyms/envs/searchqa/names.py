"""Generates unique invented names from syllables, with endings by kind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from agentgyms.core.randomness import Chance


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


_ONSETS: Final = _words("b br d dr f fl g gr h j k kl kr l m n p pr r s sk st t tr v vr y z")
_INNER: Final = _words("b d f g k l m n p r s t v z")
_VOWELS: Final = _words("a a a e e i o o u ae ei ou")
_CODAS: Final = ("", "", "l", "n", "r", "s")
_ENDINGS: Final = {
    "first": _words("alvio averin edrith elkan iandre ibeth ilmar imond oriska ostan urien"),
    "last": _words("akkard edtmar ekkenov enkoro erskild ithoom ordovar orthal oskun uvic"),
    "place": _words("abry adun agard amere astow eholm eny ivik ogate ostad umere unnick"),
    "water": _words("alaba eduna ellena essava iboula onoua ueira umbara uskwa"),
    "high": _words("achorn agorn atzel ekarn enhorn itorr ospitz ukhorn ulmen"),
    "word": _words("adrath athis emmon endel essar indor ophar orune udrin undis yssel"),
}
_SHORTEST: Final = 6
_POOLS: Final = {"first": 260, "last": 420, "word": 520}
"""Sizes of word pools that names share, so that a search for part of a name is ambiguous."""

_PREFIXES: Final = ("Upper", "Nether", "Port", "New", "East", "Saint")
_OBJECTS: Final = _words(
    """Anchor Bell Bridle Candle Chair Clock Coat Door Falcon Feather Ferry Fiddle Garden Glove
    Hammer Harvest Hourglass Inkwell Key Ladder Lantern Letter Loom Map Mirror Needle Oar Orchard
    Pear Pilot Quarry Ribbon Saddle Spindle Staircase Telescope Thimble Tinker Weaver
    Whistle"""
)
_PRESSES: Final = ("Press", "House", "Books", "Editions")
_WORKS: Final = ("Works", "Yards", "Workshops", "Company", "Brothers")
_SCHOOLS: Final = ("College", "Academy", "Institute", "School", "University")
_BUILDINGS: Final = ("Bridge", "Tower", "Theatre", "Hall", "Lighthouse", "Gate", "Observatory")


class NameGenerator:
    """Generates unique invented names."""

    def __init__(self, chance: Chance) -> None:
        self._chance = chance
        self._used: set[str] = set()
        self._pools = {
            kind: [self.word(kind) for _ in range(size)] for kind, size in _POOLS.items()
        }
        self._towns: list[str] = []
        self._generators: dict[str, Callable[[], str]] = {
            "person": lambda: f"{self._pooled_word('first')} {self._pooled_word('last')}",
            "town": self._town,
            "river": lambda: self.word("water"),
            "lake": lambda: f"Lake {self.word('water')}",
            "mountain": lambda: f"Mount {self.word('high')}",
            "work": self._title,
            "press": lambda: self._firm(_PRESSES),
            "company": lambda: self._firm(_WORKS),
            "school": lambda: f"{self._pooled_word('word')} {self._chance.pick(_SCHOOLS)}",
            "building": lambda: f"{self._pooled_word('word')} {self._chance.pick(_BUILDINGS)}",
        }

    def of(self, kind: str) -> str:
        """Return a new name for an entity of a kind in `closed_world.toml`."""
        while True:
            name = self._generators[kind]()
            if self._reserve(name):
                return name

    def word(self, kind: str) -> str:
        """Return a new word of a kind: `first`, `last`, `place`, `water`, `high` or `word`."""
        while True:
            word = (self._stem() + self._chance.pick(_ENDINGS[kind])).capitalize()
            if len(word) >= _SHORTEST and self._reserve(f"word {word}"):
                return word

    def _reserve(self, name: str) -> bool:
        free = name.lower() not in self._used
        self._used.add(name.lower())
        return free

    def _stem(self) -> str:
        pick = self._chance.pick
        first = pick(_ONSETS) + pick(_VOWELS) + pick(_CODAS)
        if first[-1] in "aeiou":
            first += pick(_INNER)
        return first if self._chance.below(4) else first + pick(_VOWELS) + pick(_INNER)

    def _pooled_word(self, kind: str) -> str:
        return self._chance.pick(self._pools[kind])

    def _town(self) -> str:
        if self._towns and not self._chance.below(5):
            # At most one namesake of a town: with more, a search for the bare name could miss it.
            bare = self._towns.pop(self._chance.below(len(self._towns)))
            return f"{self._chance.pick(_PREFIXES)} {bare}"
        self._towns.append(self.word("place"))
        return self._towns[-1]

    def _title(self) -> str:
        word, thing = self._pooled_word("word"), self._chance.pick(_OBJECTS)
        forms = ("The {0} of {1}", "{1} and the {0}", "A {0} for {1}", "The Last {0} of {1}")
        return self._chance.pick(forms).format(thing, word)

    def _firm(self, endings: tuple[str, ...]) -> str:
        if self._chance.below(2):
            return f"{self._pooled_word('last')} and {self._pooled_word('last')}"
        return f"{self._pooled_word('word')} {self._chance.pick(endings)}"
