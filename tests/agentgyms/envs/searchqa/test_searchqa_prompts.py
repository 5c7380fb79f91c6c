"""The prompt styles: what a model reads in an episode, and that experts can write their answers."""

import pytest

import agentgyms
from agentgyms.envs.searchqa.env import SearchQAEnv
from harness import prompts

ENV_ID = "agentgyms/SearchQA-v0"


def episode(style):
    """Play the expert through a style and return the prompts it was shown."""
    env = SearchQAEnv(split="sample")
    observation, info = env.reset(options={"task_id": "2-hop/sample-00000"})
    act, shown, history, over = agentgyms.expert(env), [], [], False
    first = observation
    while not over:
        fields = {"goal": info["goal"], "first_observation": first, "observation": observation}
        fields |= {"history": history, "actions": info["admissible_actions"]}
        shown.append(style.render(**fields, turn=info["turn"], max_turns=env.max_turns))
        parsed = style.parse(style.answer(act()))
        assert parsed.valid
        seen = observation
        observation, reward, terminated, truncated, info = env.step(parsed.action)
        past = {"number": len(history) + 1, "observation": seen, "action": parsed.action}
        history.append({**past, "outcome": observation})
        over = terminated or truncated
    assert reward == 1
    return shown


@pytest.mark.parametrize("name", ["think", "compact"])
def test_the_expert_speaks_through_every_style(name):
    style = prompts.load(name, ENV_ID)
    assert style.name == f"searchqa/{name}"
    first, second, third = episode(style)
    assert first == first.strip("\n")
    assert len(first) < len(second) < len(third)
    assert "Doc 1 (Title:" not in first
    assert "Doc 3 (Title:" in third


def test_what_a_thinking_model_reads():
    _, second, third = episode(prompts.load("think", ENV_ID))
    assert second.startswith("Answer a question. You have a search engine, and 4 turns in all.\n")
    assert "\nStep 1: <search>Vranoriska Vonithoom</search>\n<information>\nDoc 1 (" in second
    assert third.count("</information>") == third.count("<information>") == 2
    assert "This is turn 3 of 4." in third
    assert "your last one" not in third
    style, past = prompts.load("think", ENV_ID), {"number": 1, "observation": "q", "action": ""}
    text = style.render(
        goal="q",
        first_observation="q",
        observation="o",
        history=[{**past, "outcome": "Nothing happens: x."}],
        actions=[],
        turn=3,
        max_turns=4,
    )
    assert "Step 1: neither a search nor an answer was written" in text
    assert "This is turn 4 of 4, your last one: give your answer now." in text
