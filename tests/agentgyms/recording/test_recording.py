"""Recordings: written, read, replayed, and what is said of damaged ones."""

import json
import re
from pathlib import Path

import gymnasium as gym
import pytest

from agentgyms import testing
from agentgyms.core.arguments import private_names
from agentgyms.core.errors import (
    BadOption,
    CallerError,
    DataCorrupt,
    DataMissing,
    ReplayMismatch,
    UnknownTask,
)
from agentgyms.recording import recorder
from agentgyms.registration import env_class

CORRIDOR = "agentgyms/Corridor-v0"


@pytest.fixture
def path(tmp_path):
    """A file of three episodes, junk actions included."""
    file = tmp_path / "episodes.jsonl"
    env = recorder.RecordEpisodes(gym.make(CORRIDOR, split="valid_seen"), file, actor="test")
    for seed in range(3):
        list(testing.play(env, seed))
    env.close()
    return file


def test_recordings_replay(path):
    episodes = recorder.read(path)
    assert len(episodes) == 3
    header = episodes[0].header
    assert (header["env_id"], header["seed"], header["kwargs"]) == (
        CORRIDOR,
        0,
        {"split": "valid_seen"},
    )
    assert header["provenance"]["actor"] == "test"
    for episode in episodes:
        assert recorder.replay(episode) == len(episode.turns) == len(episode.actions) + 1


def test_the_page_has_every_field(path):
    """docs/recordings.md lists the fields of a header and of a turn; `agent` is of evaluations."""
    page = (Path(__file__).parents[3] / "docs/recordings.md").read_text()
    section = page.partition("## The format")[2].partition("\n## ")[0]
    header, turn = (
        {
            name
            for cell in re.findall(r"^\| (`.*?) \|", table, re.MULTILINE)
            for name in re.findall(r"`(\w+)`", cell)
        }
        for table in section.split("A turn:")
    )
    first, second, *_ = map(json.loads, path.read_text().splitlines())
    assert header == set(first)
    assert turn == {*second, "agent"}


def test_an_unseeded_episode_replays_from_the_seed_it_drew(tmp_path):
    file = tmp_path / "unseeded.jsonl"
    env = recorder.RecordEpisodes(gym.make(CORRIDOR), file)
    env.reset()
    env.step("right")
    env.close()
    (episode,) = recorder.read(file)
    assert recorder.replay(episode) == 2


def test_lines_are_strict_json_and_nan_survives(path):
    for line in path.read_text().splitlines():
        json.loads(line, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    turn = recorder.read(path)[0].turns[1]
    turn.info["progress"] = float("nan")
    again = json.loads(recorder.turn_line(turn))
    assert again["info"]["progress"] is None
    assert again["action"] == turn.action


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        (
            "observation",
            "else",
            "turn 2: info\\['observation_key'\\]|turn 2: observation was recorded",
        ),
        ("reward", 5.0, "turn 2: reward was recorded as 5.0, replay gives 0.0"),
        ("truncated", True, "turn 2: truncated was recorded as True"),
    ],
)
def test_replay_notices_every_difference(path, field, value, message):
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    lines[3][field] = value
    (episode, *_) = recorder.parse(map(json.dumps, lines), "changed")
    with pytest.raises(ReplayMismatch, match=message):
        recorder.replay(episode)


def test_replay_notices_another_state(path):
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    lines[2]["info"]["state_key"] = "0" * 32
    (episode, *_) = recorder.parse(map(json.dumps, lines), "changed")
    with pytest.raises(ReplayMismatch, match="turn 1: info\\['state_key'\\] was recorded"):
        recorder.replay(episode)


def changed(number, key, value):
    """Return a change of one field of one line."""

    def change(lines):
        line = json.dumps(json.loads(lines[number]) | {key: value})
        return [*lines[:number], line, *lines[number + 1 :]]

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda lines: lines[1:], "line 1: .*no header line"),
        (lambda lines: [*lines[:4], lines[4][:30]], "line 5"),
        (lambda lines: [lines[0], *lines[2:]], "line 2: .*turn 1, expected turn 0"),
        (lambda lines: [lines[0].replace("recording-1", "recording-9")], "line 1: .*recording-9"),
        (lambda lines: ['{"format":"agentgyms-recording-1"}'], "line 1: .*no 'env_id'"),
        (lambda lines: ["[1, 2]"], "line 1"),
        (lambda lines: ["NaN"], "line 1: .*NaN"),
        (lambda lines: [], "holds no episode"),
        (lambda lines: lines[:1], "at its end: .*no line of a reset"),
        (lambda lines: [lines[0], *lines], "line 2: .*no line of a reset"),
        (changed(0, "kwargs", []), "line 1: .*'kwargs' of the header must be dict"),
        (changed(0, "env_id", 3), "line 1: .*'env_id'"),
        (changed(1, "reward", "x"), "line 2: .*a number"),
        (changed(1, "info", 3), "line 2: .*an info is an object"),
        (changed(1, "action", 3), "line 2: .*'action' of the turn must be str"),
        (changed(1, "truncated", "x"), "line 2: .*'truncated'"),
        (changed(1, "observation", ["x"]), "line 2: .*observation"),
        (lambda lines: [lines[0], lines[1].replace('"progress":0.0', '"progress":"x"')], "line 2"),
    ],
)
def test_damaged_files_are_named_with_their_line(path, change, message):
    lines = change(path.read_text().splitlines())
    path.write_text("".join(f"{line}\n" for line in lines))
    with pytest.raises(DataCorrupt, match=message):
        recorder.read(path)


