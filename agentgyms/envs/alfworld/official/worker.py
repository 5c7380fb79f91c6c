"""Plays games with the official engine; run as a script, in any interpreter that has alfworld.

It needs nothing but the standard library, alfworld and textworld. One JSON object per line comes in
and one goes out: `{"load": {...}}` with the content of a game file, then `{"step": "look"}` any
number of times. Each answer holds `observation`, `admissible` and `won`, or `error`. The first line
out says that the engine is ready, and names the folder of its temporary files, which is left behind
if the process is killed. The end of the input ends the process.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from typing import Any, TextIO


def main() -> None:
    """Answer requests until the end of the input."""
    # Replies have the real standard output; the engine prints to standard error.
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    with tempfile.TemporaryDirectory() as folder:
        tempfile.tempdir = folder
        # alfworld creates its data folder when it is imported; it is not needed here.
        os.environ.setdefault("ALFWORLD_DATA", folder)
        try:
            player = _Player()
        except ImportError as e:
            _reply(replies, {"missing": str(e)})
            return
        _reply(replies, {"ready": True, "folder": folder})
        for line in sys.stdin:
            try:
                reply = player.answer(json.loads(line))
            except Exception as e:
                reply = {"error": f"{type(e).__name__}: {e}"}
            _reply(replies, reply)


def _reply(stream: TextIO, reply: dict[str, Any]) -> None:
    stream.write(json.dumps(reply) + "\n")
    stream.flush()


class _Player:
    def __init__(self) -> None:
        import textworld
        from alfworld.agents.environment.alfred_tw_env import AlfredDemangler
        from textworld.envs import PddlEnv

        infos = textworld.EnvInfos(won=True, admissible_commands=True)
        self._env = AlfredDemangler(PddlEnv(infos))

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        if "load" in request:
            self._env.load(request["load"])
            return self._state(self._env.reset())
        state, _, _ = self._env.step(request["step"])
        return self._state(state)

    def _state(self, state: Any) -> dict[str, Any]:
        return {
            "observation": state.feedback,
            "admissible": state["admissible_commands"],
            "won": bool(state["won"]),
        }


if __name__ == "__main__":
    main()
