"""Runs commands of the documentation with little: tiny models, few tasks, a server that answers."""

import gzip
import shutil
from itertools import count, pairwise
from pathlib import Path

from chat_server import ChatServer
from click.testing import CliRunner
from small_recipes import QUICK, shrinking

from agentgyms.cli.main import main as agentgyms_cli
from env_servers.retriever.__main__ import main as retriever_cli
from harness.cli.main import main as harness_cli

PROGRAMS = {
    "agentgyms": agentgyms_cli,
    "harness": harness_cli,
    "env_servers.retriever": retriever_cli,
}
SHOWN = {"--dry-run", "--help-config", "--print-config", "--resume"}
ANSWERS = {
    "ALFWorld": "<think>look first</think><action>look</action>",
    "AppWorld": "<code>apis.supervisor.complete_task()</code>",
    "SOTOPIA": "<action>leave</action>",
    "Tau2": "<action>say: Sorry.</action>",
    "WebShop": "<action>search[shoes]</action>",
}
"""What a model answers, by environment."""

_NUMBERS = count()


def run(call, given=""):
    """Run a command in the current folder, and return what it prints.

    Args:
        call: The program and its words.
        given: What is typed.
    """
    program, *words = call
    if program == "python":
        program, words = words[1], words[2:]
    if program == "harness" and not SHOWN & set(words):
        if words[0] == "train":
            words = _small(words)
        if words[:2] == ["credit", "audit"] and "--truth" not in words:
            words += ["--tasks", "2", "--group-size", "2", "--continuations", "4"]
            words += ["--set", "env.max_turns=3"]
            if "--group-sizes" in words:
                words += ["--repeats", "2", "--group-sizes", "2,4"]
        if words[:2] == ["credit", "bias"]:
            words += ["--steps", "8", "--group-sizes", "2"]
        if words[0] == "eval":
            words = _few(words)
            if "--url" in words:
                return _evaluated(words)
    if "--resume" in words and any(word.startswith("run.steps=") for word in words):
        words += ["--set", "run.steps=3"]  # one more than a small run has
    words = [part for word in words for part in _expanded(word)]
    done = CliRunner().invoke(PROGRAMS[program], words, input=given)
    # A plan of what cannot start here ends with 2.
    assert done.exit_code in ((0, 2) if "--dry-run" in words else (0,)), done.output
    return done.output


def _expanded(word):
    """Return the files that a pattern names; like a shell, the word itself where there is none."""
    return (sorted(map(str, Path().glob(word))) if "*" in word else []) or [word]


def _small(words):
    """Return the words of a training made small; a run of that name is made anew."""
    given = [value for flag, value in pairwise(words) if flag == "--set"]
    settings = [*shrinking(words[1], {}, given), *QUICK]
    for value in given:
        if value.startswith("run.keep_rollouts"):
            settings.append("run.keep_rollouts=1")
        if value.startswith("run.name="):
            shutil.rmtree(Path("runs", value.partition("=")[2].strip("'\"")), ignore_errors=True)
    return [*words, *(word for setting in settings for word in ("--set", setting))]


def _few(words):
    """Return the words of an evaluation of few tasks, generated ones; one of that name goes."""
    words = [*words, "--tasks", "3" if "AppWorld" in words else "1"]
    if "source=official" in words:
        place = words.index("source=official")
        del words[place - 1 : place + 1]
    if "--name" not in words:
        words += ["--name", f"evaluation-{next(_NUMBERS)}"]
    shutil.rmtree(Path("evaluations", words[words.index("--name") + 1]), ignore_errors=True)
    return words


def _evaluated(words):
    """Run an evaluation whose model is on a server."""
    model = words[words.index("--model") + 1]
    answer = ANSWERS[words[words.index("--env") + 1]]
    with ChatServer(lambda messages: answer, model=model) as server:
        words[words.index("--url") + 1] = server.url
        done = CliRunner().invoke(PROGRAMS["harness"], words)
        assert server.requests, done.output
    assert done.exit_code == 0, done.output
    return done.output


def prepare(folder):
    """Make what commands of the pages begin with: runs, evaluations and rollouts of a Corridor."""
    made = ("--set", "run.keep_rollouts=1", "--set", "run.name=my-run")
    run(["harness", "train", "corridor-tiny", *made])
    for name in ("a", "b", "c", "gigpo", "grpo", "NAME", "study/seed-0/gigpo", "study/seed-0/grpo"):
        shutil.copytree(folder / "runs/my-run", folder / "runs" / name)
    scpo = ("--set", "method.name=scpo", "--set", "method.credit={scorer='exact'}")
    swept = ("--sweep", "method.credit.theta=0.5,0.6", "--set", "run.name=alfworld")
    run(["harness", "train", "corridor-tiny", *scpo, *swept])
    for name in ("direct", "react", "reflexion", "NAME"):
        run(["harness", "eval", "--env", "Corridor", "--model", "expert", "--name", name])
    shutil.copytree("evaluations", "submissions")
    (first, *_) = sorted(Path("runs/my-run/rollouts").glob("*.jsonl.gz"))
    Path("rollouts.jsonl").write_bytes(gzip.decompress(first.read_bytes()))
