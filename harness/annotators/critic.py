"""The critic of PPO: the value of a state under the policy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final, Literal

import numpy as np
import torch

from harness.annotators.context import AnnotatorContext, optimizer_step
from harness.credit import TurnTable
from harness.credit.estimators.gae import gae_returns
from harness.credit.registry import layers
from harness.credit.tokens import by_turn
from harness.distributed import fsdp
from harness.losses.value import value_loss
from harness.model.learning_mode import evaluating, set_learning
from harness.model.packing import Sample, TokenBatch
from harness.types.arrays import Floats
from harness.types.errors import ConfigError
from harness.types.hyperparameters import integer, number, one_of
from harness.types.rollout import Rollout, lengths_of

_RETURNS: Final = ("gamma", "lam", "invalid_penalty", "penalty_on")
"""The hyperparameters of `gae` that define the critic's targets."""


@dataclass(frozen=True, slots=True)
class CriticSettings:
    """The critic's model and optimizer."""

    # "own": a trained copy of the policy's trunk; "head": the policy's features
    model: Literal["own", "head"] = "own"
    learning_rate: float = 1e-5  # the trunk's; more than 0
    head_learning_rate: float = 1e-3  # the linear head's; more than 0
    weight_decay: float = 0.01  # 0 or more
    max_grad_norm: float = 1.0  # more than 0
    clip: float | None = 0.5  # range around the old value, in units of the return; None: no clip
    epochs: int = 1  # passes over a step's rows
    mini_batches: int = 4  # optimizer steps of a pass

    def __post_init__(self) -> None:
        one_of("critic.model", self.model, ("own", "head"))
        for name in ("learning_rate", "head_learning_rate"):
            number(f"critic.{name}", getattr(self, name), 1e-12, 10.0)
        number("critic.max_grad_norm", self.max_grad_norm, 1e-12)
        if self.clip is not None:
            number("critic.clip", self.clip, 1e-12)
        number("critic.weight_decay", self.weight_decay, 0.0)
        integer("critic.epochs", self.epochs, 1)
        integer("critic.mini_batches", self.mini_batches, 1)


