"""Implicit process reward models: a turn's reward is a log-ratio of two language models."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np
import torch

from harness.annotators import text_reader
from harness.annotators.context import AnnotatorContext, optimizer_step
from harness.credit import TurnTable
from harness.credit.preferences import Pairs, cross_entropy, cross_entropy_slope
from harness.credit.shared import episode_returns
from harness.distributed import fsdp
from harness.model.learning_mode import set_learning
from harness.model.packing import Sample, merge
from harness.types.arrays import Bools, Floats, Ints
from harness.types.errors import ConfigError, TrainingError
from harness.types.hyperparameters import integer, number, one_of
from harness.types.rollout import Rollout, lengths_of


@dataclass(frozen=True, slots=True)
class ProcessRewardSettings:
    """Objective and optimizer of a process reward model.

    A policy that sees may have a text `model` as the initial pi_phi, with the policy's tokenizer: a
    folder, a hub name or `"tiny"`. It reads each observation's text in place of its picture.
    """

    objective: Literal["dpo", "ce"] = "dpo"  # "dpo": pairs of a group (OPRL); "ce": success (PRIME)
    beta: float = 0.05  # scale of the reward, more than 0
    update: Literal["before", "after"] = "before"  # when it learns: before or after scoring
    # a rollout with a larger return, `reward_scale` included, is positive; None takes successes
    threshold: float | None = None
    learning_rate: float = 1e-6
    weight_decay: float = 0.01
    max_grad_norm: float = 1.0  # more than 0
    mini_batches: int = 1  # optimizer steps, each with a part of the groups
    model: str | None = None  # None copies the policy

    def __post_init__(self) -> None:
        one_of("process_reward.objective", self.objective, ("dpo", "ce"))
        one_of("process_reward.update", self.update, ("before", "after"))
        if self.threshold is not None:
            number("process_reward.threshold", self.threshold)
        number("process_reward.learning_rate", self.learning_rate, 1e-12, 10.0)
        for name in ("beta", "max_grad_norm"):
            number(f"process_reward.{name}", getattr(self, name), 1e-12)
        number("process_reward.weight_decay", self.weight_decay, 0.0)
        integer("process_reward.mini_batches", self.mini_batches, 1)
        if self.model is not None and (not isinstance(self.model, str) or not self.model):
            raise ConfigError(
                f"process_reward.model must be a folder or a hub name, got {self.model!r}"
            )

    @property
    def needs_reference(self) -> bool:
        """Whether the denominator is the reference policy, not the policy of the rollouts."""
        return self.objective == "ce"


class ProcessReward:
    """Fills `process_reward`: beta * (log pi_phi - log pi_den), summed over a turn's tokens.

    pi_phi starts as a copy of the policy, or as a text model (`model`). With the objective "dpo"
    pi_den is the policy of the rollouts; the loss is the mean over all pairs of a success and a
    failure of one group of -log sigmoid(R+ - R-). With "ce" pi_den is the reference policy and the
    loss is the cross-entropy of sigmoid(R) and success. R is a rollout's summed reward.
    Reference: OPRL, Eqs. 1 and 2. The paper has both orders: the overview of section 3.1 trains the
    model before scoring; Algorithm 1 and a later part of section 3.1 score first, with the model
    "from the previous training step". This is update "after"; then all rewards of the first step
    are 0. PRIME, arXiv:2502.01456, whose algorithm scores first.
    Departs from them: a mini-batch has complete groups, so every pair counts.

    Gradients take two passes: scores of all rollouts, without a graph, give the derivative of the
    loss in each R; then each sequence alone is weighted by its rollout's derivative. So memory does
    not grow with the group size.
    """

    columns: ClassVar[tuple[str, ...]] = ("process_reward",)

    def __init__(self, settings: ProcessRewardSettings, context: AnnotatorContext) -> None:
        self._settings, self._context = settings, context
        self.model = (
            context.policy.trainable_copy()
            if settings.model is None
            else text_reader.load(settings.model, context.policy)
        )
        self.model.shard(context.processes)
        self._optimizer = torch.optim.AdamW(
            self.model.model.parameters(),
            lr=settings.learning_rate,
            weight_decay=settings.weight_decay,
        )
        self._figures: dict[str, float] = {}

    def annotate(self, turns: TurnTable, rollouts: Sequence[Rollout]) -> TurnTable:
        """Return the table with its rewards; the model learns before or after scoring."""
        old, rollouts = self._denominator(rollouts), self._readable(rollouts)
        positive = self._positive(turns)
        if self._settings.update == "before":  # section 3.1's overview; "after" is Algorithm 1
            self._figures = self._learn(turns, rollouts, positive, old)
        rows = self._reward(rollouts, old)
        if self._settings.update == "after":
            self._figures = self._learn(turns, rollouts, positive, old)
        return replace(turns, process_reward=rows)

    def scored(self, rollouts: Sequence[Rollout]) -> Floats:
        """Return the reward of each row of the table; nothing is learned. Shape [N]."""
        return self._reward(self._readable(rollouts), self._denominator(rollouts))

    def learn(
        self, turns: TurnTable, rollouts: Sequence[Rollout], *, step: int, seed: int
    ) -> dict[str, float]:
        """Return the figures of the step; the model has learned already."""
        return self._figures

    def state_dict(self) -> dict[str, Any]:
        """Return weights and optimizer."""
        return {
            "model": fsdp.own_state(self.model.model),
            "optimizer": fsdp.optimizer_state(self._optimizer, self.model.model.named_parameters()),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from `state_dict`."""
        own = self.model.model
        fsdp.load_full_state(own, state["model"])
        fsdp.load_optimizer_state(self._optimizer, own.named_parameters(), state["optimizer"])

    def _denominator(self, rollouts: Sequence[Rollout]) -> Floats:
        """Return log pi_den of each token. Shape [A]."""
        context = self._context
        denominator = context.reference if self._settings.needs_reference else context.policy
        assert denominator is not None
        return context.scores(denominator, rollouts)[0]

    def _readable(self, rollouts: Sequence[Rollout]) -> Sequence[Rollout]:
        if self._settings.model is None:
            return rollouts
        return text_reader.readable(rollouts, self._context.policy)

    def _reward(self, rollouts: Sequence[Rollout], old: Floats) -> Floats:
        reward = self._settings.beta * (self._context.scores(self.model, rollouts)[0] - old)
        return self._context.as_rows(reward, lengths_of(rollouts))

    def _positive(self, turns: TurnTable) -> Bools:
        if self._settings.threshold is None:
            return turns.success[turns.starts]
        return episode_returns(turns) > self._settings.threshold

    def _learn(
        self, turns: TurnTable, rollouts: Sequence[Rollout], positive: Bools, old: Floats
    ) -> dict[str, float]:
        """Take one optimizer step for each part of the groups and return the means of figures."""
        group = turns.group[turns.starts]
        tokens = np.asarray([_num_tokens(rollout) for rollout in rollouts])  # [R]
        owner = np.repeat(np.arange(len(rollouts)), tokens)  # [A] the rollout of each token
        names = np.unique(group)
        sums: dict[str, float] = defaultdict(float)
        parts = np.array_split(names, min(self._settings.mini_batches, len(names)))
        for part in parts:
            chosen = np.flatnonzero(np.isin(group, part))
            members = [rollouts[i] for i in chosen.tolist()]
            part_old = old[np.isin(owner, chosen)]
            made = self._step(members, group[chosen], positive[chosen], part_old)
            for name, value in made.items():
                sums[name] += value
        figures = {
            "process_reward/loss": sums["loss"] / len(parts),
            "process_reward/grad_norm": sums["grad_norm"] / len(parts),
            "process_reward/pairs": float(sums["pairs"]),
        }
        if sums["pairs"]:  # else no pair can be told right or wrong
            figures["process_reward/pair_accuracy"] = sums["right"] / sums["pairs"]
        return figures

    def _step(
        self, rollouts: Sequence[Rollout], group: Ints, positive: Bools, old: Floats
    ) -> dict[str, float]:
        tokens = np.asarray([_num_tokens(rollout) for rollout in rollouts])
        ratio = self._context.scores(self.model, rollouts)[0] - old
        score = self._settings.beta * np.add.reduceat(ratio, np.cumsum(tokens) - tokens)  # [R]
        if not np.isfinite(score).all():
            raise TrainingError("the reward model's scores are not finite: lower its learning_rate")
        pairs = Pairs.within(group, positive)
        # The slope is d loss / d R; the second pass gives it to R's log-probabilities. [R]
        if self._settings.objective == "dpo":
            loss, slope = pairs.loss(score), pairs.slope(score)
        else:
            loss, slope = cross_entropy(score, positive), cross_entropy_slope(score, positive)
        weight = np.repeat(
            self._settings.beta * slope,  # [N]
            [len(rollout.turns) for rollout in rollouts],
        )
        rows = merge(self._context.sequences(rollouts, weight))
        return {
            "loss": loss,
            "pairs": len(pairs),
            "right": pairs.accuracy(score) * len(pairs),
            "grad_norm": self._descend(rows) if rows else 0.0,
        }

    def _descend(self, rows: Sequence[Sample]) -> float:
        """Take an optimizer step that minimises the weighted sum of log-probabilities."""
        set_learning(self.model.model)
        self._optimizer.zero_grad()
        for batch in self.model.micro_batches(rows, self._context.max_tokens):
            logprob, _ = self.model.logprobs(batch, self._context.temperature)
            (logprob * batch.advantage).sum().backward()  # type: ignore[no-untyped-call]
        norm = optimizer_step(self._optimizer, self._settings.max_grad_norm, "the reward model")
        self.model.model.eval()
        return norm


def _num_tokens(rollout: Rollout) -> int:
    return sum(turn.num_sampled for turn in rollout.turns)
