"""Sokoban a second time, as plainly as can be: sets of cells, for the tests to compare with."""

from collections import defaultdict, deque
from typing import NamedTuple

STEPS = {"up": (-1, 0), "down": (1, 0), "left": (0, -1), "right": (0, 1)}
LEVEL_CHARACTERS = "# .*$@+"
"""The usual characters of level files, by number of the tile."""


GRID_CHARACTERS = "#_O√XPS"
"""The characters of `text_format="grid"`, by number of the tile."""


class Layout(NamedTuple):
    """What never moves: cells as (row, column)."""

    floor: frozenset
    targets: frozenset


class Position(NamedTuple):
    """What moves."""

    player: tuple
    boxes: frozenset


def read(tiles, fixed=None):
    """Return layout and position of rows of tile numbers."""
    cells = {(r, c): int(t) for r, row in enumerate(tiles) for c, t in enumerate(row)}
    targets = {cell for cell, tile in cells.items() if tile in (2, 3, 6)}
    if fixed is not None:
        targets |= {cell for cell in cells if fixed[cell[0]][cell[1]] == 2}
    (player,) = [cell for cell, tile in cells.items() if tile in (5, 6)]
    boxes = frozenset(cell for cell, tile in cells.items() if tile in (3, 4))
    floor = frozenset(cell for cell, tile in cells.items() if tile != 0)
    return Layout(floor, frozenset(targets)), Position(player, boxes)


def write(layout, position, height, width):
    """Return the rows of tile numbers, 6 for a player on a target."""
    rows = [[0] * width for _ in range(height)]
    for r, c in layout.floor:
        here = (r, c)
        tile = 2 if here in layout.targets else 1
        if here in position.boxes:
            tile = 3 if here in layout.targets else 4
        if here == position.player:
            tile = 6 if here in layout.targets else 5
        rows[r][c] = tile
    return rows


def step(layout, position, word, *, push=True):
    """Return the position after a step; the same one if it is not possible."""
    (r, c), boxes = position
    dr, dc = STEPS[word]
    ahead, behind = (r + dr, c + dc), (r + 2 * dr, c + 2 * dc)
    if ahead not in layout.floor:
        return position
    if ahead not in boxes:
        return Position(ahead, boxes)
    if not push or behind in boxes or behind not in layout.floor:
        return position
    return Position(ahead, boxes - {ahead} | {behind})


def search(layout, position, limit=10**6):
    """Return the length of a shortest solution of a position, -1 without one."""
    seen, frontier = {position}, deque([(position, 0)])
    while frontier:
        here, moves = frontier.popleft()
        if here.boxes >= layout.targets:
            return moves
        for word in STEPS:
            after = step(layout, here, word)
            if after not in seen:
                seen.add(after)
                assert len(seen) < limit
                frontier.append((after, moves + 1))
    return -1


def all_distances(layout, position):
    """Return the distance of every position that can be reached from one, -1 for lost ones."""
    came_from, order = defaultdict(list), [position]
    seen = {position}
    for here in order:
        for word in STEPS:
            after = step(layout, here, word)
            came_from[after].append(here)
            if after not in seen:
                seen.add(after)
                order.append(after)
    distance = {here: 0 for here in order if here.boxes >= layout.targets}
    frontier = deque(distance)
    while frontier:
        here = frontier.popleft()
        for before in came_from[here]:
            if before not in distance:
                distance[before] = distance[here] + 1
                frontier.append(before)
    return {here: distance.get(here, -1) for here in order}


def symmetric_copies(rows):
    """Return the eight turned and mirrored copies of a rectangle of anything."""
    copies, rows = [], tuple(map(tuple, rows))
    for _ in range(4):
        copies += [rows, rows[::-1]]
        rows = tuple(zip(*rows[::-1], strict=True))
    return copies


def cornered(rows):
    """Return the rows without those and the columns of walls alone round the floor."""
    used = [i for i, row in enumerate(rows) if any(row)]
    columns = [i for i, column in enumerate(zip(*rows, strict=True)) if any(column)]
    return tuple(tuple(row[columns[0] : columns[-1] + 1]) for row in rows[used[0] : used[-1] + 1])


def level_text(tiles):
    """Return rows of tiles as a level file draws them."""
    return "\n".join("".join(LEVEL_CHARACTERS[tile] for tile in row) for row in tiles) + "\n"


def grid_text(tiles):
    """Return rows of tiles as `text_format="grid"` shows them."""
    return "\n".join("".join(GRID_CHARACTERS[tile] for tile in row) for row in tiles)
