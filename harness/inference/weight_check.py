"""Checks that another engine has the policy's weights, by log-probabilities of a known text.

A label, such as the number of an update, says which weights an engine should have, not which ones
it uses. The check costs one request and one forward pass after every update.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from harness.model.logprobs import score_tokens
from harness.model.packing import Sample
from harness.model.policy import Policy
from harness.types.arrays import Floats
from harness.types.errors import TrainingError

FIRST_LIMIT: Final = 0.3
"""Largest difference in nats per token before the rounding of the engines is known."""

LEAST_LIMIT: Final = 0.02
FACTOR: Final = 4.0
"""Later limit: `FACTOR` times the largest first difference, but at least `LEAST_LIMIT`."""

_MAX_TOKENS: Final = 64
_TEXT: Final = (
    "You are in the middle of a room. Looking quickly around you, you see a cabinet 1, a drawer 2 "
    "and a fridge 1. Your task is to: put a clean plate in the fridge. What do you do next?"
)


class WeightCheck:
    """Compares an engine's log-probabilities of a short text with the policy's."""

    def __init__(self, policy: Policy) -> None:
        self.ids = policy.encode_chat([{"role": "user", "content": _TEXT}])[:_MAX_TOKENS]
        self._policy, self._noise = policy, 0.0
        self._is_first = True
        self._expected: Floats = np.zeros(0)

    def update_expected(self) -> None:
        """Compute the policy's current log-probabilities; all processes call this."""
        response = self.ids[1:]
        row = Sample(self.ids[:1], response, (0.0,) * len(response), 0.0)
        self._expected = score_tokens(self._policy, [row])[0].logprob

    def check(self, logprobs: Sequence[float], engine: str) -> None:
        """Raise `TrainingError` if log-probabilities differ from the policy's beyond rounding."""
        difference = float(np.abs(np.asarray(logprobs) - self._expected).mean())
        limit = FIRST_LIMIT if self._is_first else max(LEAST_LIMIT, FACTOR * self._noise)
        if not difference <= limit:  # NaN too
            raise TrainingError(
                f"{engine} does not answer with the policy's weights: its log-probabilities of a "
                f"known text differ by {difference:.3g} nats per token, expected at most "
                f"{limit:.3g}. Check that it serves the model of policy.model and that its vLLM is "
                f"0.32 or newer{self._rows()}; then resume the run, which sends all weights again"
            )
        self._noise = max(self._noise, difference) if self._is_first else self._noise

    def _rows(self) -> str:
        """Return another reason, if the model has rows that no token of the tokenizer has."""
        hidden = self._policy.hidden_tokens
        if hidden is None:
            return ""
        return (
            f", and that the model gives no probability to the {len(hidden)} ids that its "
            "tokenizer does not have, which vLLM samples and training leaves out"
        )

    def fix_limit(self) -> None:
        """Take the largest difference so far as the rounding of the engines."""
        self._is_first = False
