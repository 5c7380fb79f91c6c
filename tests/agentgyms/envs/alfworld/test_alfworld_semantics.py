"""The rules' and the wording's traits, each on a household made for it.

What these tests expect was seen in the official engine; `tests/golden/alfworld_quirks.jsonl.gz`
holds its own answers for the same households.
"""

import pytest
from alfworld_worlds import do, play

from agentgyms.envs.alfworld import text
from agentgyms.envs.alfworld.problem import Goal


def test_introduction_lists_receptacles_by_id_and_numbers_them_downwards():
    state = play("drawer_bar_1 at a:\n drawer_bar_2 at b:\n desk_bar_9 at c:\n drawer_bar_0 at d:")
    assert text.introduction(state) == (
        "-= Welcome to TextWorld, ALFRED! =-\n\nYou are in the middle of a room. Looking quickly "
        "around you, you see a desk 1, a drawer 3, a drawer 2, and a drawer 1.\n\n"
        "Your task is to: do something."
    )


def test_looking_before_the_first_move_shows_nothing():
    state = play("desk_bar_1 at a: mug_bar_1")
    assert do(state, "look") == (
        "You are in the middle of a room. Looking quickly around you, you see nothing."
    )


def test_an_agent_that_starts_at_a_receptacle_faces_it():
    state = play("desk_bar_1 at a: mug_bar_1\n shelf_bar_1 at b:", start="a")
    assert "You are facing the desk 1. Next to it, you see nothing." in text.introduction(state)
    assert "take mug 1 from desk 1" in state.admissible
    assert "go to desk 1" not in state.admissible


@pytest.mark.parametrize(
    ("things", "listed"),
    [
        ("", "nothing"),
        ("mug_bar_1", "a mug 1"),
        ("mug_bar_1 book_bar_1", "a book 1, and a mug 1"),
        ("mug_bar_1 book_bar_1 fork_bar_1", "a book 1, a fork 1, and a mug 1"),
    ],
)
def test_lists(things, listed):
    state = play(f"desk_bar_1 at a: {things}")
    assert do(state, "go to desk 1") == f"You arrive at desk 1. On the desk 1, you see {listed}."


def test_a_closed_receptacle_hides_its_contents_and_an_open_one_shows_them():
    state = play("drawer_bar_1 at a, closed: mug_bar_1")
    assert do(state, "go to drawer 1") == "You arrive at drawer 1. The drawer 1 is closed."
    assert "take mug 1 from drawer 1" not in state.admissible
    opened = "The drawer 1 is open. In it, you see a mug 1."
    assert do(state, "open drawer 1") == f"You open the drawer 1. {opened}"
    assert do(state, "examine drawer 1") == opened
    assert do(state, "close drawer 1") == "You close the drawer 1."
    assert do(state, "examine drawer 1") == "The drawer 1 is closed."


def test_receptacles_at_one_location_cannot_be_gone_to_but_used():
    state = play(
        "drawer_bar_1 at a: mug_bar_1\n drawer_bar_2 at a, closed: book_bar_1\n sofa_bar_1 at b:"
    )
    do(state, "go to drawer 2")
    assert do(state, "go to drawer 1") == "Nothing happens."
    assert do(state, "examine drawer 1") == "The drawer 1 is closed."
    assert do(state, "open drawer 1").startswith("You open the drawer 1.")
    assert do(state, "take book 1 from drawer 1") == "You pick up the book 1 from the drawer 1."
    assert (
        do(state, "look")
        == "You are facing the drawer 2, and drawer 1. Next to it, you see nothing."
    )


def test_only_what_is_held_can_be_examined():
    state = play("desk_bar_1 at a: mug_bar_1")
    do(state, "go to desk 1")
    assert do(state, "examine mug 1") == "Nothing happens."
    do(state, "take mug 1 from desk 1")
    assert do(state, "examine mug 1") == "There's nothing special about mug 1."
    assert do(state, "inventory") == "You are carrying: a mug 1."
    do(state, "move mug 1 to desk 1")
    assert do(state, "inventory") == "You are not carrying anything."


def test_taking_needs_empty_hands_and_nothing_is_ever_full():
    mugs = " ".join(f"mug_bar_{i}" for i in range(9))
    state = play(f"desk_bar_1 at a: {mugs}\n cup_bar_1 at b:")
    do(state, "go to desk 1", "take mug 3 from desk 1")
    assert not [command for command in state.admissible if command.startswith("take")]
    do(state, "go to cup 1")
    assert do(state, "move mug 3 to cup 1") == "You move the mug 3 to the cup 1."


