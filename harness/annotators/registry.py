"""Names of annotators, their settings, and how they are made."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from harness.annotators.critic import Critic, CriticSettings
from harness.annotators.measures import (
    Entropy,
    EntropySettings,
    Hindsight,
    HindsightSettings,
    ReferenceKL,
    ReferenceKLSettings,
)
from harness.annotators.process_reward import ProcessReward, ProcessRewardSettings
from harness.annotators.surroundings import Surroundings
from harness.credit.registry import check_keywords
from harness.errors import ConfigError


@dataclass(frozen=True, slots=True)
class _Entry:
    settings: Callable[..., Any]
    make: Callable[[Any, Surroundings], Any]
    columns: tuple[str, ...]


_ANNOTATORS: Final = {
    "critic": _Entry(CriticSettings, Critic, Critic.columns),
    "process_reward": _Entry(ProcessRewardSettings, ProcessReward, ProcessReward.columns),
    "entropy": _Entry(EntropySettings, Entropy, Entropy.columns),
    "hindsight": _Entry(HindsightSettings, Hindsight, Hindsight.columns),
    "reference_kl": _Entry(ReferenceKLSettings, ReferenceKL, ReferenceKL.columns),
}


def names() -> list[str]:
    """Return the names of all annotators."""
    return sorted(_ANNOTATORS)


def columns(name: str) -> tuple[str, ...]:
    """Return the columns that an annotator fills.

    Raises:
        ConfigError: There is none of this name.
    """
    return _entry(name).columns


def complete(name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return all settings of an annotator: those given, and its defaults.

    Raises:
        ConfigError: The annotator or a setting is unknown, or a value is out of range.
    """
    return dataclasses.asdict(_settings(name, given))


def needs_reference(name: str, given: Mapping[str, Any]) -> bool:
    """Return whether an annotator compares with the policy as training began.

    Raises:
        ConfigError: As for `complete`.
    """
    return bool(_settings(name, given).needs_reference)


def make(name: str, given: Mapping[str, Any], around: Surroundings) -> Any:
    """Return an annotator.

    Raises:
        ConfigError: As for `complete`; or the policy's chat template does not do.
    """
    return _entry(name).make(_settings(name, given), around)


def _entry(name: str) -> _Entry:
    if name not in _ANNOTATORS:
        raise ConfigError(f"unknown annotator {name!r}: expected one of {', '.join(names())}")
    return _ANNOTATORS[name]


def _settings(name: str, given: Mapping[str, Any]) -> Any:
    kind: Any = _entry(name).settings
    known = [field.name for field in dataclasses.fields(kind)]
    check_keywords(f"annotator {name!r}", known, given)
    return kind(**given)
