"""What the prompts of verl-agent's scripts tell an agent, those of our recipes tell it too.

Facts of `agent_system/environments/prompts` in copies of verl-agent, in words of ours; the recipes'
bases say in which points the forms differ. Episodes are played in the generated environments.
"""

import asyncio
import re
from functools import cache

import pytest

from agentgyms.envs.sokoban.image import LEGEND
from harness import config as configs
from harness import prompts
from harness.inference.completers import Sampling
from harness.inference.completers.scripted import ScriptedCompleter
from harness.rollouts.agent import Agent
from harness.rollouts.collect import collect
from harness.rollouts.env_pool import EnvPool
from harness.rollouts.groups import CollectOptions
from harness.types.messages import content_text
from harness.types.task_draws import TaskDraw

PLAYED = {
    "ALFWorld": ("alfworld-gigpo-1.5b", {}, "<think>Look.</think><action>look</action>"),
    "WebShop": ("webshop-gigpo-1.5b", {}, "<think>Search.</think><action>search[mug]</action>"),
    "SearchQA": ("searchqa-gigpo-3b", {}, "<think>Search.</think><search>a town</search>"),
    "VisualSokoban": (
        "visual-sokoban-gigpo-3b",
        {"rooms": 20},
        "<think>Up.</think><action>up</action>",
    ),
}
"""By environment: a recipe that follows a script, arguments of the generated one, an answer."""

THINK = {
    "to reason first, step by step": r"[Tt]hink step by step|[Rr]eason",
    "that the reasoning is between think tags": r"between <think> and </think>",
}
ACT = {
    **THINK,
    "that one action is chosen": r"exactly one (action|move)",
    "that the action is between action tags": r"between <action>\sand </action>",
}
HISTORY = {
    "how many steps were taken, and so which one this is": r"You have taken {taken} of",
    "the number of each of the last two": r"\[turn {before}\] (.|\n)*\[turn {taken}\] ",
    "the action of the last but one": r"\[turn {before}\] You did: \S",
    "the action of the last one": r"\[turn {taken}\] You did: \S",
}
ALWAYS = {
    "ALFWorld": {
        **ACT,
        "that it acts in ALFRED's household": r"ALFRED",
        "the task": r"Task: {goal}",
        "what it sees now": r"Now you see: \S",
        "the actions that are admissible now": r"Actions that work now:\n- {actions}\n\n",
    },
    "WebShop": {
        **ACT,
        "that it acts in an online shop": r"shopping in an online store",
        "the task": r"Wish: {goal}",
        "the page of now": r"The page is now: \S",
        "the actions that are admissible now": r"Actions that work on it:\n- {actions}\n\n",
        "to think which action serves the goal": r"Think step by step about this page and the wish",
    },
    "SearchQA": {
        **THINK,
        "that it answers a question, a step at a time": r"Answer a question.* turns in all",
        "the question": r"Question: {goal}",
        "to choose one of two actions, and not both": r"exactly one\s+of these",
        "to search if knowledge is missing": r"<search>a short query</search> to look something up",
        "to answer if it knows enough": r"<answer>the answer</answer> to finish",
        "that the answer is no explanation": r"the answer itself and nothing more",
        "an example of an answer": r"<answer>(?!the)[A-Z]\w+ \w+</answer>",
    },
    "VisualSokoban": {
        **ACT,
        "that it acts in Sokoban": r"playing Sokoban",
        "that all boxes on targets win": r"solved when every box is on a target",
        "that boxes are pushed and not pulled": r"pushed but never pulled",
        "that walls stop it and boxes": r"never through a wall(.|\n)*no wall and no other box",
        "that corners and walls are traps": r"corner .* stuck(.|\n)*at a wall(.|\n)*plan",
        "what shows the agent": r"person in a blue shirt: you",
        "what shows a box, and a target": r"red diamond: target\n(.|\n)*crate: box",
        "that the picture shows the room of now": r"The picture shows the room as it is now",
        "the four actions": r"up, down, left, right",
        "to find boxes and targets, and to plan a way": r"boxes and the targets .*reason",
    },
}
"""By environment: what every prompt tells, and how ours say it."""

