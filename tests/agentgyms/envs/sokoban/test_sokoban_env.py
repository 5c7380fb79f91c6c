"""The environment: words, feedback, keys, text, ends, tasks."""

import gymnasium as gym
import pytest
from gymnasium.error import ResetNeeded
from sokoban_oracles import level_text, read, step

from agentgyms.core.errors import UnknownTask
from agentgyms.envs.sokoban.engine import WORDS, tiles_of
from agentgyms.envs.sokoban.text import LEGEND

ENV_ID = "agentgyms/Sokoban-v0"


def make(**kwargs):
    return gym.make(ENV_ID, **kwargs).unwrapped


def started(task_id=None, **kwargs):
    env = make(**kwargs)
    env.reset(seed=0, options={"task_id": task_id})
    return env


def position_of(env):
    return read(tiles_of(env._state))


ROOM = "#######\n#.    #\n# $@  #\n#  #  #\n#######\n"

# --- words ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("action", ["up", " down ", "\tleft\n", "right\r\n", "\u2003up\u00a0"])
def test_blanks_around_a_word_do_not_count(action):
    *_, info = started().step(action)
    assert info["feedback"] in ("ok", "no_effect")


@pytest.mark.parametrize(
    "action",
    [
        "", "  ", "Up", "UP", "up.", "go up", "up up", "still", "noop", "w", "1", "↑", "upward",
        "up\0", "<action>up</action>", "u p", "push up", "\ud800",
    ],
)  # fmt: skip
def test_strict_words(action):
    env = started()
    before = position_of(env)
    observation, reward, terminated, truncated, info = env.step(action)
    assert (reward, terminated, truncated) == (pytest.approx(-0.1), False, False)
    assert (info["feedback"], info["action_key"], info["turn"]) == ("malformed", "<invalid>", 1)
    assert "is no action: expected one of up, down, left, right" in info["feedback_text"]
    assert position_of(env) == before
    assert info["metrics"]["moved"] == info["metrics"]["pushed"] == 0
    assert observation == env.reset(seed=0)[0]


@pytest.mark.parametrize(
    ("action", "word"),
    [
        ("up", "up"),
        ("UP!", "up"),
        ("push Left", "left"),
        ("left then up", "up"),  # the order of the words, not of the text
        ("right or left", "left"),
        ("RIGHT, then down", "down"),
        ("cupboard", "up"),
        ("I stand still and look right", "right"),
        ("upright", "up"),
        ("brighten", "right"),
    ],
)
def test_lenient_words(action, word, level):
    lenient, strict = (level(ROOM, lenient=value) for value in (True, False))
    assert lenient.step(action) == strict.step(word)


@pytest.mark.parametrize("action", ["still", "STILL", "I distill"])
def test_still_does_nothing_and_costs_a_turn(action):
    env = started(lenient=True)
    before = position_of(env)
    _, reward, _, _, info = env.step(action)
    assert reward == pytest.approx(-0.1)
    assert (info["feedback"], info["action_key"]) == ("no_effect", "<invalid>")
    assert position_of(env) == before


@pytest.mark.parametrize("action", ["", "jump", "u p", "lef t", "noop"])
def test_lenient_without_any_word_is_malformed(action):
    *_, info = started(lenient=True).step(action)
    assert info["feedback"] == "malformed"


def test_a_long_malformed_action_is_shown_short():
    *_, info = started().step("x" * 5000)
    assert len(info["feedback_text"]) < 150


# --- effects --------------------------------------------------------------------------------------


def test_running_into_a_wall_has_no_effect(level):
    env = level(ROOM)
    grid, reward, terminated, truncated, info = env.step("down")
    assert (reward, terminated, truncated) == (pytest.approx(-0.1), False, False)
    assert (info["feedback"], info["action_key"]) == ("no_effect", "<invalid>")
    assert info["feedback_text"] == "'down' changed nothing"
    assert grid == env.reset(seed=0)[0]
    assert info["turn"] == 1


def test_metrics_tell_what_a_turn_did(level):
    env = level("########\n#.@$ $.#\n########\n")
    told = env.reset(seed=0)[1]["metrics"]
    assert told == {"moved": 0, "pushed": 0, "boxes_on_target": 0}
    seen = [env.step(word) for word in ("right", "right", "left", "right", "left")]
    moved = [info["metrics"]["moved"] for *_, info in seen]
    pushed = [info["metrics"]["pushed"] for *_, info in seen]
    assert (moved, pushed) == ([1, 0, 1, 1, 1], [1, 0, 0, 0, 0])


def test_rewards_of_a_whole_game(level):
    env = level("#########\n#@$.  *.#\n#    $  #\n#       #\n#########\n", max_turns=60)
    rewards = [env.step(word)[1] for word in ("right", "right", "left")]
    assert rewards == pytest.approx([0.9, -1.1, -0.1])
    env = level(
        "######\n#@$. #\n######\n",
        rewards={"step": -1, "on_target": 5, "solved": 0.5},
    )
    assert env.step("right")[1] == 4.5
    env = level("######\n#@$. #\n######\n", rewards={})
    assert env.step("right")[1] == pytest.approx(10.9)


