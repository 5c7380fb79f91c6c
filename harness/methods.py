"""The one table of named methods: an estimator, a loss, what they need, and their settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from harness.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Method:
    """A row of the table.

    Attributes:
        name: The method's name in the papers, lower case.
        estimator: Name in `harness.credit`.
        reference: Paper.
        credit: Hyperparameters that differ from the estimator's defaults.
        loss: Name in `harness.losses`.
        loss_settings: Hyperparameters that differ from the loss's defaults.
        annotators: Names in `harness.annotators` of what fills the columns it needs, with the
            settings that differ from their defaults.
        rows: What a row of the turn table is when credit is computed: a turn, or a token.
        run: Settings of a run, `section.key`, that the method brings where the recipe leaves them
            None: `optimizer.epochs`, `rollout.dynamic_sampling`...
    """

    name: str
    estimator: str
    reference: str
    credit: Mapping[str, Any] = field(default_factory=dict)
    loss: str = "clipped"
    loss_settings: Mapping[str, Any] = field(default_factory=dict)
    annotators: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    rows: str = "turn"
    run: Mapping[str, Any] = field(default_factory=dict)


_ROWS: Final = (
    Method("grpo", "grpo", "arXiv:2402.03300", loss_settings={"kl_coefficient": 0.01}),
    Method("gigpo", "gigpo", "arXiv:2505.10978", loss_settings={"kl_coefficient": 0.01}),
)

METHODS: Final[dict[str, Method]] = {row.name: row for row in _ROWS}


def get(name: str) -> Method:
    """Return the method of this name.

    Raises:
        ConfigError: There is none.
    """
    if name not in METHODS:
        raise ConfigError(f"unknown method {name!r}: expected one of {', '.join(METHODS)}")
    return METHODS[name]
