"""A corridor with a door at its end: the smallest environment, which many tests use."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from agentgyms.core import keys
from agentgyms.core.env import Feedback, Outcome, TextEnv
from agentgyms.core.randomness import generator_of
from agentgyms.core.tasks import Task, TaskSet
from agentgyms.core.tools import Argument, Tool, Tools
from agentgyms.exact import Transition

_COUNTS = {"train": 40, "valid_seen": 8, "valid_unseen": 8, "sample": 4}


class CorridorEnv(TextEnv):
    """Walk `left` or `right` along a corridor to the door, then `open door`.

    The reward is 1 when the door opens, else 0. Half of the doors are locked: the key lies in the
    corridor, and `take key` takes it. Tasks differ in length and in the place of the key.
    """

    default_max_turns = 20
    splits = tuple(_COUNTS)
    tools = Tools(
        Tool(
            "walk",
            "Walk one step along the corridor.",
            "{direction}",
            {"direction": Argument("Where to walk.", choices=("left", "right"))},
        ),
        Tool("take_key", "Take the key that lies here.", "take key"),
        Tool("open_door", "Open the door; a locked one needs the key.", "open door"),
    )

    def load_tasks(self) -> TaskSet:
        """Return tasks such as `valid_seen/locked-003`."""
        kinds = ("free", "locked")
        names = [
            (kinds[i % 2], f"{self.split}/{kinds[i % 2]}-{i:03d}")
            for i in range(_COUNTS[self.split])
        ]
        return TaskSet(self.split, [Task(task_id, family) for family, task_id in names])

    def begin(self, task: Task, rng: np.random.Generator) -> Outcome:
        """Place the agent at the left end."""
        chance = generator_of(*task.task_id.encode())
        self._length = int(chance.integers(3, 7))
        self._key_at = int(chance.integers(1, self._length)) if task.family == "locked" else -1
        self._position, self._has_key, self._open = 0, self._key_at < 0, False
        return self._outcome(
            f"You stand at the left end of a corridor with a door at its right end. {self._here()}"
        )

    def goal(self, task: Task) -> str:
        """Return the task sentence."""
        return "open the door"

    def act(self, action: str) -> Outcome:
        """Walk, take the key or open the door."""
        action = action.strip()
        if action not in ("left", "right", "take key", "open door"):
            return self._outcome(
                "Nothing happens.", keys.INVALID_ACTION, Feedback.MALFORMED, "unknown command"
            )
        if action not in self._admissible():
            return self._outcome(
                "Nothing happens.",
                keys.INVALID_ACTION,
                Feedback.INADMISSIBLE,
                f"cannot {action} here",
            )
        before = self.save()
        if action in ("left", "right"):
            step = 1 if action == "right" else -1
            self._position = min(max(self._position + step, 0), self._length)
        elif action == "take key":
            self._has_key = True
        else:
            self._open = True
        feedback = Feedback.NO_EFFECT if before == self.save() else Feedback.OK
        return self._outcome(self._here(), action, feedback)

    def save(self) -> Any:
        """Return the whole state."""
        return [self._length, self._key_at, self._position, self._has_key, self._open]

    def load(self, task: Task, state: Any) -> None:
        """Restore a state that `save` returned."""
        if [type(part) for part in state] != [int, int, int, bool, bool]:
            raise ValueError(
                f"a corridor's state is three numbers and two flags, got {state!r:.80}"
            )
        self._set(state)

    @property
    def position(self) -> tuple[Any, ...]:
        """The state of the running episode."""
        return tuple(self.save())

    @property
    def turns_left(self) -> int:
        """The turns that the running episode may still take."""
        return self.max_turns - (len(self._episode.actions) if self._episode else 0)

    def actions_in(self, state: tuple[Any, ...]) -> list[str]:
        """Return the admissible actions of a state; none behind the door."""
        with self._at(state):
            return [] if self._open else self._admissible()

    def transitions(self, state: tuple[Any, ...], action: str) -> list[Transition]:
        """Return what an admissible action leads to, with certainty."""
        with self._at(state):
            after = self.act(action)
            return [
                Transition(
                    1.0, self.position, after.reward, self._open, self._open, float(self._open)
                )
            ]

    def key_of(self, state: tuple[Any, ...]) -> str:
        """Return the key of a state."""
        return keys.state_key("corridor", list(state))

    def expert_in(self, state: tuple[Any, ...], turn: int) -> str:
        """Return the expert's action in a state, whatever the turn."""
        with self._at(state):
            return self.expert_actions()["best"]

    @contextmanager
    def _at(self, state: tuple[Any, ...]) -> Iterator[None]:
        before = self.save()
        self._set(state)
        try:
            yield
        finally:
            self._set(before)

    def _set(self, state: Sequence[Any]) -> None:
        self._length, self._key_at, self._position, self._has_key, self._open = state

    def expert_actions(self) -> dict[str, str]:
        """Return the next action of a shortest solution."""
        if not self._has_key and self._position == self._key_at:
            return {"best": "take key"}
        if self._position == self._length:
            return {"best": "open door" if self._has_key else "left"}
        return {"best": "right" if self._has_key or self._position < self._key_at else "left"}

    def solution(self) -> dict[str, Any]:
        """Return the expert's action, and the length of a shortest solution from here."""
        return {**self.expert_actions(), "optimal_remaining": self._remaining()}

    def _remaining(self) -> int:
        if self._open:
            return 0
        if self._has_key:
            return self._length - self._position + 1
        to_key = abs(self._position - self._key_at)
        return to_key + 1 + self._length - self._key_at + 1

    def _admissible(self) -> list[str]:
        legal = ["left", "right"]
        if self._position == self._key_at and not self._has_key:
            legal.append("take key")
        if self._position == self._length and self._has_key:
            legal.append("open door")
        return legal

    def _here(self) -> str:
        if self._open:
            return "The door is open."
        if self._position == self._key_at and not self._has_key:
            return "A key lies here."
        if self._position == self._length:
            return "You are at the door." if self._has_key else "You are at the door. It is locked."
        return f"You are {self._position} steps from the left end."

    def _outcome(
        self, text: str, action_key: str = "", feedback: Feedback = Feedback.OK, reason: str = ""
    ) -> Outcome:
        atoms = {**({"key": self._has_key} if self._key_at >= 0 else {}), "door": self._open}
        return Outcome(
            observation=text,
            state_key=keys.state_key("corridor", self.save()),
            reward=float(self._open),
            terminated=self._open,
            admissible=self._admissible(),
            admissible_complete=True,
            action_key=action_key,
            feedback=feedback,
            feedback_text=reason,
            progress=sum(atoms.values()) / len(atoms),
            score=float(self._open),
            success=self._open,
            atoms=atoms,
        )
