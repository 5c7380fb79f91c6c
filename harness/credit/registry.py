"""The registry of estimators: their names, bases, presets and hyperparameters."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from harness.credit.table import TurnTable
from harness.types.arrays import Floats
from harness.types.errors import ConfigError
from harness.types.hyperparameters import Registry, keyword_defaults

Estimator = Callable[..., Floats]
"""`(TurnTable, *, hyperparameters) -> advantage [N]`, without side effects."""

Base = str | Mapping[str, Any]
"""An estimator that another one builds on: its name, or `{name = ..., hyperparameter = ...}`."""

Layer = tuple[str, dict[str, Any]]
"""The name of an estimator or of a base below it, with all its own hyperparameters."""

StepReturns = Literal["", "reads", "changes"]
"""Whether an estimator reads or changes the returns of single turns (`shared.step_returns`)."""

_PAPER: Final = {
    "statistics": "rollout",
    "ddof": 1,
    "eps": 1e-6,
    "gamma": 0.95,
    "step_weight": 1.0,
    "invalid_penalty": 0.1,
    "penalty_on": "row",
    "edge_cost": 1.0,
    "reached_only": True,
}
_VERL_AGENT: Final = {
    "statistics": "turn",
    "drop_zero": True,
    "edge_cost": 0.0,
    "reached_only": False,
}
PRESETS: Final[dict[str, dict[str, Any]]] = {"paper": _PAPER, "verl_agent": _PAPER | _VERL_AGENT}
"""Settings of hyperparameters that estimators share: the papers', verl-agent's code's.

The code's raw scores in groups of one are not among the latter (`singleton` of `grpo`): they are a
defect. An estimator registered with `preset=` keeps its own where they are others.
"""


_PRESETS: Final = Registry("preset", entries=PRESETS)


@dataclass(frozen=True, slots=True)
class _Entry:
    function: Estimator  # checks what it is given
    unchecked: Estimator
    needs: tuple[str, ...]  # columns of the table
    own: Mapping[str, Any]  # settings of its paper that differ from the presets
    step_returns: StepReturns


def _plugin_entry(name: str, found: Any) -> _Entry | None:
    for entry in _ESTIMATORS.entries().values():
        if entry.function is found:
            return entry
    if not callable(found) or isinstance(found, type):
        return None
    return _entry(name, found, (), {}, "")


_ESTIMATORS: Registry[_Entry] = Registry(
    "estimator", lambda entry: keyword_defaults(entry.function), make_entry=_plugin_entry
)
names = _ESTIMATORS.names


def estimator(
    name: str,
    *,
    needs: Sequence[str] = (),
    preset: Mapping[str, Any] | None = None,
    step_returns: StepReturns = "",
) -> Callable[[Estimator], Estimator]:
    """Register the decorated function as estimator `name`.

    A function with a parameter `base` and `**settings` builds on another estimator: it passes both
    to `base_estimator`, and its callers may give the base's hyperparameters beside its own.

    Args:
        name: The name in `harness.credit.get` and in recipes.
        needs: The optional columns of the table that it reads.
        preset: The settings of its paper or code that differ from the presets.
        step_returns: `reads` if the returns of single turns matter to it; `changes` if it changes
            them for its base, which then must read them.
    """

    def add(function: Estimator) -> Estimator:
        entry = _entry(name, function, tuple(needs), preset or {}, step_returns)
        _ESTIMATORS.add(name, entry)
        return entry.function

    return add


def _entry(
    name: str,
    function: Estimator,
    needs: tuple[str, ...],
    own: Mapping[str, Any],
    step_returns: StepReturns,
) -> _Entry:
    @functools.wraps(function)
    def checked(turns: TurnTable, **hyperparameters: Any) -> Floats:
        check(name, hyperparameters)
        turns.require(needs, f"estimator {name!r}")
        return function(turns, **hyperparameters)

    return _Entry(checked, function, needs, own, step_returns)


def get(name: str) -> Estimator:
    """Return an estimator; raise `ConfigError` if none has this name."""
    return _ESTIMATORS.get(name).function


def prepared(
    name: str, hyperparameters: Mapping[str, Any]
) -> tuple[Callable[[TurnTable], Floats], list[Layer]]:
    """Return an estimator with its hyperparameters, which are checked here alone, and its layers.

    Its caller checks that a table has the columns that it `needs`. Raises `ConfigError` if a name
    or a hyperparameter is unknown.
    """
    found = layers(name, hyperparameters)
    return functools.partial(_ESTIMATORS.get(name).unchecked, **hyperparameters), found


def needs(name: str, hyperparameters: Mapping[str, Any] | None = None) -> tuple[str, ...]:
    """Return the optional columns an estimator reads, those of its base included."""
    base = _base_of(name, hyperparameters or {})
    below = needs(*_split(base)) if base is not None else ()
    return tuple(dict.fromkeys((*_ESTIMATORS.get(name).needs, *below)))


def base_estimator(base: Base, settings: Mapping[str, Any]) -> Callable[[TurnTable], Floats]:
    """Return the estimator that another one builds on, with its hyperparameters.

    `base` is its name, or a mapping with its `name` and hyperparameters, which win over `settings`.
    """
    name, own = _split(base)
    return functools.partial(get(name), **{**settings, **own})


def check(name: str, hyperparameters: Mapping[str, Any]) -> None:
    """Refuse hyperparameters that the estimator does not have.

    Raises:
        ConfigError: The estimator, its base or a hyperparameter is unknown, or it changes step
            returns that its base does not read.
    """
    known = hyperparameters_of(name, hyperparameters)
    if "scale_by_std" in hyperparameters and "scale_by_std" not in known and "norm" in known:
        raise ConfigError(
            f"estimator {name!r} has no hyperparameter 'scale_by_std': "
            'give norm = "std" for true, norm = "mean" for false'
        )
    _ESTIMATORS.check(name, hyperparameters, known)
    base = _base_of(name, hyperparameters)
    if base is None:
        return
    check(*_split(base))
    if _ESTIMATORS.get(name).step_returns == "changes" and not reads_step_returns(*_split(base)):
        readers = ", ".join(
            other for other in names() if _ESTIMATORS.get(other).step_returns == "reads"
        )
        raise ConfigError(
            f"estimator {name!r} changes the returns of single turns, which its base "
            f"{_split(base)[0]!r} does not read: expected one of {readers}"
        )


def reads_step_returns(name: str, hyperparameters: Mapping[str, Any] | None = None) -> bool:
    """Return whether the returns of single turns matter to an estimator or to its base."""
    base = _base_of(name, hyperparameters or {})
    below = base is not None and reads_step_returns(*_split(base))
    return _ESTIMATORS.get(name).step_returns == "reads" or below


def hyperparameters_of(name: str, given: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return an estimator's hyperparameters and their defaults, with those of its base.

    A name that both have means the outer one's. `given` may hold another `base` than the default
    one.
    """
    own = _ESTIMATORS.hyperparameters(name)
    base = _base_of(name, given or {})
    below = hyperparameters_of(*_split(base)) if base is not None else {}
    below.pop("base", None)
    return {**below, **own}


