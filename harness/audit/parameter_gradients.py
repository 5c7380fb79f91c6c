"""Gradients of each turn by a model's parameters, projected to few dimensions.

The policy gradient is linear in the advantages, so these give the gradients of all estimators
without the model.

The projection is a count sketch (Charikar, Chen, Farach-Colton 2002): each parameter is added to
one of D numbers with a random sign. Inner products of projected vectors are unbiased, and the
variance of that of x and y is at most (<x, y>^2 + |x|^2 |y|^2) / D. A cosine c is therefore off by
about (1 - c^2) / sqrt(D): 0.02 for D = 2,048 and orthogonal gradients, nothing for equal ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray

from harness.model.learning_mode import adds_in_place, evaluating
from harness.model.packing import Sample, single_turn, to_batch
from harness.model.policy import Policy
from harness.types.rollout import Rollout

Sketch = NDArray[np.float32]

SIZE: Final = 2048
"""Dimensions of a sketch."""


class Projection:
    """A seeded count sketch of a policy's trained parameters; it keeps 4 bytes for each.

    `size` is D, the dimensions of a sketch. The policy must be on one device. Raises `ValueError`
    if a trainer has changed the policy's layers.
    """

    def __init__(self, policy: Policy, size: int = SIZE, seed: int = 0) -> None:
        if adds_in_place(policy.model):
            raise ValueError(
                "a trainer holds this policy, and its layers add gradients in place, where they "
                "are not seen: load its model anew"
            )
        self.size = size
        self._own = [one for one in policy.model.parameters() if one.requires_grad]
        self.parameters = sum(one.numel() for one in self._own)
        rng = torch.Generator().manual_seed(seed)
        self._places = [
            torch.randint(2 * size, (one.numel(),), generator=rng, dtype=torch.int32).to(one.device)
            for one in self._own
        ]

    def gradient(self, value: torch.Tensor) -> Sketch:
        """Return the sketch of the gradient of a number. Shape [D]."""
        found = torch.autograd.grad(value, self._own, allow_unused=True)
        sums = torch.zeros(2 * self.size, dtype=torch.float32, device=value.device)
        for gradient, place in zip(found, self._places, strict=True):
            if gradient is not None:
                sums.index_add_(0, place, gradient.reshape(-1).float())
        return (sums[: self.size] - sums[self.size :]).cpu().numpy()


def sketches(
    policy: Policy, rollouts: Sequence[Rollout], projection: Projection, temperature: float = 1.0
) -> NDArray[np.float16]:
    """Return the sketched gradient of each turn's log-probability, on one scale. Shape [N, D].

    The log-probability of a turn is the sum over its sampled tokens. Equal answers to equal prompts
    pass through the model once, in evaluation mode. Temperature 0 counts as 1.
    """
    known: dict[tuple[object, ...], Sketch] = {}

    def sketch(sample: Sample) -> Sketch:
        key = (sample.images, sample.prompt_ids, sample.response_ids, sample.turn)
        if key not in known:
            batch = to_batch([sample], policy.pad_id, policy.device)
            known[key] = projection.gradient(policy.logprobs(batch, temperature)[0].sum())
        return known[key]

    turns = [turn for rollout in rollouts for turn in rollout.turns]
    with evaluating(policy.model):
        found = np.stack(
            [
                np.sum([sketch(single_turn(one, 1.0)) for one in turn.answers], axis=0)
                for turn in turns
            ]
        )
    # float16 ends at 65,504: one scale for all turns, which no cosine notices.
    largest = float(np.abs(found).max()) or 1.0
    return (found / largest).astype(np.float16)
