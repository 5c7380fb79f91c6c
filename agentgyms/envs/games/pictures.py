"""Cards, numbers and words as pixels, drawn by numpy alone so that they are the same everywhere."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, ClassVar, Final

import numpy as np
from gymnasium.spaces import Box, Dict
from numpy.typing import NDArray

from agentgyms.core.env import Outcome
from agentgyms.core.errors import BadOption
from agentgyms.core.images import Image
from agentgyms.core.outcome import MAX_OBSERVATION
from agentgyms.core.spaces import UnicodeText
from agentgyms.core.tasks import Task
from agentgyms.envs.games.game import Game, State

Colour = tuple[int, int, int]

_ROWS: Final = 96
_COLUMNS: Final = 128
_SCALE: Final = 2
SHAPE: Final = (_ROWS * _SCALE, _COLUMNS * _SCALE, 3)
"""The shape of every picture."""

CARD: Final = (38, 26)
"""Rows and columns of a card, in units of two pixels, as all places below."""

INK: Final = (34, 36, 46)
_TABLE: Final = (222, 232, 220)
_PAPER: Final = (252, 252, 248)
_PIP: Final = (196, 44, 48)
_BACK: Final = (44, 84, 150)
_BACK_LINE: Final = (150, 180, 222)

_TALL: Final = 7
_WIDE: Final = 5
_BETWEEN_TOKENS: Final = 3

# Seven rows of five bits, one base-32 digit each, the top row first.
_GLYPHS: Final = {
    "0": "ehjlphe",
    "1": "4c4444e",
    "2": "eh1248v",
    "3": "v2421he",
    "4": "26aiv22",
    "5": "vgu11he",
    "6": "68guhhe",
    "7": "v124888",
    "8": "ehhehhe",
    "9": "ehhf12c",
    "A": "ehhvhhh",
    "B": "uhhuhhu",
    "C": "ehggghe",
    "D": "uhhhhhu",
    "E": "vgguggv",
    "G": "ehgnhhf",
    "J": "72222ic",
    "K": "hikokih",
    "L": "ggggggv",
    "N": "hhpljhh",
    "O": "ehhhhhe",
    "Q": "ehhhlid",
    "R": "uhhukih",
    "S": "fgge11u",
    "T": "v444444",
    "U": "hhhhhhe",
    "Y": "hha4444",
    "+": "044v440",
    "-": "000v000",
    "*": "04lel40",
    "/": "01248g0",
    "(": "2488842",
    ")": "8422248",
    "=": "00v0v00",
    ">": "8421248",
    "_": "000000v",
    " ": "0000000",
}


class PicturedGame(Game):
    """A game with pictures of 192 x 256 pixels, which show what its text says and nothing else.

    With `pictures=True` the observation is `{"text": str, "image": uint8 [192, 256, 3]}`, and the
    text is `caption`. The game writes `paint`.
    """

    caption: ClassVar[str]
    """The picture's contents in words."""

    def __init__(self, *, pictures: bool = False, **common: Any) -> None:
        super().__init__(**common)
        if not isinstance(pictures, bool):
            raise BadOption(f"pictures must be True or False, got {pictures!r}")
        self._pictures = pictures
        if pictures:
            self.observation_space = Dict(
                text=UnicodeText(MAX_OBSERVATION), image=Box(0, 255, SHAPE, np.uint8)
            )

    def paint(self, canvas: Canvas, state: State) -> None:
        """Draw a state on an empty table: what `text` says of it, nothing else."""
        raise NotImplementedError

    def draw(self) -> Image:
        """Return the picture of the current state."""
        canvas = Canvas()
        self.paint(canvas, self._state)
        return canvas.image()

    def render(self) -> str | Image | None:
        """Return the text of the state in mode `ansi`, its picture in `rgb_array`."""
        shown = super().render()
        return self.text(self._state) if isinstance(shown, str) else shown

    def begin(self, task: Task, rng: np.random.Generator) -> Outcome:
        """Start on the task's board."""
        return self._seen(super().begin(task, rng))

    def act(self, action: str) -> Outcome:
        """Take an action."""
        return self._seen(super().act(action))

    def _seen(self, outcome: Outcome) -> Outcome:
        if not self._pictures:
            return outcome
        return outcome._replace(observation={"text": self.caption, "image": self.draw()})


