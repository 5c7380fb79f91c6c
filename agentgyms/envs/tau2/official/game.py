"""The benchmark's domains as the environment plays them."""

from __future__ import annotations

from typing import Any, Final

from agentgyms.core import keys
from agentgyms.core.outcome import Feedback, Outcome
from agentgyms.core.tasks import Task, TaskSet
from agentgyms.envs.tau2.official import conversation, customer, files
from agentgyms.envs.tau2.official.conversation import Turn
from agentgyms.envs.tau2.official.database import written


class OfficialGame:
    """One episode at a time in a domain of the benchmark."""

    customer: Final = customer.NAME

    def __init__(self, domain: str, data_path: str | None) -> None:
        """Read the domain's data; see `files.read` for the errors."""
        self._domain = files.read(domain, data_path)
        self.version = self._domain.version

    def tasks(self, split: str, families: tuple[str, ...]) -> TaskSet:
        """Return the tasks of a split."""
        return self._domain.tasks(split)

    def begin(self, task: Task) -> Outcome:
        """Start with the policy and the customer's first words."""
        self.task = self._domain.task(task.task_id)
        return self._outcome(conversation.begin(self._domain, self.task))

    def act(self, action: str) -> Outcome:
        """Say something to the customer, or make a call."""
        return self._outcome(conversation.step(self._domain, self.task, self._state, action))

    def save(self) -> Any:
        """Return the changed records and the state of the conversation."""
        return conversation.write(self._state)

    def load(self, task: Task, state: Any) -> None:
        """Restore what `save` returned."""
        found = self._domain.task(task.task_id)
        self._state = conversation.read(state, self._domain, found)
        self.task = found

    def expert_action(self) -> str:
        """Return the expert's next action; "" after the end."""
        return conversation.expert_action(self._domain, self.task, self._state)

    def _outcome(self, turn: Turn) -> Outcome:
        task, state = self.task, turn.state
        self._state = state
        solved = conversation.is_solved(task, state)
        wrong = conversation.breaches(task, state)
        atoms = conversation.atoms(task, state)
        needed = [holds for name, holds in atoms.items() if name != "nothing else"]
        malformed = turn.feedback is Feedback.MALFORMED
        return Outcome(
            observation=turn.seen,
            state_key=keys.state_key(
                self.version, task.task_id, written(conversation.write(state))
            ),
            reward=float(solved),
            terminated=state.ended,
            admissible=conversation.suggestions(self._domain, state),
            admissible_complete=False,
            action_key=keys.INVALID_ACTION if malformed else turn.key,
            feedback=turn.feedback,
            feedback_text=turn.reason,
            progress=0.0 if wrong else sum(needed) / len(needed) if needed else 1.0,
            score=float(solved),
            success=solved,
            metrics={
                "writes": float(sum(map(len, state.changes.values()))),
                "breaches": float(wrong),
                "facts_told": float(sum(state.facts)),
                "errors": float(state.errors),
                "transferred": float(state.transferred),
            },
            atoms=atoms,
        )