def test_what_does_not_belong_cannot_be_put_there():
    state = play("desk_bar_1 at a: mug_bar_1\n bed_bar_1 at b:", without={("bed", "mug")})
    do(state, "go to desk 1", "take mug 1 from desk 1", "go to bed 1")
    assert do(state, "move mug 1 to bed 1") == "Nothing happens."


def test_what_cannot_be_picked_up_is_seen_but_not_taken():
    state = play("desk_bar_1 at a: statue_bar_1 desklamp_bar_1")
    assert "a desklamp 1, and a statue 1" in do(state, "go to desk 1")
    assert not [command for command in state.admissible if command.startswith("take")]


def test_treatments_need_the_object_in_hand_and_no_open_door():
    state = play(
        "microwave_bar_1 at a, closed:\n fridge_bar_1 at b, closed:\n"
        "sink_bar_1_bar_sinkbasin at c: mug_bar_1"
    )
    do(state, "go to sinkbasin 1")
    assert do(state, "clean mug 1 with sinkbasin 1") == "Nothing happens."
    do(state, "take mug 1 from sinkbasin 1")
    assert do(state, "clean mug 1 with sinkbasin 1") == "You clean the mug 1 using the sinkbasin 1."
    do(state, "go to microwave 1")
    assert do(state, "heat mug 1 with microwave 1") == "You heat the mug 1 using the microwave 1."
    assert do(state, "examine mug 1") == "This is a hot and clean mug 1."
    do(state, "go to fridge 1")
    assert do(state, "cool mug 1 with fridge 1") == "You cool the mug 1 using the fridge 1."
    assert do(state, "examine mug 1") == "This is a cool and clean mug 1."


def test_a_treatment_of_what_cannot_take_it_is_not_offered():
    state = play("microwave_bar_1 at a, closed: \n desk_bar_1 at b: fork_bar_1")
    do(state, "go to desk 1", "take fork 1 from desk 1", "go to microwave 1")
    assert do(state, "heat fork 1 with microwave 1") == "Nothing happens."


def test_a_lamp_is_switched_on_and_never_off():
    state = play("desk_bar_1 at a: desklamp_bar_1 mug_bar_1")
    do(state, "go to desk 1")
    assert do(state, "use desklamp 1") == "You turn on the desklamp 1."
    assert do(state, "use desklamp 1") == "You turn on the desklamp 1."
    assert do(state, "use mug 1") == "Nothing happens."


def test_a_lamp_in_a_closed_receptacle_can_be_used_and_one_on_the_floor_cannot():
    state = play("drawer_bar_1 at a, closed: desklamp_bar_1\n on the floor at a: floorlamp_bar_1")
    do(state, "go to drawer 1")
    assert "use desklamp 1" in state.admissible
    assert "use floorlamp 1" not in state.admissible


def test_slicing_needs_the_knife_in_hand_and_reaches_into_closed_receptacles():
    state = play("desk_bar_1 at a: knife_bar_1\n fridge_bar_1 at b, closed: tomato_bar_1")
    do(state, "go to fridge 1")
    assert do(state, "slice tomato 1 with knife 1") == "Nothing happens."
    do(state, "go to desk 1", "take knife 1 from desk 1", "go to fridge 1")
    assert do(state, "slice tomato 1 with knife 1") == "You sliced the tomato 1 with the knife 1."
    do(state, "open fridge 1", "move knife 1 to fridge 1", "take tomato 1 from fridge 1")
    assert do(state, "examine tomato 1") == "This is a sliced tomato 1."


def test_what_lies_on_the_floor_can_be_sliced_and_nothing_else():
    state = play("desk_bar_1 at a: knife_bar_1\n on the floor at a: tomato_bar_1")
    assert "On the desk 1, you see a knife 1." in do(state, "go to desk 1")
    do(state, "take knife 1 from desk 1")
    assert do(state, "slice tomato 1 with knife 1") == "You sliced the tomato 1 with the knife 1."
    assert do(state, "take tomato 1 from desk 1") == "Nothing happens."


