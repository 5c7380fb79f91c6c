"""Plays ScienceWorld in a JVM; run as a script, in any interpreter that has scienceworld.

It needs nothing but the standard library, scienceworld and py4j. One JSON object per line comes in
and one goes out: `{"load": [task, variation, simplifications]}`, then `{"step": "look around"}` any
number of times, or `{"gold": [...]}` for a solution, which ends the episode. The first line out
tells that the JVM runs, and the folder of its temporary files. The end of the input ends both.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any, TextIO

JAVA_OPTIONS = (
    # Without these two a JVM takes 2 GB, and collects in a thread for each core.
    "-Xmx512m",
    "-XX:+UseSerialGC",
    # The engine goes through sets of objects in the order of their identity hashes, which differ
    # from run to run: texts, temperatures and what an answer of `0` means would, too. With one hash
    # for all objects the order is that of insertion.
    "-XX:+UnlockExperimentalVMOptions",
    "-XX:hashCode=2",
)

_SCRAMBLED = 0x5DEECE66D  # java.util.Random.setSeed takes a seed's exclusive or with it
_AMBIGUOUS = "Ambiguous request"


def main() -> None:
    """Answer requests until the end of the input."""
    # Replies have the real standard output; whatever else prints goes to standard error.
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    with tempfile.TemporaryDirectory(prefix="scienceworld-") as folder:
        try:
            player = _Player(sys.argv[1], Path(folder))
        except ImportError as e:
            _reply(replies, {"missing": str(e)})
            return
        _reply(replies, {"version": player.version, "folder": folder, "java": player.process.pid})
        try:
            for line in sys.stdin:
                try:
                    reply = player.answer(json.loads(line))
                except Exception as e:
                    reply = {"error": f"{type(e).__name__}: {e}"}
                _reply(replies, reply)
        finally:
            player.close()


def _reply(stream: TextIO, reply: dict[str, Any]) -> None:
    stream.write(json.dumps(reply) + "\n")
    stream.flush()


class _Player:
    """One JVM with one game of the engine."""

    def __init__(self, java: str, folder: Path) -> None:
        from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway
        from py4j.protocol import Py4JJavaError
        from scienceworld.constants import JAR_PATH
        from scienceworld.version import __version__

        self.version = __version__
        # With a token: whoever reaches the port could run any code in the JVM.
        port, token, self.process = launch_gateway(
            classpath=JAR_PATH,
            java_path=java,
            javaopts=list(JAVA_OPTIONS),
            cwd=str(folder),  # where the engine leaves a table of its types
            die_on_exit=True,  # at the end of its input, which is this process's end
            enable_auth=True,
            return_proc=True,
        )
        parameters = GatewayParameters(port=port, auth_token=token)
        self._gateway = JavaGateway(gateway_parameters=parameters, java_process=self.process)
        self._jvm = self._gateway.jvm
        self._game = self._jvm.scienceworld.runtime.pythonapi.PythonInterface()
        # The one generator of the engine, which `load` seeds with the variation.
        self._random = getattr(getattr(self._jvm.scala.util, "Random$"), "MODULE$")
        self._raised: type[Exception] = Py4JJavaError
        self._folder = folder
        self._pending = ""

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        if "gold" in request:
            self._load(*request["gold"], gold=True)
            return {"gold": list(self._game.getGoldActionSequence())}
        if "load" in request:
            self._load(*request["load"], gold=False)
            # "look around" as the package's own reset has it; it takes no time.
            return self._state(self._game.step("look around"), request)
        try:
            observation, failed = self._game.step(request["step"]), ""
        except self._raised as e:
            failed = str(getattr(e, "java_exception", e)).splitlines()[0][:300]
            observation = f"The engine raised an error: {failed}"
        return {**self._state(observation, request), "failed": failed}

    def _load(self, task: str, variation: int, simplifications: str, *, gold: bool) -> None:
        told = self._game.load(task, variation, simplifications, gold)
        if told:
            raise ValueError(told)

    def _state(self, observation: str, request: dict[str, Any]) -> dict[str, Any]:
        game = self._game
        seed = self._seed()
        goals, score, moves = game.getGoalProgressStr(), game.getScore(), int(game.getNumMoves())
        pending = observation if observation.startswith(_AMBIGUOUS) else ""
        shown = json.dumps([goals, score, moves, seed, pending]).encode()
        key = hashlib.blake2b(self._tree() + shown, digest_size=16).hexdigest()
        admissible = []
        if request["list"]:
            admissible = sorted(set(game.getValidActionObjectCombinations()))
            self._random.setSeed(seed ^ _SCRAMBLED)  # the list draws from it
        return {
            "observation": observation,
            "admissible": admissible,
            "score": score,
            "completed": bool(game.getCompleted()),
            "moves": moves,
            "goals": goals,
            "task": game.getTaskDescription(),
            "key": key,
        }

    def _tree(self) -> bytes:
        """Return all objects and their properties, in an order that is the same in every JVM."""
        told = self._game.getObjectTree(str(self._folder))
        if told:
            raise RuntimeError(told)
        tree = json.loads((self._folder / "objectTree.json").read_text(encoding="utf-8"))
        return json.dumps(tree, sort_keys=True).encode()

    def _seed(self) -> int:
        """Return the state of the engine's generator, as Java writes it: before the end mark."""
        written = self._jvm.java.io.ByteArrayOutputStream()
        self._jvm.java.io.ObjectOutputStream(written).writeObject(self._random.self())
        return int.from_bytes(bytes(written.toByteArray())[-9:-1], "big")

    def close(self) -> None:
        with contextlib.suppress(Exception):
            self._gateway.shutdown()
        self.process.kill()
        self.process.wait()


if __name__ == "__main__":
    main()
