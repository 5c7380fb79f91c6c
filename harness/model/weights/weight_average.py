"""An exponential moving average of a policy's weights, which is evaluated and exported.

Reference: Polyak & Juditsky 1992, averaging of iterates; the exponential form is that of Adam,
arXiv:1412.6980, section 7.2, without its correction, because it begins with the initial weights.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from harness.distributed import fsdp
from harness.model.policy import Policy


class WeightAverage:
    """The average of the weights that learn, in float32, sharded like them.

    An update is average = decay * average + (1 - decay) * weights, with decay in (0, 1).
    """

    def __init__(self, policy: Policy, decay: float) -> None:
        self._policy, self._decay = policy, decay
        self._average = torch.nn.ParameterList(
            # In float32: in bfloat16 a share of 1 - decay would round to nothing.
            torch.nn.Parameter(weight.detach().clone().float(), requires_grad=False)
            for weight in self._weights()
        )

    def _weights(self) -> list[torch.nn.Parameter]:
        return [weight for weight in self._policy.model.parameters() if weight.requires_grad]

    @torch.no_grad()
    def update(self) -> None:
        """Take the policy's weights into the average."""
        for average, weight in zip(self._average, self._weights(), strict=True):
            average.mul_(self._decay).add_(weight.float(), alpha=1 - self._decay)

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Give the policy the average, and its latest weights back at the end."""
        weights = self._weights()
        with torch.no_grad():
            latest = [weight.detach().clone() for weight in weights]
            self._copy(list(self._average), weights)
        try:
            yield
        finally:
            with torch.no_grad():
                self._copy(latest, weights)

    @staticmethod
    def _copy(source: list[Any], weights: list[torch.nn.Parameter]) -> None:
        for weight, value in zip(weights, source, strict=True):
            weight.copy_(value)

    def save(self, folder: Path) -> None:
        """Save the policy with the average, as `Policy.save` does; all processes call this."""
        with self.applied():
            self._policy.save(folder)

    def state_dict(self) -> dict[str, Any]:
        """Return the average, sharded like the weights."""
        return dict(fsdp.own_state(self._average))

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Load the result of `state_dict`, saved by any number of processes."""
        fsdp.load_full_state(self._average, state)
