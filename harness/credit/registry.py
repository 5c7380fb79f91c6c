"""Names of estimators, and the check of their hyperparameters when a run starts."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from harness.credit.table import Floats
from harness.errors import ConfigError

Estimator = Callable[..., Floats]
"""`(TurnTable, *, hyperparameters) -> advantage [N]`, without side effects."""

PRESETS: Final[dict[str, dict[str, Any]]] = {
    "paper": {"statistics": "rollout", "ddof": 1, "eps": 1e-6, "gamma": 0.95, "step_weight": 1.0},
    "verl_agent": {
        "statistics": "turn",
        "ddof": 1,
        "eps": 1e-6,
        "gamma": 0.95,
        "step_weight": 1.0,
        "invalid_penalty": 0.1,
    },
}
"""Settings of hyperparameters that several estimators share: the papers', verl-agent's code's."""

_ESTIMATORS: dict[str, Estimator] = {}


def estimator(name: str) -> Callable[[Estimator], Estimator]:
    """Register the decorated function as estimator `name`."""

    def add(function: Estimator) -> Estimator:
        if name in _ESTIMATORS:
            raise ConfigError(f"estimator {name!r} is registered already")
        _ESTIMATORS[name] = function
        return function

    return add


def names() -> list[str]:
    """Return the names of all estimators."""
    return sorted(_ESTIMATORS)


def get(name: str) -> Estimator:
    """Return an estimator.

    Raises:
        ConfigError: There is none of this name.
    """
    if name not in _ESTIMATORS:
        raise ConfigError(f"unknown estimator {name!r}: expected one of {', '.join(names())}")
    return _ESTIMATORS[name]


def check(name: str, hyperparameters: Mapping[str, Any]) -> None:
    """Refuse hyperparameters that the estimator does not have.

    Raises:
        ConfigError: The estimator or a hyperparameter is unknown.
    """
    check_keywords(f"estimator {name!r}", list(keywords(get(name))), hyperparameters)


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


def preset(name: str, estimator_name: str) -> dict[str, Any]:
    """Return the settings of a preset that the estimator has.

    Raises:
        ConfigError: There is no such preset.
    """
    if name not in PRESETS:
        raise ConfigError(f"unknown preset {name!r}: expected one of {', '.join(PRESETS)}")
    known = keywords(get(estimator_name))
    return {key: value for key, value in PRESETS[name].items() if key in known}