def test_what_is_no_text_file(tmp_path):
    (tmp_path / "picture").write_bytes(b"\x89PNG\xff")
    with pytest.raises(DataCorrupt, match="no text file"):
        recorder.read(tmp_path / "picture")
    with pytest.raises(DataCorrupt, match="is a folder"):
        recorder.read(tmp_path)
    with pytest.raises(DataCorrupt, match="is a device"):
        recorder.read("/dev/zero")


def test_a_restored_environment_does_not_spoil_the_recording(tmp_path):
    file = tmp_path / "episodes.jsonl"
    env = recorder.RecordEpisodes(gym.make(CORRIDOR), file)
    env.reset(seed=1)
    env.step("right")
    here = env.unwrapped.snapshot()
    other = gym.make(CORRIDOR).unwrapped
    other.reset(seed=1)
    other.step("left")
    for _ in range(2):
        env.step("right")
    for snapshot in (here, other.snapshot()):
        env.unwrapped.restore(snapshot)
        with pytest.raises(CallerError, match="ends at turn 3.*at turn 1.*call reset"):
            env.step("right")
        assert env.unwrapped.snapshot() == snapshot, "the refused step was taken"
    env.reset(seed=2)
    env.unwrapped.restore(env.unwrapped.snapshot())  # the same state: nothing is missing
    env.step("right")
    env.close()
    assert [recorder.replay(episode) for episode in recorder.read(file)] == [4, 2]


def test_nothing_is_written_before_the_first_reset(tmp_path):
    env = recorder.RecordEpisodes(gym.make(CORRIDOR), tmp_path / "episodes.jsonl")
    other = gym.make(CORRIDOR).unwrapped
    other.reset(seed=1)
    env.unwrapped.restore(other.snapshot())
    with pytest.raises(CallerError, match="ends before an episode"):
        env.step("right")
    env.close()


def test_an_episode_without_a_turn_is_not_written(tmp_path):
    file = tmp_path / "episodes.jsonl"
    env = recorder.RecordEpisodes(gym.make(CORRIDOR), file)
    env.reset(seed=1)
    assert file.read_text() == ""
    env.reset(seed=2)
    with pytest.raises(UnknownTask):  # which leaves the episode as it is
        env.reset(options={"task_id": "none"})
    with pytest.raises(TypeError, match="an action is a string"):
        env.step(3)
    assert file.read_text() == ""
    env.step("right")
    assert len(file.read_text().splitlines()) == 3, "each turn is in the file at once"
    env.reset(seed=3)
    env.close()
    (episode,) = recorder.read(file)
    assert (episode.header["seed"], recorder.replay(episode)) == (2, 2)


def test_the_render_mode_is_not_recorded(tmp_path):
    file = tmp_path / "episodes.jsonl"
    made = gym.make(CORRIDOR, render_mode="ansi", split="sample")
    env = recorder.RecordEpisodes(made, file)
    env.reset(seed=1)
    env.step("right")
    env.close()
    (episode,) = recorder.read(file)
    assert episode.header["kwargs"] == {"split": "sample"}
    assert recorder.replay(episode, render_mode="ansi") == 2


def test_a_missing_file_is_said(tmp_path):
    with pytest.raises(DataMissing, match="there is no recording"):
        recorder.read(tmp_path / "nothing.jsonl")


def episode(env_id=CORRIDOR, /, **kwargs):
    """Returns an episode of a recording that anyone may have written."""
    header = {
        "format": "agentgyms-recording-1",
        "env_id": env_id,
        "kwargs": kwargs,
        "seed": 1,
        "options": {},
    }
    lines = [json.dumps(header), turn_of_a_corridor()]
    return next(recorder.parse(lines, "a stranger's"))


