"""The ScienceWorld environment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np

from agentgyms.core import keys
from agentgyms.core.env import Feedback, Outcome, TextEnv
from agentgyms.core.errors import BadOption
from agentgyms.core.tasks import Task, TaskSet
from agentgyms.envs.scienceworld import engine as jar
from agentgyms.envs.scienceworld import tasks
from agentgyms.envs.scienceworld.commands import (
    AMBIGUOUS,
    TOOLS,
    canonical,
    fault,
    in_tools_words,
    judge,
)
from agentgyms.envs.scienceworld.goals import atoms
from agentgyms.envs.scienceworld.own import engine as own

_NOTHING = "No known action matches that input."


class ScienceWorldEnv(TextEnv):
    """Experiments of elementary science in text: boil, grow, mix, measure, connect, find.

    The world, its tasks and texts are those of ScienceWorld 1.2.3 (Wang et al. 2022,
    arXiv:2203.07540). Ours is written in Python; the real engine runs in a JVM.

    | argument | default | meaning |
    |---|---|---|
    | `split` | `"train"` | see below |
    | `families` | `None` | a list of the 30 tasks to restrict the variations to, in any order |
    | `simplification` | `""` | `"easy"`, or the engine's simplifications with commas |
    | `list_actions` | `True` | list the engine's valid actions in every state |
    | `engine` | `"own"` | `"own"`, ours, or `"official"`, the real one |
    | `max_turns` | 100 | turns until the episode is truncated |
    | `oracle` | `False` | put the next action of the gold path into `info["oracle"]` |

    A task is a variation, such as `boil/14`, and its family the task's name. The engine scores an
    episode from 0 to 100 points, or -100 once it has failed, such as by a focus on the wrong thing.
    Reward is the change of the points in this turn, divided by 100. `score` and `progress` are the
    points divided by 100, 0 for a failed task; `success` is 100 points. The episode ends,
    terminated, where the engine completes the task or the points are negative.

    An ambiguous command is answered with a numbered list; the next action is a number, or blank to
    cancel. Admissible actions are the engine's valid ones; it takes other wordings too. A command
    that it does not know is `inadmissible`, or `malformed` if no command begins so.

    `info["atoms"]` are the task's goals: `goal 0: ...` in their order, and `optional 0: ...`.
    `info["metrics"]`: `points`; `moves`, the engine's time, of which `wait` takes eleven.
    `info["state_key"]` is that of the whole state in our engine, but for the time. In the real one
    it is that of all objects with the properties that it shows, the goals, the time, and the state
    of its generator; counters that it hides, such as a plant's age, are not part of it.

    | split | variations |
    |---|---|
    | `train` | 3592 |
    | `dev` | 1796 |
    | `test` | 1819 |
    | `sample` | 30, the first of each task |

    Expert: `best` plays the engine's gold path, and goes on with it after other actions.

    The real engine needs the extra `scienceworld`, here or in the environment of the interpreter
    that `AGENTGYMS_SCIENCEWORLD_PYTHON` names, and Java. Each of its episodes has a JVM of its own.
    """

    default_max_turns = 100
    splits = tasks.SPLITS
    tools = TOOLS
    data_version = f"scienceworld-{jar.VERSION}"

    def __init__(
        self,
        *,
        families: Sequence[str] | None = None,
        simplification: str = "",
        list_actions: bool = True,
        engine: str = "own",
        **common: Any,
    ) -> None:
        """Check the arguments, or raise `BadOption`; the engine starts with the first episode."""
        super().__init__(**common)
        if type(list_actions) is not bool:
            raise BadOption(f"list_actions must be True or False, got {list_actions!r:.40}")
        self._families = tasks.check_families(families)
        self._simplification = tasks.check_simplification(simplification, self._families)
        if families is not None:
            self._arguments["families"] = list(self._families)
        if simplification:
            self._arguments["simplification"] = self._simplification
        self._listing = list_actions
        if engine not in ("own", "official"):
            raise BadOption(f"engine {engine!r:.40} is unknown: expected 'own' or 'official'")
        self.blocking = engine == "official"
        self._engine: jar.Engine | own.Engine = jar.Engine() if self.blocking else own.Engine()

    @classmethod
    def data_source_of(cls, arguments: Mapping[str, Any]) -> str:  # noqa: ARG003
        """Return `"official"`: all tasks are the benchmark's."""
        return "official"

    def load_tasks(self) -> TaskSet:
        """Return the variations of the split, of the chosen tasks."""
        return tasks.task_set(self.split, self._families)

    def begin(self, task: Task, rng: np.random.Generator) -> Outcome:
        """Start a variation, deterministically; raise `WorkerLost` or `DependencyNotInstalled`."""
        self._game: jar.Game = (*tasks.parsed(task), self._simplification)
        self._played: list[str] = []
        self._points = 0
        self._last = self._engine.load(self._game, listing=self._listing)
        return self._outcome(self._last)

    def goal(self, task: Task) -> str:
        """Return the task's description."""
        return self._last.task

    def act(self, action: str) -> Outcome:
        """Give the engine a command; `WorkerLost` if its process died or was late."""
        reason = fault(action)
        if reason:
            refused = self._last._replace(observation=_NOTHING)
            return self._outcome(refused, keys.INVALID_ACTION, Feedback.MALFORMED, reason)
        asked = self._last.observation.startswith(AMBIGUOUS)
        answer = self._last = self._engine.step(action.strip())
        feedback, reason = judge(action, answer.observation, answer.failed)
        if asked and not action.strip():  # a blank answer cancels the request
            feedback, reason = Feedback.OK, ""
        taken = canonical(action)
        self._played.append(taken)
        invalid = feedback in (Feedback.INADMISSIBLE, Feedback.MALFORMED)
        return self._outcome(answer, keys.INVALID_ACTION if invalid else taken, feedback, reason)

    def warm(self) -> None:
        """Start a JVM for the first episode of the real engine."""
        if self.blocking:
            jar.give(jar.take())

    def close(self) -> None:
        """Give the JVM to the episodes of others."""
        self._engine.close()

    def lend(self) -> Self | None:
        """Return this environment if our engine plays, whose games can be copied."""
        return None if self.blocking else self

    def copy_engine(self, lent: Self) -> None:
        """Take over a copy of the game of another environment."""
        self._game, self._played, self._points = lent._game, list(lent._played), lent._points
        self._last = lent._last
        assert isinstance(self._engine, own.Engine)
        assert isinstance(lent._engine, own.Engine)
        self._engine.copy_game(lent._engine)

    def expert_actions(self) -> dict[str, str]:
        """Return the next action of the gold path, whose actions may stand among others."""
        found = (jar if self.blocking else own).gold_path(self._game)
        path, at = [in_tools_words(action) for action in found], 0
        for action in self._played:
            at += at < len(path) and action == canonical(path[at])
        return {"best": path[at] if at < len(path) else "look around"}

    def solution(self) -> dict[str, Any]:
        """Return the expert's action."""
        return dict(self.expert_actions())

    def _outcome(
        self,
        answer: jar.Answer,
        action_key: str = "",
        feedback: Feedback = Feedback.OK,
        reason: str = "",
    ) -> Outcome:
        points = round(100 * answer.score)  # as the package's own environment rounds
        gained, self._points = points - self._points, points
        score = max(points, 0) / 100
        return Outcome(
            observation=answer.observation,
            state_key=keys.state_key(*self._game, answer.key),
            reward=gained / 100,
            terminated=answer.completed or points < 0,
            admissible=answer.admissible,
            action_key=action_key,
            feedback=feedback,
            feedback_text=reason,
            progress=score,
            score=score,
            success=points >= 100,
            metrics={"points": float(points), "moves": float(answer.moves)},
            atoms=atoms(answer.goals),
        )
