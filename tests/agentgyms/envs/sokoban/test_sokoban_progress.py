"""Progress, the oracle and the expert: against a plain search."""

import json

import gymnasium as gym
import pytest
from sokoban_oracles import all_distances, read

import agentgyms
from agentgyms.envs.sokoban import solver
from agentgyms.envs.sokoban.engine import tiles_of

ENV_ID = "agentgyms/Sokoban-v0"


def make(**kwargs):
    return gym.make(ENV_ID, **kwargs).unwrapped


def position_of(env):
    return read(tiles_of(env._state))


def test_progress_is_the_share_of_the_shortest_solution():
    env = make(split="valid")
    expert = agentgyms.expert(env)
    for task_id in env.tasks[:100]:
        observation, info = env.reset(options={"task_id": task_id})
        layout, position = position_of(env)
        whole = all_distances(layout, position)[position]
        for done in range(whole + 1):
            assert info["progress"] == pytest.approx(done / whole)
            assert info["success"] == (done == whole)
            if done < whole:
                observation, *_, info = env.step(expert(observation, info))


def test_progress_of_any_state_is_that_of_a_plain_search():
    env, lost = make(split="valid", boxes=2, rooms=100, max_turns=30), 0
    for number, task_id in enumerate(env.tasks):
        _, info = env.reset(options={"task_id": task_id})
        layout, position = position_of(env)
        distance = all_distances(layout, position)
        whole = distance[position]
        for turn in range(20):
            if info["success"]:
                break
            words = info["admissible_actions"]
            *_, info = env.step(words[(7 * turn + 3 * number) % len(words)])
            left = distance[position_of(env)[1]]
            lost += left < 0
            assert info["progress"] == pytest.approx(max(0, whole - left) / whole * (left >= 0))
            if position_of(env)[1] != position:
                assert info["metrics"]["deadlocked"] == (left < 0)
    assert lost > 20


def test_progress_of_large_rooms_counts_boxes(level):
    drawing = "\n".join(
        ["#" * 20, "#@$.$.$.$." + " " * 9 + "#", *["#" + " " * 18 + "#"] * 6, "#" * 20]
    )
    env = level(drawing)
    assert not solver.has_table(env._state.room)
    _, info = env.reset(seed=0)
    assert info["progress"] == 0
    *_, info = env.step("down")
    assert info["progress"] == 0
    assert "deadlocked" not in info["metrics"]


def test_the_expert_needs_exactly_the_shortest_solution():
    env = make(split="valid")
    expert = agentgyms.expert(env)
    for task_id in env.tasks[-200:]:
        env.reset(options={"task_id": task_id})
        shortest = solver.distance(env._state)
        low, high = map(int, env._task.family.split("-"))
        assert low <= shortest <= high
        for _ in range(shortest - 1):
            assert env.step(expert())[2:4] == (False, False)
        assert env.step(expert())[2:4] == (True, False)


def test_the_oracle_only_when_asked_for(level):
    env = make(oracle=True)
    _, info = env.reset(seed=0)
    told = json.loads(info["oracle"])
    assert told == {
        "best": env.expert_actions()["best"],
        "optimal_remaining": solver.distance(env._state),
        "deadlocked": False,
    }
    assert type(told["optimal_remaining"]) is int
    plain = make()
    assert "oracle" not in plain.reset(seed=0)[1]
    assert "oracle" not in plain.step("up")[4]
    env = level("######\n# $@.#\n######\n", oracle=True)
    *_, info = env.step("left")
    assert json.loads(info["oracle"]) == {
        "best": "right",
        "optimal_remaining": -1,
        "deadlocked": True,
    }
    assert info["progress"] == 0


def test_deadlocks_are_told_where_the_solver_knows_them(level):
    env = level("######\n# $@.#\n#    #\n######\n")
    infos = [env.step(word)[-1] for word in ("down", "up", "left", "down")]
    told = [info["metrics"].get("deadlocked") for info in infos]
    assert told == [0, None, 1, 1]  # the second step leads back to the start


def test_the_oracle_of_a_solved_room(level):
    env = level("#####\n#@$.#\n#####\n", oracle=True)
    *_, info = env.step("right")
    told = json.loads(info["oracle"])
    assert (told["optimal_remaining"], told["deadlocked"]) == (0, False)
