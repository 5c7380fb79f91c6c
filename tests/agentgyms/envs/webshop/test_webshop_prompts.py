"""The prompt styles: what a model reads on each page, and that the expert can write its answers."""

import pytest

import agentgyms
from agentgyms.envs.webshop.env import WebShopEnv
from harness import prompts
from harness.prompts import answers

ENV_ID = "agentgyms/WebShop-v0"
GOAL = "Find me a [big] blue kettle with color: blue, and price lower than 30.00 dollars"
HEAD = f"Instruction: [SEP] {GOAL} [SEP] "
INDEX = f"WebShop [SEP] {HEAD}Search"
TITLE = "Kettle of steel with a whistle and a lid for one litre of water or of tea"
RESULTS = (
    f"{HEAD}Back to Search [SEP] Page 1 (Total results: 2) [SEP] B000000001 [SEP] {TITLE} [SEP] "
    "$25.5 [SEP] B000000002 [SEP] Oak spoon [SEP] $3.0 to $4.5"
)
ITEM = (
    f"{HEAD}Back to Search [SEP] < Prev [SEP] color [SEP] search red [SEP] blue [SEP] "
    f"Chosen: size: small blue, color: blue [SEP] {TITLE} [SEP] Price: $25.5 [SEP] Rating: N.A. "
    "[SEP] Description [SEP] Features [SEP] Reviews [SEP] Buy Now"
)


def clicks(*names):
    return ["search[<query>]", *(f"click[{name}]" for name in names)]


def render(name, observation, actions, history=()):
    return prompts.load(name, ENV_ID).render(
        goal=GOAL,
        first_observation=INDEX,
        observation=observation,
        history=history,
        actions=actions,
        choices=answers.choices(actions, GOAL),
        turn=len(history),
        max_turns=15,
    )


def past(number, observation, action):
    return {"number": number, "observation": observation, "action": action, "outcome": "later"}


def test_the_compact_prompt_to_the_letter():
    goal = "find me [big] blue kettle with color: blue price lower than 30.00 dollars"
    assert render("compact", INDEX, clicks()) == f"{goal}\nA search\n>"
    # The other words of the titles are not in the goal, or are articles.
    products = ("b000000001", "b000000002")
    assert render("compact", RESULTS, clicks("back to search", *products)).splitlines() == [
        *(goal, "A search", "B back to search", "C kettle with", "D", ">"),
    ]
    # The goal does not name D, and E is chosen in the second page.
    buttons = ("back to search", "< prev", "search red", "blue", "buy now")
    last = [goal, "A search", "B back to search", "C < prev", "F buy now", ">"]
    assert render("compact", ITEM, clicks(*buttons)).splitlines() == last
    fresh = ITEM.replace("Chosen: size: small blue, color: blue", "Chosen: size: small blue")
    assert render("compact", fresh, clicks(*buttons)).splitlines() == [
        *last[:4],
        "E blue",
        *last[4:],
    ]
    feedback = " [SEP] Nothing happens: blue is chosen already."
    said = render("compact", ITEM + feedback, clicks(*buttons)).splitlines()
    assert said == [goal, "nothing happens", *last[1:]]


def test_what_a_thinking_model_reads():
    first = render("think", INDEX, clicks())
    assert first.startswith("You are shopping in an online store, one action per turn.")
    assert f"\nWish: {GOAL}\n\nThe page is now: Search\n" in first
    assert "\n- search[<query>]\n\nThink" in first
    assert first.endswith("</action>, with words of your own for <query>.")
    assert "turns. The most recent" not in first
    history = [past(1, INDEX, "search[kettle]"), past(2, RESULTS, "click[b000000001]")]
    third = render("think", ITEM, clicks("buy now"), history)
    assert (
        "You have taken 2 of at most 15 turns. The most recent ones:\n[turn 1] The page: Search\n"
        in (third)
    )
    assert (
        "\n[turn 1] You did: search[kettle]\n[turn 2] The page: Back to Search [SEP] Page 1"
        in third
    )
    assert "\n- click[buy now]\n" in third
    assert third.count(GOAL) == 1
    rich = "Instruction:\n" + GOAL + "\n[button] Search [button_]"
    assert "\nThe page is now: [button] Search [button_]\n" in render("think", rich, clicks())


def test_a_prompt_of_more_than_13000_characters_leaves_the_history_out():
    def prompt(padding):
        return render("think", ITEM, clicks(), [past(1, RESULTS + padding, "click[b000000001]")])

    short = len(prompt(""))
    assert len(prompt("x" * (13_000 - short))) == 13_000
    assert "You did" in prompt("x" * (13_000 - short))
    longer = prompt("x" * (13_001 - short))
    assert longer == render("think", ITEM, clicks()).replace("0 of at", "1 of at")
    assert "You did" not in longer


@pytest.mark.parametrize("name", ["think", "compact"])
@pytest.mark.parametrize("mode", ["text", "text_rich"])
def test_the_expert_buys_through_every_style(name, mode):
    style = prompts.load(name, ENV_ID)
    assert style.name == f"webshop/{name}"
    env = WebShopEnv(split="sample", observation_mode=mode)
    expert = agentgyms.expert(env)
    for task_id in list(env.tasks)[:3]:
        _, info = env.reset(options={"task_id": task_id})
        over = False
        while not over:
            offered = answers.choices(info["admissible_actions"], info["goal"])
            parsed = style.parse(style.answer(expert(), offered), offered)
            assert parsed.valid
            *_, over, truncated, info = env.step(parsed.action)
            assert info["feedback"] == "ok"
            over = over or truncated
        assert info["success"]
