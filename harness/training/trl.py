"""Trains with TRL's GRPOTrainer on the credit of this harness.

    CreditTrainer(
        model, credit="gigpo", environment_factory=environment_factory("agentgyms/ALFWorld-v0"), ...
    )

TRL plays, computes the loss and steps. The advantages are ours: one for each of the model's
answers, shared by all its sampled tokens.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

from agentgyms.adapters.trl import ToolEnvironment
from agentgyms.core import imports
from harness import credit as estimators
from harness.credit import TurnTable
from harness.credit.registry import needs
from harness.training.trl_rollouts import from_tool_calls
from harness.types.errors import ConfigError, TableError
from harness.types.rollout import Rollout

try:
    from accelerate.utils import gather_object
    from trl import GRPOTrainer
except ModuleNotFoundError as e:
    raise ModuleNotFoundError(imports.missing("trl", "harness,trl"), name=e.name) from e


class CreditTrainer(GRPOTrainer):  # type: ignore[misc]
    """TRL's GRPOTrainer with advantages of any estimator of `harness.credit`.

    An answer after the episode's end, or one that TRL's limit of calls leaves without effect, is no
    turn and has the advantage 0, and so has an episode without a reward. With several processes the
    groups of all of them make one table.

    Args:
        *args: The arguments of GRPOTrainer.
        credit: The estimator's name.
        hyperparameters: The estimator's hyperparameters.
        reward: The reward's name; see `harness.credit.rewards`.
        reward_scale: Factor on the rewards; the papers train on 10.
        **kwargs: GRPOTrainer's; `environment_factory` is one of `agentgyms.adapters.trl`.

    Attributes:
        table: The turn table of the latest batch.

    Raises:
        ConfigError: The estimator, or a hyperparameter, is unknown, it reads columns that only
            annotators fill, or a setting of TRL excludes advantages of turns.
    """

    def __init__(
        self,
        *args: Any,
        credit: str = "gigpo",
        hyperparameters: Mapping[str, Any] | None = None,
        reward: str = "environment",
        reward_scale: float = 1.0,
        **kwargs: Any,
    ) -> None:
        self._credit, self._hyperparameters = credit, dict(hyperparameters or {})
        self._reward, self._reward_scale = reward, reward_scale
        self.table: TurnTable | None = None
        estimators.check(credit, self._hyperparameters)
        unfilled = needs(credit, self._hyperparameters)
        if unfilled:
            raise ConfigError(
                f"estimator {credit!r} reads the column {unfilled[0]!r}, which an annotator fills "
                "in this harness's own trainer; choose one that reads none, such as gigpo"
            )
        super().__init__(*args, **kwargs)
        if self.args.use_liger_kernel:
            raise ConfigError("use_liger_kernel takes one advantage per episode: leave it out")

    def _generate_single_turn(self, *args: Any, **kwargs: Any) -> Any:
        """Generate answers; the calls in them are the next answer's."""
        for player in self._players:
            player.answer_number = self._answers
        self._answers += 1
        return super()._generate_single_turn(*args, **kwargs)

    @property
    def _players(self) -> Sequence[ToolEnvironment]:
        players: Sequence[ToolEnvironment] = self.environments or ()
        return players

    def _generate_and_score_completions(self, inputs: Any) -> dict[str, Any]:
        self._answers = 0
        batch: dict[str, Any] = super()._generate_and_score_completions(inputs)
        batch["advantages"] = self._advantages(batch)
        return batch

    def _advantages(self, batch: Mapping[str, Any]) -> torch.Tensor:
        sampled = batch["completion_mask"] * batch.get("tool_mask", 1)
        answer = answer_of(sampled.cpu().numpy() > 0)
        advantages = self._answer_advantages(answer.max(axis=1, initial=-1) + 1)
        values = np.zeros(answer.shape)  # [B, T]; tokens of the environment keep 0
        for row, advantage in enumerate(advantages):
            known = (answer[row] >= 0) & (answer[row] < len(advantage))
            values[row, known] = advantage[answer[row, known]]
        return torch.tensor(values, dtype=torch.float32, device=sampled.device)

    def _answer_advantages(self, answers: Any) -> list[Any]:
        """Return the advantages of this process's answers, for each of its episodes."""
        limit, first = self.max_tool_calling_iterations, self.accelerator.process_index
        size = self.num_generations if self.model.training else self.num_generations_eval
        played = [
            None
            if player.get_reward() is None
            else from_tool_calls(player.recording, min(int(number), limit))
            for player, number in zip(self._players, answers, strict=True)
        ]
        everywhere: list[Rollout | None] = gather_object(played)
        # TRL repeats each prompt `size` times in a row, across the processes.
        for place, rollout in enumerate(everywhere):
            if rollout is not None:
                rollout.group, rollout.member = divmod(place, size)
        kept = [rollout for rollout in everywhere if rollout is not None and rollout.turns]
        advantage = iter(self._credited(kept))
        found = [
            next(advantage) if rollout is not None and rollout.turns else np.zeros(0)
            for rollout in everywhere
        ]
        return found[first * len(played) : (first + 1) * len(played)]

    def _credited(self, rollouts: Sequence[Rollout]) -> list[Any]:
        check_groups(rollouts)
        if not rollouts:
            return []
        self.table = TurnTable.from_rollouts(
            rollouts, reward=self._reward, reward_scale=self._reward_scale
        )
        advantage = estimators.get(self._credit)(self.table, **self._hyperparameters)
        return np.split(advantage, self.table.starts[1:])


def answer_of(sampled: Any) -> Any:
    """Return the number of each token's answer, or -1 for tokens not sampled. Shapes [B, T]."""
    # [B, T], True where a run of sampled tokens begins
    begins = np.diff(sampled.astype(np.int64), axis=1, prepend=0) == 1
    return np.where(sampled, np.cumsum(begins, axis=1) - 1, -1)


def check_groups(rollouts: Sequence[Rollout]) -> None:
    """Raise `TableError` if episodes of a group started in different states."""
    starts: dict[int, str] = {}
    for rollout in rollouts:
        state = rollout.turns[0].state_key
        if starts.setdefault(rollout.group, state) != state:
            raise TableError(
                f"the episodes of group {rollout.group} started in different states: rows of the "
                "dataset need a seed, as agentgyms.adapters.trl.seeds gives them"
            )
