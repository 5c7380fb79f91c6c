"""Policies that choose the commands of traces: random, loose, directed, gold, mixed and lab."""

from __future__ import annotations

import random
import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Final

VERBS: Final = (
    "look around", "look at", "look in", "reset task", "focus on", "go to", "teleport to",
    "pick up", "put down", "open", "close", "activate", "deactivate", "eat", "move", "pour",
    "dunk", "use", "read", "flush", "connect", "disconnect", "wait1", "wait", "inventory", "mix",
    "task",
)  # fmt: skip

_WEIGHTS: Final = {
    "use": 6, "connect": 6, "mix": 8, "pour": 5, "dunk": 4, "activate": 6, "deactivate": 2,
    "wait": 3, "wait1": 3, "go to": 8, "open": 4, "close": 1, "pick up": 4, "put down": 2,
    "move": 8, "read": 3, "eat": 2, "flush": 3, "disconnect": 1, "look around": 2, "look at": 3,
    "look in": 3, "inventory": 2, "task": 1, "teleport to": 3, "reset task": 0.3, "focus on": 0.4,
}  # fmt: skip

_ODD: Final = (
    "help", "objects", "task", "jump", "look", "go", "open", "use", "", " ", "0", "wait 5",
    "look at object", "pick up object", "open door", "close door", "go through door", "focus on",
    "look in inventory", "look at inventory", "look at agent", "move agent to inventory",
    "move object to object", "connect object to object", "turn on the light", "take the water",
    "pour water in sink", "examine air", "stir", "look in the agent", "go to the hallway",
    "walk to kitchen", "go outside", "read book", "look at substance", "look at door",
    "use thermometer on thermometer", "use thermometer on agent", "LOOK AROUND", "look  around",
    "eat agent", "eat air", "pick up air", "drop thermometer", "put down object", "mix agent",
    "focus on nothing", "get an orange", "put a thermometer on the table", "wait 1", "look at a",
)  # fmt: skip

_SYNONYMS: Final = {
    "look at": ("examine", "look on"), "activate": ("turn on",), "deactivate": ("turn off",),
    "eat": ("consume",), "move": ("put",), "focus on": ("focus",), "pick up": ("get", "take"),
    "put down": ("drop",), "mix": ("stir",), "look around": ("look",),
    "go to": ("go", "go through", "walk through", "move through", "walk to", "move to", "go into"),
}  # fmt: skip

_UNFOCUSED: Final = 45

Policy = Callable[[Sequence[str], str], str | None]
"""Choose a command from the valid actions and the observation; None ends the trace."""


@lru_cache(maxsize=1 << 16)
def verb(action: str) -> str:
    """Return the verb of a valid action."""
    return next((v for v in VERBS if action == v or action.startswith(v + " ")), action)


def policy(name: str, seed: int, gold: Callable[[], Sequence[str]]) -> Policy:
    """Return a new policy; `gold` is asked for the gold path where the policy needs it."""
    source = random.Random(f"{name}-{seed}")
    if name == "random":
        return _Random(source)
    if name == "loose":
        return _Loose(source)
    if name == "directed":
        return _Directed(source)
    if name == "odd":
        return _Odd(source)
    if name == "gold":
        return _Gold(gold())
    if name == "mixed":
        return _Mixed(source, gold())
    if name == "lab":
        return _Lab(source)
    raise ValueError(f"no policy {name!r}")


class _Random:
    def __init__(self, source: random.Random) -> None:
        self._source = source

    def __call__(self, actions: Sequence[str], observation: str) -> str | None:
        source = self._source
        wanted = [a for a in actions if not a.startswith("focus on")] or list(actions)
        if source.random() < 0.4 or len(wanted) < 2:
            return source.choice(wanted) if wanted else "look around"
        return source.choice(source.choice(_by_verb(wanted)))


class _Loose:
    """Choose at random, but now and then an odd word, an ambiguous one or a wrong answer."""

    def __init__(self, source: random.Random) -> None:
        self._source = source
        self._random, self._directed = _Random(source), _Directed(source)

    def __call__(self, actions: Sequence[str], observation: str) -> str | None:
        asked = observation.startswith("Ambiguous request")
        chosen = self._directed if asked or self._source.random() < 0.15 else self._random
        return chosen(actions, observation)


