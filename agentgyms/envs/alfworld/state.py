"""A state of a game: what holds now, as one integer and as what follows from it."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b

from agentgyms.envs.alfworld.game import Game, members


class GameState:
    """The facts at one moment of a game.

    The state is one integer, `bits`, laid out by `game.layout`. The other attributes follow from it
    and are kept for speed: the agent's location, the object in its hand or -1, the objects inside
    each receptacle (ascending), which literals of the goal hold, and how many.
    """

    __slots__ = ("bits", "contents", "game", "held", "holds", "location", "reached")

    def __init__(self, game: Game, bits: int | None = None) -> None:
        """Take the game's first state, or the one that `bits` describes."""
        self.game = game
        self.bits = game.initial if bits is None else bits
        layout, wide = game.layout, len(game.receptacles)
        self.location = next(members(self.bits & ((1 << layout.opened) - 1)))
        held = self.bits >> layout.held & ((1 << len(game.objects)) - 1)
        self.held = next(members(held), -1)
        self.contents: list[list[int]] = [[] for _ in game.receptacles]
        stored = self.bits >> layout.inside & ((1 << (layout.taken - layout.inside)) - 1)
        for pair in members(stored):
            self.contents[pair % wide].append(pair // wide)
        self.judge()

    def judge(self) -> None:
        """Set which literals of the goal hold."""
        self.holds = self.game.aim.holds(self.bits)
        self.reached = sum(self.holds)

    @property
    def key(self) -> str:
        """Digest of the game and the facts that hold: equal exactly when they are."""
        size = (self.bits.bit_length() + 7) // 8
        data = self.game.salt + self.bits.to_bytes(size, "little")
        return blake2b(data, digest_size=16).hexdigest()

    @property
    def won(self) -> bool:
        """Whether the goal is reached."""
        return self.reached == self.game.aim.total

    def is_open(self, r: int) -> bool:
        """Return whether an openable receptacle stands open."""
        return bool(self.bits >> (self.game.layout.opened + r) & 1)

    def conditions(self, o: int) -> set[str]:
        """Return what has been done to an object: `clean`, `hot`, `cool`, `toggled`, `sliced`."""
        layout = self.game.layout
        return {
            name
            for name in ("clean", "hot", "cool", "toggled", "sliced")
            if self.bits >> (getattr(layout, name) + o) & 1
        }

    def was_taken(self, o: int, r: int) -> bool:
        """Return whether an object was taken from a receptacle and not put back."""
        game = self.game
        return bool(self.bits >> (game.layout.taken + o * len(game.receptacles) + r) & 1)

    def objects_beside(self) -> Iterator[int]:
        """Yield the objects at the agent's location that were put there or can be sliced there."""
        game = self.game
        region = self.bits >> (game.layout.beside + self.location)
        for o in range(len(game.objects)):
            if region >> o * len(game.at) & 1:
                yield o
