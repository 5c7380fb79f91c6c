"""Rollouts written by hand for tests of `harness credit`, hostile ones among them."""

import json
import re
from dataclasses import replace

from harness.reporting.credit_view import compare, page, recordings
from harness.types.rollout import Completion, Rollout, Turn

HOSTILE = (
    "</script><script>window.hacked = 1</script>",
    "<img src=x onerror='window.hacked = 1'>",
    "{{json}} ${window.hacked = 1} `",
    "a\u2028b\u2029c \x00\x07\x1b[2J",
    "\u202eright to left\u202c \U0001f9ea 漢字 \ud800",
    "x" * 10_000,
    "<!-- <script> ]]> &amp; \"'",
    "",
)


def turn(action, state, after, reward=0.0, feedback="ok", seen="seen", outcome="outcome"):
    completion = Completion(action)
    return Turn(seen, state, completion, action, action, feedback, reward, outcome, after, 0.0)


def hostile_rollouts(count=6, turns=9):
    """Rollouts of two groups, each text an attack; two of three are successes."""
    rollouts = []
    for index in range(count):
        nasty = [HOSTILE[(index + t) % len(HOSTILE)] for t in range(turns + 1)]
        taken = [
            turn(nasty[t], f"s{t % 4}", f"s{(t + 1) % 4}", seen=nasty[t], outcome=nasty[t + 1])
            for t in range(turns)
        ]
        won = index // 2 % 2 == 0
        taken[-1] = replace(taken[-1], reward=float(won), feedback="ok" if won else "malformed")
        rollout = Rollout(HOSTILE[index], "f", index % 2, index, 0, goal=HOSTILE[index])
        rollout.turns, rollout.success = taken, won
        rollouts.append(rollout)
    return rollouts


def shown(rollouts, names=()):
    recorded = recordings.from_rollouts(rollouts, "<b>file</b>.jsonl")
    results = compare.compare(recorded.turns, compare.choose(names))
    return page.render(recorded, results)


def embedded(html):
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', html, re.S)
    return json.loads(found[1])
