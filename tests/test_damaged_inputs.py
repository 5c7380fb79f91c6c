"""Every command of both programs is fed damaged files: no traceback, nothing unexpected."""

import gzip
import io
import json
import os
import resource
import sys
from pathlib import Path

import click
import platformdirs
import pytest

from agentgyms.cli import last_resort
from agentgyms.cli import main as environments
from harness.cli import main as harness
from harness.cli.audit import audit

ENV = "agentgyms/Corridor-v0"
DEEP = b"[" * 100_000 + b"]" * 100_000
WRONG = json.dumps({"format": 7, "figures": [], "turns": {}, "step": "x"}).encode()
DAMAGES = {
    "empty": b"",
    "bytes": bytes(range(256)) * 9,
    "deep": DEEP,
    "deep header": b'{"format":' + DEEP + b"}\n",
    "wrong": WRONG + b"\n",
    "list": b"[1, 2, 3]\n",
    "number": b"1e400\n",
    "long number": b"9" * 5000 + b"\n",
    "nul": b"\0" * 100,
    "steers": b'{"format": "\\u001b[2J\\u202e", "env_id": "\x1b[2J"}\n',
    "zipped": gzip.compress(WRONG)[:-9],
    "zip": b"PK\x03\x04" + bytes(90),
    "half a header": b'{"format":"agentgyms-recording-1"',
    "header": b'{"format":"agentgyms-recording-1","env_id":"x","kwargs":{},"seed":0,'
    b'"options":{}}\n',
}

FILE, FOLDER, NEW = "FILE", "FOLDER", "NEW"
"""A damaged file, a folder in which each file that is known by its name is damaged, a new path."""

KNOWN = (
    *("result.json", "recordings.jsonl", "config.json", "started.json", "metrics.jsonl"),
    *("provenance.json", "environment.json", "preferences.jsonl", "config.toml", "run.json"),
    *("tokenizer.json", "tokenizer_config.json", "model.safetensors", "generation_config.json"),
    *("manifest.json", "valid.json", "levels.txt", "sessions.jsonl"),
    *("evaluations/step-000009-valid_seen.json", "checkpoints/step-000001/description.json"),
)

PLACES = ("folder", "data/alfworld")

CALLS = {
    ("agentgyms", "list"): [],
    ("agentgyms", "doctor"): [],
    ("agentgyms", "info"): [
        ["Sokoban", "--set", "data_path=FILE"],
        ["AppWorld", "--set", "x=FILE"],
    ],
    ("agentgyms", "play"): [[ENV, "--record", FILE], ["SearchQA", "--set", "data_path=FILE"]],
    ("agentgyms", "record"): [[ENV, FILE], ["ALFWorld", NEW, "--set", "data_path=FOLDER"]],
    ("agentgyms", "replay"): [[FILE], [FOLDER]],
    ("agentgyms", "certify"): [
        ["SearchQA", "--output", NEW, "--set", "data_path=FILE"],
        [ENV, "--output", FILE],
    ],
    ("agentgyms", "export"): [[FILE, "--format", "messages"], [FOLDER, "--format", "messages"]],
    ("agentgyms", "serve"): [],  # becomes another program: tests/env_servers
    ("agentgyms", "mcp"): [["WebShop", "--set", "data_path=FOLDER"]],
    ("agentgyms", "setup", "appworld"): [],  # from the net
    ("agentgyms", "data", "list"): [[]],
    ("agentgyms", "data", "fetch"): [],  # from the net
    ("agentgyms", "data", "import"): [
        *([name, given] for name in ("alfworld", "webshop", "boxoban") for given in (FILE, FOLDER)),
    ],
    ("agentgyms", "data", "verify"): [["alfworld"]],
    ("agentgyms", "data", "export"): [[FILE]],
    ("harness", "train"): [[FILE], ["--resume", FOLDER], ["--resume", FILE], ["--resume", NEW]],
    ("harness", "gateway"): [[FILE]],
    ("harness", "eval"): [
        *([["--resume", given] for given in (FOLDER, FILE)]),
        ["--model", FOLDER, "--env", ENV, "--set", "run.output=NEW"],
        ["--config", FILE],
    ],
    ("harness", "report"): [[FOLDER], [FILE], [FOLDER, "--figures", "update/loss"]],
    ("harness", "leaderboard"): [[FILE, "--output", NEW]],
    ("harness", "export"): [[FOLDER, NEW], [FILE, NEW]],
    ("harness", "recipes"): [],
    ("harness", "methods"): [],
    ("harness", "credit"): [[FILE], [FOLDER]],
    ("harness", "credit", "audit"): [["--truth", FILE], [FILE]],
}
"""Calls of each command with damaged files; a command that reads none has no calls."""


def commands(group, *path):
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from commands(command, *path, name)
        else:
            yield (*path, name)
    if group is harness.main:
        yield (*path, "credit", audit.name)


