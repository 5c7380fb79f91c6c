"""What an environment must say of itself to be solved: its states, actions and transitions."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple, Protocol, TypeGuard, runtime_checkable

State = Hashable
"""A state of the world; equal states have equal futures, given equally many turns left."""


class Transition(NamedTuple):
    """One of the things that an action may lead to.

    Attributes:
        probability: The probability, in (0, 1]; those of one action add up to 1.
        state: The state after the turn.
        reward: The environment's own reward of the turn.
        over: Whether the episode ended.
        success: Whether the task is solved; only where it is `over`.
        score: The score at the end, in [0, 1]; only where it is `over`.
        cut: Whether it is `over` because the world's own limit was reached.
    """

    probability: float
    state: State
    reward: float = 0.0
    over: bool = False
    success: bool = False
    score: float = 0.0
    cut: bool = False


@runtime_checkable
class Dynamics(Protocol):
    """An environment that knows all transitions from each of its states.

    An episode that is cut off by `max_turns` ends without success and with score 0.
    """

    max_turns: int

    @property
    def position(self) -> State:
        """The state of the running episode."""

    @property
    def turns_left(self) -> int:
        """The turns that the running episode may still take."""

    def actions_in(self, state: Any) -> Sequence[str]:
        """Return the admissible actions of a state, as `info` lists them; none where it is over."""

    def transitions(self, state: Any, action: str) -> Sequence[Transition]:
        """Return what an admissible action may lead to."""

    def key_of(self, state: Any) -> str:
        """Return a state's `state_key`."""


class Solved(Dynamics, Protocol):
    """One that also has an expert for each of its states."""

    def expert_in(self, state: Any, turn: int) -> str:
        """Return the expert's action in a state after a number of turns."""


def is_exact(env: Any) -> TypeGuard[Dynamics]:
    """Return whether an environment knows its transitions."""
    return hasattr(env, "transitions") and hasattr(env, "actions_in")
