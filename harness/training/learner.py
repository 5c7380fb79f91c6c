"""Updates the policy from the samples of a training step."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import torch

from harness import losses
from harness.config import Config, OptimizerConfig, methods
from harness.distributed.fsdp import clip_grad_norm
from harness.inference.old_logprobs import update_correction
from harness.losses.aggregate import Metric
from harness.losses.mismatch import UpdateCorrection
from harness.model.learning_mode import add_in_place, make_gradients, set_learning
from harness.model.packing import Sample, TokenBatch, merge, num_mini_batches
from harness.model.policy import Policy
from harness.preflight.defaults import loss_settings
from harness.runs.progress import OnLearned
from harness.training.first_update import Drift, FirstUpdateAlarm, alarm_of, drift_of
from harness.training.optimizer import make_optimizer
from harness.types.errors import NotFinite, TrainingError


@dataclass(slots=True)
class _Totals:
    """Sums over micro-batches, optimizer steps and epochs."""

    loss: float = 0  # sum over mini-batches
    grad_norm: float = 0  # sum over optimizer steps
    epochs: int = 0  # passes over the samples
    steps: int = 0  # optimizer steps
    tokens: float = 0  # action tokens
    model_tokens: int = 0  # tokens that passed through the model
    trained: float = 0  # action tokens that the loss learns from
    drift: Drift | None = None  # before the first optimizer step
    metrics: dict[str, Metric] = field(default_factory=dict)  # the loss's metrics, and the entropy

    def add(self, other: _Totals) -> None:
        self.loss += other.loss
        self.grad_norm += other.grad_norm
        self.epochs += other.epochs
        self.steps += other.steps
        self.tokens += other.tokens
        self.model_tokens += other.model_tokens
        self.trained += other.trained
        self.drift = other.drift if self.drift is None else self.drift.joined(other.drift)
        combine(self.metrics, other.metrics)


def combine(metrics: dict[str, Metric], more: Mapping[str, Metric]) -> None:
    """Combine metrics with those of further batches, in place."""
    for name, metric in more.items():
        metrics[name] = metrics[name].combined(metric) if name in metrics else metric


def _unheard(rows: float, tokens: int) -> None:
    """Tell nobody of a micro-batch."""


class Learner:
    """An optimizer on a policy loss; it changes the policy in place.

    Args:
        reference: The frozen policy of a KL penalty, or None.
        loss_settings: The loss's hyperparameters; missing ones take their defaults.
        temperature: The sampling temperature of the rollouts.
        steps: Training steps of the run, for the learning-rate schedule.
        correction: Corrects advantages where the old log-probabilities are the sampler's, or None.
        alarm: Checks the importance ratios before the learner's first step, or None.
    """

    def __init__(
        self,
        policy: Policy,
        reference: Policy | None,
        config: OptimizerConfig,
        loss_name: str,
        loss_settings: Mapping[str, Any],
        temperature: float,
        *,
        steps: int = 1,
        correction: UpdateCorrection | None = None,
        alarm: FirstUpdateAlarm | None = None,
    ) -> None:
        self._correction, self._alarm = correction, alarm
        self.policy, self.reference, self.config = policy, reference, config
        self.temperature, self.steps = temperature, steps
        self._loss = partial(losses.get(loss_name), **loss_settings)
        self._is_linear = losses.is_linear(loss_name, loss_settings)
        self._with_entropy = bool(loss_settings.get("entropy_coefficient"))
        is_alone = policy.processes.size == 1
        self._makes_gradients = is_alone and policy.device.type == "cpu" and policy.vision is None
        if is_alone:
            add_in_place(policy.model)
        self.optimizer = make_optimizer(
            policy.model, config, offload=policy.layout.offload == "optimizer"
        )

    def update(
        self,
        rows: Sequence[Sample],
        *,
        step: int,
        seed: int,
        on_learned: OnLearned = _unheard,
    ) -> dict[str, float]:
        """Take the optimizer steps of one training step and return figures to log.

        Each epoch shuffles the samples into mini-batches of nearly equal size; each mini-batch is
        one optimizer step. If the loss is linear in the advantage, samples with advantage 0 are
        left out and equal samples are merged. The loss is still a mean over all tokens and
        sequences of the mini-batch; other metrics are means over the tokens that the model reads. A
        mini-batch without a token to learn from moves no weight and no moment of the optimizer.

        `step` counts from 0. Raises `NotFinite` if a loss or gradient is not finite; the weights
        are then as they were. Raises `TrainingError` if there is no sample, or the alarm stops the
        run.
        """
        if not rows:
            raise TrainingError(
                "rollout.correction leaves nothing of the step to learn from: the generator's "
                "log-probabilities are too far from the policy's; find out why (see mismatch/ in "
                "the metrics), or widen low and high of rollout.correction_bounds"
            )
        set_learning_rate(self.optimizer, learning_rate(self.config, step, self.steps))
        set_learning(self.policy.model)
        rng = np.random.default_rng(seed)
        totals = _Totals()
        for _ in range(self.config.epochs or 1):
            totals.add(self._epoch(rows, rng, on_learned))
        return self._figures(totals)

    def _figures(self, totals: _Totals) -> dict[str, float]:
        figures = {
            "update/loss": totals.loss / totals.steps,
            "update/grad_norm": totals.grad_norm / totals.steps,
            "update/learning_rate": self.optimizer.param_groups[0]["lr"],
            "update/epochs": totals.epochs,
            "update/tokens": totals.tokens,
            "update/model_tokens": totals.model_tokens,
        }
        for name, metric in sorted(totals.metrics.items()):
            figures[f"update/{name}"] = metric.reduced(totals.tokens)
        return figures

    def _epoch(
        self, rows: Sequence[Sample], rng: np.random.Generator, on_learned: OnLearned
    ) -> _Totals:
        totals = _Totals(epochs=1)
        order = rng.permutation(len(rows))
        for part in np.array_split(order, num_mini_batches(self.config, len(rows))):
            totals.add(self._optimizer_step([rows[i] for i in part], on_learned))
        return totals

    def _optimizer_step(self, rows: Sequence[Sample], on_learned: OnLearned = _unheard) -> _Totals:
        # The loss is a mean over the mini-batch, so sizes are counted before `merge` drops rows.
        sizes = {
            "num_tokens": sum(row.num_actions for row in rows),
            "num_sequences": len(rows),
        }
        if self._is_linear:
            rows = merge(rows)
        totals = _Totals(steps=1)
        self.optimizer.zero_grad()  # gradients of a failed step may be left
        if self._makes_gradients:
            make_gradients(self.policy.model)
        rank_totals = _Totals()
        whole = max(1, sum(row.length for row in rows))
        worth = sizes["num_sequences"] / whole  # rows that a token stands for
        worth *= self.policy.processes.size / self.policy.num_sharing
        for part, batch in self.policy.indexed_batches(rows, self.config.micro_batch_tokens):
            rank_totals.add(self._accumulate(batch, sizes))
            on_learned(worth * sum(rows[i].length for i in part), batch.num_tokens)
        # Processes that share sequences have the same totals: count one of each team.
        for gathered in self.policy.processes.gather(rank_totals)[:: self.policy.num_sharing]:
            totals.add(gathered)
        totals.grad_norm = clip_grad_norm(self.policy.model.parameters(), self.config.max_grad_norm)
        for name, value in (("loss", totals.loss), ("grad_norm", totals.grad_norm)):
            if not math.isfinite(value):
                raise NotFinite(
                    f"the {name} is {value}: lower optimizer.learning_rate or "
                    "optimizer.max_grad_norm"
                )
        if totals.trained:
            self._check_drift(totals)
            self.optimizer.step()
        self.optimizer.zero_grad()  # rollouts come next, which take memory
        return totals

    def _check_drift(self, totals: _Totals) -> None:
        """Let the alarm check the first mini-batch, the same in all processes: they stop as one."""
        if self._alarm is not None and totals.drift is not None:
            self._alarm.check(totals.drift, totals.tokens)
            self._alarm = None

    def _accumulate(self, batch: TokenBatch, sizes: Mapping[str, int]) -> _Totals:
        """Add the gradient of a micro-batch; `sizes` are those of its mini-batch."""
        if self.reference is not None and not self._is_linear:
            with torch.no_grad():  # [B, T]
                reference_logprob, _ = self.reference.logprobs(batch, self.temperature)
            batch = replace(batch, reference_logprob=reference_logprob)
        # [B, T] each, with gradients; the entropy has one only if the loss reads it.
        logprob, entropy = self.policy.logprobs(
            batch, self.temperature, entropy_gradient=self._with_entropy
        )
        drift = None if self._alarm is None else drift_of(logprob, batch)
        corrected: dict[str, Metric] = {}
        if self._correction is not None:
            batch, corrected = self._correction.apply(logprob.detach(), batch)
        # Else rejected tokens have advantage 0, and the loss learns nothing from them.
        all_count = self._correction is None or not self._is_linear
        optional = {"entropy": entropy} if self._with_entropy else {}
        loss, metrics = self._loss(logprob, batch, **sizes, **optional)
        loss.backward()  # type: ignore[no-untyped-call]
        tokens = float(batch.action_mask.sum())
        return _Totals(
            loss=float(loss.detach()),
            tokens=tokens,
            model_tokens=batch.num_tokens if tokens else 0,  # 0 for a padding sample
            trained=tokens if all_count else float((batch.advantage != 0).sum()),
            drift=drift,
            metrics={**metrics, **corrected, "entropy": Metric(float(entropy.detach().sum()))},
        )


def make_learner(
    config: Config, policy: Policy, reference: Policy | None, *, is_resumed: bool = False
) -> Learner:
    """Return the learner of a run; the reference serves its KL penalty, if it has one."""
    loss = loss_settings(config)
    return Learner(
        policy,
        reference if loss.get("kl_coefficient") else None,
        config.optimizer,
        methods.get(config.method.name).loss,
        loss,
        config.agent.temperature,
        steps=config.run.steps,
        correction=update_correction(config),
        alarm=alarm_of(config, policy, is_resumed=is_resumed),
    )


def learning_rate(config: OptimizerConfig, step: int, steps: int) -> float:
    """Return a step's learning rate: a linear rise, then a fall to `final_share` at the end."""
    rise = (step + 1) / max(1, config.warmup_steps)
    done = (step + 1 - config.warmup_steps) / max(1, steps - config.warmup_steps)
    left = 1.0 - min(1.0, max(0.0, done))
    falls = {"constant": 1.0, "linear": left, "cosine": (1 - math.cos(math.pi * left)) / 2}
    share = config.final_share + (1 - config.final_share) * falls[config.schedule]
    return config.learning_rate * min(1.0, rise, share)


def set_learning_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    """Set the learning rate of the optimizer."""
    for group in optimizer.param_groups:
        group["lr"] = rate
