"""Low-rank adapters (LoRA, Hu et al. 2021, arXiv:2106.09685) on a policy, by peft."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LoraConfig:
    """Size of the adapters.

    Attributes:
        rank: Of each adapter; 0 trains all weights and makes none.
        alpha: The update is scaled by alpha / rank.
        dropout: Share of an adapter's inputs that are dropped in training, in [0, 1).
        targets: Names of the layers that get one; "all-linear" is all but the output layer.
    """

    rank: int = 0
    alpha: float = 32.0
    dropout: float = 0.0
    targets: tuple[str, ...] = ("all-linear",)
