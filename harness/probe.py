"""Checks that another engine has the policy's weights: both tell how likely a known text is.

A label, such as the number of an update, says which weights an engine was told to load, not which
ones it answers with. So each engine is asked for the log-probabilities of one short text after
every update, and they are compared with the policy's: one request and one forward pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from harness.credit.table import Floats
from harness.errors import TrainingError
from harness.packing import Sample
from harness.policy import Policy
from harness.scoring import score

FIRST_LIMIT: Final = 0.3
"""Nats per token by which engines that calculate in bfloat16 may differ at first."""

LEAST_LIMIT: Final = 0.02
FACTOR: Final = 4.0
"""Later they may differ by so many times what they did at first, but always by `LEAST_LIMIT`."""

_LONGEST: Final = 64
_TEXT: Final = (
    "You are in the middle of a room. Looking quickly around you, you see a cabinet 1, a drawer 2 "
    "and a fridge 1. Your task is to: put a clean plate in the fridge. What do you do next?"
)


class Probe:
    """A text of which the policy's log-probabilities are known.

    Args:
        policy: The one that is trained.

    Attributes:
        ids: The text's tokens.
    """

    def __init__(self, policy: Policy) -> None:
        """Write the text as tokens."""
        self.ids = policy.encode_chat([{"role": "user", "content": _TEXT}])[:_LONGEST]
        self._policy, self._noise = policy, 0.0
        self._is_first = True
        self._expected: Floats = np.zeros(0)

    def expect(self) -> None:
        """Note what the policy says now; all processes that train together call this."""
        following = self.ids[1:]
        row = Sample(self.ids[:1], following, (0.0,) * len(following), 0.0)
        self._expected = score(self._policy, [row])[0].logprob

    def check(self, told: Sequence[float], who: str) -> None:
        """Compare what an engine says of the text with what the policy said at the last `expect`.

        Raises:
            TrainingError: They differ by more than rounding explains: the engine has other weights.
        """
        difference = float(np.abs(np.asarray(told) - self._expected).mean())
        limit = FIRST_LIMIT if self._is_first else max(LEAST_LIMIT, FACTOR * self._noise)
        if not difference <= limit:  # NaN too
            raise TrainingError(
                f"{who} does not answer with the policy's weights: its log-probabilities of a "
                f"known text differ by {difference:.3g} nats per token, where {limit:.3g} would be "
                "rounding. See that it serves the model of policy.model and that its vLLM is 0.32 "
                "or newer; then resume the run, which sends all weights again"
            )
        self._noise = max(self._noise, difference) if self._is_first else self._noise

    def settle(self) -> None:
        """Take what engines have differed by so far as their rounding."""
        self._is_first = False
