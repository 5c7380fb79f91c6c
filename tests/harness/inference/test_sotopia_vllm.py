"""SOTOPIA with a partner and a judge on vLLM's own server: a tiny random model, which rambles."""

import math

import pytest

from agentgyms.envs.sotopia.env import SOTOPIAEnv

pytestmark = pytest.mark.vllm

TURNS = 4


@pytest.fixture(scope="module")
def rambling(vllm_server, tmp_path_factory):
    """The model as an argument of the environment."""
    return {
        "name": vllm_server.name,
        "url": vllm_server.url,
        "max_tokens": 48,
        "cache_path": str(tmp_path_factory.mktemp("answers") / "answers.sqlite"),
        "price_prompt": 1.0,
        "price_response": 2.0,
    }


def play(partner, judge):
    """Return the last observation's reward, info, and how the episode ended."""
    env = SOTOPIAEnv(split="test", partner=partner, judge=judge, max_dialogue_turns=TURNS)
    _, info = env.reset(seed=3)
    said = []
    over = False
    while not over:
        _, reward, terminated, truncated, info = env.step(f"speak: Hello, {len(said)}.")
        said.append(info["metrics"]["partner_malformed"])
        over = terminated or truncated
    env.close()
    return reward, info, said


def test_an_episode_with_a_partner_and_a_judge_that_ramble_ends_unrated_and_never_0(rambling):
    reward, info, malformed = play(rambling, rambling)
    metrics = info["metrics"]
    assert malformed[-1] > 0
    assert metrics["rated"] == 0.0
    assert math.isnan(reward)
    assert math.isnan(info["score"])
    assert "goal" not in metrics
    assert not info["success"]
    assert info["feedback_text"].startswith("unrated: the judge's answer cannot be used")
    # Each of both is asked once more, whatever it says.
    assert metrics["model_calls"] == 2 * malformed[-1] + 2
    assert metrics["model_prompt_tokens"] > 1000
    assert metrics["cost"] > 0


def test_a_partner_that_rambles_does_not_keep_the_judge_from_rating(rambling):
    reward, info, malformed = play(rambling, "programmatic")
    assert malformed[-1] > 0
    assert info["metrics"]["rated"] == 1.0
    assert info["score"] == reward == info["metrics"]["goal"] / 10


def test_equal_episodes_are_equal(rambling):
    again = rambling | {"cache": False}
    del again["cache_path"]
    (_, one, _), (_, two, _) = play(rambling, "programmatic"), play(again, "programmatic")
    assert one["state_key"] == two["state_key"]
    assert one["metrics"] == pytest.approx(two["metrics"], nan_ok=True)
