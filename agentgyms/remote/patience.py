"""`Patience`: how long a client waits for a server."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, fields
from math import inf
from typing import Final

from agentgyms.core.errors import BadOption, did_you_mean

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

    @classmethod
    def of(cls, given: Patience | Mapping[str, float] | None) -> Patience:
        """Return what an argument `patience` stands for.

        Args:
            given: Numbers by their names, as a recipe has them; the others keep their defaults.

        Raises:
            BadOption: A name is unknown, or a number is not one of its kind.
        """
        if given is None or isinstance(given, Patience):
            return given or cls()
        if not isinstance(given, Mapping):
            raise BadOption(f"patience must be a Patience, or numbers by names, got {given!r:.80}")
        names = [field.name for field in fields(cls)]
        for name, value in given.items():
            if name not in names:
                hint = did_you_mean(name, names)
                raise BadOption(f"patience has no {name!r:.80}: expected {', '.join(names)}{hint}")
            kinds, least = (int, 1) if name == "attempts" else ((int, float), 0)
            if isinstance(value, bool) or not isinstance(value, kinds) or not least <= value < inf:
                kind = "whole number" if least else "number of seconds"
                raise BadOption(
                    f"patience.{name} must be a {kind} from {least} on, got {value!r:.80}"
                )
        return cls(**given)  # type: ignore[arg-type]  # attempts is whole, as was checked

    def pause(self, attempt: int) -> float:
        """Return the pause after failed attempt number `attempt`, in seconds; the first is 0."""
        longest = min(self.pause_s * 2.0**attempt, 2.0)
        return longest * _JITTER.uniform(0.5, 1.0)
