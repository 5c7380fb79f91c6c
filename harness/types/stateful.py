"""What a checkpoint saves beside the weights: anything with a state that training changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol


class Stateful(Protocol):
    """Something beside the policy that training steps change."""

    def state_dict(self) -> dict[str, Any]:
        """Return its state; its tensors may be sharded."""
        ...

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore its state."""
        ...
