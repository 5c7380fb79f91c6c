"""Plays ScienceWorld for traces: the worker of the package with less to tell, so much faster.

An answer's key is the state of the engine's generator after the command. `{"tree": true}` asks for
the objects as JSON text, which helps to find where two engines part.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(os.environ["SCIENCEWORLD_WORKER"]).parent))

import worker


class _Lean(worker._Player):
    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        if "tree" in request:
            return {"tree": json.loads(self._game.getObjectTree(""))}  # in the engine's order
        return super().answer(request)

    def _state(self, observation: str, request: dict[str, Any]) -> dict[str, Any]:
        game, seed = self._game, self._seed()
        listed = self._jvm.java.lang.String.join("\n", game.getValidActionObjectCombinations())
        self._random.setSeed(seed ^ worker._SCRAMBLED)
        return {
            "observation": observation,
            "admissible": sorted(set(listed.split("\n"))),
            "score": game.getScore(),
            "completed": bool(game.getCompleted()),
            "moves": int(game.getNumMoves()),
            "goals": game.getGoalProgressStr(),
            "task": game.getTaskDescription(),
            "key": str(seed),
        }


if __name__ == "__main__":
    worker._Player = _Lean
    worker.main()
