"""Evaluations for tests: real environments, and models that play the corridor by its prompts."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

from harness.config import EvaluationConfig, build

ROOT = Path(__file__).parents[2]
CORRIDOR = "agentgyms/Corridor-v0"

QUICK = {
    "run.output": "evaluations",
    "env.id": CORRIDOR,
    "service.cache": False,
    "service.timeout_s": 20.0,
}


def config(folder, **settings):
    """Return a configuration; keywords are settings with `__` for the dot."""
    values = {}
    given = {key.replace("__", "."): value for key, value in settings.items()}
    for dotted, value in {**QUICK, "run.output": str(folder), **given}.items():
        section, key = dotted.split(".")
        values.setdefault(section, {})[key] = value
    return build(EvaluationConfig, values)


def served(folder, server, **settings):
    """Return a configuration whose model is behind a server."""
    return config(folder, model__name=server.model, model__url=server.url, **settings)


def last_message(messages):
    """Return the text of a request's last message."""
    content = messages[-1]["content"]
    return (
        content if isinstance(content, str) else "".join(part.get("text", "") for part in content)
    )


def think_answer(action):
    """Return an answer in the style `think`."""
    return f"<think>What now?</think><action>{action}</action>"


def walker(messages):
    """Play the corridor: what works now decides."""
    works = re.findall(r"^- (.*)$", last_message(messages), re.MULTILINE)
    for action in ("open door", "take key", "right"):
        if action in works:
            return think_answer(action)
    return think_answer("left")


def forgetful(messages):
    """Play the corridor without keys, and try doors that are not there."""
    works = re.findall(r"^- (.*)$", last_message(messages), re.MULTILINE)
    tries = "open door" in works or sum(map(ord, last_message(messages))) % 4 == 0
    return think_answer("open door" if tries else "right")


def babble(messages):
    """Say something that is no action."""
    return "I would rather not."


def result(folder):
    """Return an evaluation's `result.json`."""
    return json.loads((Path(folder) / "result.json").read_text())


def written(folder):
    """Return the bytes of what two equal evaluations have in common."""
    names = ("recordings.jsonl", "result.json", "table.md")
    return {name: (Path(folder) / name).read_bytes() for name in names}


def episodes(folder):
    """Return the raw JSON lines of an evaluation, a list for each episode."""
    found = []
    for line in (Path(folder) / "recordings.jsonl").read_text().splitlines():
        value = json.loads(line)
        if "format" in value:
            found.append([value])
        else:
            found[-1].append(value)
    return found


def started(code, *arguments, cwd, **options):
    """Start a Python program that has the repository and these tests' modules."""
    paths = [str(ROOT), str(Path(__file__).parent)]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1"}
    words = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.Popen(words, cwd=cwd, env=env, text=True, **options)