class Canvas:
    """An empty table of 96 x 128 units, and what is drawn on it."""

    def __init__(self) -> None:
        self._pixels = np.full((_ROWS, _COLUMNS, 3), _TABLE, np.uint8)

    def image(self) -> Image:
        """Return the picture, uint8 [192, 256, 3]."""
        return self._pixels.repeat(_SCALE, axis=0).repeat(_SCALE, axis=1)

    def fill(self, row: int, column: int, height: int, width: int, colour: Colour) -> None:
        """Fill a rectangle."""
        self._pixels[row : row + height, column : column + width] = colour

    def write(self, text: str, row: int, column: int, size: int = 1) -> None:
        """Write digits, signs and capital letters of `size` units a dot, from a place to the right.

        Raises:
            ValueError: A sign has no glyph, or the text leaves the table.
        """
        for i, sign in enumerate(text):
            left = column + i * (_WIDE + 1) * size
            dots = _dots(sign).repeat(size, axis=0).repeat(size, axis=1)
            place = self._pixels[row : row + _TALL * size, left : left + _WIDE * size]
            if place.shape[:2] != dots.shape:
                raise ValueError(f"{text!r} leaves the picture at row {row}, column {column}")
            place[dots] = INK

    def write_tokens(self, tokens: Sequence[str], row: int, column: int, height: int) -> None:
        """Write tokens with gaps between them, and go on `height` units lower at the right edge."""
        at = column
        for token in tokens:
            if at + width(token) > _COLUMNS - column:
                row, at = row + height, column
            self.write(token, row, at)
            at += width(token) + _BETWEEN_TOKENS

    def card(self, rank: str, row: int, column: int) -> None:
        """Lay a card face up: its rank over a red diamond. All are of one suit."""
        self._sheet(_PAPER, row, column)
        self.write(rank, row + 4, column + (CARD[1] - width(rank, 2)) // 2, 2)
        down, right = np.mgrid[-6:7, -6:7]
        diamond = np.abs(down) + np.abs(right) <= len(down) // 2
        self._pixels[row + 21 : row + 34, column + 7 : column + 20][diamond] = _PIP

    def card_back(self, row: int, column: int) -> None:
        """Lay a card face down: a pattern that is the same for all."""
        self._sheet(_BACK, row, column)
        height, width = CARD[0] - 6, CARD[1] - 6
        down, right = np.mgrid[0:height, 0:width]
        place = self._pixels[row + 3 : row + 3 + height, column + 3 : column + 3 + width]
        place[((down + right) % 4 == 0) | ((down - right) % 4 == 0)] = _BACK_LINE

    def _sheet(self, colour: Colour, row: int, column: int) -> None:
        self.fill(row, column, *CARD, INK)
        self.fill(row + 1, column + 1, CARD[0] - 2, CARD[1] - 2, colour)


def width(text: str, size: int = 1) -> int:
    """Return the units that a text of `size` units a dot is wide."""
    return (len(text) * (_WIDE + 1) - 1) * size


@cache
def _dots(sign: str) -> NDArray[np.bool_]:
    """Return a glyph, bool [7, 5]."""
    if sign not in _GLYPHS:
        raise ValueError(f"{sign!r} has no glyph: expected one of {''.join(_GLYPHS)}")
    rows = [int(digit, 32) for digit in _GLYPHS[sign]]
    return np.array([[row >> bit & 1 for bit in (4, 3, 2, 1, 0)] for row in rows], bool)
