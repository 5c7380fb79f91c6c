"""The AppWorld environment: the action is Python code."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from types import MappingProxyType
from typing import Any, cast

import numpy as np
from gymnasium.error import ResetNeeded

from agentgyms.core import keys
from agentgyms.core.env import Feedback, Outcome, TextEnv
from agentgyms.core.errors import BadOption
from agentgyms.core.tasks import Task, TaskSet
from agentgyms.core.tools import Tool, Tools
from agentgyms.data.datasets import check_path
from agentgyms.envs.appworld import observations, options, sources
from agentgyms.envs.appworld.code_runner import CodeRunner, Engine, TurnResult
from agentgyms.envs.appworld.metrics import episode_metrics
from agentgyms.envs.appworld.sandbox import code_check, code_extraction, executors
from agentgyms.envs.appworld.snapshot import SavedEpisode
from agentgyms.envs.appworld.world import Report

_NO_CODE = "No code available to execute."


class AppWorldEnv(TextEnv):
    """Do what a supervisor asks by writing Python code that calls the APIs of everyday apps.

    The benchmark of Trivedi et al. 2024 (arXiv:2407.18901). Code calls
    `apis.<app>.<api>(name=value)`, prints results, and may use the variables of earlier code;
    `apis.api_docs` documents the APIs, `apis.supervisor` has the accounts, and
    `apis.supervisor.complete_task(answer=...)` ends the episode.

    | argument | default | meaning |
    |---|---|---|
    | `split` | `"train"` | see below |
    | `engine` | `"mini"` | `"mini"`: this package's apps; `"appworld"`: AppWorld itself |
    | `source` | `"generated"` | generated tasks; appworld also `"official"` |
    | `data_path` | `None` | official: a folder with AppWorld's `data`; None: the default folder |
    | `difficulty` | `None` | 1, 2 or 3, or a list of these: only tasks of this difficulty |
    | `scenarios` | `None` | a list of prefixes of scenario ids: only their tasks |
    | `timeout_s` | `None` | seconds for the code of a turn; None: 20 for mini, 40 for appworld |
    | `max_api_calls` | 1000 | API calls of a turn, as in AppWorld |
    | `max_output` | 8192 | most characters of an output, from 200 to 16384 |
    | `score` | `None` | when the tests run: after every `"turn"` (None: mini), at the `"end"` |
    | `state` | `"code"` | what `state_key` identifies: `"code"` or `"database"` |
    | `max_turns` | 40 | turns until the episode is truncated; the evaluation plays 50 |
    | `oracle` | `False` | put the expert's next code into `info["oracle"]` |

    An action is code, with or without a fence (```` ```python ````, ```` ```py ````, no name) or
    `<code>` tags around it; of several blocks the first one runs. The observation is what
    AppWorld's `execute` returns. An output longer than `max_output` is cut in the middle, with a
    mark that says how much is missing, because errors are at the end.

    | feedback | what happened |
    |---|---|
    | `malformed` | there is no code, or more than 8192 characters: nothing was executed |
    | `failed` | a syntax error, code that is not allowed, an exception, an API's error, the time |
    | `ok` | the code ran to its end; exceptions that it caught do not count |

    The reward is AppWorld's: 1 on the turn that ends the episode if all tests pass, else 0.
    `success` is the same. The tests run when the episode ends, by `complete_task` or by the turn
    limit, and in the mode `score="turn"` after every turn. `score` is the share of tests that
    pass, which is above 0 without any action; `progress` is the share among the tests that fail
    without any action, which `info["atoms"]` has one by one: `test 1`, `test 2`, ... Before the
    tests run, `score` is 0, `progress` nan, and there are no atoms.

    `info["state_key"]` with `state="code"` identifies the task, the code executed so far, and the
    records of all apps. It is exact: equal keys imply equal variables too. With `"database"` it
    identifies the task and the records alone, so that different code with the same effect leads to
    the same key. Malformed and refused code changes neither. `info["action_key"]` is the code
    without comments and in normal form.

    The agent's code runs in a separate process, which the kernel confines and which holds nothing
    but its variables: it has no file with an answer, no network, and no access to the records but
    API calls. Code that ends its process (by a crash, an exit, or by running on after its time is
    up) ends the episode: truncated, `failed`, and scored on the current records. If a process is
    lost for another reason, the turn has no effect: the code of the earlier turns runs again, and
    the state is verified. Restoring a snapshot also runs the code again, and takes as long.

    `info["metrics"]`, of the whole episode: `api_calls`, `api_errors` (calls with an
    error as response), `doc_lookups` (calls to `api_docs`), `failed_turns` and `malformed_turns`;
    `difficulty`; and of the last run of the tests `tests`, `tests_passed` and `score_over_no_op`,
    absent before the first.

    | split | mini | appworld, generated | appworld, official |
    |---|---|---|---|
    | `train` | 180 | 27 | 90 |
    | `dev` | 60 | 9 | 57 |
    | `test_normal` | 60 | 12 | 168 |
    | `test_challenge` | 60: apps and tasks that are not in train | 15 | 417 |
    | `sample` | the first two scenarios of each difficulty of train | same | same |

    A scenario has three tasks of one form with different details, `<scenario>_1` to `<scenario>_3`.
    Families are `difficulty-1` to `difficulty-3`. Scores on generated tasks are not comparable with
    those on the official ones.

    Expert: `best` returns the next block of the task's reference solution that was not executed
    yet; official tasks have no expert.
    """

    default_max_turns = 40
    splits = sources.SPLITS
    private_arguments = frozenset({"data_path"})
    tools = Tools(
        Tool(
            "run_code",
            "Run a block of Python; you see what it prints. Variables stay from turn to turn.",
            "{code}",
            {"code": "The block of Python, without a fence."},
        ),
    )
    client_limits = MappingProxyType({**TextEnv.client_limits, "timeout_s": 60})
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
            BadOption: An argument has an invalid value, or two contradict each other.
            DataMissing: The official data is missing.
            DependencyNotInstalled: `engine="appworld"` and AppWorld is not installed.
        """
        super().__init__(**common)
        self._difficulty = options.check_difficulty(difficulty)
        self._scenarios = options.check_scenarios(scenarios)
        data_path = check_path(data_path)
        for name, value in (("scenarios", self._scenarios), ("data_path", data_path)):
            if value is not None:
                self._arguments[name] = value
        self._source = sources.open_tasks(engine, source, data_path)
        self._engine = cast(Engine, engine)
        self._options = options.check(engine, timeout_s, max_api_calls, max_output, score, state)
        self.data_version = self._source.version
        self._runner: CodeRunner | None = None

    @classmethod
    def data_source_of(cls, arguments: Mapping[str, Any]) -> str:
        """Return `"MiniAppWorld"`, or the source of the real engine's tasks."""
        if arguments.get("engine", "mini") == "mini":
            return "MiniAppWorld"
        return str(arguments.get("source", "generated"))

    def load_tasks(self) -> TaskSet:
        """Return the selected tasks of the split."""
        return sources.choose(self._source, self.split, self._difficulty, self._scenarios)

    def begin(self, task: Task, rng: np.random.Generator) -> Outcome:
        """Open the task's world; episodes are deterministic."""
        runner = self._new_runner(task)
        self._brief = runner.open()
        report = runner.report() if self._options.score == "turn" else None
        return self._outcome(TurnResult(observations.introduction(self._brief)), report)

    def goal(self, task: Task) -> str:
        """Return the instruction."""
        return self._brief.instruction

    def act(self, action: str) -> Outcome:
        """Execute the code of an action.

        Raises `WorkerLost` if a lost process cannot be replaced: the episode is lost with it.
        Raises `ResetNeeded` if the episode was restored from a snapshot that was already over.
        """
        if self._over:
            raise ResetNeeded("the episode is over, as its snapshot says: call reset()")
        try:
            return self._run_turn(action)
        except BaseException:
            self.close()  # the state after an incomplete turn is undefined
            raise

    def save(self) -> Any:
        """Return the executed code, and the digest of the records after it."""
        runner = self._active_runner
        saved = SavedEpisode(
            executed=runner.executed,
            digest=runner.digest,
            counts=runner.counts,
            turns=self._turns,
            failed_turns=self._failed_turns,
            malformed_turns=self._malformed_turns,
            over=self._over,
        )
        return asdict(saved)

    def load(self, task: Task, state: Any) -> None:
        """Run the executed code again, unless the episode is over; may raise `ReplayMismatch`."""
        saved = SavedEpisode.parse(state)
        runner = self._new_runner(task)
        runner.executed, runner.digest, runner.counts = saved.executed, saved.digest, saved.counts
        self._turns, self._over = saved.turns, saved.over
        self._failed_turns, self._malformed_turns = saved.failed_turns, saved.malformed_turns
        if not saved.over:
            self._brief = runner.open()

    def expert_actions(self) -> dict[str, str]:
        """Return the next block of the reference solution; `BadOption` if the task has none."""
        blocks = self._source.solution(self._task.task_id)
        if not blocks:
            raise BadOption(
                f"task {self._task.task_id} has no reference solution here: official tasks have "
                "no expert"
            )
        num_done = 0
        for code in self._active_runner.executed:
            num_done += num_done < len(blocks) and code == blocks[num_done].strip()
        return {"best": blocks[min(num_done, len(blocks) - 1)]}

    def warm(self) -> None:
        """Start the fork servers, and wait until they are ready."""
        executors.fork_server(self._engine).warm()
        world = self._source.open(self.tasks[0])
        try:
            world.report()
        finally:
            world.close()

    def close(self) -> None:
        """End the processes; the running episode is lost."""
        self._episode = None
        if self._runner is not None:
            self._runner.close()

    @property
    def _active_runner(self) -> CodeRunner:
        assert self._runner is not None, "call begin or load first"
        return self._runner

    def _new_runner(self, task: Task) -> CodeRunner:
        if self._runner is not None:
            self._runner.close()
        self._turns = self._failed_turns = self._malformed_turns = 0
        self._over = False
        limits = self._options.limits
        self._runner = CodeRunner(self._source, task.task_id, self._engine, limits)
        return self._runner

    def _run_turn(self, action: str) -> Outcome:
        self._turns += 1
        try:
            code = code_extraction.extract_code(action)
        except code_extraction.NoCode as e:
            self._malformed_turns += 1
            result = TurnResult(f"{_NO_CODE} Reason: {e}.", str(e))
            return self._turn_outcome(result, keys.INVALID_ACTION, Feedback.MALFORMED)
        action_key = code_extraction.canonical(code)  # first: a failure here must change nothing
        refused = code_check.refusal(code)
        result = TurnResult(*refused) if refused else self._active_runner.run(code)
        self._failed_turns += bool(result.error)
        feedback = Feedback.FAILED if result.error else Feedback.OK
        return self._turn_outcome(result, action_key, feedback)

    def _turn_outcome(self, result: TurnResult, action_key: str, feedback: Feedback) -> Outcome:
        """Return the outcome of a turn; after the last turn, end the processes."""
        runner = self._active_runner
        self._over = result.ended or runner.completed or self._turns >= self.max_turns
        report = runner.report() if self._over or self._options.score == "turn" else None
        outcome = self._outcome(result, report, action_key, feedback)
        if self._over:
            runner.close()
        return outcome

    def _outcome(
        self,
        result: TurnResult,
        report: Report | None,
        action_key: str = "",
        feedback: Feedback = Feedback.OK,
    ) -> Outcome:
        runner = self._active_runner
        success = self._over and report is not None and report.success
        code = [] if self._options.state == "database" else list(runner.executed)
        return Outcome(
            observation=observations.shortened(
                result.output, self._options.max_output, result.num_characters
            ),
            state_key=keys.state_key("appworld", runner.task_id, code, runner.digest),
            reward=float(success),
            terminated=runner.completed and not result.ended,
            truncated=result.ended,
            action_key=action_key,
            feedback=feedback,
            feedback_text=observations.one_line(result.error),
            progress=report.score_over_no_op if report else math.nan,
            score=report.score if report else 0.0,
            success=success,
            metrics=episode_metrics(
                runner.counts,
                self._failed_turns,
                self._malformed_turns,
                self._brief.difficulty,
                report,
            ),
            atoms=report.atoms if report else {},
        )