def test_every_command_has_a_row():
    known = {*commands(environments.main, "agentgyms"), *commands(harness.main, "harness")}
    assert set(CALLS) == known, "say which damaged files it is fed"


@pytest.fixture
def logs(tmp_path, monkeypatch):
    """The folder of logs of unexpected errors."""
    folder = tmp_path / "logs"
    monkeypatch.setattr(platformdirs, "user_log_path", lambda _: folder)
    return folder


ROWS = [(*path, *call) for path, calls in CALLS.items() for call in calls]


def call(program, words, monkeypatch):
    monkeypatch.setattr(sys, "argv", words)
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    with pytest.raises(SystemExit):
        program.run()


def feed(row, here, fill, monkeypatch):
    """Call a command in a folder in which `fill` has damaged every file."""
    program = environments if row[0] == "agentgyms" else harness
    for name in ("damaged.jsonl", *(f"{place}/{name}" for name in KNOWN for place in PLACES)):
        (here / name).parent.mkdir(parents=True, exist_ok=True)
        fill(here / name)
    monkeypatch.chdir(here)
    monkeypatch.setenv("AGENTGYMS_DATA", str(here / "data"))
    words = list(row)
    for name, place in ((FILE, "damaged.jsonl"), (FOLDER, "folder"), (NEW, "new")):
        words = [word.replace(name, place) for word in words]
    call(program, words, monkeypatch)


def mistakes_of(said, logs):
    """Yield what a command must not say."""
    for log in logs.glob("*"):
        yield log.read_text()
        log.unlink()
    if "Traceback" in said or set("\x1b\u202e\x07") & set(said):
        yield repr(said)


@pytest.mark.parametrize("row", ROWS, ids=" ".join)
def test_damaged_files_end_in_one_line(tmp_path, monkeypatch, capsys, logs, row):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    mistakes = []
    for number, (damage, content) in enumerate(DAMAGES.items()):
        feed(row, tmp_path / str(number), lambda path: path.write_bytes(content), monkeypatch)  # noqa: B023
        said = "".join(capsys.readouterr())
        mistakes += [f"{damage}: {one}" for one in mistakes_of(said, logs)]
    assert not mistakes, "\n".join(mistakes)


@pytest.fixture
def bounded_memory():
    """A read to the end of a file must fail, and not take the machine's memory."""
    before, hard = resource.getrlimit(resource.RLIMIT_AS)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + (12 << 30), hard))
    yield
    resource.setrlimit(resource.RLIMIT_AS, (before, hard))


@pytest.mark.slow
@pytest.mark.parametrize("row", [row for row in ROWS if row[1] != "data"], ids=" ".join)
def test_files_without_an_end_are_not_read_to_it(
    tmp_path, monkeypatch, capsys, logs, bounded_memory, row
):
    """Each has a terabyte, which takes no place on the disk."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)

    def fill(path):
        path.touch()
        os.truncate(path, 1 << 40)

    feed(row, tmp_path / "here", fill, monkeypatch)
    assert not list(mistakes_of("".join(capsys.readouterr()), logs))


def test_what_nobody_expected_is_one_line_and_a_log(logs, capsys):
    def fail():
        raise RuntimeError("first\nsecond \x1b[2J" + "x" * 999)

    with pytest.raises(SystemExit) as ended:
        last_resort.run("harness", fail)
    assert ended.value.code == last_resort.UNEXPECTED
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: RuntimeError: first second \\x1b[2Jxxx")
    (log,) = logs.iterdir()
    assert line.endswith(f"(unexpected; the traceback is in {last_resort.path_end(log, 100)})")
    assert "raise RuntimeError" in log.read_text()


@pytest.mark.parametrize("error", [RecursionError(), MemoryError(), KeyError("x")])
def test_any_error_is_one_line(logs, capsys, error):
    def fail():
        raise ExceptionGroup("several", [error])

    with pytest.raises(SystemExit):
        last_resort.run("harness", fail)
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: ExceptionGroup: several: ")


def test_few_logs_are_kept_and_a_folder_that_cannot_be_written_is_passed_over(
    tmp_path, monkeypatch, capsys, logs
):
    logs.mkdir()
    for number in range(30):
        (logs / f"harness-{number:02}.log").touch()

    def fail():
        raise RuntimeError

    with pytest.raises(SystemExit):
        last_resort.run("harness", fail)
    assert len(list(logs.iterdir())) == 20
    (tmp_path / "file").touch()
    monkeypatch.setattr(platformdirs, "user_log_path", lambda _: tmp_path / "file" / "below")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "other"))
    with pytest.raises(SystemExit):
        last_resort.run("harness", fail)
    assert len(list((tmp_path / "other").rglob("*.log"))) == 1
    monkeypatch.setattr("tempfile.tempdir", "/proc/none")
    capsys.readouterr()
    with pytest.raises(SystemExit):
        last_resort.run("harness", fail)
    assert "Traceback" in capsys.readouterr().err, "there is no place for it but the terminal"
