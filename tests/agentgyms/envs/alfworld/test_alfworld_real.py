"""All 3827 official games: read, won by their walkthroughs, won by the experts."""

from collections import Counter

import gymnasium as gym
import pytest

from agentgyms.envs.alfworld.engine import State
from agentgyms.envs.alfworld.expert import best, explore
from agentgyms.envs.alfworld.official.dataset import SPLITS
from agentgyms.envs.alfworld.sources import Official

pytestmark = pytest.mark.data

COUNTS = {
    "train": {"pick": 790, "look": 308, "clean": 650, "heat": 459, "cool": 533, "pick2": 813},
    "valid_seen": {"pick": 35, "look": 13, "clean": 27, "heat": 16, "cool": 25, "pick2": 24},
    "valid_unseen": {"pick": 24, "look": 18, "clean": 31, "heat": 23, "cool": 21, "pick2": 17},
}


def play(state: State, policy, limit: int) -> int:
    for turn in range(limit):
        if state.won:
            return turn
        move = state.find(policy(state))
        assert move is not None, state.game.name
        state.perform(move)
    assert state.won, f"{state.game.name} is not won within {limit} turns"
    return limit


@pytest.mark.parametrize("split", SPLITS)
def test_every_walkthrough_wins(real_games, split):
    source = Official.open(real_games)
    tasks = source.tasks(split)
    assert Counter(task.family for task in tasks) == COUNTS[split]
    for task in tasks:
        game = source.game(split, task.task_id)
        assert game.goal.family == task.family
        commands = iter(game.walkthrough)
        turns = play(State(game), lambda _, commands=commands: next(commands), 50)
        assert turns == len(game.walkthrough)


@pytest.mark.parametrize("split", SPLITS)
def test_best_wins_every_game(real_games, split):
    source = Official.open(real_games)
    for task in source.tasks(split):
        play(State(source.game(split, task.task_id)), best, 50)


@pytest.mark.parametrize("split", ["valid_seen", "valid_unseen"])
def test_explore_wins_every_evaluation_game(real_games, split):
    source = Official.open(real_games)
    for task in source.tasks(split):
        play(State(source.game(split, task.task_id)), explore, 150)


def test_the_environment_visits_every_evaluation_game_once(real_games, monkeypatch):
    monkeypatch.setenv("AGENTGYMS_DATA", str(real_games.parent))
    for split, number in (("valid_seen", 140), ("valid_unseen", 134)):
        env = gym.make("agentgyms/ALFWorld-v0", source="official", split=split).unwrapped
        visited = {env.reset(options={"task_id": task_id})[1]["task_id"] for task_id in env.tasks}
        assert len(visited) == len(env.tasks) == number
    sample = gym.make("agentgyms/ALFWorld-v0", source="official", split="sample").unwrapped
    assert set(sample.tasks.families().values()) == {2}
