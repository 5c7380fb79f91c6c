"""`Patience`: how long a client waits for a server."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Final

_JITTER: Final = random.SystemRandom()


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a client waits; times in seconds.

    Attributes:
        connect_s: Time for a connection.
        read_s: Time for the reply to one request, and for each further part of a reply.
        attempts: How often a request is sent if no reply comes; it is safe to repeat each request.
        pause_s: Pause before the second attempt; it doubles for each further one, with jitter.
        full_s: Time for a place on full servers.
        lost_s: Time for a server to come back or to be replaced during an episode.
    """

    connect_s: float = 5.0
    read_s: float = 60.0
    attempts: int = 4
    pause_s: float = 0.1
    full_s: float = 30.0
    lost_s: float = 30.0

    def pause(self, attempt: int) -> float:
        """Return the pause after failed attempt number `attempt`, in seconds; the first is 0."""
        longest = min(self.pause_s * 2.0**attempt, 2.0)
        return longest * _JITTER.uniform(0.5, 1.0)
