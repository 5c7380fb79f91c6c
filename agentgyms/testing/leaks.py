"""Contract test of what agents see: nothing of the atoms of the goal."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

from agentgyms.core.outcome import Outcome, for_agents, text_of, turn_text
from agentgyms.testing.playing import EPISODES, Make, play

CANARY: Final = "canary-8e7b1f0d"
"""A name that no text has by chance."""


def check_leaks(make: Make) -> None:
    """Check that atoms reach neither what agents see nor what the package tells them of it.

    The environment's own atoms are replaced by one of a name that nothing else has, which may be in
    `info["atoms"]` alone. The environment must be in this process, not on a server.
    """
    env = make()
    plant(env.unwrapped)
    for seed in range(EPISODES):
        for turn, (observation, (_, *ends), info) in enumerate(play(env, seed)):
            assert list(info["atoms"]) == [CANARY], f"turn {turn} has the atoms {info['atoms']}"
            for what, text in _told(env, observation, info, any(ends)):
                assert CANARY not in text, f"seed {seed}, turn {turn}: the atoms are in {what}"
    env.close()


def plant(world: Any) -> None:
    """Replace an environment's atoms by `CANARY`, in all its outcomes."""
    for name in ("begin", "act"):
        setattr(world, name, _planted(getattr(world, name)))


def _planted(method: Any) -> Any:
    def call(*args: Any) -> Outcome:
        outcome: Outcome = method(*args)
        return outcome._replace(atoms={CANARY: outcome.success})

    return call


def _told(
    env: Any, observation: Any, info: dict[str, Any], over: bool
) -> Iterator[tuple[str, str]]:
    yield "the observation", text_of(observation)
    yield "info beside its atoms", json.dumps(for_agents(info))
    yield "the messages of adapters", turn_text(observation, info, over=over)
    rendered = env.unwrapped.render()
    yield "what is rendered", rendered if isinstance(rendered, str) else ""