class _Directed:
    """Prefer rare verbs and odd words; no focus comes early, for a wrong one ends the game."""

    def __init__(self, source: random.Random) -> None:
        self._source = source
        self._turns = 0

    def __call__(self, actions: Sequence[str], observation: str) -> str | None:
        source = self._source
        if observation.startswith("Ambiguous request"):
            return self._answer(actions)
        chance = source.random()
        if chance < 0.07 or not actions:
            return source.choice(_ODD)
        self._turns += 1
        early = self._turns < _UNFOCUSED and source.random() < 0.95
        groups = _by_verb([a for a in actions if not (early and a.startswith("focus on"))])
        weights = [_WEIGHTS.get(verb(group[0]), 1) for group in groups]
        action = source.choice(source.choices(groups, weights)[0])
        return self._blurred(action) if chance < 0.3 else action

    def _answer(self, actions: Sequence[str]) -> str:
        source = self._source
        if source.random() < 0.12:
            return source.choice(["", "99", "-1", "first", "look around", " 0", "0 ", "+0", "00"])
        return source.choice(actions) if actions else "0"

    def _blurred(self, action: str) -> str:
        """Return an action in other words, which are often ambiguous or wrong."""
        source = self._source
        word = verb(action)
        rest = action[len(word) :].strip()
        how = source.randrange(5)
        if how == 0 and word in _SYNONYMS:
            return f"{source.choice(_SYNONYMS[word])} {rest}".strip()
        if how == 1:
            return re.sub(r" (in|on) [a-z0-9 ]+?(?= to | into | on |$)", "", action)
        if how == 2 and rest:
            return f"{word} {source.choice(rest.split())}"
        if how == 3:
            return action.upper() if source.random() < 0.3 else action.replace(" ", " the ", 1)
        joiner = source.choice([" to ", " in ", " into ", " on ", " with "])
        return re.sub(r" (to|into|on|in) ", joiner, action, count=1)


class _Odd(_Directed):
    """Say most things in other words, or wrongly."""

    def __call__(self, actions: Sequence[str], observation: str) -> str | None:
        chance = self._source.random()
        if observation.startswith("Ambiguous request") or chance < 0.2 or not actions:
            return super().__call__(actions, observation)
        if chance < 0.3:
            return self._source.choice(_ODD)
        wanted = [a for a in actions if not a.startswith(("focus on", "reset"))]
        action = self._source.choice(self._source.choice(_by_verb(wanted)))
        return self._garbled(action) if chance < 0.65 else self._blurred(action)

    def _garbled(self, action: str) -> str:
        """Return an action with wrong letters, blanks or words."""
        source, word = self._source, verb(action)
        rest = action[len(word) :].strip()
        names = [name for name in re.split(r" (?:to|in|into|on) ", rest) if name]
        name = source.choice(names) if names else "object"
        return source.choice(
            [
                f"{word} {name} {name}",
                f"{word}{rest}",
                f"{word} {name}",
                f"{word} {name}s",
                f"{word} the {name} in the {source.choice(rest.split() or ['object'])}",
                f"{word} object",
                f"{word} {source.choice(['substance', 'device', 'door', 'terminal', 'drain'])}",
                f"{source.choice(VERBS)} {rest}",
                f"{source.choice(VERBS)} {name} {source.choice(['in', 'on', 'to', 'with'])} {name}",
                f"  {action.upper()}  ",
                action[:-1],
                f"{action} now",
                action.replace(" ", "  "),
                f"the {action} a",
            ]
        )


_LAB: Final = (
    (r"(pick up) .*(lighter|axe|shovel|thermometer|stopwatch|wire|battery|apple|orange)", 5),
    (r"use (lighter|axe|shovel|thermometer|stopwatch)", 8),
    (r"(activate|deactivate) ", 5),
    (r"open (?!.*door)", 5),
    (r"open ", 2),
    (r"move .* to .*(stove|oven|furnace|pit|freezer|fridge|sink|bowl|pot|cup|jar)", 9),
    (r"(pour|dunk) ", 7),
    (r"mix ", 7),
    (r"(dis)?connect ", 5),
    (r"(eat|flush|read) ", 2),
    (r"(teleport|go) to ", 6),
    (r"look (in|at) ", 4),
    (r"wait1|look around", 8),
    (r"wait$", 3),
)


class _Lab:
    """Heat, burn, mix, cut and wire things; best where one can teleport."""

    def __init__(self, source: random.Random) -> None:
        self._source = source

    def __call__(self, actions: Sequence[str], observation: str) -> str | None:
        if observation.startswith("Ambiguous request"):
            return self._source.choice(actions)
        found = [([a for a in actions if re.match(p, a)], weight) for p, weight in _LAB]
        groups = [(group, weight) for group, weight in found if group]
        group = self._source.choices([g for g, _ in groups], [w for _, w in groups])[0]
        return self._source.choice(group)


class _Gold:
    def __init__(self, path: Sequence[str]) -> None:
        self._path = list(path)

    def __call__(self, actions: Sequence[str], observation: str) -> str | None:
        return self._path.pop(0) if self._path else None


class _Mixed:
    """Follow the gold path, and stray from it now and then."""

    def __init__(self, source: random.Random, path: Sequence[str]) -> None:
        self._source, self._gold = source, _Gold(path)
        self._directed = _Directed(source)
        self._stray = 0

    def __call__(self, actions: Sequence[str], observation: str) -> str | None:
        if observation.startswith("Ambiguous request"):
            return self._directed(actions, observation)
        if self._stray == 0 and self._source.random() < 0.12:
            self._stray = self._source.randint(1, 4)
        if self._stray:
            self._stray -= 1
            wanted = [a for a in actions if verb(a) not in ("focus on", "reset task")]
            return self._directed(wanted, observation)
        return self._gold(actions, observation) or self._directed(actions, observation)


def _by_verb(actions: Sequence[str]) -> list[list[str]]:
    groups: dict[str, list[str]] = defaultdict(list)
    for action in actions:
        groups[verb(action)].append(action)
    return list(groups.values())
