"""The advantages of every method on one table of turns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from agentgyms.core.errors import did_you_mean
from harness import credit
from harness.config import methods
from harness.config.toml_values import parse_value
from harness.credit.registry import hyperparameters_of, needs, preset
from harness.credit.table import TurnTable
from harness.types.arrays import Floats
from harness.types.errors import ConfigError
from harness.types.hyperparameters import unknown

SUPERVISED: Final = "nll"
"""The loss of methods without advantages, whose estimators choose what is imitated."""
_NEEDS_MODEL: Final = ("cross-encoder", "embedding")
_WITHOUT_MODEL: Final = {"scorer": "lexical", "match": "exact"}


@dataclass(frozen=True, slots=True)
class Choice:
    """A method to compute."""

    name: str  # in the table of methods, or the estimator's own name
    estimator: str
    settings: Mapping[str, Any]
    reference: str = ""
    aliases: tuple[str, ...] = ()  # other methods with the same advantages
    note: str = ""  # how this differs from the method in training; "" if it does not
    given: frozenset[str] = frozenset()  # names of the hyperparameters that the caller set

    @property
    def is_measured(self) -> bool:
        """Whether the credit is made of measured values of states."""
        return "state_value" in needs(self.estimator, self.settings)


@dataclass(frozen=True, slots=True)
class Credit:
    """The result of a method."""

    choice: Choice
    advantage: Floats | None  # advantage of each turn [N]; None if columns are missing
    missing: tuple[str, ...] = ()  # columns that the method needs and the table lacks
    # the hyperparameters of the computation, with loaded models as scorers
    settings: Mapping[str, Any] = field(default_factory=dict)


def choose(
    names: Sequence[str] = (), overrides: Sequence[str] = (), preset_name: str = "paper"
) -> list[Choice]:
    """Return the methods to compute, with all their hyperparameters.

    Names are of methods, estimators, or `module:attribute`; without names, all that learn from
    advantages, each combination of estimator and settings once. An override such as `ecpo.kappa=4`
    has a method or an estimator, a hyperparameter, and a TOML value or plain text. The preset is
    `paper` or `verl_agent`. Raises `ConfigError` if a name or a hyperparameter is unknown.
    """
    for name in names:
        if ":" in name:
            methods.get(name)  # which imports the module that the user names
    rows = methods.rows()
    named = {row.name: row.estimator for row in rows.values()}
    known = {**named, **{name: name for name in credit.names() if name not in named}}
    for name in names:
        if name not in known:
            raise ConfigError(unknown("method", name, list(known), "harness methods"))
    changes = _parse(overrides)
    taken = set(named.values())  # without names: what learns from advantages, each estimator
    usual = [n for n in known if (rows[n].loss != SUPERVISED if n in rows else n not in taken)]
    chosen = list(dict.fromkeys(names)) or usual
    unused = [n for n in changes if n not in chosen and n not in {known[c] for c in chosen}]
    if unused:
        raise ConfigError(
            f"nothing named {unused[0]!r:.100} is computed: --set takes METHOD.KEY=VALUE with a "
            "method of --methods, or one that `harness methods` lists"
            f"{did_you_mean(unused[0], chosen)}"
        )
    choices = [_choice(name, known[name], changes, preset_name) for name in chosen]
    return choices if names else _distinct(choices)


def measured_with(choice: Choice, gamma: float) -> Choice:
    """Return a choice with the discount of the returns by which states were measured."""
    if not choice.is_measured:
        return choice
    return replace(choice, settings={**choice.settings, "gamma": gamma})


def compare(turns: TurnTable, choices: Sequence[Choice]) -> list[Credit]:
    """Return each method's advantages, or the columns that it lacks."""
    return [_compute(turns, choice) for choice in choices]


def _parse(overrides: Sequence[str]) -> dict[str, dict[str, Any]]:
    changes: dict[str, dict[str, Any]] = {}
    for override in overrides:
        dotted, equals, text = override.partition("=")
        own = ":" in dotted  # the name of a module may have dots
        name, dot, key = dotted.strip().rpartition(".") if own else dotted.strip().partition(".")
        if not (equals and dot and name and key):
            raise ConfigError(f"--set has the form METHOD.KEY=VALUE, got {override!r}")
        changes.setdefault(name, {})[key] = parse_value(text, dotted.strip())
    return changes


def _choice(
    name: str, estimator: str, changes: Mapping[str, Mapping[str, Any]], preset_name: str
) -> Choice:
    row = methods.rows().get(name)
    given = {**changes.get(estimator, {}), **changes.get(name, {})}
    own = {**(row.credit if row else {}), **given}
    note = ""
    for key, fallback in _WITHOUT_MODEL.items():
        wanted = own.get(key, "")
        if key not in given and isinstance(wanted, str) and wanted.startswith(_NEEDS_MODEL):
            own[key], note = fallback, f"{key} {fallback} in place of {wanted}"
    chosen = {**preset(preset_name, estimator, own), **own}
    credit.check(estimator, chosen)
    settings = hyperparameters_of(estimator, own) | chosen
    reference = row.reference if row else ""
    return Choice(name, estimator, settings, reference, note=note, given=frozenset(given))


def _distinct(choices: Sequence[Choice]) -> list[Choice]:
    """Return each combination of estimator and settings once; further methods are aliases."""
    kept: dict[str, Choice] = {}
    for choice in choices:
        key = f"{choice.estimator} {sorted(choice.settings.items(), key=lambda item: item[0])}"
        if key in kept:
            kept[key] = replace(kept[key], aliases=(*kept[key].aliases, choice.name))
        else:
            kept[key] = choice
    return list(kept.values())


def _compute(turns: TurnTable, choice: Choice) -> Credit:
    columns = columns_of(choice.estimator, choice.settings)
    if turns.kl is None and "kl" in columns and "kl_coefficient" not in choice.given:
        note = f"kl_coefficient 0 in place of {choice.settings['kl_coefficient']:g}"
        choice = replace(choice, settings={**choice.settings, "kl_coefficient": 0.0}, note=note)
        columns = tuple(name for name in columns if name != "kl")
    missing = tuple(name for name in columns if getattr(turns, name) is None)
    if missing:
        return Credit(choice, None, missing)
    settings = dict(choice.settings)
    if any(name in str(settings) for name in _NEEDS_MODEL):
        from harness.annotators import semantic  # which imports torch

        settings = semantic.resolve(settings)
    return Credit(choice, credit.get(choice.estimator)(turns, **settings), settings=settings)


def columns_of(estimator: str, settings: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the optional columns that an estimator reads with these hyperparameters."""
    penalty = ("kl",) if settings.get("kl_coefficient") else ()
    return tuple(dict.fromkeys((*needs(estimator, settings), *penalty)))


def setting_text(value: Any) -> str:
    """Return a hyperparameter as text."""
    if callable(value):
        return str(getattr(value, "__name__", type(value).__name__))
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{k} {setting_text(v)}" for k, v in value.items()) + "}"
    return str(value)
