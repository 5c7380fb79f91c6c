"""What the tests of lost sessions share: losing them, and comparing an episode that goes on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from agentgyms.envs.corridor import CorridorEnv

ACTIONS = ["right", "right", "jump", "left", "right", "take key", "right", "right"]


def sessions(app: Any) -> Any:
    return app.extensions["agentgyms"].sessions


def lose_all(app: Any) -> None:
    """End every session behind its client's back."""
    for session_id in list(sessions(app)._open):
        sessions(app).close(session_id)


def play_both(remote: Any, trouble: Callable[[int], None], seed: int = 3) -> None:
    """Play one episode here and there, with trouble before each turn, and compare everything."""
    local = CorridorEnv(**remote.arguments)
    assert remote.reset(seed=seed) == local.reset(seed=seed)
    for turn, action in enumerate(ACTIONS):
        trouble(turn)
        result = local.step(action)
        assert tuple(remote.step(action)) == result
        if result[2] or result[3]:
            break
    trouble(-1)
    assert remote.snapshot() == local.snapshot()
    assert remote.reset() == local.reset()
