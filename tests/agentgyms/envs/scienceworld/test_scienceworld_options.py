"""ScienceWorld without an episode: tasks, arguments, commands, goals, and messages."""

import re
import sys

import gymnasium as gym
import pytest
from gymnasium.error import DependencyNotInstalled

from agentgyms.core.errors import BadOption, UnknownSplit
from agentgyms.core.outcome import Feedback
from agentgyms.envs.scienceworld import engine, tasks
from agentgyms.envs.scienceworld.commands import TOOLS, canonical, fault, in_tools_words, judge
from agentgyms.envs.scienceworld.goals import atoms

ENV_ID = "agentgyms/ScienceWorld-v0"


def make(**kwargs):
    return gym.make(ENV_ID, **kwargs).unwrapped


def test_the_splits_are_the_papers():
    sizes = {split: len(make(split=split).tasks) for split in tasks.SPLITS}
    assert sizes == {"train": 3592, "dev": 1796, "test": 1819, "sample": 30}
    parts = [set(make(split=split).tasks) for split in ("train", "dev", "test")]
    assert len(set.union(*parts)) == sum(map(len, parts)) == 7207
    assert [*tasks.numbers("boil", "dev")] == [14, 15, 16, 17, 18, 19, 20]


def test_families_restrict_the_tasks():
    env = make(split="dev", families=["melt", "boil"])
    assert env.tasks.families() == {"boil": 7, "melt": 7}
    assert env.arguments["families"] == ["boil", "melt"]


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"families": ["boli"]}, "did you mean boil"),
        ({"families": "boil"}, "must be a list"),
        ({"families": []}, "must be a list"),
        ({"simplification": "hard"}, "some of easy, noElectricalAction"),
        ({"simplification": None}, "simplification must be"),
        ({"simplification": "noElectricalAction"}, "leaves 'power-component' without a solution"),
        ({"list_actions": 1}, "list_actions must be True or False"),
        ({"engine": "jar"}, "engine 'jar' is unknown"),
        ({"engine": None}, "is unknown: expected 'own' or 'official'"),
    ],
)
def test_wrong_arguments_are_named(kwargs, message):
    with pytest.raises(BadOption, match=message):
        make(**kwargs)


def test_a_split_of_others_is_refused():
    with pytest.raises(UnknownSplit, match="train, dev, test, sample"):
        make(split="valid_seen")


def test_simplifications_have_one_form():
    env = make(families=["boil"], simplification="openDoors, noElectricalAction,")
    assert env.arguments["simplification"] == "noElectricalAction,openDoors"


def test_without_the_package_the_message_names_the_command(monkeypatch):
    monkeypatch.delenv(engine.PYTHON_VARIABLE, raising=False)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(DependencyNotInstalled, match=r"pip install .*\[scienceworld\]"):
        make(engine="official").reset(seed=0)


def test_without_java_the_message_says_where_it_was_looked_for(monkeypatch, tmp_path):
    monkeypatch.setenv(engine.PYTHON_VARIABLE, sys.executable + "x")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(DependencyNotInstalled, match="needs Java, none is in JAVA_HOME="):
        make(engine="official").reset(seed=0)
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho 'openjdk version \"1.8.0_392\"' >&2\n")
    java.chmod(0o755)
    with pytest.raises(DependencyNotInstalled, match="needs Java 11, .* is of version 8"):
        make(engine="official").reset(seed=0)


def test_an_interpreter_without_the_package_is_named(monkeypatch, tmp_path):
    python = tmp_path / "python"
    python.write_text('#!/bin/sh\necho \'{"missing": "No module named scienceworld"}\'\n')
    python.chmod(0o755)
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho 'openjdk version \"21.0.1\"' >&2\n")
    java.chmod(0o755)
    monkeypatch.setenv(engine.PYTHON_VARIABLE, str(python))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(DependencyNotInstalled, match="has no scienceworld"):
        make(engine="official").reset(seed=0)
    python.write_text('#!/bin/sh\necho \'{"version": "1.1.0", "folder": ""}\'\n')
    with pytest.raises(DependencyNotInstalled, match=r"has scienceworld 1\.1\.0"):
        make(engine="official").reset(seed=0)


FORMS = """
look around, look at door to kitchen, look in table, inventory, task, go to kitchen, open cupboard
pick up metal pot, move metal pot to sink, activate sink, pour cup into metal pot, wait, wait1
dunk cup containing water into bowl, use thermometer in inventory on steam, reset task, 3
connect battery anode to black wire terminal 1, disconnect agent, focus on orange, mix bowl
"""


@pytest.mark.parametrize("action", re.split(r"[,\n] *", FORMS.strip()))
def test_commands_are_calls(action):
    call = TOOLS.call(action)
    assert call is not None
    assert call.name != "act"
    assert TOOLS.action(call) == action


UNKNOWN = "No known action matches that input."


def test_what_became_of_a_command():
    assert judge("open door", "Ambiguous request: ...", "") == (Feedback.OK, "")
    assert judge("Open  zebra", UNKNOWN, "")[0] == Feedback.INADMISSIBLE
    assert judge("pick up x", "Unknown action.  Type 'help'", "")[0] == Feedback.INADMISSIBLE
    assert judge("7", UNKNOWN, "")[0] == Feedback.INADMISSIBLE
    assert judge("zzz top", UNKNOWN, "") == (
        Feedback.MALFORMED,
        "no command begins with 'zzz'",
    )
    assert judge("", UNKNOWN, "")[0] == Feedback.MALFORMED
    assert judge("eat air", "...", "MatchError: 3") == (Feedback.FAILED, "MatchError: 3")
    assert canonical("  Open   Door ") == "open door"
    assert "longer than" in fault("x" * 401)
    assert "control character" in fault("a\x00b")
    assert "control character" in fault("\ud800")
    assert fault("open door\n") == ""


TABLE = """Completed keys:
-----
Sequential Subgoals:
-----
0\ttrue\t                       GoalFocusOnAnimal\tfocus on an animal
1\tfalse\t                   GoalObjectInContainer\tmove living thing to answer box
-----
Unordered and Optional Subgoals:
-----
0\ttrue\t                   GoalObjectInContainer\tPick up object
"""


def test_paths_are_told_in_the_tools_words():
    assert in_tools_words("drop black wire") == "put down black wire"
    poured = "pour cup in art studio in cup containing red paint in table"
    assert in_tools_words(poured) == poured
    assert TOOLS.action(TOOLS.call(poured)) == poured
    assert TOOLS.call("pour cup into jug in sink").name == "pour"


def test_goals_are_atoms():
    assert atoms(TABLE) == {
        "goal 0: focus on an animal": True,
        "goal 1: move living thing to answer box": False,
        "optional 0: Pick up object": 1.0,
    }


def test_its_tasks_are_the_benchmarks():
    assert make().data_source == "official"
    assert make().data_version == "scienceworld-1.2.3"
