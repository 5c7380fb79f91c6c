"""The rules: against steps that gym-sokoban took, and against rooms drawn by hand."""

import gymnasium as gym
import pytest
from gymnasium.error import ResetNeeded
from hypothesis import given, settings
from hypothesis import strategies as st
from sokoban_oracles import GRID_CHARACTERS, STEPS, grid_text, level_text, read, step, write

from agentgyms.envs.sokoban.engine import (
    NUM_ACTIONS,
    PLAYER,
    PLAYER_ON_TARGET,
    WORDS,
    Effect,
    Rewards,
    State,
    cells_of,
    room_of_tiles,
    tiles_of,
)

ENV_ID = "agentgyms/Sokoban-v0"


def drawn(*rows):
    return [[GRID_CHARACTERS.index(character) for character in row] for row in rows]


def state_of(*rows):
    return State(room_of_tiles(drawn(*rows)))


def written(state):
    return grid_text(tiles_of(state)).split("\n")


# --- recorded steps -----------------------------------------------------------------------------


def as_gym_sokoban(state):
    """Tiles as gym-sokoban's room_state has them, where a player hides the target."""
    return [[PLAYER if t == PLAYER_ON_TARGET else t for t in row] for row in tiles_of(state)]


def walled(case):
    rows = case["room_state"]
    return not (any(rows[0]) or any(rows[-1]) or any(row[0] or row[-1] for row in rows))


def looks_beyond_the_edge(case):
    """Whether gym-sokoban's push looks at a cell outside of the room, which it gets wrong."""
    rows, action = case["room_state"], case["action"]
    if not 1 <= action <= len(WORDS):
        return False
    ((r, c),) = [(r, c) for r, row in enumerate(rows) for c, t in enumerate(row) if t == PLAYER]
    dr, dc = STEPS[WORDS[action - 1]]
    return not (0 <= r + 2 * dr < len(rows) and 0 <= c + 2 * dc < len(rows[0]))


@pytest.mark.data
def test_every_recorded_step(recorded):
    cases = [case for case in recorded("steps.json") if not looks_beyond_the_edge(case)]
    assert cases
    for case in cases:
        state = State(room_of_tiles(case["room_state"], case["room_fixed"]))
        assert as_gym_sokoban(state) == case["room_state"], case["tag"]
        effect = state.step(case["action"])
        assert as_gym_sokoban(state) == case["next_room_state"], case["tag"]
        assert effect == (case["moved_player"], case["moved_box"]), case["tag"]
        after, solved = state.boxes_on_target, state.solved
        assert after == case["next_boxes_on_target"], case["tag"]
        reward = Rewards().earned(case["boxes_on_target"], after, solved)
        assert reward == pytest.approx(case["reward"], abs=1e-9), case["tag"]
        turn = case["num_env_steps"] + 1
        assert turn == case["next_num_env_steps"], case["tag"]
        assert (solved or turn == case["max_steps"]) == case["done"], case["tag"]
        if case["done"]:
            assert case["all_boxes_on_target"] == solved, case["tag"]


@pytest.mark.data
def test_beyond_the_edge_is_a_wall(recorded):
    cases = [case for case in recorded("steps.json") if looks_beyond_the_edge(case)]
    for case in cases:
        layout, position = read(case["room_state"], case["room_fixed"])
        word = WORDS[case["action"] - 1]
        expected = write(layout, step(layout, position, word), *shape(case["room_state"]))
        state = State(room_of_tiles(case["room_state"], case["room_fixed"]))
        state.step(case["action"])
        assert tiles_of(state) == expected, case["tag"]
        if walled(case):
            assert as_gym_sokoban(state) == case["next_room_state"], case["tag"]


def shape(rows):
    return len(rows), len(rows[0])


def playable(case):
    """Whether the environment can be brought into a case: it counts boxes from the start on."""
    rows = case["room_state"]
    layout, position = read(rows, case["room_fixed"])
    covered = len(position.boxes & layout.targets)
    return (
        walled(case)
        and case["action"] <= len(WORDS)
        and len(position.boxes) == len(layout.targets) == case["num_boxes"]
        and covered == case["boxes_on_target"] < case["num_boxes"]
        and case["num_env_steps"] < case["max_steps"]
    )


