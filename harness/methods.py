"""The one table of named methods: an estimator, a loss, and their settings."""

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
        credit: Hyperparameters that differ from the estimator's defaults.
        loss: Name in `harness.losses`.
        loss_settings: Hyperparameters that differ from the loss's defaults.
        reference: Paper.
    """

    name: str
    estimator: str
    reference: str
    credit: Mapping[str, Any] = field(default_factory=dict)
    loss: str = "token_clipped"
    loss_settings: Mapping[str, Any] = field(default_factory=dict)


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
