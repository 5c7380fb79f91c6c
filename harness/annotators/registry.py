"""The registry of annotators: their names and settings."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from harness.annotators.baselines import SeatBaseline, SeatBaselineSettings
from harness.annotators.context import AnnotatorContext
from harness.annotators.critic import Critic, CriticSettings
from harness.annotators.distillation import NAME as TEACHER
from harness.annotators.distillation import Teacher, TeacherSettings
from harness.annotators.measures import (
    AgainstReference,
    Energy,
    Entropy,
    EnvironmentReward,
    EnvironmentRewardSettings,
    Hindsight,
    HindsightSettings,
    NoSettings,
    ReferenceKL,
    ResponseLength,
    Subgoals,
)
from harness.annotators.mismatched import MismatchedRatio
from harness.annotators.process_reward import ProcessReward, ProcessRewardSettings
from harness.annotators.state_values import NAME as CONTINUATIONS
from harness.annotators.state_values import StateValues, StateValuesSettings
from harness.annotators.teachers import (
    InformationGain,
    InformationGainSettings,
    SolverGain,
    SolverGainSettings,
)
from harness.types.hyperparameters import Registry, field_defaults


@dataclass(frozen=True, slots=True)
class _Entry:
    settings: type[Any]
    make: Callable[[Any, AnnotatorContext], Any]
    columns: tuple[str, ...]


def _entry(settings: type[Any], made: Any) -> _Entry:
    return _Entry(settings, made, tuple(made.columns))


_ANNOTATORS: Final = Registry(
    "annotator",
    lambda entry: field_defaults(entry.settings),
    {
        "critic": _entry(CriticSettings, Critic),
        "process_reward": _entry(ProcessRewardSettings, ProcessReward),
        "entropy": _entry(NoSettings, Entropy),
        "energy": _entry(NoSettings, Energy),
        "hindsight": _entry(HindsightSettings, Hindsight),
        "reference_kl": _entry(AgainstReference, ReferenceKL),
        "mismatched_ratio": _entry(AgainstReference, MismatchedRatio),
        "environment_reward": _entry(EnvironmentRewardSettings, EnvironmentReward),
        "response_length": _entry(NoSettings, ResponseLength),
        "subgoals": _entry(NoSettings, Subgoals),
        CONTINUATIONS: _entry(StateValuesSettings, StateValues),
        "information_gain": _entry(InformationGainSettings, InformationGain),
        "seat_baseline": _entry(SeatBaselineSettings, SeatBaseline),
        "solver_gain": _entry(SolverGainSettings, SolverGain),
        TEACHER: _entry(TeacherSettings, Teacher),
    },
)
names = _ANNOTATORS.names


def register(name: str, settings: type[Any]) -> Callable[[type[Any]], type[Any]]:
    """Register the decorated class as annotator `name`.

    Args:
        name: The name in `method.annotators`.
        settings: A dataclass with defaults that checks its values. Optional attributes are
            `needs_reference` and `needs_oracle` (see the functions of these names).

    Returns:
        A decorator for classes made of `(settings, context)` that follow `Annotator` and name their
        `columns`: of the turn table, or new ones, which are in its `extra`.
    """

    def add(made: type[Any]) -> type[Any]:
        _ANNOTATORS.add(name, _entry(settings, made))
        return made

    return add


def columns(name: str) -> tuple[str, ...]:
    """Return the columns that an annotator fills. Raises `ConfigError` for an unknown name."""
    return _ANNOTATORS.get(name).columns


def complete(name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return all settings of an annotator: those given, and its defaults.

    Raises `ConfigError` if the annotator or a setting is unknown, or a value is out of range.
    """
    return dataclasses.asdict(_settings(name, given))


def needs_reference(name: str, given: Mapping[str, Any]) -> bool:
    """Return whether an annotator needs the reference policy; errors as in `complete`."""
    return bool(getattr(_settings(name, given), "needs_reference", False))


def needs_oracle(name: str, given: Mapping[str, Any]) -> bool:
    """Return whether an annotator reads `Turn.oracle`, so that environments must give it."""
    return bool(getattr(_settings(name, given), "needs_oracle", False))


def make(name: str, given: Mapping[str, Any], context: AnnotatorContext) -> Any:
    """Return an annotator.

    Raises `ConfigError` as `complete` does, and if the policy's chat template cannot be used.
    """
    return _ANNOTATORS.get(name).make(_settings(name, given), context)


def _settings(name: str, given: Mapping[str, Any]) -> Any:
    _ANNOTATORS.check(name, given)
    return _ANNOTATORS.get(name).settings(**given)
