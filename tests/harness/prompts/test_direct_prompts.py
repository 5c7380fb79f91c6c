"""The style `direct`: its prompts to the letter, and how its answers are read."""

from dataclasses import replace
from pathlib import Path

import jinja2
import numpy as np
import pytest

from agentgyms.adapters import messages
from harness import prompts
from harness.evaluation.baselines.reflexion import Reflector
from harness.inference.completers import Sampling
from harness.inference.completers.scripted import ScriptedCompleter
from harness.prompts import parsing
from harness.prompts.answers import Parsed
from harness.prompts.truncation import Preamble, content_text
from harness.rollouts.agent import Agent
from harness.rollouts.views import EpisodeView
from harness.types.messages import shared_image
from harness.types.rollout import Completion, Rollout, StopReason, Turn

GOLDEN = Path(__file__).parents[2] / "golden" / "prompts"
ROOM = "######\n#_O###\n#_X_##\n#P__##\n######\n# wall, _ floor, O target, X box, √ box on target"
SHOP = "WebShop [SEP] Instruction: [SEP] a red mug, under 9 dollars [SEP] "
LEGENDLESS = ROOM.partition("\n# wall")[0]

EPISODES = {
    "ALFWorld": (
        "put a mug on shelf.",
        ["You see a shelf 1, and a drawer 1.", "The drawer 1 is open. In it, you see a mug 1."],
        ["open drawer 1"],
        ["take mug 1 from drawer 1", "go to shelf 1"],
    ),
    "WebShop": (
        "a red mug, under 9 dollars",
        [SHOP + "Search", SHOP + "Back to Search [SEP] B01 [SEP] Red Mug [SEP] $8.0"],
        ["search[red mug]"],
        ["search[<query>]", "click[back to search]", "click[b01]"],
    ),
    "Sokoban": ("Push the box onto the target.", [ROOM, ROOM], ["down"], ["up", "right"]),
    "VisualSokoban": (
        "Push the box onto the target.",
        ["The picture shows the room from above."] * 2,
        ["down"],
        ["up", "right"],
    ),
    "SearchQA": (
        "Who wrote Faust?",
        ["Who wrote Faust?", 'Doc 1 (Title: "Faust") Faust is a play by Goethe.'],
        ["search[Faust]"],
        ["search[<query>]", "answer[<text>]"],
    ),
    "AppWorld": (
        "How many notes have I pinned?",
        ["How many notes have I pinned?\nI am Ada Bell, ada@bell.example.", "3"],
        ["print(len(pinned))"],
        [],
    ),
    "SOTOPIA": (
        "Buy the lamp for at most 60.",
        [
            "Here is the context of this interaction:\nScenario: A lamp is for sale.\n"
            "Ada's goal: Buy the lamp.\nBo's goal: Unknown\nConversation Starts:\n",
            'Turn #0: Ada said: "50?"\nTurn #1: Bo [action] offer 60\n',
        ],
        ["speak: 50?"],
        ["act: accept", "act: offer 55"],
    ),
    "Corridor": (
        "open the door",
        ["You stand at the left end.", "You are 1 step from the left end."],
        ["right"],
        ["left", "right"],
    ),
}


def view_of(name):
    goal, (first, now), (action,), legal = EPISODES[name]
    turn = Turn(first, "a", Completion(action), action, action, "no_effect", 0.0, now, "b", 0.0)
    image = shared_image(np.zeros((16, 16, 3), np.uint8)) if name == "VisualSokoban" else None
    return EpisodeView(
        first, now, {"goal": goal, "admissible_actions": legal}, 4, [turn], image=image
    )


def agent_of(name, style, context="window", **kwargs):
    completer = ScriptedCompleter(lambda _: "")
    loaded = prompts.load(style, f"agentgyms/{name}-v0")
    return Agent(completer, loaded, Sampling(), 2, context, **kwargs)


def later_prompt(name, style):
    """Return what a transcript asks in its second turn."""
    agent, view = agent_of(name, style, "transcript"), view_of(name)
    turns = list(view.turns)
    view.turns.clear()
    agent.messages(view)
    view.turns += turns
    return content_text(agent.messages(view)[-1]["content"])


def told(name):
    """Return a failed rollout of one turn."""
    view = view_of(name)
    return Rollout("t", "f", 0, 0, 0, view.info["goal"], view.turns, StopReason.TURN_LIMIT)


