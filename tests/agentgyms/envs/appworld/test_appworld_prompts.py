"""The prompt styles: what a model reads in an episode, and that its worked example is sound."""

import ast

import pytest

from agentgyms.envs.appworld.sandbox import code_check
from harness import prompts
from harness.prompts.answers import Parsed

ENV_ID = "agentgyms/AppWorld-v0"
FIELDS = {
    "goal": "Like the song.",
    "first_observation": "Task: Like the song.\nSupervisor: Ada Bell",
    "observation": "Execution successful.",
    "actions": [],
    "choices": [],
    "max_turns": 40,
}


def past(number, action):
    return {"number": number, "observation": "o", "action": action, "outcome": f"out {number}"}


def answers(text):
    """Return the worked example's answers, by what stands around its outputs."""
    example = text.partition("An example")[2].partition("--- End of the example ---")[0]
    pieces = example.split("</code>")[:-1]
    return [piece.rpartition("\n\n")[2] + "</code>" for piece in pieces]


@pytest.mark.parametrize("name", ["think", "direct"])
def test_the_answers_of_the_worked_example_are_read_and_would_run(name):
    style = prompts.load(name, ENV_ID)
    said = answers(style.render(**FIELDS, history=[], turn=0))
    parsed = [style.parse(answer) for answer in said]
    assert len(parsed) == 5
    assert all(one.valid for one in parsed)
    assert [code_check.refusal(one.action) for one in parsed] == [None] * 5
    calls = [
        ".".join(ast.unparse(node.func).split(".")[1:])
        for one in parsed
        for node in ast.walk(ast.parse(one.action))
        if isinstance(node, ast.Call) and ast.unparse(node.func).startswith("apis.")
    ]
    assert calls[:2] == ["api_docs.show_api_descriptions", "api_docs.show_api_doc"]
    assert calls[-1] == "supervisor.complete_task"
    assert {"parcels.login", "parcels.list_parcels"} < set(calls)


@pytest.mark.parametrize("name", ["think", "direct"])
def test_what_a_prompt_says_of_earlier_turns(name):
    style = prompts.load(name, ENV_ID)
    first = style.render(**FIELDS, history=[], turn=0)
    assert FIELDS["first_observation"] in first
    assert "[turn " not in first.partition("--- End of the example ---")[2]
    later = style.render(**FIELDS, history=[past(3, "print(1)"), past(4, "")], turn=4)
    assert later.startswith(first.partition("--- End")[0])
    assert "[turn 3]\n<code>\nprint(1)\n</code>\nout 3\n\n[turn 4]" in later
    assert "# nothing that could be read\n</code>\nout 4\n" in later
    assert ("without the first 2 turns" in later) is (name == "think")
    assert "complete the task now" not in later
    last = style.render_next(**FIELDS, history=[], turn=39)
    assert last.startswith("Execution successful.\n\n")
    assert "40 of 40" in last
    assert "complete the task now" in last


def test_the_version_of_a_style_covers_its_rules_and_its_example(tmp_path, monkeypatch):
    before = {name: prompts.load(name, ENV_ID).version for name in ("think", "direct", "compact")}
    parts = tmp_path / "appworld"
    parts.mkdir()
    for path in (prompts._PARTS / "appworld").iterdir():
        (parts / path.name).write_text(path.read_text(encoding="utf-8") + "\n", encoding="utf-8")
    monkeypatch.setattr(prompts, "_PARTS", tmp_path)
    prompts._compile.cache_clear()
    after = {name: prompts.load(name, ENV_ID).version for name in before}
    assert {name: before[name] != after[name] for name in before} == {
        "think": True,
        "direct": True,
        "compact": False,
    }
    prompts._compile.cache_clear()


def test_the_tiny_style_shows_the_goal_and_what_was_said():
    style = prompts.load("compact", ENV_ID)
    assert style.render(**FIELDS, history=[], turn=0).startswith("Like the song.")
    assert "print(1)" in style.render(**FIELDS, history=[past(1, "print(1)")], turn=1)
    code = 'x = [\n    "a b",  c,\n]\nif x:\n\tprint(x)'
    assert style.parse(style.answer(code)) == Parsed(code)
