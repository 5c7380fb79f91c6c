"""The benchmark's domains as the environment plays them."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from agentgyms.core import keys
from agentgyms.core.outcome import Feedback, Outcome
from agentgyms.core.tasks import Task, TaskSet
from agentgyms.envs.tau2.official import conversation, files, state
from agentgyms.envs.tau2.official.conversation import Turn
from agentgyms.envs.tau2.official.customer import Customer, ScriptedCustomer
from agentgyms.envs.tau2.official.database import written
from agentgyms.envs.tau2.official.suggestions import suggestions

_SEED_RANGE: Final = 2**31


class OfficialGame:
    """One episode at a time in a domain of the benchmark."""

    def __init__(self, domain: str, data_path: str | None, model: Customer | None) -> None:
        """Read the domain's data; without a model the customer is scripted.

        See `files.read` for the errors.
        """
        self._domain = files.read(domain, data_path)
        self._customer, self._is_model = model or ScriptedCustomer(), model is not None
        self.version, self.customer = self._domain.version, self._customer.name

    def tasks(self, split: str, families: tuple[str, ...]) -> TaskSet:
        """Return the tasks of a split."""
        return self._domain.tasks(split)

    def begin(self, task: Task, rng: np.random.Generator) -> Outcome:
        """Start with the policy and the customer's first words."""
        found = self._domain.task(task.task_id)
        seed = int(rng.integers(_SEED_RANGE)) if self._is_model else 0
        turn = conversation.begin(self._domain, found, self._customer, seed)
        self.task = found
        return self._outcome(turn)

    def act(self, action: str) -> Outcome:
        """Say something to the customer, or make a call."""
        turn = conversation.step(self._domain, self.task, self._customer, self._state, action)
        return self._outcome(turn)

    def save(self) -> Any:
        """Return the changed records and the state of the conversation."""
        return state.write(self._state)

    def load(self, task: Task, saved: Any) -> None:
        """Restore what `save` returned; no model is asked."""
        found = self._domain.task(task.task_id)
        self._state = state.read(saved, self._domain, found, is_model=self._is_model)
        self.task = found

    def expert_action(self) -> str:
        """Return the expert's next action; "" after the end."""
        return conversation.expert_action(self._domain, self.task, self._state)

    def _outcome(self, turn: Turn) -> Outcome:
        task, now = self.task, turn.state
        self._state = now
        solved = conversation.is_solved(task, now)
        score = math.nan if now.unheard else float(solved)
        wrong = conversation.breaches(task, now)
        atoms = conversation.atoms(task, now)
        needed = [holds for name, holds in atoms.items() if name != "nothing else"]
        malformed = turn.feedback is Feedback.MALFORMED
        known = {name: part for name, part in state.write(now).items() if name != "spent"}
        return Outcome(
            observation=turn.seen,
            state_key=keys.state_key(self.version, task.task_id, written(known)),
            reward=score,
            terminated=now.ended,
            admissible=suggestions(self._domain, task, now),
            admissible_complete=False,
            action_key=keys.INVALID_ACTION if malformed else turn.key,
            feedback=turn.feedback,
            feedback_text=turn.reason,
            progress=0.0 if wrong else sum(needed) / len(needed) if needed else 1.0,
            score=score,
            success=solved,
            metrics={
                "writes": float(sum(map(len, now.changes.values()))),
                "breaches": float(wrong),
                "facts_told": float(sum(now.facts)),
                "errors": float(now.errors),
                "transferred": float(now.transferred),
                **(now.usage.metrics() if self._is_model else {}),
            },
            atoms=atoms,
        )
