"""The AppWorld environment: the action is Python code."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, cast

import numpy as np
from gymnasium.error import ResetNeeded

from agentgyms import keys
from agentgyms.appworld import executors, figures, options, reading, safety, sources, texts
from agentgyms.appworld.episode import Engine, Episode, Ran
from agentgyms.appworld.saved import Saved
from agentgyms.appworld.world import Report
from agentgyms.core import Feedback, Outcome, TextEnv
from agentgyms.errors import BadOption
from agentgyms.tasks import Task, TaskSet

_NO_CODE = "No code available to execute."


class AppWorldEnv(TextEnv):
    """Do what a supervisor asks by writing Python code that calls the APIs of everyday apps.

    The benchmark of Trivedi et al. 2024 (arXiv:2407.18901). Code calls
    `apis.<app>.<api>(name=value)`, prints what it wants to read, and may use what earlier code
    defined; `apis.api_docs` describes the APIs, `apis.supervisor` knows the accounts, and
    `apis.supervisor.complete_task(answer=...)` ends the episode.

    | argument | default | meaning |
    |---|---|---|
    | `split` | `"train"` | see below |
    | `engine` | `"mini"` | `"mini"`: apps of our own; `"appworld"`: AppWorld itself |
    | `source` | `"generated"` | tasks of our own; appworld also `"official"` |
    | `data_path` | `None` | official: a folder with AppWorld's `data`; None: where it was set up |
    | `difficulty` | `None` | 1, 2 or 3, or a list of these: only tasks of this difficulty |
    | `scenarios` | `None` | a list of beginnings of scenarios' ids: only their tasks |
    | `timeout_s` | `None` | seconds for the code of a turn; None: 20 for mini, 40 for appworld |
    | `max_api_calls` | 1000 | API calls of a turn, as in AppWorld |
    | `max_output` | 8192 | characters of an output, from 200 to 16384 |
    | `score` | `None` | when the tests run: after every `"turn"` (None: mini), at the `"end"` |
    | `state` | `"code"` | what `state_key` is made of: `"code"` or `"database"` |
    | `max_turns` | 40 | turns until the episode is truncated; the evaluation plays 50 |
    | `oracle` | `False` | put the expert's next code into `info["oracle"]` |

    An action is code, with or without a fence (```` ```python ````, ```` ```py ````, no name) or
    `<code>` tags around it; of several blocks the first counts. The observation is what AppWorld's
    `execute` returns. Of an output longer than `max_output` the beginning and the end are shown,
    with a mark that says how much is missing: errors stand at the end.

    | feedback | what happened |
    |---|---|
    | `malformed` | there is no code, or more than 8192 characters: nothing was executed |
    | `failed` | a syntax error, code that is not allowed, an exception, an API's error, the time |
    | `ok` | the code ran to its end, errors that it caught included |

    The reward is AppWorld's: 1 on the turn that ends the episode if all tests pass, else 0.
    `success` is the same. The tests run when the episode ends, by `complete_task` or by the turn
    limit, and in the mode `score="turn"` after every turn. `score` is the share of tests that
    pass, which is above 0 for doing nothing; `progress` is the share among those that fail for
    doing nothing. Before the tests run, `score` is 0 and `progress` nan.

    `info["state_key"]` with `state="code"` is that of the task, the code executed so far, and the
    records of all apps. It is exact: equal keys have equal variables too. With `"database"` it is
    that of the task and the records alone, in which episodes meet that did the same in other
    words. Malformed and refused code changes neither. `info["action_key"]` is the code without
    comments and in one layout.

    The agent's code runs in a process of its own, which is confined by the kernel and knows nothing
    but its variables: it has no file with an answer, no network, and not the records, which it
    reaches by API calls alone. Code that ends its process (a crash, an exit, outstaying its time
    although it was interrupted) ends the episode: truncated, `failed`, and scored as the world
    stands. A process that was lost otherwise costs the turn: the code of the turns before runs
    again, and the state is verified. So it is with a snapshot, for as long as the code took.

    `info["metrics"]`, of the whole episode: `api_calls`, `api_errors` (calls that an API answered
    with an error), `doc_lookups` (calls to `api_docs`), `failed_turns` and `malformed_turns`;
    `difficulty`; and of the last run of the tests `tests`, `tests_passed` and `score_over_no_op`,
    nan before.

    | split | mini | appworld, generated | appworld, official |
    |---|---|---|---|
    | `train` | 180 | 27 | 90 |
    | `dev` | 60 | 9 | 57 |
    | `test_normal` | 60 | 12 | 168 |
    | `test_challenge` | 60: apps and tasks that train lacks | 15 | 417 |
    | `sample` | the first two scenarios of each difficulty of train | same | same |

    A scenario has three tasks of one form with other particulars, `<scenario>_1` to `<scenario>_3`.
    Families are `difficulty-1` to `difficulty-3`. Scores on tasks of our own are not comparable
    with those on the official ones.

    Expert: `best` says the next block of the task's reference solution that was not executed yet;
    official tasks have none here.
    """

    default_max_turns = 40
    splits = sources.SPLITS
    private_arguments = frozenset({"data_path"})
    blocking = True

    def __init__(
        self,
        *,
        engine: str = "mini",
        source: str = "generated",
        data_path: str | os.PathLike[str] | None = None,
        difficulty: int | Sequence[int] | None = None,
        scenarios: Sequence[str] | None = None,
        timeout_s: float | None = None,
        max_api_calls: int = 1000,
        max_output: int = 8192,
        score: str | None = None,
        state: str = "code",
        **common: Any,
    ) -> None:
        """Check the arguments; see the class for their meaning.

        Raises:
            BadOption: An argument has a value it cannot have, or two do not go together.
            DataMissing: The official data is not there.
            DependencyNotInstalled: `engine="appworld"` and AppWorld is missing.
        """
        super().__init__(**common)
        self._difficulty = options.check_difficulty(difficulty)
        self._scenarios = options.check_scenarios(scenarios)
        data_path = options.check_path(data_path)
        for name, value in (("scenarios", self._scenarios), ("data_path", data_path)):
            if value is not None:
                self._arguments[name] = value
        self._source = sources.open_tasks(engine, source, data_path)
        self._engine = cast(Engine, engine)
        self._options = options.check(engine, timeout_s, max_api_calls, max_output, score, state)
        self.data_version = self._source.version
        self._play: Episode | None = None

    def load_tasks(self) -> TaskSet:
        """Return the tasks of the split that were chosen."""
        return sources.choose(self._source, self.split, self._difficulty, self._scenarios)

    def begin(self, task: Task, rng: np.random.Generator) -> Outcome:
        """Open the task's world; nothing in an episode is left to chance.

        Raises:
            WorkerLost: A process cannot be started.
        """
        play = self._new_play(task)
        self._brief = play.open()
        report = play.report() if self._options.score == "turn" else None
        return self._outcome(Ran(texts.introduction(self._brief)), report)

    def goal(self, task: Task) -> str:
        """Return the instruction."""
        return self._brief.instruction

    def act(self, action: str) -> Outcome:
        """Execute the code of an action.

        Raises:
            WorkerLost: A process was lost and cannot be replaced; the episode is lost with it.
            ResetNeeded: The episode came from a snapshot that contradicts itself: it is over.
        """
        if self._over:
            raise ResetNeeded("the episode is over, as its snapshot says: call reset()")
        try:
            return self._turn(action)
        except BaseException:
            self.close()  # a turn half done is no state to go on from
            raise

    def save(self) -> Any:
        """Return the code that was executed, with the digest of the records it led to."""
        play = self._playing
        saved = Saved(
            executed=play.executed,
            digest=play.digest,
            counts=play.counts,
            turns=self._turns,
            failed_turns=self._failed_turns,
            malformed_turns=self._malformed_turns,
            over=self._over,
        )
        return asdict(saved)

    def load(self, task: Task, state: Any) -> None:
        """Run the code again that was executed, unless the episode is over.

        Raises:
            WorkerLost: A process cannot be started or was lost.
            ReplayMismatch: The records come out in another state.
        """
        saved = Saved.checked(state)
        play = self._new_play(task)
        play.executed, play.digest, play.counts = saved.executed, saved.digest, saved.counts
        self._turns, self._over = saved.turns, saved.over
        self._failed_turns, self._malformed_turns = saved.failed_turns, saved.malformed_turns
        if not saved.over:
            self._brief = play.open()

    def expert_actions(self) -> dict[str, str]:
        """Return the next block of the reference solution.

        Raises:
            BadOption: The task has none.
        """
        blocks = self._source.solution(self._task.task_id)
        if not blocks:
            raise BadOption(
                f"task {self._task.task_id} has no reference solution here: official tasks have "
                "no expert"
            )
        done = 0
        for code in self._playing.executed:
            done += done < len(blocks) and code == blocks[done].strip()
        return {"best": blocks[min(done, len(blocks) - 1)]}

    def warm(self) -> None:
        """Start the processes that those of episodes are forks of, and wait until they are warm.

        Raises:
            WorkerLost: One cannot be started.
        """
        executors.fork_server(self._engine).warm()
        world = self._source.open(self.tasks[0])
        try:
            world.report()
        finally:
            world.close()

    def close(self) -> None:
        """Give back the processes; the running episode is lost."""
        self._episode = None
        if self._play is not None:
            self._play.close()

    @property
    def _playing(self) -> Episode:
        assert self._play is not None, "begin or load comes first"
        return self._play

    def _new_play(self, task: Task) -> Episode:
        if self._play is not None:
            self._play.close()
        self._turns = self._failed_turns = self._malformed_turns = 0
        self._over = False
        limits = self._options.limits
        self._play = Episode(self._source, task.task_id, self._engine, limits)
        return self._play

    def _turn(self, action: str) -> Outcome:
        self._turns += 1
        try:
            code = reading.code_of(action)
        except reading.NoCode as e:
            self._malformed_turns += 1
            ran = Ran(f"{_NO_CODE} Reason: {e}.", str(e))
            return self._settled(ran, keys.INVALID_ACTION, Feedback.MALFORMED)
        refused = safety.refusal(code)
        ran = Ran(*refused) if refused else self._playing.run(code)
        self._failed_turns += bool(ran.error)
        feedback = Feedback.FAILED if ran.error else Feedback.OK
        return self._settled(ran, reading.canonical(code), feedback)

    def _settled(self, ran: Ran, action_key: str, feedback: Feedback) -> Outcome:
        """Return the outcome of a turn; with the last one, the processes are given back."""
        play = self._playing
        self._over = ran.ended or play.completed or self._turns >= self.max_turns
        report = play.report() if self._over or self._options.score == "turn" else None
        outcome = self._outcome(ran, report, action_key, feedback)
        if self._over:
            play.close()
        return outcome

    def _outcome(
        self,
        ran: Ran,
        report: Report | None,
        action_key: str = "",
        feedback: Feedback = Feedback.OK,
    ) -> Outcome:
        play = self._playing
        success = self._over and report is not None and report.success
        code = [] if self._options.state == "database" else list(play.executed)
        return Outcome(
            observation=texts.shortened(ran.output, self._options.max_output, ran.num_characters),
            state_key=keys.state_key("appworld", play.task_id, code, play.digest),
            reward=float(success),
            terminated=play.completed and not ran.ended,
            truncated=ran.ended,
            action_key=action_key,
            feedback=feedback,
            feedback_text=texts.one_line(ran.error),
            progress=report.score_over_no_op if report else math.nan,
            score=report.score if report else 0.0,
            success=success,
            metrics=figures.of_episode(
                play.counts,
                self._failed_turns,
                self._malformed_turns,
                self._brief.difficulty,
                report,
            ),
        )
