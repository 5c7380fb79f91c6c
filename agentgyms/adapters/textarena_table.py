"""A game of TextArena in progress: one of its environments, with chance and keys of our own.

TextArena's games draw from Python's and numpy's global generators. Here every move has its own
random number, from which both are seeded; afterwards they are as before.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import Enum
from threading import RLock
from typing import Any, Final

import numpy as np

from agentgyms.core import imports as packages
from agentgyms.core import keys
from agentgyms.core.errors import BadOption

try:
    import textarena
    from textarena.envs.registration import ENV_REGISTRY
except ModuleNotFoundError as e:
    raise ModuleNotFoundError(packages.missing("textarena", "textarena"), name=e.name) from e

_GENERATORS: Final = RLock()
"""Held while a game draws: the generators are the process's."""
_LISTED: Final = 2000
"""Longer attributes of a game, such as lists of words, are held to stay as they are."""
_OF_THE_STATE: Final = ("logs", "observations", "step_info")
"""What players have read or will read; it decides nothing."""


_ENDLESS: Final = ("MarketEntryGame",)
"""Games whose step never returns once both players have made two invalid moves."""


class Broken(Exception):
    """The game failed in a move and must not be played on."""


class Table:
    """A game in progress; `players` None takes the fewest that the game has, one or two.

    Raises `BadOption` if there is no such game, it cannot be started here, or it has more players.
    """

    def __init__(self, game: str, seed: int, players: int | None = None) -> None:
        self.game = game
        outer = _made(game)
        self._formats = []  # what the game's own wrappers do to a move
        while isinstance(outer, textarena.Wrapper):
            if isinstance(outer, textarena.ActionWrapper):
                self._formats.append(outer)
            outer = outer.env
        self._env: Any = outer
        self.players = self._start(seed, (1, 2) if players is None else (players,))
        self.over = False

    def _start(self, seed: int, counts: Sequence[int]) -> int:
        refusal: Exception | str = ""
        for players in counts:
            try:
                with _chance(f"{seed}"):
                    self._env.reset(num_players=players, seed=seed)
            except Exception as e:  # TextArena refuses by assertions, and whatever comes of it
                refusal = e
                continue
            # games of more players may start with one, and wait for the others for ever
            if players > 1 or isinstance(self._env.state, textarena.SinglePlayerState):
                return players
        raise BadOption(
            f"{self.game} cannot be started with 1 or 2 players: {type(refusal).__name__}: "
            f"{str(refusal).strip()[:200]}"
        )

    @property
    def seat(self) -> int:
        """The player who moves next."""
        return int(self._env.state.current_player_id)

    def read(self, seat: int) -> str:
        """Return what a player has not read yet, as TextArena's agents read it."""
        state = self._env.state
        if seat == self.seat and not self.over:
            _, unread = self._env.get_observation()  # some games add to it here
        else:
            unread, state.observations[seat] = state.observations[seat], []
        names = {**state.role_mapping, textarena.GAME_ID: "GAME"}
        lines = [f"[{names.get(who, f'Player {who}')}] {text}" for who, text, _ in unread]
        if self.over and (reason := state.game_info[seat].get("reason")):
            lines.append(f"[GAME] {reason}")
        return "\n".join(lines)

    def move(self, text: str, number: float) -> str:
        """Make the next player's move; return why it is invalid, "" if it is valid.

        `number` in [0, 1) decides what is drawn in it. Raises `Broken` if the game raised an
        exception; its state is undefined then.
        """
        state, seat = self._env.state, self.seat
        errors, unread = getattr(state, "error_count", 0), len(state.observations[seat])
        for wrapper in self._formats:
            text = wrapper.action(text)
        try:
            with _chance(repr(number)):
                self.over, _ = self._env.step(action=text)
        except Exception as e:
            raise Broken(f"{type(e).__name__}: {e}") from e
        state, self.over = self._env.state, bool(self.over)
        if self.over and state.game_info[seat].get("invalid_move"):
            return str(state.game_info[seat].get("reason") or "invalid move")
        if getattr(state, "error_count", 0) > errors:
            said = [text for _, text, _ in state.observations[seat][unread:]]
            return next((text for text in reversed(said) if "invalid move" in text), "invalid move")
        return ""

    def reward(self, seat: int) -> float:
        """Return TextArena's reward of a player: 0 before the end, nan if the game gave none."""
        rewards = self._env.state.rewards if self.over else {}
        reward = math.nan if rewards is None else rewards.get(seat, 0.0)
        if isinstance(reward, int | float):
            return float(reward)
        # Countdown and others pass the reason as the reward of an invalid move: -1 by default
        return -1.0 if self._env.state.game_info[seat].get("invalid_move") else math.nan

    def key(self) -> str:
        """Return the key of all that decides the future, moves' random numbers aside."""
        state = {k: v for k, v in vars(self._env.state).items() if k not in _OF_THE_STATE}
        own = {k: v for k, v in vars(self._env).items() if k != "state" and not _is_long(v)}
        return keys.state_key("textarena", self.game, _plain(state, ()), _plain(own, ()))


def _made(game: str) -> Any:
    if game not in ENV_REGISTRY:
        raise BadOption(f"TextArena has no game {game!r:.80}: ids are such as TicTacToe-v0")
    if game.startswith(_ENDLESS):
        raise BadOption(f"TextArena's {game} may never return from a step: play another game")
    try:
        return textarena.make(game)
    except Exception as e:  # missing word lists and keys, syntax of newer Pythons
        raise BadOption(
            f"TextArena's {game} cannot be made here: {type(e).__name__}: {str(e).strip()[:200]}"
        ) from e


@contextmanager
def _chance(name: str) -> Iterator[None]:
    """Let both global generators start from a name, and be as before afterwards."""
    with _GENERATORS:
        kept = random.getstate(), np.random.get_state()  # noqa: NPY002 (the games draw from it)
        random.seed(name)
        np.random.seed(random.getrandbits(32))  # noqa: NPY002
        try:
            yield
        finally:
            random.setstate(kept[0])
            np.random.set_state(kept[1])  # noqa: NPY002


def _is_long(value: Any) -> bool:
    return isinstance(value, list | tuple | set | frozenset | dict) and len(value) > _LISTED


def _plain(value: Any, above: tuple[int, ...]) -> Any:
    """Return a value as JSON's, whatever a game keeps: equal ones for equal states."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if id(value) in above:
        return "above"
    above = (*above, id(value))
    if isinstance(value, Mapping):
        pairs = [[repr(key), _plain(one, above)] for key, one in value.items()]
        return ["map", *sorted(pairs, key=lambda pair: str(pair[0]))]
    if isinstance(value, list | tuple):
        return [_plain(one, above) for one in value]
    if isinstance(value, set | frozenset):
        return ["set", *sorted((_plain(one, above) for one in value), key=repr)]
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, Enum):
        return [type(value).__name__, value.name]
    if isinstance(value, random.Random):
        return keys.digest(repr(value.getstate()))
    if callable(value):
        return getattr(value, "__qualname__", type(value).__name__)
    slots = {n for kind in type(value).__mro__ for n in getattr(kind, "__slots__", ())}
    fields = {n: getattr(value, n) for n in slots if hasattr(value, n)} | getattr(
        value, "__dict__", {}
    )
    return [type(value).__name__, _plain(fields, above)]
