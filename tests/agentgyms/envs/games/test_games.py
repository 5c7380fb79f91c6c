"""All games: the contract, here and behind a server, the expert, and play without thought."""

import json
import random

import gymnasium as gym
import pytest

import agentgyms
from agentgyms import testing
from agentgyms.core import keys
from agentgyms.core.errors import BadSnapshot
from agentgyms.remote import RemoteEnv
from env_servers import Server, create_app

GAMES = (
    *("BabyAI", "TextCraft"),
    *("Blackjack", "Countdown", "EZPoints", "FrozenLake", "Minesweeper", "NumberLine"),
    *("Points24", "TowerOfHanoi"),
)
SURE = tuple(name for name in GAMES if name not in ("Blackjack", "FrozenLake"))


def make(name, **kwargs):
    return gym.make(f"agentgyms/{name}-v0", **kwargs)


def play(env, policy, tasks=None):
    """Return the mean reward, success and optimum over tasks."""
    rewards, won, optimum = [], [], []
    for seed, task in enumerate(tasks or env.unwrapped.tasks):
        _, info = env.reset(seed=seed, options={"task_id": task})
        optimum.append(env.unwrapped.optimal_value() if env.unwrapped.oracle else 0.0)
        total, over = 0.0, False
        while not over:
            _, reward, terminated, truncated, info = env.step(policy(info))
            total, over = total + reward, terminated or truncated
        rewards.append(total)
        won.append(info["success"])
    return sum(rewards) / len(rewards), sum(won) / len(won), sum(optimum) / len(optimum)


@pytest.mark.parametrize("name", GAMES)
def test_it_keeps_the_contract(name):
    def local():
        return make(name, split="valid_seen")

    testing.check_env(local)
    testing.check_determinism(local)
    testing.check_snapshot(local)
    testing.check_forks(lambda: make(name, split="valid_seen", oracle=True), points=8)
    testing.check_group(lambda: agentgyms.make_group(name, 3, split="valid_seen"))
    env_id = f"agentgyms/{name}-v0"
    with Server(create_app(env_id, token="", split="valid_seen")) as server:
        testing.check_remote_parity(local, lambda: RemoteEnv(env_id, url=server.url))


@pytest.mark.parametrize("name", GAMES)
def test_keys_are_those_of_board_and_state(name):
    """The faster ways to code a state give what `state_key` gives."""
    env, rng = make(name, split="valid_seen").unwrapped, random.Random(0)
    for seed in range(12):
        _, info = env.reset(seed=seed)
        over = False
        while not over:
            state, board = env.position, env._name
            whole = [keys.state_key(board)] if env.long_boards else board
            parts = sorted(state) if name == "TextCraft" else [state]
            assert info["state_key"] == keys.state_key(*whole, *parts)
            _, _, terminated, truncated, info = env.step(rng.choice(info["admissible_actions"]))
            over = terminated or truncated


@pytest.mark.parametrize("name", SURE)
def test_the_expert_solves_every_held_out_task(name):
    """Within the turns, with the greatest reward, from every state on a shortest way."""
    env = make(name, split="valid_seen", oracle=name != "Minesweeper")
    expert = agentgyms.expert(env)
    reward, won, optimum = play(env, lambda _: expert())
    assert won == 1.0
    if name != "Minesweeper":
        assert reward == pytest.approx(optimum)


@pytest.mark.parametrize("name", ["Blackjack", "FrozenLake"])
def test_where_chance_decides_the_expert_reaches_the_optimum_on_average(name):
    env = make(name, split="valid_seen", oracle=True)
    expert, rewards, optimum = agentgyms.expert(env), [], []
    for _ in range(4):
        reward, _, best = play(env, lambda _: expert())
        rewards.append(reward)
        optimum.append(best)
    spread = {"Blackjack": 0.95, "FrozenLake": 0.44}[name] / 10  # of a mean of 100 episodes
    assert abs(sum(rewards) / 4 - sum(optimum) / 4) < 3 * spread


@pytest.mark.parametrize("name", SURE)
def test_optimal_remaining_falls_by_one_with_each_of_the_experts_turns(name):
    env = make(name, split="valid_seen").unwrapped
    for task in list(env.tasks)[:5]:
        env.reset(options={"task_id": task})
        left, over = env.optimal_remaining(), False
        while not over and name != "Minesweeper":
            *_, over, _, info = env.step(env.expert_actions()["best"])
            left -= 1
            assert env.optimal_remaining() == left
        assert name == "Minesweeper" or (left == 0 and info["progress"] == 1.0)


@pytest.mark.parametrize("name", GAMES)
def test_the_expert_of_any_state_is_the_expert(name):
    """Exact truth values the policy that plays, and reads its actions by `expert_in`."""
    rng, env = random.Random(1), make(name, split="valid_seen").unwrapped
    for seed in range(5):
        _, info = env.reset(seed=seed)
        for turn in range(4):
            told = agentgyms.expert(env)()
            assert env.expert_in(env.position, turn) == told == env.expert_actions()["best"]
            *_, terminated, truncated, info = env.step(rng.choice(info["admissible_actions"]))
            if terminated or truncated:
                break


CHANCE = {  # success of random play on valid_seen, see docs/games.md
    "BabyAI": (0.1, 0.4),
    "Blackjack": (0.2, 0.4),
    "Countdown": (0.0, 0.15),
    "EZPoints": (0.0, 0.2),
    "FrozenLake": (0.1, 0.45),
    "Minesweeper": (0.1, 0.6),
    "NumberLine": (0.5, 1.0),
    "Points24": (0.0, 0.02),
    "TextCraft": (0.15, 0.45),
    "TowerOfHanoi": (0.0, 0.5),
}


@pytest.mark.parametrize("name", GAMES)
def test_play_without_thought_is_far_from_the_expert(name):
    rng, env = random.Random(0), make(name, split="valid_seen")
    random_play = play(env, lambda info: rng.choice(info["admissible_actions"]))[1]
    constant = play(env, lambda info: info["admissible_actions"][0])[1]
    assert CHANCE[name][0] <= random_play <= CHANCE[name][1], random_play
    assert constant <= 0.7


@pytest.mark.parametrize("name", GAMES)
def test_splits_share_no_board_but_where_they_are_draws(name):
    boards = {
        split: {b.content for b in make(name, split=split).unwrapped._boards().values()}
        for split in ("train", "valid_seen", "valid_unseen")
    }
    shared = boards["train"] & (boards["valid_seen"] | boards["valid_unseen"])
    assert bool(shared) == (name == "Blackjack")
    sample = make(name, split="sample").unwrapped
    assert {b.content for b in sample._boards().values()} <= boards["train"]


@pytest.mark.parametrize("name", GAMES)
def test_a_damaged_state_is_refused(name):
    env = make(name, split="valid_seen").unwrapped
    env.reset(seed=0)
    turn, state = env.save()
    for wrong in (
        [turn],
        [-1, state],
        [turn, "x"],
        [turn, None],
        [turn, [None]],
        [10**6, state],
        3,
    ):
        snapshot = env.snapshot()
        fields = json.loads(snapshot)
        fields["engine"] = wrong
        with pytest.raises(BadSnapshot):
            env.restore(json.dumps(fields).encode())
        env.restore(snapshot)