def tiles_before(case):
    return write(*read(case["room_state"], case["room_fixed"]), *shape(case["room_state"]))


@pytest.mark.data
def test_recorded_steps_in_the_environment(recorded, tmp_path):
    cases = [case for case in recorded("steps.json") if playable(case)]
    assert cases
    levels = [tiles_before(case) for case in cases]
    (tmp_path / "cases.txt").write_text("\n".join(map(level_text, levels)))
    for number, case in enumerate(cases):
        limit = case["max_steps"] - case["num_env_steps"]
        env = gym.make(
            ENV_ID, levels=tmp_path, split="test", max_turns=limit, lenient=True, text_format="grid"
        ).unwrapped
        env.reset(options={"task_id": f"test/cases/{number:04d}"})
        word = ("still", *WORDS)[case["action"]]
        grid, reward, terminated, truncated, info = env.step(word)
        after = write(*read(case["next_room_state"], case["room_fixed"]), *shape(levels[number]))
        assert grid == grid_text(after), case["tag"]
        assert reward == pytest.approx(case["reward"], abs=1e-9), case["tag"]
        assert (terminated or truncated) == case["done"], case["tag"]
        assert terminated == info["success"] == bool(case["all_boxes_on_target"]), case["tag"]
        assert {**info["metrics"], "deadlocked": 0} == {
            "deadlocked": 0,
            "moved": case["moved_player"],
            "pushed": case["moved_box"],
            "boxes_on_target": case["next_boxes_on_target"],
        }
        if case["done"]:  # gym-sokoban goes on, and says done=False beyond its limit
            with pytest.raises(ResetNeeded, match="after the end"):
                env.step("up")


# --- by hand ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "action", "after", "effect"),
    [
        ("#_P_#", 0, "#_P_#", (False, False)),
        ("#_P_#", 3, "#P__#", (True, False)),
        ("#_P_#", 4, "#__P#", (True, False)),
        ("#_P_#", 7, "#P__#", (True, False)),
        ("#_P_#", 8, "#__P#", (True, False)),
        ("#_P_#", 1, "#_P_#", (False, False)),
        ("#P__#", 3, "#P__#", (False, False)),
        ("#P__#", 7, "#P__#", (False, False)),
        ("#_PX_#", 4, "#__PX#", (True, True)),
        ("#_PX_#", 8, "#_PX_#", (False, False)),
        ("#_PX#", 4, "#_PX#", (False, False)),
        ("#PXX_#", 4, "#PXX_#", (False, False)),
        ("#PX√_#", 4, "#PX√_#", (False, False)),
        ("#_XP#", 3, "#XP_#", (True, True)),
        ("#_XP#", 4, "#_XP#", (False, False)),
        ("#PXO#", 4, "#_P√#", (True, True)),
        ("#P√O#", 4, "#_S√#", (True, True)),
        ("#P√_#", 4, "#_SX#", (True, True)),
        ("#SX_#", 4, "#OPX#", (True, True)),
        ("#S__#", 4, "#OP_#", (True, False)),
        ("#_PO#", 8, "#__S#", (True, False)),
        ("PX_", 4, "_PX", (True, True)),
        ("_PX", 4, "_PX", (False, False)),
        ("XP_", 3, "XP_", (False, False)),
        ("P__", 3, "P__", (False, False)),
        ("_P", 4, "_P", (False, False)),
        ("P_", 4, "_P", (True, False)),
    ],
)
def test_one_row_and_the_same_turned(before, action, after, effect):
    state = state_of(before)
    assert state.step(action) == Effect(*effect)
    assert written(state) == [after]
    turned = {0: 0, 1: 3, 3: 1, 4: 2, 7: 5, 8: 6}
    column = state_of(*before)
    assert column.step(turned[action]) == Effect(*effect)
    assert written(column) == list(after)


