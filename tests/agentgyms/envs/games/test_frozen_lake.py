"""FrozenLake against Gymnasium's own: maps by seed, dynamics, thousands of episodes."""

import random

import gymnasium as gym
import pytest
from gymnasium.envs.toy_text.frozen_lake import FrozenLakeEnv as Original
from gymnasium.envs.toy_text.frozen_lake import generate_random_map

from agentgyms.core.errors import BadOption
from agentgyms.envs.games.frozen_lake import (
    FrozenLakeEnv,
    distances,
    random_map,
    random_map_anywhere,
)
from agentgyms.envs.games.game import picked

WORDS = ("left", "down", "right", "up")


class Numbers:
    """A generator whose next number is known."""

    def __init__(self):
        self.next = 0.0

    def random(self):
        return self.next


def test_maps_by_seed_are_gymnasiums():
    for seed in range(300):
        size, frozen = 3 + seed % 6, (0.5, 0.8, 0.95)[seed % 3]
        assert list(random_map(size, frozen, seed)) == generate_random_map(size, frozen, seed)


def test_maps_by_seed_are_ragens():
    """Printed by RAGEN's own function, with which 3,000 of sizes 3 to 7 were compared."""
    four = {0: "FFGSHHFFFHHFHFFF", 1: "FHFHFGHFFFFFSFFF", 2: "FFHFFFFFFFFFFFGS"}
    five = {0: "FHHHFHHHFFHSGFHFFFHFHHFHF", 3: "FFHHFFFGHFFHFHHHFSHFFHFFH"}
    for seed, board in four.items():
        assert "".join(random_map_anywhere(4, 0.8, seed)) == board
    for seed, board in five.items():
        assert "".join(random_map_anywhere(5, 0.5, seed)) == board


@pytest.mark.parametrize(
    "rules",
    [{}, {"slippery": False}, {"success_rate": 0.75}, {"success_rate": 1.0}],
    ids=["slippery", "not slippery", "less slippery", "sure"],
)
def test_episodes_equal_gymnasiums(rules):
    """Random and directed play, the same random numbers in both."""
    env = FrozenLakeEnv(maps="gymnasium", max_turns=100, **rules)
    slips = {"is_slippery": rules.get("slippery", True)}
    slips |= {k: v for k, v in rules.items() if k == "success_rate"}
    rng, ends = random.Random(1), set()
    for episode in range(500):
        env.reset(seed=episode)
        original = Original(desc=list(env.board), **slips)
        numbers = original.np_random = Numbers()
        original.reset()
        assert env.position == original.s
        over, habit = False, rng.choice([*WORDS, None, None])  # half of all go one way mostly
        while not over:
            word = habit if habit and rng.random() < 0.7 else rng.choice(WORDS)
            _, reward, over, truncated, info = env.step(word)
            numbers.next = env.chance()
            state, expected, ended, _, _ = original.step(WORDS.index(word))
            assert (env.position, reward, over) == (state, expected, ended)
            assert info["success"] == (over and reward == 1)
            if truncated:
                break
        ends.add((over, info["success"]))
    assert ends >= {(True, True), (True, False)}


def test_probabilities_are_gymnasiums():
    env = FrozenLakeEnv(maps="gymnasium", size=8, success_rate=0.6)
    env.reset(seed=3)
    original = Original(desc=list(env.board), success_rate=0.6)
    for state in range(64):
        for number, word in enumerate(WORDS if env.actions_in(state) else ()):
            mine, theirs = env.transitions(state, word), original.P[state][number]
            assert [m[1:4] for m in mine] == [tuple(one[1:]) for one in theirs]
            assert [m.probability for m in mine] == pytest.approx([one[0] for one in theirs])


def test_a_number_picks_as_gymnasium_picks():
    env = FrozenLakeEnv()
    env.reset(seed=0)
    moves = env.transitions(env.position, "right")
    assert [picked(moves, n) for n in (0.0, 0.34, 0.99)] == list(moves)
    assert picked(moves, 1 / 3 - 1e-9) is moves[0]
    assert picked(moves, 1.0) is moves[2]


def test_text_and_feedback():
    env = FrozenLakeEnv(slippery=False, maps="gymnasium")
    text, info = env.reset(options={"task_id": "train/4x4-0000"})
    assert "".join(env.board) == "".join(generate_random_map(4, 0.8, 0))
    assert text.startswith("P")
    assert text.split("\n")[3][3] == "G"
    *_, info = env.step("up")
    assert info["feedback"] == "no_effect"
    *_, info = env.step("jump")
    assert (info["feedback"], info["action_key"]) == ("malformed", "<invalid>")
    while env.expert_actions()["best"] != "":
        text, _, over, _, info = env.step(env.expert_actions()["best"])
    assert over
    assert info["success"]
    assert "√" in text
    assert info["progress"] == 1.0


def test_slips_differ_between_seeds_and_repeat_with_them():
    def ends(seed):
        env = FrozenLakeEnv()
        env.reset(seed=seed, options={"task_id": "train/4x4-0001"})
        return [env.step("right")[4]["state_key"] for _ in range(3) if env.actions_in(env.position)]

    assert ends(5) == ends(5)
    assert len({tuple(ends(seed)) for seed in range(30)}) > 3


def test_no_map_is_in_two_splits():
    boards = [FrozenLakeEnv(split=split)._boards() for split in ("train", "valid_seen")]
    train, held_out = ({b.content for b in one.values()} for one in boards)
    assert len(train) == 1000
    assert len(held_out) == 100
    assert not train & held_out
    assert FrozenLakeEnv(split="valid_unseen").tasks.families() == {"5x5": 100}


def test_distances_by_hand():
    assert distances(("SFF", "HHF", "GFF")) == {6: 0, 7: 1, 8: 2, 5: 3, 2: 4, 1: 5, 0: 6}


@pytest.mark.parametrize(
    "wrong",
    [{"size": 1}, {"size": 17}, {"frozen": 0}, {"success_rate": 2}, {"slippery": 1}, {"maps": "x"}],
)
def test_wrong_arguments_are_named(wrong):
    with pytest.raises(BadOption, match=next(iter(wrong))):
        gym.make("agentgyms/FrozenLake-v0", **wrong)
