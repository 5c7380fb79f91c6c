"""The interface of games: scenarios whose goals a program can score."""

from __future__ import annotations

from typing import Protocol

from agentgyms.envs.sotopia.dialogue import Act, Dialogue


class Game(Protocol):
    """A game between two seats. Immutable: the dialogue alone decides its state."""

    def goal_score(self, dialogue: Dialogue, seat: int) -> int:
        """Return a seat's goal score, 0 to 10, if the dialogue ended here."""
        ...

    def progress(self, dialogue: Dialogue, seat: int) -> float:
        """Return the fraction of a seat's subgoals that are reached, in [0, 1]."""
        ...

    def suggestions(self, dialogue: Dialogue, seat: int) -> tuple[str, ...]:
        """Return actions, as an agent writes them, that commit the seat to something now."""
        ...

    def no_effect_reason(self, dialogue: Dialogue, seat: int, act: Act) -> str:
        """Return why an act that looks like a commitment has no effect now, else ""."""
        ...
