"""Arguments: every one that cannot be is named, with what was given and what is expected."""

import json
import math

import gymnasium as gym
import pytest

from agentgyms.core.errors import BadOption, DataMissing, UnknownSplit

SOKOBAN, VISUAL = "agentgyms/Sokoban-v0", "agentgyms/VisualSokoban-v0"
NAN, HUGE = math.nan, 10**400


def make(env_id=SOKOBAN, **kwargs):
    return gym.make(env_id, **kwargs).unwrapped


WRONG = {
    "size": [
        None, True, 3, 0, -6, 6.0, "6", "66", HUGE, (6,), (6, 6, 6), (6, 3), (6, "6"), (True, 6),
        (6.0, 6), (None, 6), {6: 6}, {6, 7}, [[6], 6], (6, 99), b"\x06\x06",
    ],
    "boxes": [None, True, 0, -1, 1.0, "1", [1], HUGE, 15],
    "walls": [
        None, True, -0.1, 0.91, 1, NAN, math.inf, -HUGE, HUGE, "0.3", "00", (0.6, 0.2), (0.2,),
        (0.1, 0.2, 0.3), (0.2, None), (NAN, 0.5), (0.5, NAN), (False, 0.5), [[0.2], 0.5],
        (0.2, 0.91),
    ],
    "difficulty": [
        5, True, "35", (0, 5), (5, 3), (3,), (3, 5, 7), (3.0, 5), (3, 16), (3, HUGE), (None, 5),
        (3, True), {3: 5}, [[3], 5], NAN, (NAN, NAN), b"\x03\x05",
    ],
    "rooms": [0, -5, True, 2.0, "10", (10,), NAN],
    "compat_seed": [None, 1, 0, "True", [True]],
    "rewards": [
        [], "step", 3, True, {"won": 1}, {1: 1}, {"step": "x"}, {"step": None}, {"step": True},
        {"step": NAN}, {"solved": math.inf}, {"step": HUGE}, {"step": [1]}, [("step", 1)],
        {"step": -0.1, "Solved": 2},
    ],
    "lenient": [None, 1, 0, "yes", []],
    "text_format": [None, "", "Legend", "html", 1, ["grid"], True],
    "max_turns": [0, -1, True, 1.5, "15", [15]],
    "oracle": [None, 1, "yes"],
    "levels": [5, True, ["a"], b"levels", {"path": "x"}],
    "render_mode": ["colours", "tiny_list", 1, True],
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name, values in WRONG.items() for value in values],
    ids=lambda value: repr(value)[:20],
)  # fmt: skip
def test_a_wrong_value_is_refused_by_name(name, value):
    with pytest.raises(BadOption, match=name):
        make(**{name: value})


@pytest.mark.parametrize("peer", [1, "", "Ragen", True, ["ragen"], b"ragen"])
def test_a_wrong_peer(peer):
    with pytest.raises(BadOption, match="peer .* is unknown: expected one of gym_sokoban, ragen"):
        make(compat_seed=True, peer=peer)


@pytest.mark.parametrize("depth", [0, 1, 2, 301, True, 30.0, "30", NAN, HUGE])
def test_a_wrong_search_depth(depth):
    with pytest.raises(BadOption, match="search_depth must be a whole number from 3 to 300"):
        make(compat_seed=True, search_depth=depth)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"peer": "ragen"}, "peer cannot be combined with .* add compat_seed=True"),
        ({"search_depth": 30}, "search_depth cannot be combined .* add compat_seed=True"),
        ({"compat_seed": True, "rooms": 5}, "rooms cannot be combined with compat_seed=True"),
        (
            {"compat_seed": True, "walls": 0.3, "difficulty": (3, 5)},
            "difficulty, walls cannot be combined with compat_seed=True",
        ),
        (
            {"compat_seed": True, "peer": "gym_sokoban", "search_depth": 30},
            "search_depth is a setting of ragen and verl_agent",
        ),
        ({"compat_seed": True, "size": 65}, "size must be at most 60"),
        ({"compat_seed": True, "size": (6, HUGE)}, "size must be at most 60"),
        ({"levels": "/tmp", "size": 7}, "size cannot be combined with levels"),
        ({"levels": "/tmp", "boxes": 2, "rooms": 3}, "boxes, rooms cannot be combined with levels"),
        ({"levels": "/tmp", "compat_seed": True}, "compat_seed cannot be combined with levels"),
        ({"levels": "/tmp", "peer": "ragen"}, "peer cannot be combined with levels"),
        ({"difficulty": (3, 9), "max_turns": 8}, "at most 500 and max_turns=8"),
        ({"size": (4, 5), "boxes": 5}, "boxes=5 do not fit into a room of 4 x 5 cells"),
        (
            {"size": 4},
            "at least 5 cells, walls included, or rows and columns, of which one may be 4",
        ),
        ({"walls": 0.9}, "leaves no number of the 16 inner cells"),
        ({"size": 11}, "size=11 is too large to be generated.*levels="),
        ({"size": (6, 19)}, "at most 64 cells within the walls, this has 68"),
    ],
)
def test_arguments_that_do_not_go_together(arguments, message):
    with pytest.raises(BadOption, match=message):
        make(**arguments)


def test_none_and_defaults_may_be_given():
    env = make(
        size=6, boxes=1, walls=(0.2, 0.6), difficulty=None, rooms=None, compat_seed=False,
        peer=None, search_depth=None, levels=None, rewards=None, lenient=False,
        text_format="legend", max_turns=None, oracle=False, split="valid",
    )  # fmt: skip
    assert env.reset(seed=4) == make(split="valid").reset(seed=4)
    assert env.max_turns == 15


def test_lists_and_pairs_mean_the_same():
    first = make(size=[6, 7], walls=[0.3, 0.3], difficulty=[3, 9], rooms=30)
    second = make(size=(6, 7), walls=0.3, difficulty=(3, 9), rooms=30)
    assert first.reset(seed=1) == second.reset(seed=1)


def test_all_rooms_may_be_equally_difficult():
    env = make(difficulty=(5, 5), rooms=5, oracle=True)
    for seed in range(3):
        assert json.loads(env.reset(seed=seed)[1]["oracle"])["optimal_remaining"] == 5


@pytest.mark.parametrize("name", ["boxs", "dim_room", "num_boxes"])
def test_an_argument_that_does_not_exist(name):
    with pytest.raises(TypeError, match=name):
        make(**{name: 1})


@pytest.mark.parametrize("split", ["dev", "Train", "", None, 1])
def test_a_wrong_split(split):
    with pytest.raises(UnknownSplit, match="train, valid, test, sample"):
        make(split=split)


def test_levels_that_are_nowhere(tmp_path):
    for path in (tmp_path / "nowhere", f"{tmp_path}\0"):
        with pytest.raises(DataMissing, match=r"no file or folder: .*boxoban-levels"):
            make(levels=path)


@pytest.mark.parametrize("value", [None, True, 0, -16, 8, 24, 47, 272, 48.0, "48", HUGE, NAN, [48]])
def test_a_wrong_size_of_cells(value):
    with pytest.raises(BadOption, match="cell_pixels must be a multiple of 16 up to 256"):
        make(VISUAL, cell_pixels=value)


@pytest.mark.parametrize("value", [None, 1, "yes"])
def test_a_wrong_grid(value):
    with pytest.raises(BadOption, match="grid must be True or False"):
        make(VISUAL, grid=value)


def test_the_visual_environment_checks_all_arguments_of_the_other():
    for name, values in WRONG.items():
        with pytest.raises(BadOption, match=name):
            make(VISUAL, **{name: values[-1]})
