"""Recordings that a kill or a full disk has cut: what is whole is kept, read and appended to."""

import signal
import subprocess
import sys

import gymnasium as gym
import pytest
from small_disks import small_disk

from agentgyms import testing
from agentgyms.core.errors import BadOption
from agentgyms.recording import recorder, recording_format

CORRIDOR = "agentgyms/Corridor-v0"


def record(file, seeds):
    with recorder.RecordEpisodes(gym.make(CORRIDOR), file) as env:
        for seed in seeds:
            list(testing.play(env, seed))


@pytest.fixture
def content(tmp_path):
    """The bytes of two episodes."""
    record(tmp_path / "whole.jsonl", range(2))
    return (tmp_path / "whole.jsonl").read_bytes()


def turns_of(episodes):
    return [turn for episode in episodes for turn in episode.turns]


def test_a_recording_that_was_cut_anywhere_is_read_and_appended_to(tmp_path, content):
    file = tmp_path / "cut.jsonl"
    whole = turns_of(recorder.read(tmp_path / "whole.jsonl"))
    ends = [place + 1 for place, byte in enumerate(content) if byte == ord("\n")]
    for cut in sorted({end + by for end in ends[2:] for by in (-40, -1, 0)}):
        file.write_bytes(content[:cut])
        if not recording_format.is_header(content[:cut].splitlines()[-1]):
            assert turns_of(recorder.read(file)) == whole[: len(turns_of(recorder.read(file)))]
        record(file, [7])
        *before, last = recorder.read(file)
        kept = [line for line in content[:cut].splitlines() if recording_format.is_line(line)]
        assert turns_of(before) == whole[: sum(b'"turn":' in line[:8] for line in kept)]
        assert (last.header["seed"], recorder.replay(last)) == (7, len(last.turns))


@pytest.mark.parametrize("cut", [1, 9, 30, 100])
def test_a_recording_that_was_cut_in_its_first_line_begins_anew(tmp_path, content, cut):
    (tmp_path / "cut.jsonl").write_bytes(content[:cut])
    record(tmp_path / "cut.jsonl", range(2))
    assert (tmp_path / "cut.jsonl").read_bytes() == content


def test_what_is_no_recording_is_not_appended_to(tmp_path):
    for text in ("notes", "notes\n", '{"format":"other"}\n', "{}", '{"format":"agentgyms-rol'):
        (tmp_path / "file").write_text(text)
        with pytest.raises(BadOption, match="no recording"):
            record(tmp_path / "file", [1])
        assert (tmp_path / "file").read_text() == text


def test_a_full_disk_leaves_whole_lines(tmp_path):
    with small_disk(tmp_path / "disk", 2) as disk:
        with pytest.raises(OSError, match="No space left|File too large"):
            record(disk / "file", range(50))
        assert (disk / "file").read_bytes().endswith(b"\n")
        episodes = recorder.read(disk / "file")
        assert sum(recorder.replay(episode) for episode in episodes) > 2


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM, signal.SIGKILL])
def test_a_signal_leaves_whole_lines(tmp_path, number):
    code = (
        "import os, sys, gymnasium as gym; from agentgyms.recording import RecordEpisodes\n"
        f"env = RecordEpisodes(gym.make('{CORRIDOR}'), sys.argv[1])\n"
        "env.reset(seed=1); env.step('right'); env.step('right')\n"
        "os.kill(os.getpid(), int(sys.argv[2]))"
    )
    file = tmp_path / "file"
    done = subprocess.run([sys.executable, "-c", code, str(file), str(int(number))], check=False)
    assert done.returncode == -number
    (episode,) = recorder.read(file)
    assert recorder.replay(episode) == 3
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
