"""BabyAI: rules and view by hand, routes against all ways, and MiniGrid itself."""

import gymnasium as gym
import pytest
from games_peer import peer

from agentgyms.core.errors import BadOption
from agentgyms.envs.games.babyai import routes, view
from agentgyms.envs.games.babyai.env import BabyAIEnv
from agentgyms.envs.games.babyai.levels import LEVELS, scene
from agentgyms.envs.games.babyai.world import ACTIONS, CARRIED, GONE, Scene, after, first

ROOM = ("######", "#....#", "#....#", "#....#", "######")
THINGS = (("ball", "red", 8), ("box", "blue", 10), ("key", "grey", 22))


def room(verb="go to", targets=(0,), beside=(), things=THINGS, doors=(), start=(1, 1, 0)):
    return Scene("by hand", ROOM, start, things, doors, verb, targets, beside, "", 64)


def walked(board, *actions):
    state = first(board)
    for action in actions:
        state = after(board, state, ACTIONS.index(action))
    return state


def test_the_view_in_words():
    """Facing down from the corner: what is ahead and to the left, as far as the walls."""
    board = room(start=(1, 1, 1))
    assert view.described(board, first(board)).splitlines() == [
        "You see a red ball 1 step left.",
        "You see a blue box 3 steps left.",
        "You see a grey key 2 steps forward and 3 steps left.",
        "You see a wall 3 steps forward.",
        "You see a wall 1 step right.",
    ]


def test_a_closed_door_hides_what_is_behind():
    rows = ("#########", "#...#...#", "#.......#", "#...#...#", "#########")
    board = Scene(
        "by hand",
        rows,
        (2, 2, 0),
        (("ball", "red", 24),),
        (("green", 22),),
        "open",
        (0,),
        (),
        "",
        64,
    )
    assert "ball" not in view.described(board, first(board))
    assert "You see a closed green door 2 steps forward." in view.described(board, first(board))
    opened = walked(board, "go forward", "toggle")
    assert opened.done
    assert "You see a red ball 3 steps forward." in view.described(board, opened)


def test_what_actions_do():
    board = room("pick up", (2,))
    ahead = walked(board, "go forward")
    assert (ahead.column, ahead.row) == (1, 1)  # the ball is in the way
    held = walked(board, "pick up")
    assert held.places[0] == CARRIED
    assert "You carry a red ball." in view.described(board, held)
    assert walked(board, "pick up", "go forward", "pick up").places[1] == 10  # too far
    assert walked(board, "pick up", "go forward", "go forward", "pick up").places[1] == 10  # full
    box = walked(board, "pick up", "go forward", "go forward", "toggle")
    assert box.places[1] == GONE
    dropped = after(board, box, ACTIONS.index("drop"))
    assert dropped.places == (10, GONE, 22)
    assert walked(board, "toggle") == walked(board, "drop") == first(board)


def test_going_to_a_thing_that_is_ahead_takes_one_action():
    board = room()
    assert routes.left(board, first(board)) == 1
    for action in ("pick up", "drop", "toggle", "go forward"):
        assert walked(board, action).done, action
    assert not walked(board, "turn left").done


def test_putting_a_thing_beside_another():
    board = room("put", (0,), (2,))
    state, taken = first(board), []
    while not state.done:
        taken.append(routes.best(board, state))
        state = after(board, state, ACTIONS.index(taken[-1]))
    assert len(taken) == routes.left(board, first(board))
    assert taken[0] == "pick up"
    assert taken[-1] == "drop"


def all_ways(board, most, start=None):
    """Return the fewest actions to the end, whatever they move."""
    level, seen = {start or first(board)}, set()
    for length in range(1, most + 1):
        following = {after(board, state, n) for state in level for n in range(6)} - seen
        if any(state.done for state in following):
            return length
        seen |= following
        level = following
    return None


@pytest.mark.parametrize("level", ["GoToRedBallNoDists", "GoToObj", "OpenRedDoor"])
def test_the_experts_way_is_the_shortest(level):
    for seed in range(8):
        board = scene(level, seed)
        length = routes.left(board, first(board))
        assert all_ways(board, length) == length


def test_what_is_carried_and_not_wanted_is_put_down_first():
    board = room("pick up", (1,))
    state = walked(board, "pick up")
    assert routes.left(board, state) == all_ways(board, 6, state) == 6
    taken = []
    while not state.done:
        taken.append(routes.best(board, state))
        state = after(board, state, ACTIONS.index(taken[-1]))
    assert "drop" in taken


def test_minigrids_reward_is_a_metric():
    env = BabyAIEnv(level="GoToObj", split="valid_seen")
    _, info = env.reset(seed=0)
    turns = env.optimal_remaining()
    while not info["success"]:
        assert info["metrics"].get("minigrid_reward", 0) == 0
        _, reward, _, _, info = env.step(env.expert_actions()["best"])
    assert reward == 1
    assert info["metrics"]["minigrid_reward"] == 1 - 0.9 * turns / 64


def test_the_levels_of_a_split():
    mixed = BabyAIEnv(split="valid_seen").tasks.families()
    assert sum(mixed.values()) == 100
    assert min(mixed.values()) >= 16
    assert set(mixed) < set(LEVELS)
    bigger = BabyAIEnv(level="GoToObj", split="valid_unseen")
    bigger.reset(seed=0)
    assert len(bigger.board[1]) == 9


def test_a_wrong_level_is_named():
    with pytest.raises(BadOption, match="level 'GoTo' is unknown"):
        gym.make("agentgyms/BabyAI-v0", level="GoTo")


@pytest.mark.adapters
def test_steps_equal_minigrids():
    said = peer("babyai_peer.py", {"episodes": 25, "turns": 60, "seed": 0})
    assert said["differences"] == []
    assert said["steps"] > 5000
    assert min(said["completed"][level] for level in LEVELS) >= 8