def golden(name, text):
    assert (GOLDEN / f"{name}.txt").read_text(encoding="utf-8") == text + "\n"


@pytest.mark.parametrize("name", EPISODES)
def test_the_direct_prompts_to_the_letter(name):
    (asked,) = agent_of(name, "direct").messages(view_of(name))
    golden(
        f"direct-{name.lower()}",
        f"{content_text(asked['content'])}\n\n===== in a transcript =====\n\n"
        f"{later_prompt(name, 'direct')}",
    )
    assert "<think>" not in content_text(asked["content"])


@pytest.mark.parametrize("style", ["think", "compact"])
def test_a_dialogue_is_asked_for_to_the_letter(style):
    (asked,) = agent_of("SOTOPIA", style).messages(view_of("SOTOPIA"))
    begun = view_of("SOTOPIA")
    begun.observation = begun.first_observation
    begun.turns.clear()
    (first,) = agent_of("SOTOPIA", style).messages(begun)
    golden(
        f"{style}-sotopia",
        f"{content_text(first['content'])}\n\n===== later, in a window =====\n\n"
        f"{content_text(asked['content'])}\n\n===== in a transcript =====\n\n"
        f"{later_prompt('SOTOPIA', style)}",
    )


@pytest.mark.parametrize("name", EPISODES)
def test_the_question_for_a_reflection_to_the_letter(name):
    reflector = Reflector(None, Sampling(), f"agentgyms/{name}-v0")
    (asked,) = reflector._messages(told(name), ["Look in the drawer first."], 16000)
    golden(f"reflect-{name.lower()}", asked["content"])


def test_an_action_that_breaks_the_format_is_no_misunderstood_one():
    """The environment may have taken it; the format alone was broken."""
    rollout = told("Corridor")
    rollout.turns.append(replace(rollout.turns[0], action="left", feedback="malformed"))
    rollout.turns.append(replace(rollout.turns[0], action="", feedback="malformed"))
    reflector = Reflector(None, Sampling(), "agentgyms/Corridor-v0")
    text = content_text(reflector._messages(rollout, [], 16000)[0]["content"])
    assert "Done: left (not in the form asked for)\n" in text
    assert "Done: nothing that could be read (not in the form asked for)\n" in text


def test_the_version_of_a_part_covers_what_it_extends(tmp_path, monkeypatch):
    (tmp_path / "default").mkdir()
    (tmp_path / "room").mkdir()
    own = "{% extends 'default/note.jinja' %}"
    monkeypatch.setattr(prompts, "_PARTS", tmp_path)
    monkeypatch.setattr(prompts._JINJA, "loader", jinja2.FileSystemLoader(tmp_path))
    found = []
    for said in ("one", "two"):
        (tmp_path / "default" / "note.jinja").write_text(said, encoding="utf-8")
        (tmp_path / "room" / "note.jinja").write_text(own, encoding="utf-8")
        prompts._JINJA.cache.clear()
        prompts.load_part.cache_clear()
        part = prompts.load_part("note", "x/Room-v0")
        found.append((part.render(), part.version))
    prompts.load_part.cache_clear()
    prompts._JINJA.cache.clear()
    assert [text for text, _ in found] == ["one", "two"]
    assert found[0][1] != found[1][1]


FIELDS = {
    "goal": "put a mug in desk.", "first_observation": "A room.", "observation": "A desk.",
    "history": [{"number": 1, "observation": "A bed.", "action": "look", "outcome": "A desk."}],
    "actions": ["go to desk 1"], "choices": ["go to desk 1"], "turn": 1, "max_turns": 9,
}  # fmt: skip


def test_alfworlds_prompt_is_the_default_one_with_another_parser_and_place():
    own, default = (prompts.load("think", f"agentgyms/{name}-v0") for name in ("ALFWorld", "X"))
    assert (own.name, own.parser) == ("alfworld/think", "alfworld_tags")
    plain = default.render(**FIELDS)
    assert plain.startswith("You act in a text environment, ")
    named = plain.replace("a text environment", "a household of ALFRED, told in text", 1)
    assert own.render(**FIELDS) == named
    assert own.render_next(**FIELDS) == default.render_next(**FIELDS)
    assert own.version != default.version
    assert not own.observes_in_history
    assert "A desk." in own.render(**FIELDS)


