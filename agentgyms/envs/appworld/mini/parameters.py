"""Parameters of APIs: their names, valid values and documentation."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any, ClassVar, Final

REQUIRED: Final = object()
"""Default of a parameter that must be given."""

HIGHEST: Final = 2**53
_MAX_SHOWN: Final = 40
_MAX_ANSWERS: Final = 200


class InvalidValue(ValueError):
    """A value that is invalid for a parameter; the text continues `<name> must be `."""


@dataclass(frozen=True, slots=True)
class Parameter(ABC):
    """One parameter of an API.

    Its default is `REQUIRED` if it must be given. None is a valid value only if it is the default.
    """

    name: str
    description: str
    default: Any = field(default=REQUIRED, kw_only=True)
    kind: ClassVar[str] = "string"

    @property
    def required(self) -> bool:
        """Whether it must be given."""
        return self.default is REQUIRED

    def constraints(self) -> list[str]:
        """Return the constraints on its values, for the documentation."""
        return []

    def parse(self, value: Any) -> Any:
        """Return the API's value of a given one; raise `InvalidValue` if it is invalid."""
        if value is None and self.default is None:
            return None
        return self._parse(value)

    @abstractmethod
    def _parse(self, value: Any) -> Any:
        """Check a given value that is not the default None, and return the value for the API."""


@dataclass(frozen=True, slots=True)
class Text(Parameter):
    """Text of `shortest` to `longest` characters; it is stripped if `trimmed`."""

    shortest: int = field(default=0, kw_only=True)
    longest: int = field(default=200, kw_only=True)
    trimmed: bool = field(default=True, kw_only=True)

    def constraints(self) -> list[str]:
        """Return the limits of the length."""
        return [f"length from {self.shortest} to {self.longest}"]

    def _parse(self, value: Any) -> Any:
        text = _text(value).strip() if self.trimmed else _text(value)
        if self.shortest <= len(text) <= self.longest:
            return text
        limits = f"text of {self.shortest} to {self.longest} characters"
        raise InvalidValue(f"{limits}, given {len(text)}")


@dataclass(frozen=True, slots=True)
class Email(Parameter):
    """An email address, converted to lower case."""

    def constraints(self) -> list[str]:
        """Return the form."""
        return ["an email address"]

    def _parse(self, value: Any) -> Any:
        text = _text(value).strip().lower()
        name, at, host = text.partition("@")
        if not (name and at and "." in host) or len(text) > 200 or any(map(str.isspace, text)):
            raise InvalidValue(f"an email address, given {shown(value)}")
        return text


@dataclass(frozen=True, slots=True)
class Choice(Parameter):
    """One of some words."""

    options: Sequence[str] = field(default=(), kw_only=True)

    def constraints(self) -> list[str]:
        """Return the words."""
        return ["one of " + ", ".join(self.options)]

    def _parse(self, value: Any) -> Any:
        if isinstance(value, str) and value in self.options:
            return value
        raise InvalidValue(f"one of {', '.join(self.options)}, given {shown(value)}")


@dataclass(frozen=True, slots=True)
class Integer(Parameter):
    """An integer in [lowest, highest]."""

    lowest: int = field(default=1, kw_only=True)
    highest: int = field(default=HIGHEST, kw_only=True)
    kind: ClassVar[str] = "integer"

    def constraints(self) -> list[str]:
        """Return the range."""
        if self.highest == HIGHEST:
            return [f"at least {self.lowest}"]
        return [f"from {self.lowest} to {self.highest}"]

    def _parse(self, value: Any) -> Any:
        if type(value) is not int:
            raise InvalidValue(f"an integer, given {shown(value)}")
        if self.lowest <= value <= self.highest:
            return value
        raise InvalidValue(f"an integer {self.constraints()[0]}, given {shown(value)}")


@dataclass(frozen=True, slots=True)
class Amount(Parameter):
    """An amount of dollars above 0, in whole cents; the API gets cents."""

    most: ClassVar[int] = 100_000
    kind: ClassVar[str] = "number"

    def constraints(self) -> list[str]:
        """Return the range."""
        return [f"above 0, at most {self.most}, with at most 2 decimals"]

    def _parse(self, value: Any) -> Any:
        if type(value) not in (int, float):
            raise InvalidValue(f"a number, given {shown(value)}")
        if not 0 < value <= self.most:
            raise InvalidValue(f"above 0 and at most {self.most}, given {shown(value)}")
        cents = round(value * 100)
        # Sums of floats such as 0.1 + 0.2 count as whole cents.
        if cents < 1 or abs(value * 100 - cents) > 1e-4:
            raise InvalidValue(f"rounded to whole cents, given {shown(value)}")
        return cents