def turn_of_a_corridor():
    observation, info = env_class(CORRIDOR)().reset(seed=1)
    return recorder.turn_line(
        recorder.RecordedTurn(0, "", observation, 0.0, False, False, dict(info))
    )


@pytest.fixture
def nothing_is_made(monkeypatch):
    def made(env_id, **kwargs):
        pytest.fail(f"{env_id} was made with {kwargs}")

    monkeypatch.setattr(gym, "make", made)


@pytest.mark.parametrize(
    ("env_id", "kwargs"),
    [
        (CORRIDOR, {"url": "http://127.0.0.1:9"}),
        (CORRIDOR, {"url": ["http://127.0.0.1:9"], "token": "mine"}),
        (CORRIDOR, {"transport": "x"}),
        (CORRIDOR, {"patience": 9}),
        (CORRIDOR, {"env_id": "agentgyms/Sokoban-v0"}),
        (CORRIDOR, {"_secret": 1}),
        ("agentgyms/SearchQA-v0", {"source": "flashrag", "retriever": "http://127.0.0.1:9"}),
        ("agentgyms/SearchQA-v0", {"corpus": "/etc/passwd"}),
        ("agentgyms/ALFWorld-v0", {"data_path": "/etc"}),
        ("agentgyms/Sokoban-v0", {"levels": "/dev/zero"}),
        ("agentgyms/VisualSokoban-v0", {"levels": "/dev/zero"}),
        ("agentgyms/WebShop-v0", {"nouns": "spacy"}),
        ("agentgyms/WebShopBrowser-v0", {"driver_binary": "/bin/sh"}),
        ("agentgyms/AppWorld-v0", {"data_path": "/"}),
        ("agentgyms/SOTOPIA-v0", {"partner": "model@http://127.0.0.1:9/v1"}),
    ],
)
def test_a_recording_does_not_decide_what_is_read_run_or_connected_to(
    nothing_is_made, env_id, kwargs
):
    name = [*kwargs][-1]
    with pytest.raises(BadOption, match=rf"gives .*{name}=.*--set {name}=\.\.\."):
        recorder.replay(episode(env_id, **kwargs))


def test_defaults_of_private_arguments_are_harmless():
    assert recorder.replay(episode(url=None)) == 1
    searchqa = env_class("agentgyms/SearchQA-v0")
    assert private_names(searchqa, {"request_form": "queries", "retriever": None}) == []


def test_what_the_user_gives_is_used(tmp_path):
    (tmp_path / "one.txt").write_text("; 0\n#####\n#@$.#\n#####\n")
    file = tmp_path / "episodes.jsonl"
    settings = {"levels": str(tmp_path), "split": "test"}
    with recorder.RecordEpisodes(gym.make("agentgyms/Sokoban-v0", **settings), file) as env:
        env.reset(seed=1)
        env.step("right")
    (recorded,) = recorder.read(file)
    with pytest.raises(BadOption, match="gives levels="):
        recorder.replay(recorded)
    assert recorder.replay(recorded, levels=str(tmp_path)) == 2


def test_a_recording_imports_no_module(nothing_is_made, tmp_path, monkeypatch):
    (tmp_path / "beside.py").write_text("raise SystemExit('imported')")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(BadOption, match=r"module 'beside'.*--env beside:ns/Name-v0"):
        recorder.replay(episode("beside:ns/Name-v0"))


def test_the_user_may_name_the_environment():
    assert recorder.replay(episode("beside:ns/Name-v0"), env_id=f"agentgyms:{CORRIDOR}") == 1


@pytest.mark.parametrize(
    ("env_id", "message"),
    [("CartPole-v1", "CartPole-v1 is no environment for language agents"), ("None-v3", "None")],
)
def test_other_environments_are_refused(nothing_is_made, env_id, message):
    with pytest.raises(BadOption, match=message):
        recorder.replay(episode(env_id))


def test_environments_that_a_function_makes(monkeypatch):
    class Private(env_class(CORRIDOR)):
        private_arguments = frozenset({"file"})

        def __init__(self, *, file="", **common):
            super().__init__(**common)

    def make(**kwargs):
        return Private(**kwargs)

    gym.register("mine/Function-v0", make, disable_env_checker=True)
    gym.register("mine/CartPole-v0", lambda: gym.make("CartPole-v1"))
    try:
        with pytest.raises(BadOption, match="gives file="):
            recorder.replay(episode("mine/Function-v0", file="/etc/passwd"))
        with pytest.raises(BadOption, match="no environment for language agents"):
            recorder.replay(episode("mine/CartPole-v0"))
    finally:
        del gym.registry["mine/Function-v0"], gym.registry["mine/CartPole-v0"]
