"""Prompts of tau2-bench's domains: they list the domain's own tools, in every style."""

import json

import pytest

from agentgyms.envs.tau2.env import Tau2Env
from agentgyms.models.types import ServedCall
from harness import prompts
from harness.prompts.answers import Parsed

ENV_ID = "agentgyms/Tau2-v0"
FIELDS = {"goal": "", "history": [], "actions": [], "choices": [], "turn": 0, "max_turns": 9}


def prompt(style, **kwargs):
    seen = {"first_observation": "Policy.", "observation": "Policy."}
    return prompts.load(style, ENV_ID, kwargs=kwargs).render(**FIELDS | seen)


@pytest.mark.parametrize("style", ["direct", "think"])
@pytest.mark.parametrize("domain", ["retail", "airline", "telecom", "telecom-workflow"])
def test_a_domain_s_tools_are_the_forms_of_actions(style, domain):
    text = prompt(style, domain=domain)
    say, *tools = Tau2Env.tools_of({"domain": domain})
    for tool in tools:
        told = text.partition(f"\n  {tool.name}: {tool.description}\n")[2]
        for name in tool.parameters:
            before, found, told = told.partition(f"    {name}")
            assert found
            assert "\n  " not in before.replace("\n    ", "")
    assert f"- {say.name}: <words>" in text
    assert "cancel <order>" not in text
    assert "\n\n\n" not in text


def test_parts_of_lists_and_what_may_be_left_out_are_told():
    text = prompt("direct", domain="airline")
    assert "    flights, array: All flights" in text
    assert "      flight_number: Its number" in text
    assert "One of business, economy, basic_economy." in text


def test_the_shop_has_its_own_forms():
    text = prompt("direct")
    assert "- cancel <order>\n" in text
    assert not any(f"  {tool.name}: " in text for tool in Tau2Env.tools)


def test_lettered_actions_of_a_domain_are_all_shown():
    action = f"get_order_details {json.dumps({'order_id': '#W1'})}"
    fields = FIELDS | {"first_observation": "Customer: Hi", "observation": "Customer: Hi"}
    style = prompts.load("compact", ENV_ID, kwargs={"domain": "retail"})
    assert action in style.render(**fields | {"choices": [action]})


def test_words_without_a_call_are_said_to_the_customer():
    style = prompts.load("tools", ENV_ID, kwargs={"domain": "retail"})
    answer = "<think>Who is it?</think>\n\nMay I have\nyour email?"
    assert style.parse(answer, calls=()) == Parsed("say: May I have\nyour email?")
    call = ServedCall("1", "list_all_product_types", "{}")
    assert style.parse("I look.", calls=[call]) == Parsed("list_all_product_types")
    for text in ("", "<think>Who?</think>", "Hello</tool_call>", "Hello <tool_call>{"):
        assert style.parse(text) == Parsed("", valid=False), text
    assert not prompts.load("tools", "agentgyms/Corridor-v0").parse("Hello").valid
