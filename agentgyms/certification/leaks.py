"""Whether what the agent sees when an episode begins gives the answer away.

The first observation may hold what only the oracle should know, the expert's last answer in free
words, or its first action where actions are listed. Words are there by chance and by rule, too. So
the answer is compared with other tasks' answers, the listed action with the others of its list.
Images are not read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import closing
from typing import Any, Final

from agentgyms.certification.subject import Episode, Seen, Subject, mean, repeated
from agentgyms.certification.verdicts import Verdict, verdict
from agentgyms.core.outcome import PLACEHOLDER, equal_observations, text_of
from agentgyms.testing.playing import plain

ANSWERS: Final = 0.1
"""Most that own answers may be seen more often than other tasks' answers."""

LISTED: Final = 0.5
"""Most that the expert's listed action may be named more often than the others of its list."""

_SHORTEST: Final = 2
_WORD: Final = re.compile(r"\w+")
_BRACKETS: Final = re.compile(r"\w+\s*[\[(](.*)[\])]", re.DOTALL)


def leaks(subject: Subject) -> Verdict:
    """Look for answers in what the agent sees."""
    told = _oracle_tells(subject)
    answers = {episode.start: _answers(subject, episode) for episode in subject.expert}
    named = [pair for episode in subject.expert if (pair := _named(episode))] or [(0.0, 0.0)]
    own, others, example = _answers_seen(subject.expert, answers)
    best, rest = (mean(figures) for figures in zip(*named, strict=True))
    leak = own - others > ANSWERS
    singled = best - rest > LISTED
    if leak:
        found = f"the answer is in what the agent sees first, such as {example!r:.80}"
    elif singled:
        found = (
            f"the first observation names the expert's action in {best:.0%} of the tasks, "
            f"the other listed ones in {rest:.0%}"
        )
    else:
        found = (
            f"own answers are seen in {own:.0%} of the tasks, other tasks' in {others:.0%}; "
            f"the expert's action is named in {best:.0%}, other listed ones in {rest:.0%}"
        )
    return verdict(
        not (told or leak or singled),
        told or found,
        f"info without solutions unless oracle=True; answers seen at most {ANSWERS:.0%} more often "
        f"than other tasks', the expert's listed action at most {LISTED:.0%} more than the others",
        "take it out of the observation, the goal and the feedback; solutions go into solution(), "
        "which only oracle=True shows",
        {"own": own, "others": others, "named": best, "others_named": rest},
    )


def _oracle_tells(subject: Subject) -> str:
    """Return how an environment without oracle differs from one with it, or ""."""
    with closing(subject.make()) as plain_env:
        if getattr(plain_env.unwrapped, "oracle", False):
            return "oracle=True is set: what the agent sees has the solutions"
        for episode in subject.expert[:3]:
            again = subject.play(episode.start, repeated(episode), plain_env)
            for turn, (one, two) in enumerate(zip(episode.states, again.states, strict=False)):
                if "oracle" in two.info:
                    return "info has `oracle` although the environment is made without oracle=True"
                same = equal_observations(one.observation, two.observation)
                if not same or plain(one.info | {"oracle": ""}) != plain(two.info | {"oracle": ""}):
                    return (
                        f"task {episode.start.task_id}, turn {turn}: oracle=True changes the "
                        "observation or the info beside `oracle`"
                    )
    return ""


def _text(seen: Seen, *, goal: bool = True) -> str:
    """Return what the agent reads, in one form; without the goal where the goal may say it."""
    said = seen.info["goal"]
    text = text_of(seen.observation)
    parts = [text, said, seen.info["feedback_text"]] if goal else [text.replace(said, " ")]
    return " ".join(" ".join(parts).casefold().split())


def _holds(text: str, part: str) -> bool:
    """Return whether a text holds a part between other words."""
    part = " ".join(part.casefold().split())
    return re.search(rf"(?<!\w){re.escape(part)}(?!\w)", text) is not None


def _answers(subject: Subject, episode: Episode) -> list[str]:
    """Return what only the solution knows, and the last action if it is in free words.

    A text at the top of a solution is an expert's action, as `experts.choose` has it.
    """
    first, last = episode.states[0].info, episode.states[-2].info
    oracle: dict[str, Any] = json.loads(first["oracle"])
    facts = [
        text for part in oracle.values() if not isinstance(part, str) for text in _leaves(part)
    ]
    if episode.actions[-1] not in last["admissible_actions"]:
        facts.append(_inner(subject, episode.actions[-1]))
    return [fact for fact in dict.fromkeys(facts) if len(fact.strip()) >= _SHORTEST]


def _leaves(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _leaves(part)


def _inner(subject: Subject, action: str) -> str:
    """Return what an action in free words says: its one argument, else the whole of it."""
    call = subject.world.tools.call(action)
    values = list(call.arguments.values()) if call else []
    text = str(values[0]) if len(values) == 1 else action
    brackets = _BRACKETS.fullmatch(text.strip())
    return brackets[1] if brackets else text


def _answers_seen(
    episodes: list[Episode], answers: dict[Any, list[str]]
) -> tuple[float, float, str]:
    """Return how often own and others' answers are seen at the start, and an own one."""
    own, others, example = list[float](), list[float](), ""
    for episode in episodes:
        text, mine = _text(episode.states[0]), answers[episode.start]
        seen = [answer for answer in mine if _holds(text, answer)]
        foreign = {a for start, theirs in answers.items() if start != episode.start for a in theirs}
        foreign -= set(mine)
        if not mine or not foreign:
            continue
        example = example or (seen[0] if seen else "")
        own.append(float(bool(seen)))
        others.append(mean(float(_holds(text, answer)) for answer in foreign))
    return mean(own or [0.0]), mean(others or [0.0]), example


def _named(episode: Episode) -> tuple[float, float] | None:
    """Return whether the first observation names the expert's listed action, and its rivals.

    An action is named if the words that not all listed ones share are in the observation.
    """
    seen, action = episode.states[0], episode.actions[0]
    listed = [a for a in seen.info["admissible_actions"] if not PLACEHOLDER.search(a)]
    rivals = [a for a in listed if a != action]
    if action not in listed or not rivals:
        return None
    words = {a: set(_WORD.findall(a.casefold())) or {a} for a in listed}  # + is named by itself
    shared = set.intersection(*words.values())
    text = _text(seen, goal=False)
    there = {*_WORD.findall(text), *text.split()}
    named = {a: float(bool(words[a] - shared) and words[a] - shared <= there) for a in listed}
    return named[action], mean(named[a] for a in rivals)
