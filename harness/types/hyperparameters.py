"""Tables of named things with hyperparameters, and checks of hyperparameters."""

from __future__ import annotations

import dataclasses
import inspect
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from numbers import Integral, Real
from typing import Any, Generic, TypeVar

from agentgyms.core.errors import did_you_mean
from harness.types import plugins
from harness.types.errors import ConfigError

Entry = TypeVar("Entry")


class Registry(Generic[Entry]):
    """Entries of one kind by name, with those of plug-ins (see `harness.types.plugins`).

    Installed plug-ins are looked for when a name is unknown or all names are asked for;
    `module:attribute` is a name as well, if `make_entry` makes an entry of the named object.
    """

    def __init__(
        self,
        kind: str,  # the kind of an entry, in the singular, for error messages: `"estimator"`
        # Returns an entry's hyperparameters and their defaults; by default none.
        hyperparameters: Callable[[Entry], dict[str, Any]] = lambda _: {},
        entries: Mapping[str, Entry] | None = None,
        # Makes an entry of a name `module:attribute` and the named object; None if it is no entry.
        make_entry: Callable[[str, Any], Entry | None] = lambda _, __: None,
        # The command that lists the entries; errors name it instead of all names.
        command: str = "",
    ) -> None:
        self.kind, self._make_entry, self._command = kind, make_entry, command
        self._hyperparameters = hyperparameters
        self._entries = dict(entries or {})

    def add(self, name: str, entry: Entry) -> None:
        """Add an entry; raise `ConfigError` if the name is taken."""
        if name in self._entries:
            raise ConfigError(f"{self.kind} {name!r} is registered already")
        self._entries[name] = entry

    def names(self) -> list[str]:
        """Return all names, sorted."""
        return sorted(self.entries())

    def entries(self) -> dict[str, Entry]:
        """Return all entries by name, in the order in which they were added."""
        plugins.load_installed()
        return dict(self._entries)

    def get(self, name: str) -> Entry:
        """Return an entry; raise a `ConfigError` that lists the names if there is none."""
        if name not in self._entries and ":" in name:
            self._entries[name] = self._plugin_entry(name)
        elif name not in self._entries:
            plugins.load_installed()
        if name not in self._entries:
            raise ConfigError(unknown(self.kind, name, self.names(), self._command))
        return self._entries[name]

    def _plugin_entry(self, name: str) -> Entry:
        found = plugins.named(name)
        entry = self._make_entry(name, found)
        if entry is None:
            raise ConfigError(f"{name!r} is no {self.kind}: it is {found!r:.80}")
        return entry

    def hyperparameters(self, name: str) -> dict[str, Any]:
        """Return an entry's hyperparameters and their defaults; `ConfigError` if it is unknown."""
        return self._hyperparameters(self.get(name))

    def check(
        self, name: str, given: Iterable[str], known: Mapping[str, Any] | None = None
    ) -> None:
        """Refuse hyperparameters that an entry does not have.

        `known` lists the allowed hyperparameters; None takes the entry's. Raises `ConfigError` if
        no entry has this name, or the entry lacks a hyperparameter.
        """
        allowed = self.hyperparameters(name) if known is None else known
        for key in given:
            if key not in allowed:
                expected = ", ".join(allowed) or "none"
                raise ConfigError(
                    f"{self.kind} {name!r} has no hyperparameter {key!r}: expected {expected}"
                    f"{did_you_mean(key, allowed)}"
                )


def unknown(kind: str, name: Any, known: Sequence[str], command: str = "") -> str:
    """Return the error message for an unknown name; `command` lists the names if they are many."""
    expected = f"one that `{command}` lists" if command else f"one of {', '.join(known)}"
    return f"unknown {kind} {str(name)[:100]!r}: expected {expected}{did_you_mean(name, known)}"


def keyword_defaults(function: Callable[..., Any]) -> dict[str, Any]:
    """Return a function's keyword-only parameters and their defaults."""
    parameters = inspect.signature(function).parameters.values()
    return {p.name: p.default for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY}


def field_defaults(settings: type) -> dict[str, Any]:
    """Return a dataclass's fields and their defaults."""
    return {field.name: field.default for field in dataclasses.fields(settings)}


def number(name: str, value: Any, low: float = -math.inf, high: float = math.inf) -> None:
    """Refuse anything but a finite number in [low, high]."""
    real = isinstance(value, Real) and not isinstance(value, bool)
    if not real or not math.isfinite(value) or not low <= value <= high:
        raise ConfigError(f"{name} must be {_range(low, high)}, got {value!r}")


def integer(name: str, value: Any, low: int) -> None:
    """Refuse anything but an integer of at least `low`."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < low:
        raise ConfigError(f"{name} must be a whole number of at least {low}, got {value!r}")


def one_of(name: str, value: Any, known: Sequence[Any]) -> None:
    """Refuse a value that is not one of `known`."""
    if not any(value is option or value == option for option in known):
        options = ", ".join(map(repr, known))
        raise ConfigError(f"{name} must be one of {options}, got {value!r}")


def _range(low: float, high: float) -> str:
    if low == -math.inf and high == math.inf:
        return "a finite number"
    if high == math.inf:
        return f"a number of at least {low:g}"
    return f"a number in [{low:g}, {high:g}]"
