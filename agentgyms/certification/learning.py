"""Whether a small learner gets better by the reward alone.

The learner has a table: the value of each action in each state (Q-learning, Watkins 1989, with step
size 1/2, episodes taken in from their ends). States are told apart by `state_key`, so this asks
whether rewards tell good actions from bad ones, not whether observations suffice to find them. It
begins with chance. Where chance meets less success, it begins with a clone of the expert that errs
as often as it may while success is met in two of three tasks. It learns from rewards, and is
measured by success: so a reward that teaches something else fails.
"""

from __future__ import annotations

import random
from collections import defaultdict
from functools import partial
from typing import Final

from agentgyms.certification.bounds import GAP
from agentgyms.certification.subject import Episode, Seen, Start, Subject, mean
from agentgyms.certification.verdicts import NotRun, Verdict, verdict
from agentgyms.core.experts import Expert

RISE: Final = 0.3
"""Least share of the way from its start to the expert that the learner must come."""

_TASKS: Final = 6
_MEASURED: Final = 4
_SHARES: Final = (0.0, 0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 0.85, 0.95)
"""Shares of the expert's actions in the start, the weakest first."""
_MET: Final = 2 / 3
"""Share of the tasks in which the start must meet success."""
_DISCOUNT: Final = 0.95
_EXPLORED: Final = 0.2


class _Learner:
    """A table of values, and the policies before and after it."""

    def __init__(self, subject: Subject, share: float) -> None:
        self._subject, self.share = subject, share
        self._rng = random.Random(f"{subject.seed} learning {share}")
        self._expert = Expert(subject.env)
        self._values: defaultdict[tuple[str, str], dict[str, float]] = defaultdict(dict)

    def start(self, seen: Seen) -> str:
        """Take the expert's action or one by chance."""
        if self._rng.random() < self.share:
            return self._expert()
        return self._rng.choice(self._subject.actions_in(seen, list(self._subject.known_actions)))

    def learned(self, seen: Seen, explored: float = 0.0) -> str:
        """Take the best action; the start's where nothing good is known, and to explore."""
        tried = self._values[_place(seen)]
        best, worst = max(tried.values(), default=0.0), min(tried.values(), default=0.0)
        if best == worst <= 0 or self._rng.random() < explored:
            return self.start(seen)
        return self._rng.choice([a for a, value in tried.items() if value == best])

    def learn(self, episode: Episode) -> None:
        future = 0.0
        turns = zip(episode.states[:-1], episode.actions, episode.rewards, strict=True)
        for seen, action, reward in reversed(list(turns)):
            tried = self._values[_place(seen)]
            old = tried.get(action)
            new = reward + _DISCOUNT * future
            tried[action] = new if old is None else (old + new) / 2
            future = max(tried.values())


def _place(seen: Seen) -> tuple[str, str]:
    return seen.start.task_id, seen.info["state_key"]


def _begin(subject: Subject, starts: list[Start]) -> tuple[_Learner, list[Episode]]:
    """Return the weakest learner that meets success, else the strongest, and its episodes."""
    for share in _SHARES:
        learner, played, left = _Learner(subject, share), list[Episode](), len(starts)
        for start in starts:
            own = [subject.play(start, learner.start) for _ in range(_MEASURED)]
            played += own
            left -= not any(e.solved for e in own)
            if left < _MET * len(starts) and share < _SHARES[-1]:
                break
        else:
            break
    return learner, played


def learning(subject: Subject, episodes: int) -> Verdict:
    """Let the learner play `episodes` episodes of each of a few tasks."""
    if not episodes:
        raise NotRun("left out with --learning 0")
    starts = subject.starts[:: max(1, len(subject.starts) // _TASKS)][:_TASKS]
    best = mean(e.solved for e in subject.expert)
    learner, before = _begin(subject, starts)
    share, begun = learner.share, mean(e.solved for e in before)
    if share == 0 and begun >= best - GAP:
        raise NotRun(f"chance alone solves {begun:.0%}, the expert {best:.0%}: nothing to learn")
    for episode in before:
        learner.learn(episode)
    for number in range(episodes):
        for start in starts:
            explored = 1.0 if number < episodes / 2 else _EXPLORED
            policy = partial(learner.learned, explored=explored)
            learner.learn(subject.play(start, policy))
    after = mean(subject.play(s, learner.learned).solved for s in starts for _ in range(_MEASURED))
    way = (after - begun) / (best - begun) if best > begun else 0.0
    return verdict(
        way >= RISE,
        f"success goes from {begun:.0%} to {after:.0%}, the expert's is {best:.0%}; the start has "
        f"{share:.0%} of its actions from the expert, the rest by chance",
        f"at least {RISE:.0%} of the way from start to expert, in {episodes} episodes a task",
        "see that rewards depend on the actions, come within max_turns, and are greatest for what "
        "success asks for; more episodes: --learning",
        {"start": begun, "learned": after, "expert": best, "share": share, "tasks": len(starts)},
    )
