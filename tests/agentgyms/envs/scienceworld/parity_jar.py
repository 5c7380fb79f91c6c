"""The real engine in a JVM without py4j, through ParityJar.java; it needs a JDK."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path
from typing import IO, Final

from agentgyms.envs.scienceworld.engine import Game, find_java, find_python
from agentgyms.envs.scienceworld.worker import JAVA_OPTIONS

LISTED: Final = 10
"""The turns from one list of valid actions to the next."""

_OPTIONS: Final = (*JAVA_OPTIONS, "--add-opens=java.base/java.util=ALL-UNNAMED")
_BATCH: Final = 50
_TURN, _FIELD, _LINE = "\x1e", "\x1f", "\x1c"


class Jar:
    """The real engine in a JVM, which answers many turns at once."""

    def __enter__(self) -> Jar:
        """Start the JVM, which takes seconds."""
        tell = "from scienceworld.constants import JAR_PATH; print(JAR_PATH)"
        asked = [find_python(), "-c", tell]
        # Without PYTHONPATH, which may hide the other interpreter's packages.
        jar = subprocess.run(asked, check=True, capture_output=True, text=True, env={}).stdout
        source = str(Path(__file__).with_name("ParityJar.java"))
        self._folder = tempfile.TemporaryDirectory()  # where the engine leaves a table
        self._process = subprocess.Popen(
            [find_java(), *_OPTIONS, "-cp", jar.strip(), source],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=self._folder.name,
            encoding="utf-8",
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._input: IO[str] = self._process.stdin
        self._output: IO[str] = self._process.stdout
        return self

    def play(self, game: Game, commands: list[str]) -> list[list[str]]:
        """Return the fields of each turn, as text."""
        told = self._ask("\t".join(("load", *map(str, game))))
        if told:
            raise ValueError(told)
        marked = [f"{'-' if n % LISTED else '+'}{c}" for n, c in enumerate(commands)]
        turns: list[str] = []
        for begin in range(0, len(marked), _BATCH):
            turns += self._ask("\t".join(marked[begin : begin + _BATCH])).split(_TURN)
        return [turn.replace(_LINE, "\n").split(_FIELD) for turn in turns]

    def _ask(self, line: str) -> str:
        self._input.write(line + "\n")
        self._input.flush()
        answer = self._output.readline()
        if not answer:
            raise EOFError("the JVM has ended")
        return answer[:-1]

    def __exit__(self, *_: object) -> None:
        """End the JVM."""
        self._process.kill()
        self._process.wait()
        self._folder.cleanup()