LATER = {
    "ALFWorld": {
        **HISTORY,
        "the observations of the last two": r"\[turn {taken}\] You saw: \S",
    },
    "WebShop": {**HISTORY, "the observations of the last two": r"\[turn {taken}\] The page: \S"},
    "SearchQA": {
        "how many steps were taken, and so which one this is": r"This is turn {now} of",
        "its earlier queries, between search tags": r"Step {taken}: <search>a town</search>",
        "what was found, between information tags": r"<information>\n(.|\n)+\n</information>",
    },
    "VisualSokoban": {},
}
"""By environment: what prompts after the first one tell too."""


class Watched:
    """An agent that keeps what it knows and is asked at each turn."""

    def __init__(self, agent):
        self._agent, self.seen = agent, []

    async def act(self, view, seed):
        (message,) = self._agent.messages(view)
        self.seen.append((len(view.turns), dict(view.info), content_text(message["content"])))
        return await self._agent.act(view, seed)


@cache
def asked(env):
    """Number of turns taken, information and prompt at each turn of an episode."""
    recipe, arguments, answer = PLAYED[env]
    config = configs.load(recipe)
    style = prompts.load(config.agent.style, config.env.id)
    agent = Agent(ScriptedCompleter(lambda _: answer), style, Sampling(), config.agent.window)
    watched = Watched(agent)
    pool = EnvPool(config.env.id, 1, 1, max_turns=4, **arguments)
    draws = [TaskDraw(pool.tasks()[0], 1)]
    asyncio.run(collect(pool, draws, watched, seed=1, options=CollectOptions(pause_s=0)))
    pool.close()
    return watched.seen


def finds(pattern, taken, info, prompt):
    """Where a prompt tells a fact, or None; `{...}` in the pattern are values of the turn."""
    values = {
        "goal": re.escape(info["goal"]),
        "actions": re.escape("\n- ".join(info["admissible_actions"])),
        "taken": str(taken),
        "before": str(taken - 1),
        "now": str(taken + 1),
    }
    for name, value in values.items():
        pattern = pattern.replace(f"{{{name}}}", value)
    return re.search(pattern, prompt)


@pytest.mark.parametrize("env", PLAYED)
def test_every_prompt_tells_what_the_scripts_tells(env):
    seen = asked(env)
    assert len(seen) == 4
    for taken, info, prompt in seen:
        missing = [
            fact for fact, said in ALWAYS[env].items() if not finds(said, taken, info, prompt)
        ]
        assert not missing, prompt
        if taken >= 2:
            facts = LATER[env]
            missing = [fact for fact, said in facts.items() if not finds(said, taken, info, prompt)]
            assert not missing, prompt


@pytest.mark.parametrize("env", PLAYED)
def test_a_fact_that_is_not_told_is_noticed(env):
    """Of another task, another turn, and of turns that there have not been."""
    taken, info, prompt = asked(env)[3]
    other = {**info, "goal": "fly", "admissible_actions": ["fly"]}
    of_turn = [said for said in ALWAYS[env].values() if "{goal}" in said or "{actions}" in said]
    assert not any(finds(said, taken, other, prompt) for said in of_turn)
    counted = [said for said in LATER[env].values() if "{" in said]
    assert not any(finds(said, taken + 2, info, prompt) for said in counted)
    first = asked(env)[0]
    assert not any(finds(said, *first) for said in LATER[env].values() if "{taken}" in said)


def test_the_pictures_of_the_room_are_explained_as_they_are_drawn():
    _, _, prompt = asked("VisualSokoban")[0]
    assert all(f"- {tile}\n" in prompt for tile in LEGEND.split("; "))


def test_a_script_shows_as_many_turns_as_the_recipe():
    """Two of ALFWorld and WebShop, four of SearchQA, none of VisualSokoban."""
    shown = {env: configs.load(recipe).agent.window for env, (recipe, _, _) in PLAYED.items()}
    assert shown == {"ALFWorld": 2, "WebShop": 2, "SearchQA": 4, "VisualSokoban": 0}
    numbers = re.findall(r"\[turn (\d)\] You did", asked("ALFWorld")[3][2])
    assert numbers == ["2", "3"]


@pytest.mark.parametrize("base", ["alfworld", "webshop", "searchqa", "visual-sokoban"])
def test_a_base_says_in_which_points_its_prompts_differ(base):
    text = (configs.RECIPES / "bases" / f"{base}.toml").read_text(encoding="utf-8")
    assert "Prompts tell all that the script's tell" in text
    for point in ("history", "actions", "tags"):
        assert f"# - {point}: " in text, point
