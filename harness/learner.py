"""One update of the policy from a step's samples."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import torch

from harness import losses
from harness.config import OptimizerConfig
from harness.errors import TrainingError
from harness.packing import Sample, TokenBatch, merge, micro_batches
from harness.policy import Policy

PolicyLoss = Callable[..., tuple[torch.Tensor, dict[str, float]]]


class Learner:
    """AdamW on a policy loss.

    Args:
        policy: Changed in place.
        reference: Frozen policy for a KL penalty, or None.
        config: Learning rate and how a step is cut up.
        loss_name: Name in `harness.losses`.
        loss_settings: Its hyperparameters.
        temperature: The samples were drawn at.
    """

    def __init__(
        self,
        policy: Policy,
        reference: Policy | None,
        config: OptimizerConfig,
        loss_name: str,
        loss_settings: dict[str, float],
        temperature: float,
    ) -> None:
        """Make the optimizer."""
        self.policy, self.reference, self.config = policy, reference, config
        self.temperature = temperature
        self._loss: PolicyLoss = partial(losses.get(loss_name), **loss_settings)
        self.optimizer = torch.optim.AdamW(
            policy.model.parameters(),
            lr=config.learning_rate,
            weight_decay=config.weight_decay,
            betas=config.betas,
        )

    def update(self, rows: Sequence[Sample], *, step: int, seed: int) -> dict[str, float]:
        """Take the optimizer steps of one training step and return figures to log.

        Each epoch shuffles the samples into `mini_batches` parts; one optimizer step per part.
        Without a reference, samples without credit are left out, and equal ones taken as one: means
        over tokens are over those that pass through the model.

        Args:
            rows: Samples of this step.
            step: Number of the training step, from 0.
            seed: Of the shuffling.

        Raises:
            TrainingError: A gradient is not finite.
        """
        for group in self.optimizer.param_groups:
            rise = (step + 1) / max(1, self.config.warmup_steps)
            group["lr"] = self.config.learning_rate * min(1.0, rise)
        self.policy.model.train()
        sums: Counter[str] = Counter()
        for part in self._parts(rows, seed):
            sums.update(self._optimizer_step(part))
        figures = {
            "update/loss": sums["loss"] / sums["parts"],
            "update/grad_norm": sums["grad_norm"] / sums["parts"],
            "update/learning_rate": self.optimizer.param_groups[0]["lr"],
            "update/tokens": sums["num_tokens"],
        }
        if tokens := sums["num_tokens"]:  # without credit there is nothing to take means over
            names = ("clipped", "kl_old", "kl_reference", "entropy")
            means = {name: sums[name] / tokens for name in names}
            figures["update/clipped_share"] = means.pop("clipped")
            figures |= {f"update/{name}": mean for name, mean in means.items()}
        return figures

    def _parts(self, rows: Sequence[Sample], seed: int) -> Iterator[list[Sample]]:
        rng = np.random.default_rng(seed)
        for _ in range(self.config.epochs or 1):
            order = rng.permutation(len(rows))
            for part in np.array_split(order, min(self.config.mini_batches, len(rows))):
                yield [rows[i] for i in part]

    def _optimizer_step(self, rows: Sequence[Sample]) -> Counter[str]:
        num_tokens = sum(len(row.response_ids) for row in rows)
        if self.reference is None:
            rows = merge(rows)
        sums: Counter[str] = Counter(parts=1)
        self.optimizer.zero_grad()
        batches = micro_batches(
            rows, self.config.micro_batch_tokens, self.policy.pad_id, self.policy.device
        )
        for batch in batches:
            sums.update(self._accumulate(batch, num_tokens))
        norm = torch.nn.utils.clip_grad_norm_(
            self.policy.model.parameters(), self.config.max_grad_norm
        )
        sums["grad_norm"] = float(norm)  # type: ignore[assignment]
        if not math.isfinite(sums["grad_norm"]):
            raise TrainingError(
                f"the gradient norm is {float(norm)}: lower optimizer.learning_rate or "
                "optimizer.max_grad_norm, and look at the rewards in metrics.jsonl"
            )
        self.optimizer.step()
        return sums

    def _accumulate(self, batch: TokenBatch, num_tokens: int) -> dict[str, float]:
        if self.reference is not None:
            with torch.no_grad():
                frozen, _ = self.reference.logprobs(batch, self.temperature)
            batch = replace(batch, reference_logprob=frozen)
        logprob, entropy = self.policy.logprobs(batch, self.temperature)
        loss, metrics = self._loss(logprob, batch, num_tokens=num_tokens)
        loss.backward()  # type: ignore[no-untyped-call]
        entropy_sum = float(entropy) * metrics["num_tokens"]
        return {**metrics, "loss": float(loss.detach()), "entropy": entropy_sum}
