"""Programs on terminals of every kind: no sign ends one, and codes are for those that know them."""

import os
import pty
import subprocess
import sys
import termios

import pytest

COMMANDS = {
    "play Sokoban": (["agentgyms", "play", "agentgyms/Sokoban-v0", "--seed", "3"], "up\nquit\n"),
    "play WebShop": (["agentgyms", "play", "agentgyms/WebShop-v0"], "search[lampe é \xff]\nquit\n"),
    "play SearchQA": (["agentgyms", "play", "agentgyms/SearchQA-v0"], "search[Ø √]\nquit\n"),
    "a file that is not there": (["agentgyms", "replay", "no-√-file.jsonl"], ""),
    "a recipe that is not there": (["harness", "train", "no-√-recipe", "--dry-run"], ""),
}
PLAY = ["agentgyms", "play", "agentgyms/Corridor-v0"]


def run(arguments, typed, **variables):
    return subprocess.run(
        [sys.executable, "-m", *arguments],
        input=typed.encode("latin-1", "replace"),
        env={**os.environ, **variables},
        capture_output=True,
        timeout=120,
        check=False,
    )


ENCODINGS = ("ascii", "cp1251", "gbk", "utf-8")


@pytest.mark.parametrize(
    ("name", "encoding"),
    [*((name, "cp1252") for name in COMMANDS), *(("play Sokoban", one) for one in ENCODINGS)],
)
def test_no_sign_ends_a_program(name, encoding):
    ended = run(*COMMANDS[name], PYTHONIOENCODING=f"{encoding}:strict", PYTHONUTF8="0")
    assert b"Traceback" not in ended.stdout + ended.stderr
    assert b"UnicodeEncodeError" not in ended.stderr
    assert ended.returncode == (0 if name.startswith("play") else 2), ended.stderr


def on_terminal(arguments, typed="", **variables):
    """Run a program on a terminal of its own, and return everything that it shows."""
    master, slave = pty.openpty()
    termios.tcsetwinsize(slave, (24, 80))
    keys = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "TERM", "TQDM_DISABLE")}
    with subprocess.Popen(
        [sys.executable, "-m", *arguments],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        env={**keys, "TERM": "xterm", **variables},
    ) as process:
        os.close(slave)
        os.write(master, typed.encode())
        shown = b""
        try:
            while piece := os.read(master, 1 << 16):
                shown += piece
        except OSError:  # the terminal's end, on Linux
            pass
    os.close(master)
    assert process.returncode == 0, shown
    return shown.decode()


def test_colours_are_for_terminals_that_want_them():
    typed = "fly\nquit\n"
    assert "\x1b[33m[malformed]" in on_terminal(PLAY, typed)
    for variables in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
        shown = on_terminal(PLAY, typed, **variables)
        assert "[malformed]" in shown
        assert "\x1b" not in shown
    assert "\x1b[33m" in on_terminal(PLAY, typed, NO_COLOR="")


def test_bars_are_lines_on_dumb_terminals(tmp_path):
    record = ["agentgyms", "record", "agentgyms/Corridor-v0", str(tmp_path / "episodes.jsonl")]
    assert "\r" in on_terminal(record).replace("\r\n", "")
    shown = on_terminal(record, TERM="dumb")
    assert "\r" not in shown.replace("\r\n", "")
    assert "\x1b" not in shown
