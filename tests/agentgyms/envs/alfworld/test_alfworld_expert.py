"""The experts: they win, from the beginning and from states that others have brought about."""

import random
from statistics import mean

import pytest
from alfworld_walks import walk
from alfworld_worlds import do, play

from agentgyms.envs.alfworld.builder import build_game
from agentgyms.envs.alfworld.engine import State
from agentgyms.envs.alfworld.expert import WAIT, best, explore, remaining, walkthrough
from agentgyms.envs.alfworld.generated import generator
from agentgyms.envs.alfworld.problem import FAMILIES, Goal


def game(task_id: str):
    return build_game(generator.generate(task_id), task_id)


def turns_to_win(state: State, policy, limit: int) -> int:
    """Return how many turns a policy takes; every command of it must be legal."""
    for turn in range(limit):
        if state.won:
            return turn
        command = policy(state)
        move = state.find(command)
        assert move is not None, f"{state.game.name}: {command!r} is not legal"
        state.perform(move)
    assert state.won, f"{state.game.name} is not won within {limit} turns"
    return limit


@pytest.mark.parametrize(
    ("policy", "size", "limit"),
    [(best, "small", 16), (explore, "small", 50), (best, "large", 50), (explore, "large", 60)],
)
@pytest.mark.parametrize("split", ["valid_seen", "valid_unseen"])
def test_every_evaluation_task_is_won(policy, size, limit, split):
    for task in generator.list_tasks(size, split):
        turns_to_win(State(game(task.task_id)), policy, limit)


@pytest.mark.parametrize("size", ["small", "large"])
def test_remaining_commands_are_those_that_best_still_gives(size):
    """Also where others have been before: held objects, open doors, treated things."""
    rng = random.Random(0)
    for task in generator.list_tasks(size, "valid_seen")[:12]:
        state = State(game(task.task_id))
        for _ in range(6):
            state.perform(rng.choice([move for move in map(state.find, state.admissible) if move]))
            if state.won:
                break
        left = remaining(state)
        assert turns_to_win(state, best, 60) == left
        assert remaining(state) == 0


@pytest.mark.parametrize("family", FAMILIES)
def test_training_tasks_are_won(family):
    for index in range(0, 600, 6):
        turns_to_win(State(game(f"small-train-{family}-{index:04d}")), best, 16)
        turns_to_win(State(game(f"small-train-{family}-{index:04d}")), explore, 50)


def test_searching_takes_long_in_large_rooms():
    turns = [
        turns_to_win(State(game(task.task_id)), explore, 60)
        for task in generator.list_tasks("large", "valid_seen")
    ]
    assert 20 < mean(turns) < 35
    assert max(turns) > 40


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("size", ["small", "large"])
@pytest.mark.parametrize("policy", [best, explore])
def test_it_goes_on_from_wherever_others_have_led(family, size, policy):
    for seed in range(12):
        state = State(game(f"{size}-valid_seen-{family}-{seed:04d}"))
        for command in walk(state, random.Random(seed), 30):
            do(state, command)
        turns_to_win(state, policy, 80)


@pytest.mark.parametrize("family", FAMILIES)
def test_best_comes_nearer_with_every_turn(family):
    """The plan is exact: each command of it leaves one command less."""
    for index in range(10):
        start = game(f"large-valid_unseen-{family}-{index:04d}")
        state = State(start)
        for left in range(len(walkthrough(start)), 0, -1):
            assert turns_to_win(State(start, state.bits), best, 50) == left
            do(state, best(state))


@pytest.mark.parametrize(
    ("house", "start", "commands"),
    [
        # A closed drawer costs a turn more than a desk, an open one does not.
        ("drawer_bar_1 at a, closed: mug_bar_1\n desk_bar_1 at b: mug_bar_2", "middle", 4),
        ("drawer_bar_1 at a, closed: mug_bar_1\n desk_bar_1 at b:", "middle", 5),
        ("drawer_bar_1 at a, open: mug_bar_1\n desk_bar_1 at b: mug_bar_2", "middle", 4),
        ("drawer_bar_1 at a, open: mug_bar_1\n desk_bar_1 at b: mug_bar_2", "a", 3),
        ("drawer_bar_1 at a, open: mug_bar_1\n desk_bar_1 at b: mug_bar_2", "b", 3),
        ("drawer_bar_1 at a, closed: mug_bar_1\n desk_bar_1 at b: mug_bar_2", "a", 4),
    ],
)
def test_best_counts_ways_and_doors(house, start, commands):
    state = play(f"{house}\n safe_bar_1 at c:", start=start)
    assert len(walkthrough(state.game)) == commands


