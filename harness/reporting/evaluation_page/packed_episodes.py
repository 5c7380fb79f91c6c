"""Episodes inside a page: each is compressed, and all are fitted into the page's size limit."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from agentgyms.core import serialization
from agentgyms.recording.recording_format import RecordedTurn, Recording
from harness.evaluation.episodes import EPISODE_KEY
from harness.rollouts.self_play import goal_of, is_own

_ANSWER: Final = ("prompt", "left_out", "answer", "valid", "finished", "tokens")
"""Parts of a turn that its agent recorded."""
_SEARCH_STEPS: Final = 12
"""Steps of the binary search for the maximum size of an episode."""


@dataclass(frozen=True, slots=True)
class Embedded:
    """Packed episodes, and what was left out of them."""

    episodes: list[str]  # each episode as gzip in base64
    # each different preamble as gzip in base64; episodes refer to them by number
    preambles: list[str]
    prompts: bool
    shortened: list[int]  # numbers of the episodes without some of their middle turns


def pack(value: Any) -> str:
    """Return a JSON value as gzip in base64; equal values give equal texts."""
    return base64.b64encode(gzip.compress(serialization.dumps(value).encode(), 9, mtime=0)).decode()


def unpack(packed: str) -> Any:
    """Return the value of a text that `pack` returned."""
    return json.loads(gzip.decompress(base64.b64decode(packed)))


class Packing:
    """Collects the episodes of a page."""

    def __init__(self) -> None:
        self._preambles: dict[str, int] = {}
        self._whole: list[str] = []
        self._bare: list[str] = []

    def add(self, recording: Recording) -> None:
        """Add an episode of an evaluation."""
        episode = episode_contents(recording)
        preamble = episode["preamble"]
        number = self._preambles.setdefault(preamble, len(self._preambles)) if preamble else None
        reflection = episode["reflection"] and {**episode["reflection"], "prompt": ""}
        bare = {"preamble": None, "prompts": False, "reflection": reflection or None}
        turns = [{**turn, "prompt": ""} for turn in episode["turns"]]
        self._whole.append(pack({**episode, "preamble": number}))
        self._bare.append(pack({**episode, **bare, "turns": turns}))

    @property
    def count(self) -> int:
        """Number of episodes."""
        return len(self._whole)

    def fit(self, limit: int) -> Embedded:
        """Return the episodes in at most `limit` bytes of base64.

        If they take more, all prompts are left out. If that is not enough, the longest episodes
        lose turns from their middle until all fit. Every episode keeps its goal.
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


def episode_contents(recording: Recording) -> dict[str, Any]:
    """Return what a page shows of an episode, as plain JSON values."""
    first, about = recording.turns[0], recording.header["provenance"][EPISODE_KEY]
    return {
        "goal": goal_of(recording),
        "observation": serialization.encode_observation(first.observation),
        "preamble": about["preamble"],
        "reflection": about["reflection"],
        "prompts": True,
        "skipped": None,
        "metrics": serialization.encode_info(recording.turns[-1].info)["metrics"],
        "count": len(recording.turns) - 1,
        "turns": [_turn(turn) for turn in recording.turns[1:]],
    }


def _turn(turn: RecordedTurn) -> dict[str, Any]:
    info = serialization.encode_info(turn.info)
    return {
        "turn": turn.turn,
        "own": is_own(turn),
        **{name: turn.agent[name] for name in _ANSWER},
        "action": turn.action,
        **{name: info[name] for name in ("feedback", "feedback_text")},
        "reward": serialization.encode_number(turn.reward),
        **{name: info[name] for name in ("progress", "score")},
        "observation": serialization.encode_observation(turn.observation),
    }


def _cap(sizes: Sequence[int], limit: int) -> int:
    """Return the maximum bytes of one episode with which all episodes fit into `limit`."""
    if sum(sizes) <= limit:
        return max(sizes, default=0)
    low, high = 0, max(sizes)
    for _ in range(_SEARCH_STEPS):
        middle = (low + high) // 2
        fits = sum(min(size, middle) for size in sizes) <= limit
        low, high = (middle, high) if fits else (low, middle)
    return low


def _shortened(episode: dict[str, Any], cap: int) -> str:
    """Return the packed episode with as many turns of its start and its end as fit."""
    low, high = 0, len(episode["turns"])
    while high - low > 1:
        middle = (low + high) // 2
        fits = len(_pack_turns(episode, middle)) <= cap
        low, high = (middle, high) if fits else (low, middle)
    return _pack_turns(episode, low)


def _pack_turns(episode: dict[str, Any], count: int) -> str:
    """Return the packed episode with `count` turns; with 0, without its first observation."""
    turns = episode["turns"]
    head, tail = (count + 1) // 2, count // 2
    shown = turns[:head] + turns[len(turns) - tail :]
    skipped = [head + 1, len(turns) - tail]
    left = {} if count else {"observation": "", "reflection": None}
    return pack({**episode, **left, "turns": shown, "skipped": skipped})
