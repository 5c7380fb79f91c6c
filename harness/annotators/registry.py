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
    Entropy,
    EntropySettings,
    EnvironmentReward,
    EnvironmentRewardSettings,
    Hindsight,
    HindsightSettings,
    ReferenceKL,
    ReferenceKLSettings,
    ResponseLength,
    ResponseLengthSettings,
    Subgoals,
    SubgoalsSettings,
)
from harness.annotators.mismatched import MismatchedRatio, MismatchedRatioSettings
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


_ANNOTATORS: Final = Registry(
    "annotator",
    lambda entry: field_defaults(entry.settings),
    {
        "critic": _Entry(CriticSettings, Critic, Critic.columns),
        "process_reward": _Entry(ProcessRewardSettings, ProcessReward, ProcessReward.columns),
        "entropy": _Entry(EntropySettings, Entropy, Entropy.columns),
        "hindsight": _Entry(HindsightSettings, Hindsight, Hindsight.columns),
        "reference_kl": _Entry(ReferenceKLSettings, ReferenceKL, ReferenceKL.columns),
        "mismatched_ratio": _Entry(
            MismatchedRatioSettings, MismatchedRatio, MismatchedRatio.columns
        ),
        "environment_reward": _Entry(
            EnvironmentRewardSettings, EnvironmentReward, EnvironmentReward.columns
        ),
        "response_length": _Entry(ResponseLengthSettings, ResponseLength, ResponseLength.columns),
        "subgoals": _Entry(SubgoalsSettings, Subgoals, Subgoals.columns),
        CONTINUATIONS: _Entry(StateValuesSettings, StateValues, StateValues.columns),
        "information_gain": _Entry(
            InformationGainSettings, InformationGain, InformationGain.columns
        ),
        "seat_baseline": _Entry(SeatBaselineSettings, SeatBaseline, SeatBaseline.columns),
        "solver_gain": _Entry(SolverGainSettings, SolverGain, SolverGain.columns),
        TEACHER: _Entry(TeacherSettings, Teacher, Teacher.columns),
    },
)


def register(name: str, settings: type[Any]) -> Callable[[type[Any]], type[Any]]:
    """Register the decorated class as annotator `name`.

    Args:
        name: The name in `method.annotators`.
        settings: A dataclass with defaults that checks its values. Optional attributes are
            `needs_reference` and `needs_oracle` (see the functions of these names).

    Returns:
        A decorator for classes that are made of `(settings, context)`, follow
        `harness.annotators.Annotator`, and name their `columns`: of the turn table, or new ones,
        which are in its `extra`.
    """

    def add(made: type[Any]) -> type[Any]:
        _ANNOTATORS.add(name, _Entry(settings, made, tuple(made.columns)))
        return made

    return add


def names() -> list[str]:
    """Return the names of all annotators."""
    return _ANNOTATORS.names()


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
