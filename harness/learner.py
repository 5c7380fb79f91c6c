"""One update of the policy from a step's samples."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import torch

from harness import losses
from harness.config import OptimizerConfig
from harness.errors import NotFinite
from harness.optimizing import learning_rate, make_optimizer, num_parts, set_learning_rate
from harness.packing import Sample, TokenBatch, merge
from harness.policy import Policy
from harness.sharding import clip

_LARGEST = "_max"
"""Ends the names of figures that are maxima; all others are sums."""


class Learner:
    """AdamW on a policy loss.

    Args:
        policy: Changed in place.
        reference: Frozen policy for a KL penalty, or None.
        config: Learning rate and how a step is cut up.
        loss_name: Name in `harness.losses`.
        loss_settings: Its hyperparameters; those missing take their defaults.
        temperature: The samples were drawn at.
        steps: Training steps of the run, for the course of the learning rate.
    """

    def __init__(
        self,
        policy: Policy,
        reference: Policy | None,
        config: OptimizerConfig,
        loss_name: str,
        loss_settings: Mapping[str, Any],
        temperature: float,
        steps: int = 1,
    ) -> None:
        """Make the optimizer."""
        self.policy, self.reference, self.config = policy, reference, config
        self.temperature, self.steps = temperature, steps
        self._loss = partial(losses.get(loss_name), **loss_settings)
        self._is_linear = losses.is_linear(loss_name, loss_settings)
        self._with_entropy = bool(loss_settings.get("entropy_coefficient"))
        self.optimizer = make_optimizer(policy.model.parameters(), config)

    def update(self, rows: Sequence[Sample], *, step: int, seed: int) -> dict[str, float]:
        """Take the optimizer steps of one training step and return figures to log.

        Each epoch shuffles the samples into nearly equal parts; one optimizer step per part.
        Where the loss is linear in the advantage, samples without credit are left out and equal
        ones taken as one: the loss's means are over all tokens and sequences all the same, those of
        the other figures over tokens that pass through the model.

        Args:
            rows: Samples of this step.
            step: Number of the training step, from 0.
            seed: Of the shuffling.

        Raises:
            NotFinite: A loss or gradient is not finite; the weights are as they were.
        """
        set_learning_rate(self.optimizer, learning_rate(self.config, step, self.steps))
        self.policy.model.train()
        rng = np.random.default_rng(seed)
        sums: Counter[str] = Counter()
        for _ in range(self.config.epochs or 1):
            made = self._epoch(rows, rng)
            _add(sums, made)
            limit = self.config.max_kl
            if limit is not None and made["kl_old"] > limit * made["num_tokens"]:
                break
        return self._figures(sums)

    def _figures(self, sums: Counter[str]) -> dict[str, float]:
        """Return sums over tokens as means, the others as they are logged."""
        figures = {
            "update/loss": sums["loss"] / sums["parts"],
            "update/grad_norm": sums["grad_norm"] / sums["parts"],
            "update/learning_rate": self.optimizer.param_groups[0]["lr"],
            "update/epochs": sums["epochs"],
            "update/tokens": sums["num_tokens"],
            "update/model_tokens": sums["passed"],
        }
        apart = {"loss", "grad_norm", "epochs", "parts", "num_tokens", "passed"}
        of_tokens = sums.keys() - apart
        for name in sorted(of_tokens):
            largest = name.endswith(_LARGEST)
            shown = {"clipped": "clipped_share"}.get(name, name)
            figures[f"update/{shown}"] = sums[name] / (1 if largest else sums["num_tokens"])
        return figures

    def _epoch(self, rows: Sequence[Sample], rng: np.random.Generator) -> Counter[str]:
        sums: Counter[str] = Counter(epochs=1)
        order = rng.permutation(len(rows))
        for part in np.array_split(order, num_parts(self.config, len(rows))):
            _add(sums, self._optimizer_step([rows[i] for i in part]))
        return sums

    def _optimizer_step(self, rows: Sequence[Sample]) -> Counter[str]:
        whole = {
            "num_tokens": sum(row.num_actions for row in rows),
            "num_sequences": len(rows),
        }
        if self._is_linear:
            rows = merge(rows)
        sums = Counter(parts=1, passed=sum(row.length for row in rows))
        self.optimizer.zero_grad()
        own: Counter[str] = Counter()
        for batch in self.policy.micro_batches(rows, self.config.micro_batch_tokens):
            _add(own, self._accumulate(batch, whole))
        for made in self.policy.ranks.gather(own):
            _add(sums, made)
        norm = clip(self.policy.model.parameters(), self.config.max_grad_norm)
        sums["grad_norm"] = norm  # type: ignore[assignment]
        for what in ("loss", "grad_norm"):
            if not math.isfinite(sums[what]):
                raise NotFinite(
                    f"the {what} is {sums[what]}: lower optimizer.learning_rate or "
                    "optimizer.max_grad_norm"
                )
        self.optimizer.step()
        return sums

    def _accumulate(self, batch: TokenBatch, whole: Mapping[str, int]) -> dict[str, float]:
        """Add the gradient of a part of the mini-batch that has `whole` tokens and sequences."""
        if self.reference is not None and not self._is_linear:
            with torch.no_grad():
                frozen, _ = self.reference.logprobs(batch, self.temperature)
            batch = replace(batch, reference_logprob=frozen)
        logprob, entropy = self.policy.logprobs(
            batch, self.temperature, entropy_gradient=self._with_entropy
        )
        given = {"entropy": entropy} if self._with_entropy else {}
        loss, figures = self._loss(logprob, batch, **whole, **given)
        loss.backward()  # type: ignore[no-untyped-call]
        entropy_sum = float(entropy.detach().sum())
        return {**figures, "loss": float(loss.detach()), "entropy": entropy_sum}


def _add(sums: Counter[str], more: Mapping[str, float]) -> None:
    """Add figures, or keep the greater one of those whose names say so."""
    for name, value in more.items():
        largest = name.endswith(_LARGEST)
        sums[name] = max(sums[name], value) if largest else sums[name] + value  # type: ignore[assignment]
