"""Recordings: written, read, replayed, and what is said of damaged ones."""

import json

import gymnasium as gym
import pytest

from agentgyms import recording, testing
from agentgyms.errors import CallerError, DataCorrupt, DataMissing, ReplayMismatch, UnknownTask

CORRIDOR = "agentgyms/Corridor-v0"


@pytest.fixture
def path(tmp_path):
    """A file of three episodes, junk actions included."""
    file = tmp_path / "episodes.jsonl"
    env = recording.RecordEpisodes(gym.make(CORRIDOR, split="valid_seen"), file, actor="test")
    for seed in range(3):
        list(testing.play(env, seed))
    env.close()
    return file


def test_recordings_replay(path):
    episodes = recording.read(path)
    assert len(episodes) == 3
    header = episodes[0].header
    assert (header["env_id"], header["seed"], header["kwargs"]) == (
        CORRIDOR,
        0,
        {"split": "valid_seen"},
    )
    assert header["provenance"]["actor"] == "test"
    for episode in episodes:
        assert recording.replay(episode) == len(episode.turns) == len(episode.actions) + 1


def test_an_unseeded_episode_replays_from_the_seed_it_drew(tmp_path):
    file = tmp_path / "unseeded.jsonl"
    env = recording.RecordEpisodes(gym.make(CORRIDOR), file)
    env.reset()
    env.step("right")
    env.close()
    (episode,) = recording.read(file)
    assert recording.replay(episode) == 2


def test_lines_are_strict_json_and_nan_survives(path):
    for line in path.read_text().splitlines():
        json.loads(line, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    turn = recording.read(path)[0].turns[1]
    turn.info["progress"] = float("nan")
    again = json.loads(recording.turn_line(turn))
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
    (episode, *_) = recording.parse(map(json.dumps, lines), "changed")
    with pytest.raises(ReplayMismatch, match=message):
        recording.replay(episode)


def test_replay_notices_another_state(path):
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    lines[2]["info"]["state_key"] = "0" * 32
    (episode, *_) = recording.parse(map(json.dumps, lines), "changed")
    with pytest.raises(ReplayMismatch, match="turn 1: info\\['state_key'\\] was recorded"):
        recording.replay(episode)


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
    path.write_text("\n".join(lines))
    with pytest.raises(DataCorrupt, match=message):
        recording.read(path)


def test_what_is_no_text_file(tmp_path):
    (tmp_path / "picture").write_bytes(b"\x89PNG\xff")
    with pytest.raises(DataCorrupt, match="no text file"):
        recording.read(tmp_path / "picture")
    with pytest.raises(DataCorrupt, match="is a folder"):
        recording.read(tmp_path)


def test_a_restored_environment_does_not_spoil_the_recording(tmp_path):
    file = tmp_path / "episodes.jsonl"
    env = recording.RecordEpisodes(gym.make(CORRIDOR), file)
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
    assert [recording.replay(episode) for episode in recording.read(file)] == [4, 2]


def test_nothing_is_written_before_the_first_reset(tmp_path):
    env = recording.RecordEpisodes(gym.make(CORRIDOR), tmp_path / "episodes.jsonl")
    other = gym.make(CORRIDOR).unwrapped
    other.reset(seed=1)
    env.unwrapped.restore(other.snapshot())
    with pytest.raises(CallerError, match="ends before an episode"):
        env.step("right")
    env.close()


def test_an_episode_without_a_turn_is_not_written(tmp_path):
    file = tmp_path / "episodes.jsonl"
    env = recording.RecordEpisodes(gym.make(CORRIDOR), file)
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
    (episode,) = recording.read(file)
    assert (episode.header["seed"], recording.replay(episode)) == (2, 2)


def test_the_render_mode_is_not_recorded(tmp_path):
    file = tmp_path / "episodes.jsonl"
    made = gym.make(CORRIDOR, render_mode="ansi", split="sample")
    env = recording.RecordEpisodes(made, file)
    env.reset(seed=1)
    env.step("right")
    env.close()
    (episode,) = recording.read(file)
    assert episode.header["kwargs"] == {"split": "sample"}
    assert recording.replay(episode, render_mode="ansi") == 2


def test_a_missing_file_is_said(tmp_path):
    with pytest.raises(DataMissing, match="there is no recording"):
        recording.read(tmp_path / "nothing.jsonl")
