"""What `harness train` prints: what begins, what it came to, and commands that run as printed."""

import re
import shlex
import subprocess
import sys

import pytest
from small_training import SMALL

SETTINGS = [*SMALL, "run.steps=2", "eval.tasks=4", "warmstart.steps=8"]


def run(folder, *words):
    return subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=300)


@pytest.mark.slow
def test_a_run_says_what_it_is_what_it_came_to_and_what_to_run_next(tmp_path):
    words = [word for setting in SETTINGS for word in ("--set", setting)]
    ended = run(tmp_path, sys.executable, "-m", "harness", "train", "corridor-tiny", *words)
    assert ended.returncode == 0, ended.stderr
    assert "\r" not in ended.stderr + ended.stdout
    begun = dict(re.findall(r"^(\w+)  +(.+)$", ended.stdout, re.M))
    assert begun["method"] == "gigpo (arXiv:2505.10978)"
    assert begun["tasks"] == (
        "agentgyms/Corridor-v0: trained on train (40 tasks), evaluated on valid_seen (8 tasks)"
    )
    assert begun["model"].startswith("tiny, ")
    assert begun["answers"] == "up to 8 tokens each (agent.max_tokens)"
    assert begun["folder"] == "runs/corridor"
    assert re.fullmatch(r"roughly \d+ (s|min) on two free CPU cores, .*", begun["time"])
    told = dict(re.findall(r"^(\w+): +(.+)$", ended.stdout, re.M))
    assert re.fullmatch(r"\d+\.\d -> \d+\.\d % of 4 held-out tasks \(valid_seen\)", told["result"])
    assert (tmp_path / told["checkpoint"] / "model.safetensors").exists()
    assert "on one kind of processor" in ended.stdout
    for name in ("evaluate", "report"):
        after = run(tmp_path, *shlex.split(told[name]))
        assert after.returncode == 0, after.stderr
