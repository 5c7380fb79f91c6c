"""How long a client waits for a server."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Final

_JITTER: Final = random.SystemRandom()


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a client waits; times in seconds.

    Attributes:
        connect_s: For a connection.
        read_s: For the reply to one request, and for more of a reply that has begun.
        attempts: How often a request without a reply is sent; every request may be sent again.
        pause_s: Before the second attempt; it doubles, with jitter.
        full_s: For a place on a full server.
        lost_s: For a server to come back, or another one to take over, in an episode.
    """

    connect_s: float = 5.0
    read_s: float = 60.0
    attempts: int = 4
    pause_s: float = 0.1
    full_s: float = 30.0
    lost_s: float = 30.0

    def pause(self, attempt: int) -> float:
        """Return how long to wait after failed attempt number `attempt`, from 0."""
        longest = min(self.pause_s * 2.0**attempt, 2.0)
        return longest * _JITTER.uniform(0.5, 1.0)