class Critic:
    """Fills `value`: the value of the state before each turn, or before each token.

    V is linear in the last layer's features of the token before; for a turn this is the prompt's
    last token. All initial values are 0. The loss is PPO's clipped value loss on the returns of
    `gae`.
    Reference: PPO, arXiv:1707.06347, section 5, with separate models for policy and value.
    """

    columns: ClassVar[tuple[str, ...]] = ("value",)

    def __init__(self, settings: CriticSettings, context: AnnotatorContext) -> None:
        if context.context == "summary" and context.rows == "turn":
            raise ConfigError(
                "a critic of turns cannot learn with agent.context = 'summary', where a turn may "
                "have two answers: set method.rows = 'token', or take another method"
            )
        self._settings, self._context = settings, context
        self._has_own_trunk = settings.model == "own"
        self.trunk = context.policy.trainable_copy() if self._has_own_trunk else context.policy
        if self._has_own_trunk:
            self.trunk.shard(context.processes)
        width = int(self.trunk.model.config.get_text_config().hidden_size)
        device = self.trunk.device if context.processes.size == 1 else context.processes.device
        self.head = torch.nn.Linear(width, 1).to(device)
        torch.nn.init.zeros_(self.head.weight)
        torch.nn.init.zeros_(self.head.bias)
        self._run_head: fsdp.Run = fsdp.run_directly
        replicas = self.trunk.layout.replicas
        if context.processes.size > 1:
            self._run_head = fsdp.shard(self.head, device, fsdp.Layout(replicas=replicas))
        trained: list[dict[str, Any]] = [
            {"params": list(self.head.parameters()), "lr": settings.head_learning_rate}
        ]
        if self._has_own_trunk:
            trunk = list(self.trunk.model.base_model.parameters())
            trained.append({"params": trunk, "lr": settings.learning_rate})
        self._optimizer = torch.optim.AdamW(trained, weight_decay=settings.weight_decay)

    def annotate(self, turns: TurnTable, rollouts: Sequence[Rollout]) -> TurnTable:
        """Return the table with its values."""
        rows = self._context.sequences(rollouts)
        found: dict[int, Floats] = {}
        with evaluating(self.trunk.model), torch.no_grad():
            for part, batch in self.trunk.indexed_batches(rows, self._context.max_tokens):
                where = self._value_mask(batch)  # [B, T]
                value, mask = self._values(batch, where).double().cpu().numpy(), where.cpu().numpy()
                found |= {i: v[m] for i, v, m in zip(part, value, mask, strict=False)}
        for others in self._context.processes.gather(found):
            found |= others
        return replace(turns, value=np.concatenate([found[i] for i in range(len(rows))]))

    def learn(
        self, turns: TurnTable, rollouts: Sequence[Rollout], *, step: int, seed: int
    ) -> dict[str, float]:
        """Train on the returns of the rollouts and return figures."""
        assert turns.value is not None
        own = dict(layers(self._context.estimator, self._context.credit)).get("gae", {})
        chosen = {name: own[name] for name in _RETURNS if name in own}
        returns = gae_returns(turns, **chosen)  # [N]
        rows = self._targets(rollouts, returns, turns.value)
        rng = np.random.default_rng(seed)
        sums: Counter[str] = Counter()
        for _ in range(self._settings.epochs):
            order = rng.permutation(len(rows))
            for part in np.array_split(order, min(self._settings.mini_batches, len(rows))):
                sums.update(self._step([rows[i] for i in part]))
        return {
            "critic/loss": sums["loss"] / sums["steps"],
            "critic/grad_norm": sums["grad_norm"] / sums["steps"],
        }

    def state_dict(self) -> dict[str, Any]:
        """Return weights and optimizer state; without the trunk if it is the policy's."""
        state = {
            "head": fsdp.own_state(self.head),
            "optimizer": fsdp.optimizer_state(self._optimizer, self._unique_parameters()),
        }
        return (
            {**state, "trunk": fsdp.own_state(self.trunk.model)} if self._has_own_trunk else state
        )

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from `state_dict`."""
        if self._has_own_trunk:
            fsdp.load_full_state(self.trunk.model, state["trunk"])
        fsdp.load_full_state(self.head, state["head"])
        fsdp.load_optimizer_state(self._optimizer, self._unique_parameters(), state["optimizer"])

    def _unique_parameters(self) -> Iterator[tuple[str, torch.Tensor]]:
        """Yield (name, parameter) pairs, each parameter once."""
        for name, parameter in self.head.named_parameters():
            yield f"head.{name}", parameter
        for name, parameter in self.trunk.model.named_parameters():
            yield f"trunk.{name}", parameter

    def _value_mask(self, batch: TokenBatch) -> torch.Tensor:
        """Return a mask of the tokens that a value is predicted before. Shape [B, T]."""
        if self._context.rows == "token":
            return batch.action_mask
        # A turn's first action token is the first with its number: -1 stands for no turn.
        latest = batch.turn.cummax(dim=1).values  # [B, T]
        before = torch.cat([torch.full_like(latest[:, :1], -1), latest[:, :-1]], dim=1)
        return batch.action_mask & (batch.turn > before)

    def _values(self, batch: TokenBatch, where: torch.Tensor) -> torch.Tensor:
        """Return the values before the tokens where the mask is True, else 0. Shape [B, T]."""
        with torch.set_grad_enabled(self._has_own_trunk and torch.is_grad_enabled()):
            feature = self.trunk.features(batch, where).float()  # [V, H]
        value = torch.zeros(batch.tokens.shape, device=feature.device)
        # The feature of token t - 1 predicts the value before token t; V of them are scored.
        value[:, 1:][where[:, 1:]] = self._run_head(self.head, feature)[:, 0]
        return value

    def _targets(self, rollouts: Sequence[Rollout], returns: Floats, value: Floats) -> list[Sample]:
        """Return sequences with returns for advantages and old values for log-probabilities."""
        lengths = lengths_of(rollouts)
        if self._context.rows == "turn":
            # [N] -> [A]: the mask picks the first token of each turn.
            returns, value = np.repeat(returns, lengths), np.repeat(value, lengths)
        packed = self._context.sequences(rollouts, by_turn(returns, lengths))
        # A transcript packs several turns, so the old values are cut anew, by sequence.
        sizes = np.cumsum([row.num_actions for row in packed])[:-1]
        values = np.split(value, sizes)
        return [
            replace(row, old_logprobs=tuple(own.tolist()))
            for row, own in zip(packed, values, strict=True)
        ]

    def _step(self, rows: Sequence[Sample]) -> dict[str, float]:
        counts_turns = self._context.rows == "turn"
        # The loss is a mean over the whole mini-batch, not over each micro-batch.
        count = sum(_num_turns(row) if counts_turns else row.num_actions for row in rows)
        if self._has_own_trunk:
            set_learning(self.trunk.model)
        self._optimizer.zero_grad()
        total = 0.0
        for batch in self.trunk.micro_batches(rows, self._context.max_tokens):
            where = self._value_mask(batch)
            value = self._values(batch, where)
            loss = value_loss(
                value,
                batch.old_logprob,
                batch.advantage,
                where,
                self._settings.clip,
                num_values=count,
            )
            loss.backward()  # type: ignore[no-untyped-call]
            total += float(loss.detach())
        total = sum(self._context.processes.gather(total))
        norm = optimizer_step(self._optimizer, self._settings.max_grad_norm, "the critic")
        return {"loss": total, "grad_norm": norm, "steps": 1}


def _num_turns(row: Sample) -> int:
    return max(row.turn, default=0) + 1  # a row without turns, a window, is one turn
