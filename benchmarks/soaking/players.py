"""Clients that play on a server as many clients do: well, at random, half an episode, or no more.

They know no environment: an expert's action comes from `info["oracle"]`, any other from the
admissible actions, whose `<placeholders>` are filled with words of the observation.
"""

from __future__ import annotations

import json
import math
import random
import re
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Final

import requests

from agentgyms.core import serialization

_PLACEHOLDER: Final = re.compile(r"<\w[^<>]*>")
_JUNK: Final = ("", "xyzzy", "look\nlook", "\x00", "a" * 3000, "{}%s\"'<b>")
_POLICIES: Final = {"expert": 0.0, "mixed": 0.5, "random": 1.0}
_FATES: Final = {"whole": 70, "reset": 14, "close": 10, "abandon": 6}
_LONGEST_PART: Final = 12
_LIMIT_S: Final = 600


class Api:
    """The batch routes of a server.

    Args:
        url: Its address.
        errors: Counts the errors among the answers.
    """

    def __init__(self, url: str, errors: Counter[str]) -> None:
        self._url, self._errors = url, errors
        self._http = requests.Session()
        self._http.trust_env = False

    def batch(self, operation: str, items: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return one answer for each item; errors are counted."""
        if not items:
            return []
        body = serialization.dumps({"items": items}).encode()
        reply = self._http.post(
            f"{self._url}/v1/batch/{operation}",
            data=body,
            headers={"Content-Type": "application/json"},
            timeout=_LIMIT_S,
        )
        reply.raise_for_status()
        answers: list[dict[str, Any]] = reply.json()["results"]
        for answer in answers:
            if "error" in answer:
                told = answer["error"]
                self._errors[f"{operation}: {told['code']}: {told['message']:.200}"] += 1
        return answers

    def metrics(self) -> str:
        """Return the figures of the server."""
        return self._http.get(f"{self._url}/metrics", timeout=_LIMIT_S).text


@dataclass
class Progress:
    """What all players together have done.

    Attributes:
        wanted: Episodes to begin.
        until: No episode is begun after that time of the clock.
        abandon_every_s: Least time between two sessions that are left to expire: so as many of them
            are there whether a machine is fast or slow.
        begun: Episodes begun.
        ended: Episodes that ended as they were meant to, by their fate.
        turns: Turns taken.
        errors: Errors, by what was said.
    """

    wanted: int
    until: float = math.inf
    abandon_every_s: float = 0.0
    begun: int = 0
    ended: Counter[str] = field(default_factory=Counter)
    turns: int = 0
    errors: Counter[str] = field(default_factory=Counter)
    lock: threading.Lock = field(default_factory=threading.Lock)
    _abandoned_at: float = -math.inf

    def may_abandon(self) -> bool:
        """Return whether a session may be left now, and count it as left."""
        with self.lock:
            now = time.monotonic()
            if now - self._abandoned_at < self.abandon_every_s:
                return False
            self._abandoned_at = now
            return True

    def take(self) -> int | None:
        """Return the number of the next episode, None if there are enough."""
        with self.lock:
            if self.begun >= self.wanted or time.monotonic() > self.until:
                return None
            self.begun += 1
            return self.begun - 1


class Seat:
    """One session after another, of which one episode is played at a time."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.session = ""
        self.leave()

    def leave(self) -> None:
        """Have no session any more."""
        self.session, self.fate = "", ""

    def plan(self, answer: dict[str, Any]) -> None:
        """Begin an episode, whose first state is `answer`."""
        (self.fate,) = self.rng.choices(list(_FATES), _FATES.values())
        (self.policy,) = self.rng.choices(list(_POLICIES))
        self.turns_left = self.rng.randint(0, _LONGEST_PART) if self.fate != "whole" else 10**9
        self.episode, self.turn = answer["episode"], 0
        self.see(answer)

    def see(self, answer: dict[str, Any]) -> None:
        """Take in a state."""
        self.info = answer["info"]
        seen = answer["observation"]
        self.text = seen if isinstance(seen, str) else json.dumps(seen)[:2000]
        ended = answer.get("terminated", False) or answer.get("truncated", False)
        self.over = ended or self.turns_left <= 0

    def act(self) -> dict[str, Any]:
        """Return the next step's request."""
        self.turn += 1
        self.turns_left -= 1
        return {
            "session_id": self.session,
            "episode": self.episode,
            "turn": self.turn,
            "action": self._action(),
        }

    def _action(self) -> str:
        return chosen_action(self.rng, self.info, self.text, _POLICIES[self.policy])


def chosen_action(rng: random.Random, info: dict[str, Any], text: str, at_random: float) -> str:
    """Return an action: the expert's, or with probability `at_random` any admissible one or junk.

    Args:
        rng: Draws.
        info: Of the state; an expert's action is in `info["oracle"]`, if there is one.
        text: What was observed; its words fill placeholders.
        at_random: Probability of an action that is not the expert's.
    """

    def word() -> str:
        return rng.choice(re.findall(r"\w+", text) or ["word"])

    told = json.loads(info.get("oracle") or "{}")
    if isinstance(told.get("best"), str) and rng.random() >= at_random:
        return str(told["best"])
    listed = info["admissible_actions"]
    if not listed or rng.random() < 0.03:
        return rng.choice((*_JUNK, word()))
    return _PLACEHOLDER.sub(lambda _: word(), rng.choice(listed))


def play(api: Api, progress: Progress, seats: int, seed: int, kwargs: dict[str, Any]) -> None:
    """Play until there are enough episodes.

    Args:
        api: The server.
        progress: What all players have done; this one adds to it.
        seats: Sessions at a time.
        seed: Of what is played.
        kwargs: Arguments of the environments.
    """
    table = [Seat(random.Random(f"{seed}/{i}")) for i in range(seats)]
    while table:
        table = _begin(api, progress, table, kwargs)
        acting = [seat for seat in table if not seat.over]
        answers = api.batch("step", [seat.act() for seat in acting])
        for seat, answer in zip(acting, answers, strict=True):
            if "error" in answer:
                seat.leave()
            else:
                seat.see(answer)
        with progress.lock:
            progress.turns += len(acting)
        _end(api, progress, [seat for seat in table if seat.session and seat.over])


def _begin(api: Api, progress: Progress, table: list[Seat], kwargs: dict[str, Any]) -> list[Seat]:
    """Begin an episode where none is played, and return the seats that are still needed."""
    new = [seat for seat in table if not seat.fate]
    seeds = {seat: progress.take() for seat in new}
    done = [seat for seat in new if seeds[seat] is None]
    api.batch("close", [{"session_id": seat.session} for seat in done if seat.session])
    new = [seat for seat in new if seeds[seat] is not None]
    without = [seat for seat in new if not seat.session]
    opened = api.batch("create", [{"kwargs": kwargs} for _ in without])
    for seat, answer in zip(without, opened, strict=True):
        seat.session = answer.get("session_id", "")
    new = [seat for seat in new if seat.session]
    asked = [{"session_id": seat.session, "seed": seeds[seat]} for seat in new]
    for seat, answer in zip(new, api.batch("reset", asked), strict=True):
        if "error" in answer:
            seat.leave()
        else:
            seat.plan(answer)
    return [seat for seat in table if seat not in done and seat.fate]


def _end(api: Api, progress: Progress, over: list[Seat]) -> None:
    for seat in over:
        if seat.fate == "abandon" and not progress.may_abandon():
            seat.fate = "close"
    closed = [s for s in over if s.fate == "close" or (s.fate == "whole" and s.rng.random() < 0.5)]
    api.batch("close", [{"session_id": seat.session} for seat in closed])
    with progress.lock:
        progress.ended.update(seat.fate for seat in over)
    for seat in over:
        if seat in closed or seat.fate == "abandon":
            seat.leave()
        seat.fate = ""
