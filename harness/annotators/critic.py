"""The critic of PPO: what a state is worth under the policy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final, Literal

import numpy as np
import torch

from harness import sharding
from harness.annotators.surroundings import Surroundings, lengths_of, optimizer_step
from harness.credit import TurnTable
from harness.credit.arguments import number, one_of, whole
from harness.credit.gae import gae_returns
from harness.credit.registry import layers
from harness.credit.table import Floats
from harness.credit.tokens import by_turn
from harness.losses.value import value_loss
from harness.packing import Sample, TokenBatch
from harness.rollout import Rollout

_RETURNS: Final = ("gamma", "lam")
"""Hyperparameters of `gae` that decide what the critic learns."""


@dataclass(frozen=True, slots=True)
class CriticSettings:
    """The critic's model, and how it learns.

    Attributes:
        model: `"own"`: a copy of the policy's trunk, trained; `"head"`: the policy's own features,
            which the critic leaves as they are.
        learning_rate: Of the trunk; more than 0.
        head_learning_rate: Of the linear head; more than 0.
        weight_decay: Of AdamW; 0 or more.
        max_grad_norm: Longest gradient; more than 0.
        clip: How far a value may move from the one given to the rollouts, in units of the return;
            None lets it go.
        epochs: Passes over a step's rows; 1 or more.
        mini_batches: Parts of a pass, one optimizer step each; 1 or more.
    """

    model: Literal["own", "head"] = "own"
    learning_rate: float = 1e-5
    head_learning_rate: float = 1e-3
    weight_decay: float = 0.01
    max_grad_norm: float = 1.0
    clip: float | None = 0.5
    epochs: int = 1
    mini_batches: int = 4
    needs_reference: ClassVar[bool] = False

    def __post_init__(self) -> None:
        """Raise `ConfigError` if a value is out of range."""
        one_of("critic.model", self.model, ("own", "head"))
        for name in ("learning_rate", "head_learning_rate", "max_grad_norm"):
            number(f"critic.{name}", getattr(self, name), 1e-12)
        if self.clip is not None:
            number("critic.clip", self.clip, 1e-12)
        number("critic.weight_decay", self.weight_decay, 0.0)
        whole("critic.epochs", self.epochs, 1)
        whole("critic.mini_batches", self.mini_batches, 1)


class Critic:
    """Fills `value`: of the state a turn starts in, or before each token.

    V is linear in the last layer's features of the token before: the prompt's last one for a turn.
    It starts at 0 everywhere. It learns by PPO's clipped value loss on the returns of `gae`.
    Reference: PPO, arXiv:1707.06347, section 5, with models of their own for policy and value.

    Attributes:
        trunk: The model whose features it reads.
        head: Linear, H -> 1.
    """

    columns: ClassVar[tuple[str, ...]] = ("value",)

    def __init__(self, settings: CriticSettings, around: Surroundings) -> None:
        """Copy the policy, or borrow it."""
        self._settings, self._around = settings, around
        self._owns = settings.model == "own"
        self.trunk = around.policy.trainable_copy() if self._owns else around.policy
        if self._owns:
            self.trunk.shard(around.ranks)
        width = int(self.trunk.model.config.get_text_config().hidden_size)
        device = self.trunk.device if around.ranks.size == 1 else around.ranks.device
        self.head = torch.nn.Linear(width, 1).to(device)
        torch.nn.init.zeros_(self.head.weight)
        torch.nn.init.zeros_(self.head.bias)
        self._of_head: sharding.Run = sharding.directly
        if around.ranks.size > 1:
            self._of_head = sharding.shard(self.head, device)
        trained: list[dict[str, Any]] = [
            {"params": list(self.head.parameters()), "lr": settings.head_learning_rate}
        ]
        if self._owns:
            trunk = list(self.trunk.model.base_model.parameters())
            trained.append({"params": trunk, "lr": settings.learning_rate})
        self._optimizer = torch.optim.AdamW(trained, weight_decay=settings.weight_decay)

    def annotate(self, turns: TurnTable, rollouts: Sequence[Rollout]) -> TurnTable:
        """Return the table with its values."""
        rows = self._around.sequences(rollouts)
        found: dict[int, Floats] = {}
        was_training = self.trunk.model.training
        self.trunk.model.eval()
        with torch.no_grad():
            for part, batch in self.trunk.placed_batches(rows, self._around.max_tokens):
                where = self._where(batch)
                value, mask = self._values(batch, where).double().cpu().numpy(), where.cpu().numpy()
                found |= {i: v[m] for i, v, m in zip(part, value, mask, strict=False)}
        self.trunk.model.train(was_training)
        for others in self._around.ranks.gather(found):
            found |= others
        return replace(turns, value=np.concatenate([found[i] for i in range(len(rows))]))

    def learn(
        self, turns: TurnTable, rollouts: Sequence[Rollout], *, step: int, seed: int
    ) -> dict[str, float]:
        """Train on the returns of the rollouts and return figures."""
        assert turns.value is not None
        returns = gae_returns(turns, **self._discounts())
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
        """Return weights and optimizer; not the policy's, if it is borrowed."""
        state = {
            "head": sharding.full_state(self.head),
            "optimizer": sharding.optimizer_state(self._optimizer, self._named()),
        }
        return {**state, "trunk": sharding.full_state(self.trunk.model)} if self._owns else state

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from `state_dict`."""
        if self._owns:
            sharding.load_full_state(self.trunk.model, state["trunk"])
        sharding.load_full_state(self.head, state["head"])
        sharding.load_optimizer_state(self._optimizer, self._named(), state["optimizer"])

    def _named(self) -> Iterator[tuple[str, torch.Tensor]]:
        """Yield all parameters with names of which each is another's."""
        for name, parameter in self.head.named_parameters():
            yield f"head.{name}", parameter
        for name, parameter in self.trunk.model.named_parameters():
            yield f"trunk.{name}", parameter

    def _discounts(self) -> dict[str, float]:
        """Return the settings of `gae` that returns depend on, wherever it is in the estimator."""
        found = dict(layers(self._around.estimator, self._around.credit)).get("gae", {})
        return {name: found[name] for name in _RETURNS if name in found}

    def _where(self, batch: TokenBatch) -> torch.Tensor:
        """Return the tokens before which a value is asked for. Shape [B, T]."""
        if self._around.rows == "token":
            return batch.action_mask
        before = torch.cat([torch.full_like(batch.turn[:, :1], -1), batch.turn[:, :-1]], dim=1)
        return batch.action_mask & (batch.turn != before)

    def _values(self, batch: TokenBatch, where: torch.Tensor) -> torch.Tensor:
        """Return values before the tokens `where` is True, 0 elsewhere. Shape [B, T]."""
        with torch.set_grad_enabled(self._owns and torch.is_grad_enabled()):
            feature = self.trunk.features(batch, where).float()  # [V, H]
        value = torch.zeros(batch.tokens.shape, device=feature.device)
        value[:, 1:][where[:, 1:]] = self._of_head(self.head, feature)[:, 0]
        return value

    def _targets(self, rollouts: Sequence[Rollout], returns: Floats, value: Floats) -> list[Sample]:
        """Return sequences with returns for advantages and old values for log-probabilities."""
        lengths = lengths_of(rollouts)
        if self._around.rows == "turn":
            returns, value = np.repeat(returns, lengths), np.repeat(value, lengths)
        packed = self._around.sequences(rollouts, by_turn(returns, lengths))
        sizes = np.cumsum([row.num_actions for row in packed])[:-1]
        values = np.split(value, sizes)
        return [
            replace(row, old_logprobs=tuple(own.tolist()))
            for row, own in zip(packed, values, strict=True)
        ]

    def _step(self, rows: Sequence[Sample]) -> dict[str, float]:
        """Take one optimizer step."""
        of_turns = self._around.rows == "turn"
        count = sum(_num_turns(row) if of_turns else row.num_actions for row in rows)
        if self._owns:
            self.trunk.model.train()
        self._optimizer.zero_grad()
        total = 0.0
        for batch in self.trunk.micro_batches(rows, self._around.max_tokens):
            where = self._where(batch)
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
        total = sum(self._around.ranks.gather(total))
        norm = optimizer_step(self._optimizer, self._settings.max_grad_norm, "the critic")
        return {"loss": total, "grad_norm": norm, "steps": 1}


def _num_turns(row: Sample) -> int:
    return max(row.turn, default=0) + 1