def test_what_lies_on_the_floor_and_cannot_be_sliced_is_no_part_of_the_game():
    state = play("desk_bar_1 at a: knife_bar_1\n on the floor at a: mug_bar_1 tomato_bar_1")
    assert sorted(state.game.objects) == ["knife 1", "tomato 1"]


@pytest.mark.parametrize("family", ["pick", "look", "clean", "heat", "cool", "pick2"])
def test_a_goal_that_nothing_can_meet_is_not_reached_at_all(family):
    state = play("desk_bar_1 at a: book_bar_1", Goal(family, "mug", "safe"))
    do(state, "go to desk 1", "take book 1 from desk 1")
    assert (state.reached, state.won) == (0, False)


def test_a_vessel_shows_its_inside_and_nothing_else():
    state = play(
        "sink_bar_1_bar_sinkbasin at a: pan_bar_1 fork_bar_1 book_bar_1",
        facts="inreceptacleobject fork_bar_1 pan_bar_1, inreceptacleobject pan_bar_1 pan_bar_1",
    )
    do(state, "go to sinkbasin 1", "take pan 1 from sinkbasin 1", "clean pan 1 with sinkbasin 1")
    assert do(state, "examine pan 1") == "This is a normal pan 1. In it, you see a fork 1."
    do(state, "move pan 1 to sinkbasin 1", "take fork 1 from sinkbasin 1")
    do(state, "move fork 1 to sinkbasin 1", "take pan 1 from sinkbasin 1")
    assert do(state, "examine pan 1") == "This is a normal pan 1. In it, you see a fork 1."


def test_what_moves_to_a_neighbour_lies_next_to_it():
    state = play("desk_bar_1 at a: mug_bar_1\n drawer_bar_1 at a:\n sofa_bar_1 at b:")
    do(state, "go to desk 1", "take mug 1 from desk 1", "move mug 1 to drawer 1")
    facing = "You are facing the desk 1, and drawer 1. Next to it, you see"
    assert do(state, "look") == f"{facing} a mug 1."
    do(state, "take mug 1 from drawer 1")
    assert do(state, "look") == f"{facing} nothing."
    do(state, "move mug 1 to drawer 1", "take mug 1 from drawer 1", "move mug 1 to desk 1")
    assert do(state, "look") == f"{facing} a mug 1."
    do(state, "take mug 1 from desk 1", "go to sofa 1", "move mug 1 to sofa 1")
    assert do(state, "look") == "You are facing the sofa 1. Next to it, you see nothing."
    do(state, "take mug 1 from sofa 1", "go to desk 1", "move mug 1 to desk 1")
    assert do(state, "look") == f"{facing} a mug 1."


def test_an_object_in_two_receptacles_stays_in_the_other():
    state = play("desk_bar_1 at a: mug_bar_1\n drawer_bar_1 at b: mug_bar_1\n sofa_bar_1 at c:")
    do(state, "go to desk 1", "take mug 1 from desk 1", "go to drawer 1")
    assert do(state, "examine drawer 1") == "On the drawer 1, you see a mug 1."
    do(state, "move mug 1 to drawer 1")
    assert do(state, "examine drawer 1") == "On the drawer 1, you see a mug 1."
    do(state, "take mug 1 from drawer 1")
    assert do(state, "examine drawer 1") == "On the drawer 1, you see nothing."


def test_a_lamp_in_two_receptacles_is_offered_once():
    state = play("desk_bar_1 at a: desklamp_bar_1\n shelf_bar_1 at a: desklamp_bar_1")
    do(state, "go to desk 1")
    assert state.admissible.count("use desklamp 1") == 1


def test_help_begins_without_a_blank_line():
    state = play("desk_bar_1 at a:")
    assert do(state, "help").startswith("Available commands:\n  look:   ")
    assert do(state, "help").endswith("using a sharp object\n")


def test_commands_are_sorted_and_complete():
    state = play(
        "fridge_bar_1 at a, open: knife_bar_1 tomato_bar_1\n desk_bar_1 at b: desklamp_bar_1\n"
        "shelf_bar_1 at b:"
    )
    do(state, "go to fridge 1", "take knife 1 from fridge 1")
    assert list(state.admissible) == [
        "close fridge 1",
        "examine fridge 1",
        "examine knife 1",
        "go to desk 1",
        "go to shelf 1",
        "help",
        "inventory",
        "look",
        "move knife 1 to fridge 1",
        "slice tomato 1 with knife 1",
    ]


# --- goals -------------------------------------------------------------------------------------


