"""The rules: which commands are legal in a state, and what they change.

They are those of ALFWorld's official engine, with every trait of it that a player can notice:

*   `go to` is not offered for any receptacle at the agent's own location, but all receptacles there
    can be opened, examined and used.
*   Taking needs empty hands and an open receptacle; nothing is ever full.
*   An object can be examined only while it is held.
*   Heating, cooling and cleaning need the object in hand, and no open door.
*   A lamp is switched on, never off.
*   One object may lie in two receptacles at once; taking it leaves it in the other.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Mapping
from typing import Final

from agentgyms.envs.alfworld import text
from agentgyms.envs.alfworld.game import Game
from agentgyms.envs.alfworld.state import GameState

INFORMATION: Final = frozenset({"examine", "help", "inventory", "look"})
"""Verbs that change nothing by intent."""

Move = tuple[str, int, int]
"""The meaning of a command: verb, object, receptacle, with -1 for none; the knife comes third."""

_ALWAYS: Final[Mapping[str, Move]] = {
    name: (name, -1, -1) for name in ("help", "inventory", "look")
}
_FIRST_ROAD: Final = "go to "


class State(GameState):
    """A game being played: a state, its legal commands, and what they change.

    `moves` maps the legal commands except `go to` to their meaning; `admissible` are all, sorted.
    """

    __slots__ = ("admissible", "moves")

    def __init__(self, game: Game, bits: int | None = None) -> None:
        super().__init__(game, bits)
        self._refresh()

    def copy(self) -> State:
        """Return a copy of the state, to be played independently."""
        twin = object.__new__(State)
        twin.game, twin.bits, twin.location = self.game, self.bits, self.location
        twin.held, twin.holds, twin.reached = self.held, self.holds, self.reached
        twin.contents = [inside.copy() for inside in self.contents]
        twin.moves, twin.admissible = self.moves, self.admissible  # every move makes new ones
        return twin

    # --- playing -------------------------------------------------------------------------------

    def find(self, command: str) -> Move | None:
        """Return the meaning of a command, or None if it is not legal now."""
        move = self.moves.get(command)
        if move is None:
            r = self.game.roads.get(command)
            if r is not None and self.game.location_of[r] != self.location:
                return ("go", -1, r)
        return move

    def perform(self, move: Move) -> str:
        """Perform a legal command and return the text for the player."""
        before = self.bits
        verb, o, r = move
        answer = _ACTIONS[verb](self, o, r)
        changed = self.bits ^ before
        if changed:
            self._refresh()
        if changed & self.game.aim.watched:
            self.judge()
        return answer

    # --- what commands do ----------------------------------------------------------------------

    def _go(self, o: int, r: int) -> str:
        there = self.game.location_of[r]
        self.bits ^= 1 << self.location | 1 << there  # location l is bit l
        self.location = there
        return f"You arrive at {self.game.receptacles[r]}. {text.receptacle(self, r)}"

    def _open(self, o: int, r: int) -> str:
        self.bits |= 1 << (self.game.layout.opened + r)
        return f"You open the {self.game.receptacles[r]}. {text.receptacle(self, r)}"

    def _close(self, o: int, r: int) -> str:
        self.bits ^= 1 << (self.game.layout.opened + r)
        return f"You close the {self.game.receptacles[r]}."

    def _take(self, o: int, r: int) -> str:
        game, layout = self.game, self.game.layout
        pair = o * len(game.receptacles) + r
        self.bits ^= 1 << (layout.inside + pair) | 1 << (layout.held + o)
        self.bits &= ~(1 << (layout.beside + o * len(game.at) + self.location))
        # Only what can show later is a part of the state.
        if game.memorable[r] >> o & 1:
            self.bits |= 1 << (layout.taken + pair)
        self.contents[r].remove(o)
        self.held = o
        return f"You pick up the {game.objects[o]} from the {game.receptacles[r]}."

    def _move(self, o: int, r: int) -> str:
        game, layout = self.game, self.game.layout
        pair = o * len(game.receptacles) + r
        self.bits ^= 1 << (layout.held + o)
        self.bits |= 1 << (layout.inside + pair)
        self.bits &= ~(1 << (layout.taken + pair))
        self._set_beside(o)
        if o not in self.contents[r]:  # it may lie in two receptacles at once
            insort(self.contents[r], o)
        self.held = -1
        return f"You move the {game.objects[o]} to the {game.receptacles[r]}."

    def _set_beside(self, o: int) -> None:
        """Note that an object was put down here, if that can ever show: see `Game.memorable`."""
        game = self.game
        bit = 1 << (game.layout.beside + o * len(game.at) + self.location)
        if game.sliceable >> o & 1 or any(self.was_taken(o, r) for r in game.at[self.location]):
            self.bits |= bit
        else:
            self.bits &= ~bit

    def _clean(self, o: int, r: int) -> str:
        self.bits |= 1 << (self.game.layout.clean + o)
        return self._treated("clean", o, r)

    def _heat(self, o: int, r: int) -> str:
        self.bits |= 1 << (self.game.layout.hot + o)
        self.bits &= ~(1 << (self.game.layout.cool + o))
        return self._treated("heat", o, r)

    def _cool(self, o: int, r: int) -> str:
        self.bits |= 1 << (self.game.layout.cool + o)
        self.bits &= ~(1 << (self.game.layout.hot + o))
        return self._treated("cool", o, r)

    def _treated(self, verb: str, o: int, r: int) -> str:
        return f"You {verb} the {self.game.objects[o]} using the {self.game.receptacles[r]}."

    def _use(self, o: int, r: int) -> str:
        self.bits |= 1 << (self.game.layout.toggled + o)
        return f"You turn on the {self.game.objects[o]}."

    def _slice(self, o: int, knife: int) -> str:
        self.bits |= 1 << (self.game.layout.sliced + o)
        return f"You sliced the {self.game.objects[o]} with the {self.game.objects[knife]}."

    def _examine(self, o: int, r: int) -> str:
        return text.thing(self, o) if r < 0 else text.receptacle(self, r)

    def _look(self, o: int, r: int) -> str:
        return text.look(self)

    def _inventory(self, o: int, r: int) -> str:
        return text.inventory(self)

    def _help(self, o: int, r: int) -> str:
        return text.HELP

    # --- which commands are legal --------------------------------------------------------------

    def _refresh(self) -> None:
        game = self.game
        moves = dict(_ALWAYS)
        for r in game.at[self.location]:
            self._offer_receptacle(moves, r)
        if self.held >= 0:
            self._offer_held(moves, self.held)
        # The `go to` commands are sorted already and stay together in the sorted list.
        roads = list(game.roads)
        for position in game.blocked[self.location]:
            del roads[position]
        local = sorted(moves)
        middle = bisect_left(local, _FIRST_ROAD)
        self.moves = moves
        self.admissible = (*local[:middle], *roads, *local[middle:])

    def _offer_receptacle(self, moves: dict[str, Move], r: int) -> None:
        """Add the commands that need this receptacle within reach, and empty or any hands."""
        game = self.game
        name = game.receptacles[r]
        moves[f"examine {name}"] = ("examine", -1, r)
        accessible = True
        if game.openable >> r & 1:
            accessible = self.is_open(r)
            verb = "close" if accessible else "open"
            moves[f"{verb} {name}"] = (verb, -1, r)
        for o in self.contents[r]:
            if accessible and self.held < 0 and game.pickable >> o & 1:
                moves[f"take {game.objects[o]} from {name}"] = ("take", o, r)
            if game.toggleable >> o & 1:
                moves[f"use {game.objects[o]}"] = ("use", o, r)
        if accessible and self.held >= 0 and game.fits[r] >> self.held & 1:
            moves[f"move {game.objects[self.held]} to {name}"] = ("move", self.held, r)

    def _offer_held(self, moves: dict[str, Move], o: int) -> None:
        game = self.game
        name = game.objects[o]
        moves[f"examine {name}"] = ("examine", o, -1)
        for verb, able, tools in (
            ("clean", game.cleanable, game.sinks),
            ("heat", game.heatable, game.microwaves),
            ("cool", game.coolable, game.fridges),
        ):
            if able >> o & 1 and tools:
                for r in game.at[self.location]:
                    if tools >> r & 1:
                        moves[f"{verb} {name} with {game.receptacles[r]}"] = (verb, o, r)
        if game.knives >> o & 1:
            for other in self.objects_beside():
                if game.sliceable >> other & 1:
                    moves[f"slice {game.objects[other]} with {name}"] = ("slice", other, o)


_ACTIONS: Final[Mapping[str, Callable[[State, int, int], str]]] = {
    "clean": State._clean,
    "close": State._close,
    "cool": State._cool,
    "examine": State._examine,
    "go": State._go,
    "heat": State._heat,
    "help": State._help,
    "inventory": State._inventory,
    "look": State._look,
    "move": State._move,
    "open": State._open,
    "slice": State._slice,
    "take": State._take,
    "use": State._use,
}
"""The effect of each verb on a state: (state, object, receptacle) -> what the player reads."""

VERBS: Final = frozenset(_ACTIONS)
"""First words of the game's commands."""
