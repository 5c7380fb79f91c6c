"""The state of an episode in a snapshot: the executed code, and the digest of the records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from agentgyms.envs.appworld.code_runner import Counts
from agentgyms.envs.appworld.sandbox import code_check


@dataclass(frozen=True, slots=True)
class SavedEpisode:
    """The state of an episode in a snapshot."""

    executed: list[str]  # the code of each turn
    digest: str  # of the records after it
    counts: Counts
    turns: int
    failed_turns: int
    malformed_turns: int
    over: bool

    @classmethod
    def parse(cls, state: Any) -> Self:
        """Return an untrusted state, checked; raise `LookupError`, `TypeError` or `ValueError`."""
        executed, digest, over = state["executed"], state["digest"], state["over"]
        if type(executed) is not list or any(
            type(code) is not str or code_check.refusal(code) is not None for code in executed
        ):
            raise ValueError(f"'executed' must be a list of code that is allowed: {executed!r:.80}")
        if type(digest) is not str or not digest or type(over) is not bool:
            raise TypeError(
                f"digest must be a string and over a flag, got {digest!r:.80} and {over!r:.80}"
            )
        names = ("turns", "failed_turns", "malformed_turns")
        numbers = {name: state[name] for name in names}
        if any(type(n) is not int or n < 0 for n in [*numbers.values(), *state["counts"].values()]):
            raise ValueError(f"numbers must be counts, got {numbers} and {state['counts']!r:.80}")
        counts = Counts(**state["counts"])
        return cls(executed=executed, digest=digest, counts=counts, over=over, **numbers)