def test_pick_is_won_by_any_object_of_the_type_in_any_receptacle_of_the_type():
    state = play("desk_bar_1 at a: mug_bar_1 mug_bar_2\n safe_bar_1 at b:\n safe_bar_2 at c:")
    for mug, safe in ((1, 2), (2, 1)):
        fresh = type(state)(state.game)
        do(fresh, "go to desk 1", f"take mug {mug} from desk 1", f"go to safe {safe}")
        assert not fresh.won
        do(fresh, f"move mug {mug} to safe {safe}")
        assert fresh.won


def test_look_needs_the_lamp_on_the_place_and_the_object_in_hand():
    goal = Goal("look", "mug", "desklamp")
    state = play("desk_bar_1 at a: desklamp_bar_1\n bed_bar_1 at b: mug_bar_1", goal)
    do(state, "go to desk 1", "use desklamp 1")
    assert (state.reached, state.won) == (2, False)
    do(state, "go to bed 1", "take mug 1 from bed 1")
    assert (state.reached, state.won) == (2, False)
    do(state, "go to desk 1")
    assert (state.reached, state.won) == (3, True)


def test_look_wants_one_lamp_to_be_both_on_and_here():
    goal = Goal("look", "mug", "desklamp")
    house = "desk_bar_1 at a: desklamp_bar_1\n shelf_bar_1 at b: desklamp_bar_2 mug_bar_1"
    state = play(house, goal)
    do(state, "go to desk 1", "use desklamp 2", "go to shelf 1", "take mug 1 from shelf 1")
    assert (state.reached, state.won) == (2, False)
    do(state, "use desklamp 1")
    assert state.won


@pytest.mark.parametrize(
    ("family", "command"),
    [
        ("clean", "clean mug 1 with sinkbasin 1"),
        ("heat", "heat mug 1 with microwave 1"),
        ("cool", "cool mug 1 with fridge 1"),
    ],
)
def test_treated_object_must_be_the_one_in_place(family, command):
    house = (
        "desk_bar_1 at a: mug_bar_1 mug_bar_2\n safe_bar_1 at b:\n microwave_bar_1 at c:\n"
        "fridge_bar_1 at d:\n sink_bar_1_bar_sinkbasin at e:"
    )
    state = play(house, Goal(family, "mug", "safe"))
    do(state, "go to desk 1", "take mug 2 from desk 1", "go to safe 1", "move mug 2 to safe 1")
    assert (state.reached, state.won) == (1, False)
    do(state, "go to desk 1", "take mug 1 from desk 1", f"go to {command.partition('with ')[2]}")
    do(state, command)
    assert (state.reached, state.won) == (1, False)
    do(state, "go to safe 1", "move mug 1 to safe 1")
    assert (state.reached, state.won) == (2, True)


TREATMENTS = {"heat": "heat mug 1 with microwave 1", "cool": "cool mug 1 with fridge 1"}


@pytest.mark.parametrize(("family", "other"), [("heat", "cool"), ("cool", "heat")])
def test_each_of_heating_and_cooling_takes_the_other_one_back(family, other):
    house = "microwave_bar_1 at a: mug_bar_1\n fridge_bar_1 at a:\n safe_bar_1 at a:"
    state = play(house, Goal(family, "mug", "safe"))
    do(state, "go to microwave 1", "take mug 1 from microwave 1")
    do(state, TREATMENTS[family], TREATMENTS[other], "move mug 1 to safe 1")
    assert (state.reached, state.won) == (1, False)
    do(state, "take mug 1 from safe 1", TREATMENTS[family], "move mug 1 to safe 1")
    assert (state.reached, state.won) == (2, True)


def test_pick2_wants_two_objects_in_one_receptacle():
    house = "desk_bar_1 at a: mug_bar_1 mug_bar_2\n safe_bar_1 at b:\n safe_bar_2 at c:"
    state = play(house, Goal("pick2", "mug", "safe"))
    do(state, "go to desk 1", "take mug 1 from desk 1", "go to safe 1", "move mug 1 to safe 1")
    do(state, "go to desk 1", "take mug 2 from desk 1", "go to safe 2", "move mug 2 to safe 2")
    assert (state.reached, state.won) == (1, False)
    do(state, "take mug 2 from safe 2", "go to safe 1", "move mug 2 to safe 1")
    assert (state.reached, state.won) == (2, True)
