"""The greatest and the least: the expert reaches the maximum, play without thought does not."""

from __future__ import annotations

import math
from typing import Any, Final

from agentgyms.certification.subject import Episode, Policy, Subject, always, mean
from agentgyms.certification.verdicts import Verdict, verdict

SOLVED: Final = 0.95
"""Share of the tasks that the expert must solve; a partner's chance may cost it one of twenty."""

GAP: Final = 0.1
"""Least distance from play without thought to the expert, as in OpenEnv's quality bar."""

_CONSTANTS: Final = 3


def expert(subject: Subject) -> Verdict:
    """Let the expert play every task of the sample."""
    episodes = subject.expert
    unsolved = [e.start.task_id for e in episodes if not e.solved]
    unrated = [e.start.task_id for e in episodes if math.isnan(e.score)]
    share = mean(e.solved for e in episodes)
    text = f"the expert solves {len(episodes) - len(unsolved)} of {len(episodes)} tasks"
    if unsolved:
        text += f", not {', '.join(unsolved[:3])}"
    if unrated:
        text += f"; {len(unrated)} episodes have no score, such as that of {unrated[0]}"
    return verdict(
        share >= SOLVED and not unrated,
        text,
        f"at least {SOLVED:.0%} of the tasks solved, every episode scored",
        "play an unsolved task with `agentgyms record`; mend expert_actions, the reward, or a task "
        "that cannot be solved within max_turns",
        {"tasks": len(episodes), "unsolved": unsolved, **_figures(episodes)},
    )


def floor(subject: Subject) -> Verdict:
    """Compare the expert with random, empty and constant play, on success, score and reward."""
    policies: dict[str, Policy] = {
        "random": subject.chance("floor"),
        "empty": always(""),
        "first listed": lambda seen: subject.actions_in(seen, [])[0],
    }
    shared = [action for action, tasks in subject.known_actions.items() if tasks > 1]
    policies |= {f"always {action!r:.60}": always(action) for action in shared[:_CONSTANTS]}
    best = _figures(subject.expert)
    figures = {name: _figures(subject.play_all(policy)) for name, policy in policies.items()}
    gaps = {
        (name, figure): round(best[figure] - floor[figure], 4)
        for name, floor in figures.items()
        for figure in ("success", "score")
    }
    name, figure = min(gaps, key=lambda one: gaps[one])
    richest = max(figures, key=lambda one: figures[one]["reward"])
    passed = gaps[name, figure] >= GAP and figures[richest]["reward"] < best["reward"]
    return verdict(
        passed,
        f"the nearest to the expert is {name}, with {figure} {figures[name][figure]:g} where the "
        f"expert has {best[figure]:g}; most reward has {richest}, {figures[richest]['reward']:g} "
        f"where the expert has {best['reward']:g}",
        f"success and score at least {GAP:g} below the expert's, and less reward than the expert",
        f"look at what {name if gaps[name, figure] < GAP else richest} is rewarded for: tasks that "
        "share one answer, a reward for turns, or a score for having done nothing",
        {"expert": best, **figures},
    )


def _figures(episodes: list[Episode]) -> dict[str, Any]:
    return {
        "success": mean(e.solved for e in episodes),
        "score": mean(e.score for e in episodes),
        "reward": mean(e.gain for e in episodes),
        "turns": mean(len(e.actions) for e in episodes),
    }
