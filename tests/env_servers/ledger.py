"""An environment whose state is the list of all acts: one too many or too few shows at once."""

from __future__ import annotations

from typing import Any, Final

import gymnasium as gym
import numpy as np

from agentgyms.core import keys
from agentgyms.core.env import Outcome, TextEnv
from agentgyms.core.tasks import Task, TaskSet

LEDGER: Final = "tests/Ledger-v0"
SERVED: Final = f"ledger:{LEDGER}"
"""The id as a server in another process takes it."""


class LedgerEnv(TextEnv):
    """Every act is entered; `end` ends the episode."""

    default_max_turns = 40
    splits = ("train",)

    def load_tasks(self) -> TaskSet:
        return TaskSet("train", [Task(f"train/{i}", "ledger") for i in range(10)])

    def begin(self, task: Task, rng: np.random.Generator) -> Outcome:
        self._entries = [int(rng.integers(1_000_000))]
        return self._outcome("begin")

    def goal(self, task: Task) -> str:
        return "keep the books"

    def act(self, action: str) -> Outcome:
        self._entries.append(len(action) + 31 * self._entries[-1] % 1_000_003)
        return self._outcome(action)

    def save(self) -> Any:
        return list(self._entries)

    def load(self, task: Task, state: Any) -> None:
        self._entries = list(state)

    def _outcome(self, action: str) -> Outcome:
        return Outcome(
            observation=f"{len(self._entries)} entries, after {action!r}: {self._entries}",
            state_key=keys.state_key("ledger", self._entries),
            reward=self._entries[-1] % 7 / 7,
            terminated=action == "end",
            admissible=["debit", "credit", "wait", "end"],
            admissible_complete=False,
            action_key=action,
            progress=len(self._entries) / 100,
            score=0.0,
        )


gym.register(LEDGER, entry_point=LedgerEnv)
