"""The greatest and the least: the expert reaches the maximum, play without thought does not."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import numpy as np

from agentgyms.certification.subject import Episode, Policy, Subject, always, mean
from agentgyms.certification.verdicts import NotRun, Verdict, verdict
from agentgyms.exact import Reward, enumerate_states, is_exact

SOLVED: Final = 0.95
"""Share of the tasks that the expert must solve; a partner's chance may cost it one of twenty."""

GAP: Final = 0.1
"""Least distance from play without thought to the expert, as in OpenEnv's quality bar."""

_CONSTANTS: Final = 3
_ROUNDING: Final = 1e-9


def expert(subject: Subject) -> Verdict:
    """Let the expert play every task of the sample."""
    episodes = subject.expert
    unsolved = [e.start.task_id for e in episodes if not e.solved]
    unrated = [e.start.task_id for e in episodes if math.isnan(e.score)]
    if subject.world.stochastic:
        return _by_exact_values(subject)
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


def _by_exact_values(subject: Subject) -> Verdict:
    """Compare the expert's exact value with the optimum, where chance decides who wins."""
    own, optimum = _exact_figures(subject, _expert_of)
    gap = optimum - own["reward"]
    return verdict(
        gap < _ROUNDING,
        f"chance decides: the expert's expected reward is {own['reward']:.4f} on average, the best "
        f"policy's {optimum:.4f}, exactly, on {len(subject.starts)} tasks",
        "an expert with the greatest expected reward",
        "compare expert_actions with agentgyms.exact's optimal policy",
        {"tasks": len(subject.starts), "optimum": round(optimum, 4), **_figures(subject.expert)},
    )


def _floor_by_exact_values(subject: Subject) -> Verdict:
    """Compare the optimum with the exact values of play without thought, where chance decides."""
    best, optimum = _exact_figures(subject, _expert_of)
    policies: dict[str, _Play] = {
        "random": lambda _, names: dict.fromkeys(names, 1 / len(names)),
        "first listed": lambda _, names: {names[0]: 1.0},
        "last listed": lambda _, names: {names[-1]: 1.0},
    }
    figures = {name: _exact_figures(subject, policy)[0] for name, policy in policies.items()}
    richest = max(figures, key=lambda name: figures[name]["reward"])
    far = optimum - figures["random"]["reward"] >= GAP
    return verdict(
        far and figures[richest]["reward"] < optimum - _ROUNDING,
        f"chance decides: the best policy's expected reward is {optimum:.4f}, random play's "
        f"{figures['random']['reward']:.4f}; the nearest is {richest}, with "
        f"{figures[richest]['reward']:.4f}, exactly",
        f"expected rewards below the best policy's, random play's by at least {GAP:g}",
        f"look at what {richest} is rewarded for",
        {"expert": best, **figures},
    )


_Play = Callable[[Callable[[], str], tuple[str, ...]], dict[str, float]]
"""The expert's choice and the actions of a state -> the probabilities of those that are taken."""


def _expert_of(choose: Callable[[], str], _: tuple[str, ...]) -> dict[str, float]:
    return {choose(): 1.0}


def _exact_figures(subject: Subject, policy: _Play) -> tuple[dict[str, float], float]:
    """Return a policy's mean exact figures and the optimum; raise `NotRun` if they are unknown."""
    world: Any = subject.world
    expert_in = getattr(world, "expert_in", None)
    if expert_in is None or not is_exact(world):
        raise NotRun("chance takes part in turns, and exact values are not known: agentgyms.exact")
    found: list[dict[str, float]] = []
    for start in subject.starts:
        subject.world.reset(seed=start.seed, options={"task_id": start.task_id})
        model = enumerate_states(world)
        best = model.optimal()
        table = np.zeros_like(best.policy)
        for turn in range(model.horizon):
            for row, (state, names) in enumerate(zip(model.states, model.actions, strict=True)):
                taken = policy(partial(expert_in, state, turn), names) if names else {}
                for name, chance in taken.items():
                    table[turn, row, names.index(name)] += chance
        rewards: dict[str, Reward] = {
            "success": "success",
            "score": "score",
            "reward": "environment",
        }
        own = {
            name: float(model.evaluate(table, kind).value[0, 0]) for name, kind in rewards.items()
        }
        own |= {"turns": float(model.visits(table).sum()), "best": float(best.value[0, 0])}
        found.append(own)
    means = {name: sum(one[name] for one in found) / len(found) for name in found[0]}
    return means, means.pop("best")


def floor(subject: Subject) -> Verdict:
    """Compare the expert with random, empty and constant play, on success, score and reward."""
    if subject.world.stochastic:
        return _floor_by_exact_values(subject)
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
