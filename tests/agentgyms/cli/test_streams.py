"""Standard streams that are closed, full, or have lost their reader or their terminal."""

import json
import os
import pty
import subprocess
import sys

import pytest

from agentgyms.recording import recorder

CORRIDOR = "agentgyms/Corridor-v0"
PROGRAM = [sys.executable, "-m", "agentgyms"]
FULL = "error: the standard output cannot be written: No space left on device\n"


def call(*words, **streams):
    return subprocess.run(
        [*PROGRAM, *map(str, words)],
        stderr=streams.pop("stderr", subprocess.PIPE),
        text=True,
        check=False,
        **streams,
    )


@pytest.fixture
def full():
    with open("/dev/full", "w") as device:  # noqa: PTH123 (a stream, no file)
        yield device


def test_a_full_output_is_an_error_in_one_line(tmp_path, full):
    call("record", CORRIDOR, tmp_path / "file", stdout=subprocess.DEVNULL)
    for words in (["list"], ["export", tmp_path / "file", "--format", "messages"]):
        done = call(*words, stdout=full)
        assert (done.returncode, done.stderr) == (1, FULL)


def test_full_streams_do_not_end_what_is_done_meanwhile(tmp_path, full):
    done = call("record", CORRIDOR, tmp_path / "file", "--episodes", 3, stdout=full, stderr=full)
    assert done.returncode == 1
    assert len(recorder.read(tmp_path / "file")) == 3


def test_a_reader_that_has_read_enough_ends_nothing(tmp_path):
    read, write = os.pipe()
    os.close(read)
    done = call("record", CORRIDOR, tmp_path / "file", "--episodes", 3, stdout=write, stderr=write)
    os.close(write)
    assert done.returncode == 1
    assert len(recorder.read(tmp_path / "file")) == 3


@pytest.mark.parametrize("closed", [[0], [1], [2], [0, 1, 2]])
def test_closed_streams_do_not_lend_their_numbers_to_files(tmp_path, closed):
    file = tmp_path / "file"
    shell = f'exec "$@" {" ".join(f"{number}>&-" for number in closed)}'
    words = [*PROGRAM, "record", CORRIDOR, str(file), "--episodes", "2"]
    subprocess.run(["sh", "-c", shell, "sh", *words], check=True, capture_output=True)
    assert len(recorder.read(file)) == 2
    for line in file.read_text().splitlines():
        json.loads(line)


def test_a_terminal_that_is_gone_ends_nothing(tmp_path):
    terminal, its_end = pty.openpty()
    words = ["record", CORRIDOR, str(tmp_path / "file"), "--episodes", "3"]
    with subprocess.Popen([*PROGRAM, *words], stdout=its_end, stderr=its_end) as process:
        os.close(its_end)
        os.close(terminal)
        process.wait()
    assert process.returncode == 1  # its last line had no place to go
    assert len(recorder.read(tmp_path / "file")) == 3


def test_what_a_signal_handler_says_in_the_middle_of_a_write(tmp_path):
    code = (
        "import os, signal, sys\n"
        "from agentgyms.cli.streams import guarded\n"
        "with guarded():\n"
        "    signal.signal(signal.SIGALRM, lambda *_: print('-' * 99))\n"
        "    signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)\n"
        "    for _ in range(3000): print('+' * 9999)\n"
        "    signal.setitimer(signal.ITIMER_REAL, 0)\n"
    )
    with (tmp_path / "out").open("w") as out:
        subprocess.run([sys.executable, "-c", code], stdout=out, check=True)
    assert (tmp_path / "out").read_text().count("+") == 3000 * 9999
