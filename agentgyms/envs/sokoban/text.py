"""Renders rooms as text, in the formats of this package and of its peers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from agentgyms.envs.sokoban.engine import State, tiles_of

CHARACTERS: Final = "#_O√XPS"
"""Characters of the tiles, by number."""

LEGEND: Final = "# wall, _ floor, O target, X box, √ box on target, P you, S you on target"


def grid(state: State) -> str:
    """Return one character per cell and one line per row, as RAGEN writes it."""
    return "\n".join(["".join([CHARACTERS[tile] for tile in row]) for row in tiles_of(state)])


def grid_with_legend(state: State) -> str:
    """Return the grid with a legend below it."""
    return f"{grid(state)}\n{LEGEND}"


def verl_agent(state: State) -> str:
    """Return the grid as verl-agent writes it: spaces around each character, tabs between them."""
    rows = ("".join(f" {CHARACTERS[tile]} \t" for tile in row) for row in tiles_of(state))
    return "\n".join(rows)


def gem(state: State) -> str:
    """Return the grid as GEM writes it: spaces between the characters, a newline at the end."""
    return "".join(" ".join(CHARACTERS[tile] for tile in row) + "\n" for row in tiles_of(state))


FORMATS: Final[dict[str, Callable[[State], str]]] = {
    "legend": grid_with_legend,
    "grid": grid,
    "verl_agent": verl_agent,
    "gem": gem,
}
