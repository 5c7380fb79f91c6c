"""The solver: its table and its search against each other and against a plain search."""

import random

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sokoban_oracles import all_distances, read, search, step

from agentgyms.envs.sokoban import solver
from agentgyms.envs.sokoban.engine import WORDS, State, room_of_tiles, tiles_of
from agentgyms.envs.sokoban.generator import Recipe, make_rooms
from agentgyms.envs.sokoban.peer_rooms import PEERS, generate

RECIPES = [
    (Recipe(6, 6, 1, (0.2, 0.6), (3, 15)), 20),
    (Recipe(6, 6, 2, (0.2, 0.6), (3, 15)), 8),
    (Recipe(6, 5, 3, (0.0, 0.2), (3, 15)), 3),
    (Recipe(4, 12, 2, (0.0, 0.1), (3, 15)), 4),
]


@pytest.fixture(params=["table", "search"])
def way(request, monkeypatch):
    """Forces one of the two ways to solve."""
    monkeypatch.setattr(solver, "has_table", lambda room: request.param == "table")
    return request.param


def state_at(room, position):
    boxes = sum(1 << room.cell(*cell) for cell in position.boxes)
    return State(room, boxes, room.cell(*position.player))


def play(state):
    """Return how many moves `best_action` takes to solve a state."""
    state, moves = State(state.room, state.boxes, state.player), 0
    while word := solver.best_action(state):
        assert state.step(WORDS.index(word) + 1).moved
        moves += 1
        assert moves < 200
    assert state.solved
    return moves


def check(room, distance, count, rng):
    """Compare every kind of state of a room: solved, lost, near and far."""
    lost = sorted((p for p, d in distance.items() if d < 0), key=repr)
    others = sorted((p for p, d in distance.items() if d >= 0), key=repr)
    chosen = rng.sample(lost, min(count, len(lost))) + rng.sample(others, min(count, len(others)))
    chosen.append(max(others, key=lambda p: (distance[p], repr(p))))
    for position in chosen:
        state = state_at(room, position)
        assert solver.distance(state) == distance[position], position
        if distance[position] < 0:
            assert solver.best_action(state) == ""
        else:
            assert play(state) == distance[position]
    return bool(lost)


@pytest.mark.parametrize(("recipe", "count"), RECIPES, ids=lambda value: getattr(value, "name", ""))
def test_all_kinds_of_states_of_generated_rooms(way, recipe, count):
    rng, with_lost = random.Random(0), 0
    for made in make_rooms(recipe, "train", count):
        room = made.room()
        distance = all_distances(*read(tiles_of(State(room))))
        with_lost += check(room, distance, 10, rng)
    assert with_lost > count // 2


def test_rooms_of_the_peers(way):
    rng = random.Random(1)
    for seed in (0, 1, 2):
        room = generate((7, 7), 2, seed, PEERS["verl_agent"])
        check(room, all_distances(*read(tiles_of(State(room)))), 6, rng)


def test_a_solved_state_needs_no_move(way):
    state = State(room_of_tiles([[5, 1, 3]]))
    assert (solver.distance(state), solver.best_action(state)) == (0, "")


@pytest.mark.parametrize(
    ("tiles", "moves", "first"),
    [
        ([[5, 4, 2]], 1, "right"),
        ([[2, 4, 1, 5]], 2, "left"),
        ([[4, 1, 2], [1, 5, 1]], solver.DEAD, ""),  # a box in a corner
        ([[1, 4, 1], [1, 5, 2]], solver.DEAD, ""),  # a box at a wall without a target
        ([[5, 4, 4, 1, 2, 2]], solver.DEAD, ""),  # two boxes in a row
        ([[5, 0, 4, 2]], solver.DEAD, ""),  # out of reach
        ([[5, 1, 4, 2, 1]], 2, "right"),
        ([[6, 4, 1], [1, 1, 1]], 8, None),
    ],
)
def test_rooms_by_hand(way, tiles, moves, first):
    state = State(room_of_tiles(tiles))
    expected = search(*read(tiles))
    if first is None:
        moves = expected
    assert solver.distance(state) == moves == expected
    if first is not None:
        assert solver.best_action(state) == first


def test_of_equal_first_moves_each_way_takes_one_that_is_shortest(way):
    tiles = [[1, 1, 1], [5, 4, 2], [1, 1, 1]]
    assert play(State(room_of_tiles(tiles))) == 1


def test_asking_changes_nothing(way):
    state = State(room_of_tiles([[1, 1, 1, 1], [5, 1, 4, 2]]))
    before = state.boxes, state.player
    assert solver.distance(state) == 2
    assert solver.best_action(state) == "right"
    assert (state.boxes, state.player) == before


def test_large_rooms_are_searched():
    recipe = Recipe(9, 9, 3, (0.2, 0.3), (5, 15))
    for made in make_rooms(recipe, "train", 3):
        state = State(made.room())
        assert not solver.has_table(state.room)
        assert solver.distance(state) == made.moves == play(state)


@st.composite
def rooms(draw):
    height, width = draw(st.integers(1, 5)), draw(st.integers(2, 5))
    cells = [(r, c) for r in range(height) for c in range(width)]
    assume(len(cells) > 3)
    boxes = draw(st.integers(1, min(3, (len(cells) - 1) // 2)))
    places = draw(st.permutations(cells))
    tiles = [[1] * width for _ in range(height)]
    walls = draw(st.integers(0, max(0, len(cells) - 2 * boxes - 1)))
    stands_on_target = draw(st.booleans())
    player, rest = places[0], places[1:]
    for r, c in rest[:boxes]:
        tiles[r][c] = 4
    free = rest[boxes:]
    if stands_on_target:
        tiles[player[0]][player[1]] = 6
    else:
        tiles[player[0]][player[1]] = 5
    for r, c in free[: boxes - stands_on_target]:
        tiles[r][c] = 2
    for r, c in free[boxes : boxes + min(walls, 6)]:
        tiles[r][c] = 0
    return tiles


@settings(max_examples=60, deadline=None)
@given(rooms(), st.randoms(use_true_random=False))
def test_random_rooms(tiles, rng):
    layout, position = read(tiles)
    distance = all_distances(layout, position)
    assert distance[position] == search(layout, position)
    room = room_of_tiles(tiles)
    for place in rng.sample(sorted(distance, key=repr), min(8, len(distance))):
        state = state_at(room, place)
        table = solver._table(room).get(state.boxes)
        plan = solver._search(room, state.boxes, state.player)
        assert (solver.DEAD if table is None else table[state.player]) == distance[place]
        assert (plan if isinstance(plan, int) else len(plan)) == distance[place]
        after = place
        for word in () if isinstance(plan, int) else plan:
            before, after = after, step(layout, after, word)
            assert after != before, "every move of a plan changes something"
        assert isinstance(plan, int) or after.boxes >= layout.targets
