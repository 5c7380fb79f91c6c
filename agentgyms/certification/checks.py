"""The checks in their order, and `certify`, which makes them all."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from agentgyms.certification import bounds, forgery, leaks, learning, replays
from agentgyms.certification.certificate import Certificate, facts_of
from agentgyms.certification.subject import Subject
from agentgyms.certification.verdicts import QUESTIONS, NotRun, Verdict
from agentgyms.core.errors import BadOption, DataError, EnvUnavailable

CHECKS: Final = tuple(QUESTIONS)


def certify(
    env_id: str,
    arguments: Mapping[str, Any] | None = None,
    *,
    tasks: int = 10,
    seed: int = 0,
    learning: int = 20,
    on_verdict: Callable[[str, Verdict], None] | None = None,
) -> Certificate:
    """Check an environment against the quality bar.

    Args:
        env_id: A registered id, `module:namespace/Name-v0` for one of yours.
        arguments: Arguments of `gymnasium.make`.
        tasks: Number of tasks, spread evenly over the split; all if it has fewer.
        seed: Seed of the episodes and of all chance.
        learning: Episodes that the learner plays of each of its tasks; 0 leaves it out.
        on_verdict: Called with each check's name and verdict as soon as it is there.

    Raises:
        BadOption: A number is out of range, or the environment is none for language agents.
        EnvUnavailable, DataError: A server, model or data set is missing: no verdict.
    """
    for name, value, least in (("tasks", tasks, 1), ("seed", seed, 0), ("learning", learning, 0)):
        if value < least:
            raise BadOption(f"{name} must be at least {least}, got {value}")
    verdicts: dict[str, Verdict] = {}
    with Subject(env_id, arguments or {}, tasks, seed) as subject:
        for name, verdict in _verdicts(subject, learning):
            verdicts[name] = verdict
            if on_verdict is not None:
                on_verdict(name, verdict)
        return Certificate({**facts_of(subject), "learning": learning}, verdicts)


def _verdicts(subject: Subject, episodes: int) -> Iterator[tuple[str, Verdict]]:
    checks: dict[str, Callable[[Subject], Verdict]] = {
        "contract": replays.contract,
        "expert": bounds.expert,
        "floor": bounds.floor,
        "replay": replays.replay,
        "leaks": leaks.leaks,
        "forgery": forgery.forgery,
        "learning": lambda one: learning.learning(one, episodes),
    }
    for name, check in checks.items():
        yield name, _run(name, check, subject)


def _run(name: str, check: Callable[[Subject], Verdict], subject: Subject) -> Verdict:
    """Run a check; an error that the environment raises is its finding."""
    try:
        return check(subject)
    except NotRun as e:
        advice = "write expert_actions: see docs/own_environment.md"
        if name == "expert":
            return Verdict("failed", str(e), "an expert that plays every task", advice)
        return Verdict("not run", str(e), QUESTIONS[name])
    except (EnvUnavailable, DataError, ImportError):
        raise
    except Exception as e:  # the environment's own code, whatever it raises
        place = traceback.extract_tb(e.__traceback__)[-1]
        if Path(place.filename).parent == Path(__file__).parent:
            raise  # an error of the examination
        return Verdict(
            "failed",
            f"{type(e).__name__}: {e}, in {Path(place.filename).name}, line {place.lineno}",
            "an environment that raises no error",
            "mend the error; it comes again with the same --seed",
        )