def test_a_box_beside_the_player_stays():
    state = state_of("#####", "#_X_#", "#XPX#", "#_X_#", "#####")
    for action in range(5, NUM_ACTIONS):
        assert state.step(action) == Effect(False, False)
    for action in range(1, 5):
        assert state.step(action) == Effect(False, False)
    assert state.effective() == []


def test_effective_words_are_those_that_change_something():
    state = state_of("#####", "#_O_#", "#_XP#", "#_#_#", "#####")
    assert state.effective() == ["up", "down", "left"]


@pytest.mark.parametrize("rows", [["#__#"], ["#PP#"], ["#PS#"]])
def test_a_room_has_one_player(rows):
    players = sum(row.count("P") + row.count("S") for row in rows)
    with pytest.raises(ValueError, match=f"one player, this one has {players}"):
        state_of(*rows)


def test_states_that_share_a_room_are_independent():
    first = state_of("#PX_#")
    second = State(first.room)
    first.step(4)
    assert written(first) == ["#_PX#"]
    assert written(second) == ["#PX_#"]


def test_boxes_on_target_counts_uncovered_targets():
    assert state_of("#√OPX#").boxes_on_target == 1
    assert state_of("#√√PX#").boxes_on_target == 3  # gym-sokoban's count: boxes less uncovered
    assert state_of("#OOPX#").boxes_on_target == -1
    assert state_of("#√√PX#").solved
    assert not state_of("#√SXX#").solved


@pytest.mark.parametrize(
    ("before", "after", "solved", "reward"),
    [
        (0, 0, False, -0.1),
        (0, 1, False, 0.9),
        (2, 1, False, -1.1),
        (1, 2, True, 10.9),
        (1, 1, True, 9.9),
        (-1, 0, False, 0.9),
    ],
)
def test_rewards(before, after, solved, reward):
    assert Rewards().earned(before, after, solved) == pytest.approx(reward, abs=1e-12)


def test_other_rewards():
    rewards = Rewards(step=-1 / 4, on_target=2, off_target=-3, solved=0.5)
    assert rewards.earned(0, 1, True) == -0.25 + 2 + 0.5
    assert rewards.earned(1, 0, False) == -3.25
    assert rewards.earned(1, 1, False) == -0.25


# --- by chance ----------------------------------------------------------------------------------


@st.composite
def rooms(draw):
    height, width = draw(st.integers(1, 6)), draw(st.integers(1, 6))
    tiles = draw(
        st.lists(
            st.lists(st.sampled_from([0, 1, 1, 1, 2, 3, 4]), min_size=width, max_size=width),
            min_size=height,
            max_size=height,
        )
    )
    row, column = draw(st.integers(0, height - 1)), draw(st.integers(0, width - 1))
    tiles[row][column] = draw(st.sampled_from([PLAYER, PLAYER_ON_TARGET]))
    return tiles


@settings(max_examples=150, deadline=None)
@given(rooms(), st.lists(st.integers(0, NUM_ACTIONS - 1), max_size=20))
def test_random_play_agrees_with_sets_of_cells(tiles, actions):
    state, (layout, position) = State(room_of_tiles(tiles)), read(tiles)
    room = state.room
    assert tiles_of(state) == tiles
    assert [room.position(cell) for cell in cells_of(room.targets)] == sorted(layout.targets)
    for action in actions:
        effective = [word for word in WORDS if step(layout, position, word) != position]
        assert state.effective() == effective
        before = position
        if action:
            word = WORDS[(action - 1) % 4]
            position = step(layout, position, word, push=action <= len(WORDS))
        pushed = position.boxes != before.boxes
        assert state.step(action) == Effect(position != before, pushed)
        assert tiles_of(state) == write(layout, position, len(tiles), len(tiles[0]))
        assert state.solved == (layout.targets <= position.boxes)
        uncovered = len(layout.targets - position.boxes)
        assert state.boxes_on_target == len(position.boxes) - uncovered
