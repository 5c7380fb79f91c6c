"""Names of estimators, what they build on, and the check of their hyperparameters."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from harness.credit.table import Floats, TurnTable
from harness.errors import ConfigError

Estimator = Callable[..., Floats]
"""`(TurnTable, *, hyperparameters) -> advantage [N]`, without side effects."""

Base = str | Mapping[str, Any]
"""An estimator that another one builds on: its name, or `{name = ..., hyperparameter = ...}`."""

StepReturns = Literal["", "reads", "changes"]
"""What an estimator does with the returns of single turns (`returns.step_returns`)."""

PRESETS: Final[dict[str, dict[str, Any]]] = {
    "paper": {
        "statistics": "rollout",
        "ddof": 1,
        "eps": 1e-6,
        "gamma": 0.95,
        "step_weight": 1.0,
        "invalid_penalty": 0.1,
    },
    "verl_agent": {
        "statistics": "turn",
        "ddof": 1,
        "eps": 1e-6,
        "gamma": 0.95,
        "step_weight": 1.0,
        "invalid_penalty": 0.1,
        "drop_zero": True,
    },
}
"""Settings of hyperparameters that estimators share: the papers', verl-agent's code's.

The code's raw scores in groups of one are not among the latter (`singleton` of `grpo`): they are a
defect. An estimator registered with `preset=` keeps its own where they are others.
"""


@dataclass(frozen=True, slots=True)
class _Entry:
    function: Estimator
    needs: tuple[str, ...]
    own: Mapping[str, Any]
    step_returns: StepReturns


_ESTIMATORS: dict[str, _Entry] = {}


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
        name: In `harness.credit.get`.
        needs: Optional columns of the table that it reads.
        preset: What its paper or its code sets differently from the presets.
        step_returns: It `reads` the returns of single turns, or `changes` them for its base, which
            then must read them: otherwise the change would have no effect.
    """

    def add(function: Estimator) -> Estimator:
        if name in _ESTIMATORS:
            raise ConfigError(f"estimator {name!r} is registered already")

        @functools.wraps(function)
        def checked(turns: TurnTable, **hyperparameters: Any) -> Floats:
            check(name, hyperparameters)
            turns.require(needs, f"estimator {name!r}")
            return function(turns, **hyperparameters)

        _ESTIMATORS[name] = _Entry(checked, tuple(needs), preset or {}, step_returns)
        return checked

    return add


def names() -> list[str]:
    """Return the names of all estimators."""
    return sorted(_ESTIMATORS)


def get(name: str) -> Estimator:
    """Return an estimator.

    Raises:
        ConfigError: There is none of this name.
    """
    return _entry(name).function


def _entry(name: str) -> _Entry:
    if name not in _ESTIMATORS:
        raise ConfigError(f"unknown estimator {name!r}: expected one of {', '.join(names())}")
    return _ESTIMATORS[name]


def needs(name: str, hyperparameters: Mapping[str, Any] | None = None) -> tuple[str, ...]:
    """Return the optional columns an estimator reads, those of its base included."""
    base = _base_of(name, hyperparameters or {})
    below = needs(*_split(base)) if base is not None else ()
    return tuple(dict.fromkeys((*_entry(name).needs, *below)))


def base_estimator(base: Base, settings: Mapping[str, Any]) -> Callable[[TurnTable], Floats]:
    """Return the estimator that another one builds on, with its hyperparameters.

    Args:
        base: Its name, or a mapping with its `name` and hyperparameters of its own.
        settings: Further hyperparameters; those in `base` win.

    Raises:
        ConfigError: The name or a hyperparameter is unknown.
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
    check_keywords(f"estimator {name!r}", list(known), hyperparameters)
    base = _base_of(name, hyperparameters)
    if base is None:
        return
    check(*_split(base))
    if _entry(name).step_returns == "changes" and not reads_step_returns(*_split(base)):
        readers = ", ".join(other for other in names() if _entry(other).step_returns == "reads")
        raise ConfigError(
            f"estimator {name!r} changes the returns of single turns, which its base "
            f"{_split(base)[0]!r} does not read: expected one of {readers}"
        )


def reads_step_returns(name: str, hyperparameters: Mapping[str, Any] | None = None) -> bool:
    """Return whether the returns of single turns matter to an estimator or to its base."""
    base = _base_of(name, hyperparameters or {})
    below = base is not None and reads_step_returns(*_split(base))
    return _entry(name).step_returns == "reads" or below


def hyperparameters_of(name: str, given: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return an estimator's hyperparameters and their defaults.

    Those of its base are among them: a name that both have means the outer one's.

    Args:
        name: The estimator.
        given: May hold another `base` than the default one.
    """
    own = keywords(get(name))
    base = _base_of(name, given or {})
    below = hyperparameters_of(*_split(base)) if base is not None else {}
    below.pop("base", None)
    return {**below, **own}


def layers(name: str, hyperparameters: Mapping[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Return an estimator and what it builds on, outermost first, each with its hyperparameters.

    Raises:
        ConfigError: A name or a hyperparameter is unknown.
    """
    check(name, hyperparameters)
    own = keywords(get(name))
    first = (name, {key: hyperparameters.get(key, default) for key, default in own.items()})
    base = _base_of(name, hyperparameters)
    if base is None:
        return [first]
    below, further = _split(base)
    passed = {key: value for key, value in hyperparameters.items() if key not in own}
    return [first, *layers(below, {**passed, **further})]


def _base_of(name: str, hyperparameters: Mapping[str, Any]) -> Base | None:
    """Return what an estimator builds on, None if it stands alone."""
    own = keywords(get(name))
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


def check_keywords(what: str, known: Sequence[str], given: Mapping[str, Any]) -> None:
    """Refuse keyword arguments that are not known.

    Raises:
        ConfigError: A keyword is unknown; `what` names the function in the message.
    """
    for key in given:
        if key not in known:
            expected = ", ".join(known) or "none"
            raise ConfigError(f"{what} has no hyperparameter {key!r}: expected {expected}")


def keywords(function: Callable[..., Any]) -> dict[str, Any]:
    """Return a function's keyword-only parameters and their defaults."""
    parameters = inspect.signature(function).parameters.values()
    return {p.name: p.default for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY}


def preset(
    name: str, estimator_name: str, given: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return the settings of a preset that the estimator or its base has.

    Raises:
        ConfigError: There is no such preset.
    """
    if name not in PRESETS:
        raise ConfigError(f"unknown preset {name!r}: expected one of {', '.join(PRESETS)}")
    known = hyperparameters_of(estimator_name, given)
    own = _own_settings(estimator_name, given or {})
    return {key: value for key, value in {**PRESETS[name], **own}.items() if key in known}


def _own_settings(name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return what an estimator's paper, and its base's, set differently from the presets."""
    base = _base_of(name, given)
    below = _own_settings(*_split(base)) if base is not None else {}
    taken = keywords(get(name))  # a name that both have means the outer one's
    return {**{k: v for k, v in below.items() if k not in taken}, **_entry(name).own}
