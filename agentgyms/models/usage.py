"""Tokens, calls and cost of models that take part in an episode."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens, calls and cost of models, in the currency of the prices; nan without prices."""

    prompt: int = 0
    response: int = 0
    calls: int = 0
    cost: float = 0.0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.prompt + other.prompt,
            self.response + other.response,
            self.calls + other.calls,
            self.cost + other.cost,
        )

    def metrics(self) -> dict[str, float]:
        """Return the usage by the names of `info["metrics"]`."""
        return {
            "model_calls": float(self.calls),
            "model_prompt_tokens": float(self.prompt),
            "model_response_tokens": float(self.response),
            "cost": float(self.cost),
        }

    def to_json(self) -> list[Any]:
        """Return the usage as JSON values; an unknown cost is None."""
        cost = self.cost if math.isfinite(self.cost) else None
        return [self.prompt, self.response, self.calls, cost]

    @classmethod
    def from_json(cls, value: Any) -> Usage:
        """Return the usage that `to_json` wrote; `TypeError` or `ValueError` if it is none."""
        *counts, cost = value
        prompt, response, calls = (_count(count) for count in counts)
        if cost is not None and (type(cost) is not float or not 0 <= cost < math.inf):
            raise ValueError(f"a cost is a number or null, got {cost!r:.80}")
        return cls(prompt, response, calls, math.nan if cost is None else cost)


NO_USAGE: Final = Usage()
"""No model was asked."""


def _count(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise ValueError(f"tokens and calls must be counts, got {value!r:.80}")
    return value
