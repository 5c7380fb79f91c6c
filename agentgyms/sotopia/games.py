"""Games: scenarios in which a program can tell who reached what."""

from __future__ import annotations

from typing import Protocol

from agentgyms.sotopia.dialogue import Act, Dialogue


class Game(Protocol):
    """What is at stake between two seats. Immutable; everything hangs on the dialogue."""

    def goal_score(self, dialogue: Dialogue, seat: int) -> int:
        """Return how far a seat reached its goal, 0 to 10, if the dialogue ended here."""
        ...

    def progress(self, dialogue: Dialogue, seat: int) -> float:
        """Return the share of a seat's subgoals that are reached, in [0, 1]."""
        ...

    def suggestions(self, dialogue: Dialogue, seat: int) -> tuple[str, ...]:
        """Return actions, as an agent writes them, that commit the seat to something now."""
        ...

    def objection(self, dialogue: Dialogue, seat: int, act: Act) -> str:
        """Return why an act that reads like a commitment commits to nothing now; else ""."""
        ...
