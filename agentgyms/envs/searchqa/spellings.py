"""Golden answers: accepted spellings, the paragraph's first; not varied in case or punctuation."""

from __future__ import annotations

from typing import Final

_MONTHS: Final = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
_UNITS: Final = {
    "length": ("kilometres", "kilometers", "km", "long"),
    "height": ("metres", "meters", "m", "high"),
    "depth": ("metres", "meters", "m", "deep"),
}


def names(kind: str, name: str) -> tuple[str, ...]:
    """Return the accepted spellings of an entity's name, by its kind."""
    bare = name.removeprefix("Mount ").removeprefix("Lake ")
    return name, *{
        "mountain": (bare, f"Mt {bare}"),
        "lake": (bare, f"{bare} Lake"),
        "river": (f"{name} River", f"River {name}"),
        "island": (f"{name} Island", f"Island of {name}"),
        "town": (f"town of {name}",),
        "press": _firms(name),
        "company": _firms(name),
    }.get(kind, ())


def dates(day: int, month: int, year: int) -> tuple[str, ...]:
    """Return the accepted spellings of a date; months count from 1."""
    named, nth = _MONTHS[month - 1], f"{day}{_suffix(day)}"
    return (
        f"{day} {named} {year}",
        f"{named} {day}, {year}",
        f"{nth} {named} {year}",
        f"{nth} of {named} {year}",
        f"{named} {nth}, {year}",
        f"{day} of {named} {year}",
        f"{year}-{month:02d}-{day:02d}",
    )


def measures(relation: str, amount: int) -> tuple[str, ...]:
    """Return the accepted spellings of a length, height or depth in kilometres or metres."""
    unit, american, symbol, ending = _UNITS[relation]
    written = [f"{amount} {unit}", f"{amount} {american}", f"{amount} {symbol}"]
    written.append(f"{amount}{symbol}")
    return *written, *(f"{form} {ending}" for form in written), str(amount)


def _firms(name: str) -> tuple[str, ...]:
    return (name.replace(" and ", " & "),) if " and " in name else ()


def _suffix(day: int) -> str:
    return "th" if day in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(day % 10, "th")
