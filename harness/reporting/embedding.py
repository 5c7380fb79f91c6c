"""Episodes inside a page: packed one by one, and made to fit into the page's limit."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from agentgyms import wire
from agentgyms.transcript import RecordedTurn, Recording
from harness.evaluation.episodes import ABOUT
from harness.seats import goal_of, is_own

_SEARCH_STEPS: Final = 12
"""Halvings in the search for the cap on an episode's size."""


@dataclass(frozen=True, slots=True)
class Embedded:
    """Packed episodes, and what had to be left out of them.

    Attributes:
        episodes: gzip as base64, one for each episode.
        preambles: Likewise, each once; an episode names its own by number.
        prompts: Prompts and preambles are there.
        shortened: Numbers of the episodes that lost turns from their middle.
    """

    episodes: list[str]
    preambles: list[str]
    prompts: bool
    shortened: list[int]


def pack(value: Any) -> str:
    """Return a JSON value as gzip in base64, the same for equal values."""
    return base64.b64encode(gzip.compress(wire.dumps(value).encode(), 9, mtime=0)).decode()


def unpack(packed: str) -> Any:
    """Return the value that `pack` was given."""
    return json.loads(gzip.decompress(base64.b64decode(packed)))


class Packing:
    """Episodes on their way into a page."""

    def __init__(self) -> None:
        """Begin without an episode."""
        self._preambles: dict[str, int] = {}
        self._whole: list[str] = []
        self._bare: list[str] = []

    def add(self, recording: Recording) -> None:
        """Add an episode of an evaluation."""
        episode = told(recording)
        preamble = episode["preamble"]
        number = self._preambles.setdefault(preamble, len(self._preambles)) if preamble else None
        self._whole.append(pack({**episode, "preamble": number}))
        self._bare.append(pack(_without_prompts(episode)))

    @property
    def count(self) -> int:
        """Number of episodes."""
        return len(self._whole)

    def fit(self, limit: int) -> Embedded:
        """Return the episodes in at most `limit` bytes.

        Where they take more, all prompts are left out; where that is not enough, the longest
        episodes lose turns from their middle until all fit. What is left of an episode without any
        turn, its goal and some hundred bytes around it, is kept in any case.

        Args:
            limit: Bytes, base64 counted. Below 0 is 0.
        """
        preambles = [pack(text) for text in self._preambles]
        if sum(map(len, [*self._whole, *preambles])) <= limit:
            return Embedded(self._whole, preambles, True, [])
        cap = _cap([len(packed) for packed in self._bare], limit)
        long = [i for i, packed in enumerate(self._bare) if len(packed) > cap]
        fitted = list(self._bare)
        for i in long:
            fitted[i] = _shortened(unpack(fitted[i]), cap)
        return Embedded(fitted, [], False, long)


def told(recording: Recording) -> dict[str, Any]:
    """Return what a page tells of an episode, JSON-plain: the start, every turn, the reflection."""
    first, about = recording.turns[0], recording.header["provenance"][ABOUT]
    return {
        "goal": goal_of(recording),
        "observation": wire.encode_observation(first.observation),
        "preamble": about["preamble"],
        "reflection": about["reflection"],
        "prompts": True,
        "skipped": None,
        "metrics": wire.encode_info(recording.turns[-1].info)["metrics"],
        "count": len(recording.turns) - 1,
        "turns": [_turn(turn) for turn in recording.turns[1:]],
    }


def _turn(turn: RecordedTurn) -> dict[str, Any]:
    info, said = wire.encode_info(turn.info), turn.agent
    return {
        "turn": turn.turn,
        "own": is_own(turn),
        "prompt": said["prompt"],
        "left_out": said["left_out"],
        "answer": said["answer"],
        "valid": said["valid"],
        "finished": said["finished"],
        "tokens": said["tokens"],
        "action": turn.action,
        "feedback": info["feedback"],
        "feedback_text": info["feedback_text"],
        "reward": wire.encode_number(turn.reward),
        "progress": info["progress"],
        "score": info["score"],
        "observation": wire.encode_observation(turn.observation),
    }


def _without_prompts(episode: dict[str, Any]) -> dict[str, Any]:
    reflection = episode["reflection"]
    return {
        **episode,
        "preamble": None,
        "prompts": False,
        "reflection": {**reflection, "prompt": ""} if reflection else None,
        "turns": [{**turn, "prompt": ""} for turn in episode["turns"]],
    }


def _cap(sizes: Sequence[int], limit: int) -> int:
    """Return the most bytes for one episode, so that all fit when longer ones are cut to it."""
    if sum(sizes) <= limit:
        return max(sizes, default=0)
    low, high = 0, max(sizes)
    for _ in range(_SEARCH_STEPS):
        middle = (low + high) // 2
        if sum(min(size, middle) for size in sizes) <= limit:
            low = middle
        else:
            high = middle
    return low


def _shortened(episode: dict[str, Any], cap: int) -> str:
    """Return the episode packed, with as many turns from its start and its end as fit."""
    turns = episode["turns"]
    low, high = 0, len(turns)
    best = _kept(episode, 0)
    while high - low > 1:
        middle = (low + high) // 2
        packed = _kept(episode, middle)
        if len(packed) <= cap:
            low, best = middle, packed
        else:
            high = middle
    return best


def _kept(episode: dict[str, Any], count: int) -> str:
    """Return the episode packed with `count` of its turns; without any, not its start either."""
    turns = episode["turns"]
    head, tail = (count + 1) // 2, count // 2
    shown = turns[:head] + turns[len(turns) - tail :]
    skipped = [head + 1, len(turns) - tail]
    left = {} if count else {"observation": "", "reflection": None}
    return pack({**episode, **left, "turns": shown, "skipped": skipped})
