"""Lets TorchRL's `GymWrapper` take environments of this package; importing this module is enough.

import agentgyms.adapters.torchrl
env = GymWrapper(gymnasium.make("agentgyms/ALFWorld-v0", split="valid_seen"))
"""

from __future__ import annotations

from typing import Any

from agentgyms.core import imports
from agentgyms.core.spaces import UnicodeText

try:
    from torchrl.data import NonTensor
    from torchrl.envs.libs.gym import register_gym_spec_conversion
except ModuleNotFoundError as e:
    raise ModuleNotFoundError(imports.missing("torchrl", "torchrl"), name=e.name) from e


@register_gym_spec_conversion(UnicodeText)  # type: ignore[untyped-decorator]
def convert_text(spec: UnicodeText, *, device: Any = None, **_: Any) -> Any:  # noqa: ARG001
    """Return the spec of texts, which TorchRL keeps beside its tensors."""
    return NonTensor((), device=device, example_data="a text")