@pytest.mark.parametrize("actions", [["left", "open door"], []])
def test_a_chat_shows_what_an_agent_of_others_shows(actions):
    """To the letter, so that a warm start's prompts are those of examples/clients."""
    style = prompts.load("chat", "agentgyms/Corridor-v0")
    info = {"goal": "open the door", "admissible_actions": actions, "turn": 0}
    fields = {**FIELDS, "goal": info["goal"], "observation": "A <b> hall.", "actions": actions}
    shown = messages.user_text("A <b> hall.", info)
    assert style.render(**fields) == f"{messages.INSTRUCTIONS}\n\n{shown}"
    assert style.render_next(**fields) == messages.user_text("A <b> hall.", {**info, "turn": 1})
    assert messages.parse_action(style.answer("open door")) == "open door"


def test_what_stands_before_a_prompt_to_the_letter():
    episode = prompts.load_part("episode", "x/y").render(
        goal="open the door", turns=[{"observation": "A door.", "action": "<action>go</action>"}]
    )
    episode = episode.strip()
    golden("preamble", Preamble("x/y", (episode, episode), ("Look left.", "Take the key.")).text())


@pytest.mark.parametrize("name", EPISODES)
def test_an_action_is_asked_for_that_the_parser_reads(name):
    agent, view = agent_of(name, "direct"), view_of(name)
    for action in EPISODES[name][2]:
        answer = agent.style.answer(action)
        assert agent.style.parse(answer) == Parsed(action)
        assert agent.style.parse(f"Well: {answer.upper()} Done.").action.lower() == action.lower()
        assert "<think>" not in answer
    assert not agent.style.parse(EPISODES[name][2][0]).valid
    assert agent.style.name == f"{'default' if name == 'Corridor' else name.lower()}/direct"
    assert agent.decide(view, Completion("I think so.")).valid is False


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<action>go to shelf 1</action>", Parsed("go to shelf 1")),
        ("Sure: <ACTION>\n look \n</Action>.", Parsed("look")),
        ("<think>or <action>look</action>?</think><action>open</action>", Parsed("open")),
        ("or <action>look</action>?</think> <action>open</action>", Parsed("open")),
        ("<action>look</action><action>open</action>", Parsed("look")),
        ("<action></action>", Parsed("")),
        ("go to shelf 1", Parsed("", valid=False)),
        ("<action>go to shelf 1", Parsed("", valid=False)),
        ("<think>I <action>look</action>", Parsed("", valid=False)),
        ("", Parsed("", valid=False)),
    ],
)
def test_action_tags(text, expected):
    assert parsing.get("action_tags").parse(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<action>Left, then up</action>", Parsed("up")),
        ("<think><action>up</action></think><action>left</action>", Parsed("left")),
        ("<action>jump</action>", Parsed("", valid=False)),
        ("left", Parsed("", valid=False)),
    ],
)
def test_sokoban_action_tags(text, expected):
    assert parsing.get("sokoban_action_tags").parse(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<action>Search[Red Mug]</action>", Parsed("search[red mug]")),
        ("<think>x</think><action>click[b01]</action>", Parsed("click[b01]")),
        ("<action>search[茶]</action>", Parsed("search[茶]", valid=False)),
        ("I would now take click[Next >]", Parsed("click[next >]", valid=False)),
        ("Then search[Red Mug], please. search[red mug]", Parsed("search[red mug]", valid=False)),
        ("Search [SEP] [B01] to find a mug", Parsed("", valid=False)),
        ("- search[<query>]", Parsed("", valid=False)),
        ("search[mug] or click[b01]", Parsed("", valid=False)),
        ("I take click[b02]", Parsed("", valid=False)),
        ("I hope that helps.", Parsed("", valid=False)),
        ("<action>click[b01]", Parsed("click[b01]", valid=False)),
        ("click[b01]</action><action>", Parsed("", valid=True)),
    ],
)
def test_webshop_action_tags(text, expected):
    offered = ["search[a red mug]", "click[next >]", "click[b01]"]
    assert parsing.get("webshop_action_tags").parse(text, offered) == expected


@pytest.mark.parametrize("name", ["ALFWorld", "WebShop", "Sokoban", "Corridor"])
def test_a_turn_without_an_action_says_so(name):
    agent, view = agent_of(name, "direct"), view_of(name)
    view.turns[0] = replace(view.turns[0], action="")
    (message,) = agent.messages(view)
    assert ": nothing that could be read\n" in message["content"]