def test_admissible_are_exactly_the_words_that_change_something():
    env = make(split="valid", boxes=2, rooms=200)
    for task_id in env.tasks:
        _, info = env.reset(options={"task_id": task_id})
        layout, position = position_of(env)
        expected = [word for word in WORDS if step(layout, position, word) != position]
        assert info["admissible_actions"] == expected
        assert info["admissible_complete"]
        snapshot = env.snapshot()
        for word in WORDS:
            env.restore(snapshot)
            *_, after = env.step(word)
            effective = word in expected
            assert (after["state_key"] != info["state_key"]) == effective
            assert after["feedback"] == ("ok" if effective else "no_effect")
            assert after["action_key"] == (word if effective else "<invalid>")


def test_equal_states_have_equal_keys_and_others_not(level):
    env = level(ROOM)
    _, first = env.reset(seed=0)
    keys = {first["state_key"]}
    for word, new in (("up", True), ("down", False), ("right", True), ("left", False)):
        *_, info = env.step(word)
        assert (info["state_key"] not in keys) == new
        keys.add(info["state_key"])
    other = level(ROOM.replace(".", " ").replace("@ ", "@."))
    assert other.reset(seed=0)[1]["state_key"] not in keys, "other targets are another state"


def test_the_key_does_not_depend_on_where_the_room_comes_from(level):
    env = started("valid/6x6-1-2f19-00000", split="valid")
    drawing = level_text(tiles_of(env._state))
    assert level(drawing).step("")[4]["state_key"] == env.step("")[4]["state_key"]


# --- text -----------------------------------------------------------------------------------------


def test_what_is_read(level):
    grids = {
        name: level("######\n#@$.*#\n#  $+#\n######\n".replace("@", " "), text_format=name)
        for name in ("grid", "legend", "verl_agent", "gem")
    }
    seen = {name: env.reset(seed=0)[0] for name, env in grids.items()}
    assert seen["grid"] == "######\n#_XO√#\n#__XS#\n######"
    assert seen["legend"] == seen["grid"] + "\n" + LEGEND
    assert seen["gem"] == "# # # # # #\n# _ X O √ #\n# _ _ X S #\n# # # # # #\n"
    assert seen["verl_agent"].split("\n")[1] == " # \t _ \t X \t O \t √ \t # \t"


def test_the_legend_explains_every_character():
    assert [part[0] for part in LEGEND.split(", ")] == list("#_OX√PS")


def test_the_goal_counts_boxes():
    assert started().reset(seed=0)[1]["goal"] == "Push the box onto the target."
    several = started(boxes=2, rooms=20).reset(seed=0)[1]["goal"]
    assert several == "Push every box onto a target."


# --- ends -----------------------------------------------------------------------------------------


def test_a_win_terminates_and_nothing_follows(level):
    env = level("#####\n#@$.#\n#####\n")
    *_, terminated, truncated, info = env.step("right")
    assert (terminated, truncated) == (True, False)
    assert (info["success"], info["score"], info["progress"]) == (True, 1.0, 1.0)
    assert info["metrics"]["boxes_on_target"] == 1
    with pytest.raises(ResetNeeded, match="after the end"):
        env.step("left")


def test_a_win_on_the_last_turn_terminates(level):
    env = level("#####\n#@$.#\n#####\n", max_turns=2)
    assert env.step("left")[2:4] == (False, False)
    assert env.step("right")[2:4] == (True, False)


def test_the_limit_truncates(level):
    env = level("#####\n#@$.#\n#####\n", max_turns=3)
    ends = [env.step(action)[2:4] for action in ("left", "junk", "left")]
    assert ends == [(False, False), (False, False), (False, True)]
    assert env.snapshot()
    with pytest.raises(ResetNeeded, match="after the end"):
        env.step("right")


def test_malformed_actions_alone_reach_the_limit():
    env = started(max_turns=15)
    results = [env.step("?") for _ in range(15)]
    assert sum(reward for _, reward, *_ in results) == pytest.approx(-1.5)
    assert [truncated for *_, truncated, _ in results] == [False] * 14 + [True]
    assert not any(terminated for _, _, terminated, *_ in results)


# --- tasks ----------------------------------------------------------------------------------------


def test_task_ids_are_stable():
    assert make().tasks[:2] == ("train/6x6-1-2f19-00000", "train/6x6-1-2f19-00001")
    env = make(size=(5, 8), boxes=2, rooms=30, split="test")
    assert list(env.tasks) == [f"test/5x8-2-6c9c-{n:05d}" for n in range(3)]
    with pytest.raises(UnknownTask, match="did you mean test/5x8-2-6c9c-0000"):
        env.reset(options={"task_id": "test/5x8-2-6c9c-00007"})


def test_seeds_draw_many_tasks():
    env = make()
    drawn = [env.reset(seed=seed)[1]["task_id"] for seed in range(200)]
    assert len(set(drawn)) > 190
    assert [make().reset(seed=seed)[1]["task_id"] for seed in (0, 150)] == [drawn[0], drawn[150]]
