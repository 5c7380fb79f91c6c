"""Recorded games: what the official engine answered, as compressed JSON lines, and their replay."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from agentgyms.envs.alfworld import text
from agentgyms.envs.alfworld.builder import build_game
from agentgyms.envs.alfworld.engine import State
from agentgyms.envs.alfworld.official.gamefile import parse_game

GOLDEN = Path(__file__).parents[3] / "golden"


def seen(state: State, observation: str) -> dict[str, Any]:
    """Return what an engine answers: text, legal commands, whether the game is won."""
    return {"observation": observation, "admissible": list(state.admissible), "won": state.won}


def answer(state: State, action: str) -> dict[str, Any]:
    """Take one turn in this package's engine, as the official engine would."""
    move = state.find(action.strip())
    observation = text.NOTHING_HAPPENS if move is None else state.perform(move)
    return seen(state, observation)


def start(fields: dict[str, Any]) -> tuple[State, dict[str, Any]]:
    """Return the game of a file's fields and its first answer."""
    state = State(build_game(parse_game(json.dumps(fields).encode()), "compared"))
    return state, seen(state, text.introduction(state))


def write_traces(path: Path, traces: Iterable[dict[str, Any]]) -> None:
    """Write traces; equal traces give equal bytes."""
    with path.open("wb") as raw, gzip.GzipFile("", "wb", 9, raw, mtime=0) as file:
        for trace in traces:
            file.write(json.dumps(trace, separators=(",", ":")).encode() + b"\n")


def read_traces(path: Path) -> list[dict[str, Any]]:
    """Return the traces in a file."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]