def test_explore_sees_no_further_than_the_player():
    """What it does depends on nothing that is hidden from where it stands."""
    for where in ("drawer_bar_1", "shelf_bar_1", "sofa_bar_1"):
        lines = {
            "desk_bar_1": "at a:",
            "drawer_bar_1": "at b, closed:",
            "safe_bar_1": "at c:",
            "shelf_bar_1": "at d:",
            "sofa_bar_1": "at e:",
        }
        lines[where] += " mug_bar_1"
        state = play("\n".join(f"{name} {rest}" for name, rest in lines.items()))
        seen = []
        while explore(state) != "take mug 1 from " + where.replace("_bar_", " "):
            seen.append(explore(state))
            do(state, seen[-1])
        tour = ["go to desk 1", "go to drawer 1", "open drawer 1", "go to shelf 1", "go to sofa 1"]
        assert seen == tour[: len(seen)]


def test_explore_goes_round_from_where_it_stands():
    state = play(
        "bed_bar_1 at a: mug_bar_1\n desk_bar_1 at b:\n safe_bar_1 at c:\n sofa_bar_1 at d:"
    )
    do(state, "go to desk 1")
    tour = []
    while not state.won:
        tour.append(explore(state))
        do(state, tour[-1])
    assert tour == [
        "go to sofa 1",
        "go to bed 1",
        "take mug 1 from bed 1",
        "go to safe 1",
        "move mug 1 to safe 1",
    ]


def test_explore_takes_receptacles_at_one_location_as_one_stop():
    state = play(
        "bed_bar_1 at a:\n desk_bar_1 at b:\n drawer_bar_1 at a, closed:\n safe_bar_1 at c:\n"
        "sofa_bar_1 at d: mug_bar_1"
    )
    turns_to_win(state, explore, 12)


def test_both_put_down_what_is_of_no_use():
    house = "bed_bar_1 at a: book_bar_1\n desk_bar_1 at b: mug_bar_1\n safe_bar_1 at c, closed:"
    for policy in (best, explore):
        state = play(house, without={("desk", "book"), ("safe", "book")})
        do(state, "go to bed 1", "take book 1 from bed 1", "go to safe 1", "open safe 1")
        do(state, "close safe 1")
        turns_to_win(state, policy, 20)


def test_both_wait_when_nothing_helps_any_more():
    house = "desk_bar_1 at a: book_bar_1 mug_bar_1\n safe_bar_1 at b:"
    state = play(house, without={("desk", "book"), ("safe", "book")})
    do(state, "go to desk 1", "take book 1 from desk 1")
    assert best(state) == explore(state) == WAIT
    assert do(state, WAIT) != "Nothing happens."


def test_both_take_a_treated_object_out_again():
    house = "safe_bar_1 at a, closed: mug_bar_1\n sink_bar_1_bar_sinkbasin at b:\n desk_bar_1 at c:"
    for policy in (best, explore):
        state = play(house, Goal("clean", "mug", "safe"))
        turns_to_win(state, policy, 16)


@pytest.mark.parametrize(
    ("goal", "without"),
    [
        (Goal("pick", "mug", "safe"), {("safe", "mug")}),
        (Goal("pick2", "mug", "safe"), {("safe", "mug")}),
        (Goal("clean", "mug", "safe"), set()),  # there is no basin
        (Goal("heat", "book", "safe"), set()),  # no book can be heated
    ],
)
def test_explore_looks_everywhere_and_takes_nothing_that_cannot_be_brought_home(goal, without):
    house = "desk_bar_1 at a: book_bar_1 mug_bar_1\n safe_bar_1 at b:\n microwave_bar_1 at c:"
    state = play(house, goal, without=without)
    commands = []
    for _ in range(6):
        commands.append(explore(state))
        assert state.find(commands[-1]) is not None, commands
        do(state, commands[-1])
    assert "go to desk 1" in commands
    assert not any(command.startswith("take") for command in commands)


def test_a_walkthrough_that_does_not_exist_is_an_error():
    with pytest.raises(ValueError, match="no way was found to win tiny within 100 commands"):
        walkthrough(play("desk_bar_1 at a: mug_bar_1\n sofa_bar_1 at b:").game)