@dataclass(frozen=True, slots=True)
class Flag(Parameter):
    """True or False."""

    kind: ClassVar[str] = "boolean"

    def _parse(self, value: Any) -> Any:
        if isinstance(value, bool):
            return value
        raise InvalidValue(f"True or False, given {shown(value)}")


@dataclass(frozen=True, slots=True)
class Tags(Parameter):
    """A list of different words; the API gets a tuple."""

    most: ClassVar[int] = 20
    longest: ClassVar[int] = 50
    kind: ClassVar[str] = "array[string]"

    def constraints(self) -> list[str]:
        """Return the limits."""
        return [f"at most {self.most} different tags of 1 to {self.longest} characters"]

    def _parse(self, value: Any) -> Any:
        if not isinstance(value, (list, tuple)):
            raise InvalidValue(f"a list of text, given {shown(value)}")
        if len(value) > self.most:
            raise InvalidValue(f"a list of at most {self.most}, given {len(value)}")
        tags = tuple(_text(tag).strip() for tag in value)
        if not all(0 < len(tag) <= self.longest for tag in tags) or len(set(tags)) < len(tags):
            raise InvalidValue(self.constraints()[0])
        return tags


@dataclass(frozen=True, slots=True)
class Day(Parameter):
    """A day as YYYY-MM-DD."""

    def constraints(self) -> list[str]:
        """Return the form."""
        return ["YYYY-MM-DD"]

    def _parse(self, value: Any) -> Any:
        text = _text(value)
        try:
            if date.fromisoformat(text).isoformat() == text:
                return text
        except ValueError:
            pass
        raise InvalidValue(f"a date as YYYY-MM-DD, given {shown(value)}")


@dataclass(frozen=True, slots=True)
class Moment(Parameter):
    """A time as YYYY-MM-DDTHH:MM:SS; other forms of ISO 8601 are converted to it."""

    def constraints(self) -> list[str]:
        """Return the form."""
        return ["YYYY-MM-DDTHH:MM:SS"]

    def _parse(self, value: Any) -> Any:
        text = _text(value)
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            moment = None
        if moment is None or moment.tzinfo is not None or len(text) < len("YYYY-MM-DDTHH:MM"):
            raise InvalidValue(f"a time as YYYY-MM-DDTHH:MM:SS, given {shown(value)}")
        return moment.isoformat(timespec="seconds")


@dataclass(frozen=True, slots=True)
class Answer(Parameter):
    """An answer: a number, text, None, or a list of numbers and text."""

    kind: ClassVar[str] = "number | string | array | null"

    def _parse(self, value: Any) -> Any:
        if not isinstance(value, (list, tuple)):
            return _scalar(value)
        if len(value) > _MAX_ANSWERS:
            raise InvalidValue(f"a list of at most {_MAX_ANSWERS}, given {len(value)}")
        return [_scalar(item) for item in value]


def _scalar(value: Any) -> str | int | float:
    """Return a number or text; refuse other types and numbers that are too large."""
    if isinstance(value, str):
        if len(value) > 10_000:
            raise InvalidValue(f"text of at most 10000 characters, given {len(value)}")
        return _text(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise InvalidValue(f"a number, text, or a list of these, given {shown(value)}")
    if not -HIGHEST <= value <= HIGHEST:
        raise InvalidValue(f"a number from -2**53 to 2**53, given {shown(value)}")
    return value


def _text(value: Any) -> str:
    """Return the value, which must be a string that UTF-8 can encode."""
    if not isinstance(value, str):
        raise InvalidValue(f"text, given {shown(value)}")
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise InvalidValue("text, given text with half a surrogate pair") from None
    return value


def shown(value: Any) -> str:
    """Return a short representation of a value, for error messages."""
    if isinstance(value, str):
        cut = value if len(value) <= _MAX_SHOWN else value[:_MAX_SHOWN] + "..."
        return ascii(cut) if any(map("\ud7ff".__lt__, cut)) else repr(cut)
    if value is None or isinstance(value, (bool, float)):
        return repr(value)
    # Python refuses to print integers of more than some thousand digits.
    if isinstance(value, int):
        return repr(value) if value.bit_length() < 64 else "an integer of more than 63 bits"
    return f"a {type(value).__name__}"