def layers(name: str, hyperparameters: Mapping[str, Any]) -> list[Layer]:
    """Check settings; return an estimator and its bases, outermost first, each with its own."""
    check(name, hyperparameters)
    own = _ESTIMATORS.hyperparameters(name)
    first = (name, {key: hyperparameters.get(key, default) for key, default in own.items()})
    base = _base_of(name, hyperparameters)
    if base is None:
        return [first]
    below, further = _split(base)
    passed = {key: value for key, value in hyperparameters.items() if key not in own}
    return [first, *layers(below, {**passed, **further})]


def _base_of(name: str, hyperparameters: Mapping[str, Any]) -> Base | None:
    own = _ESTIMATORS.hyperparameters(name)
    if "base" not in own:
        return None
    base: Base = hyperparameters.get("base", own["base"])
    return base


def _split(base: Base) -> tuple[str, dict[str, Any]]:
    if isinstance(base, str):
        return base, {}
    if not isinstance(base, Mapping) or not isinstance(base.get("name"), str):
        raise ConfigError(
            f"base must be an estimator's name or {{name = ..., its hyperparameters}}, got {base!r}"
        )
    return base["name"], {key: value for key, value in base.items() if key != "name"}


def preset(
    name: str, estimator_name: str, given: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return a preset's settings that the estimator or its base has; `ConfigError` if unknown."""
    settings = _PRESETS.get(name)
    known = hyperparameters_of(estimator_name, given)
    own = _own_settings(estimator_name, given or {})
    return {key: value for key, value in {**settings, **own}.items() if key in known}


def _own_settings(name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of an estimator's and its base's paper that differ from the presets."""
    base = _base_of(name, given)
    below = _own_settings(*_split(base)) if base is not None else {}
    taken = _ESTIMATORS.hyperparameters(name)  # a name that both have means the outer one's
    return {**{k: v for k, v in below.items() if k not in taken}, **_ESTIMATORS.get(name).own}
