"""Linear layers whose weights are also kept in the order in which a CPU's kernel reads them.

With few rows, as in decoding, much of a product in bfloat16 is reordering the weight. SmolLM2's
layers with 8 rows take 1.4 times as long without packed weights (`benchmarks/real_model.py`).
"""

from __future__ import annotations

from typing import Any

import torch

from harness.model.weights.usual_precision import has_bfloat16

_ROWS = 16
"""A hint to the kernel: rows of a product."""


def pack_linears(model: Any) -> None:
    """Let torch's own layers in bfloat16 on the CPU pack their weights, where it has a kernel."""
    has_kernel = torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
    if not (has_kernel and has_bfloat16()):
        return
    for layer in model.modules():
        if type(layer) is torch.nn.Linear and layer.weight.dtype == torch.bfloat16:
            layer.__class__ = PackedLinear


class PackedLinear(torch.nn.Linear):
    """A linear layer in bfloat16 that computes with a packed weight where no gradient is wanted."""

    _packed: Any = None
    _packed_version: tuple[int, int] | None = None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return `x @ weight.T + bias`. Shape [..., outputs]."""
        weight = self.weight
        # torch counts no changes of tensors that were made in inference mode
        if torch.is_grad_enabled() or x.dtype != torch.bfloat16 or weight.is_inference():
            return super().forward(x)
        operators: Any = torch.ops.mkldnn
        version = weight.data_ptr(), weight._version
        if version != self._packed_version:
            self._packed = operators._reorder_linear_weight(weight.detach(), _ROWS)
            self._packed_version = version
        out: torch.Tensor = operators._linear_pointwise(
            x, self._packed, self.bias, "none", [], None
        )
        return out

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what can be packed again, and cannot be copied."""
        return {k: v for k, v in vars(self).items() if k not in ("_packed", "_packed_version")}
