"""Runs evaluations: every task once per seed, many at once; a finished unit is saved at once.

A unit is a task with a seed: one trial or, for agents that reflect, several. If any trial ends by
an infrastructure error, the whole unit is missing, and `resume` plays it again. An episode's seed
depends only on the evaluation's seed and on the task's position in its split, so all agents and
models play the same episodes. The seeds of decisions depend on the trial as well.
"""

from __future__ import annotations

import asyncio
import logging
import shlex
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from agentgyms.core.errors import AgentGymsError, path_end
from agentgyms.data.progress_bar import ProgressBar, working
from agentgyms.recording.recording_format import Recording
from harness import prompts
from harness.config import SEARCHES, EvaluationConfig, check_evaluation
from harness.evaluation import defaults, folders, results
from harness.evaluation.baselines import Baseline, examples
from harness.evaluation.baselines.searching import write_preferences
from harness.evaluation.episode_store import Store, UnitKey
from harness.evaluation.open_model import Counted, Model, open_model
from harness.evaluation.play_units import PlannedUnit, describe_pool, open_pool, plan, play
from harness.evaluation.results import LostUnit
from harness.rollouts.env_pool import EnvPool
from harness.runs.answer_pace import AnswerPace
from harness.runs.folder_lock import FolderLock
from harness.runs.progress import in_words, most_in_words
from harness.types.errors import ConfigError, EvaluationStopped, ResultError

_log = logging.getLogger(__name__)

WriteReport = Callable[[Path], None]
"""Writes the readable report of an evaluation into its folder, from its `result.json`."""

_BAR: Final = "{desc}: {percentage:3.0f}%|{bar}| {n_fmt}/{total_fmt} [{elapsed}{postfix}]"

LOST_IN_A_ROW: Final = 8
"""The evaluation stops after so many lost units with no finished one between them. Each of them was
played twice and each of its requests was retried `service.retries` times, so the server is gone,
not just busy."""


def run(config: EvaluationConfig, write_report: WriteReport | None = None) -> Path:
    """Run a new evaluation and return its folder, `run.name` in `run.output`.

    `write_report` is called with the folder once `result.json` is written.

    Raises:
        ConfigError: A setting is invalid, or the folder holds something already.
        FolderInUse: Another process writes the folder.
        EvaluationStopped: Too many units were lost. Finished units are kept, as after any error.
    """
    return _Session(config, None, write_report).run()


def resume(
    folder: str | Path,
    config: EvaluationConfig | None = None,
    write_report: WriteReport | None = None,
) -> Path:
    """Play the missing units of an evaluation's folder and return the folder; see `run`.

    Settings to resume with may differ from those it was started with in addresses, concurrency,
    time limits, retries, rates and the cache alone; None keeps them.

    Raises:
        ConfigError: Other settings differ; the message names them.
        ResultError: The folder holds no evaluation, or a damaged one.
        FolderInUse: Another process writes the folder.
        EvaluationStopped: Too many units were lost. Finished units are kept, as after any error.
    """
    before = folders.read_config(folder)
    results.read_json(Path(folder) / results.STARTED)
    results.read_sessions(Path(folder))
    config = config or before
    changed = folders.differences(
        results.reproducible_settings(before), results.reproducible_settings(config)
    )
    if changed:
        raise ConfigError(
            f"{folder} was started with other settings: {'; '.join(changed)}. Resume it without "
            "these, or evaluate under another name"
        )
    return _Session(config, Path(folder), write_report).run()


class _Session:
    def __init__(
        self, config: EvaluationConfig, folder: Path | None, write_report: WriteReport | None
    ) -> None:
        self.config, self.folder, self._write_report = config, folder, write_report
        self._lock: FolderLock  # of the folder, from `_run` on
        self.store: Store | None = None
        self.lost: dict[UnitKey, LostUnit] = {}
        self._lost_in_a_row = 0
        self._is_hinted = False

    def run(self) -> Path:
        try:
            asyncio.run(self._run())
        except KeyboardInterrupt:
            raise KeyboardInterrupt(f"interrupted{self._resume_hint()}") from None
        except AgentGymsError as e:  # before OSError: some are both
            advice = self._resume_hint()
            if advice:
                raise type(e)(f"{e}{advice}") from e
            raise
        except OSError as e:
            reason = f"{path_end(e.filename or self.folder)} cannot be used: {e.strerror or e}"
            hint = self._resume_hint() or "; choose another folder with --set run.output=FOLDER"
            raise ResultError(f"{reason}{hint}") from e
        assert self.folder is not None
        return self.folder

    def _resume_hint(self) -> str:
        if self.folder is None or not self.store or not self.store.path.exists():
            return ""
        return (
            f"; {len(self.store)} episodes are finished and safe, go on with: "
            f"harness eval --resume {shlex.quote(str(self.folder))}"
        )

    async def _run(self) -> None:
        check_evaluation(self.config)
        async with AsyncExitStack() as stack:
            with working(f"opening {path_end(self.config.model.name, 60)}"):
                model = await open_model(self.config)
            stack.push_async_callback(model.close)
            is_new = self.folder is None
            if self.folder is None:
                self.config = defaults.resolve(self.config, model.trained, model.tool_format)
                self.folder = Path(self.config.run.output) / self.config.run.name
            self._lock = stack.enter_context(FolderLock(self.folder))
            if is_new:
                folders.check_unused(self.folder)
            try:
                pool = open_pool(self.config)
                stack.callback(pool.close)
                await self._evaluate(self.folder, model, pool, is_new=is_new)
            except BaseException:
                if is_new and self.store is None:
                    self._lock.discard()
                raise

    async def _evaluate(self, folder: Path, model: Model, pool: EnvPool, *, is_new: bool) -> None:
        config = self.config
        style = prompts.load(
            str(config.agent.style), config.env.id, config.agent.tool_format, config.env.kwargs
        )
        tasks, about, parties = await describe_pool(pool)
        pace = AnswerPace(config.sampling.max_tokens or 0, model.completer)
        counted = model.completer and Counted(model.completer, pace)
        if counted:
            longest = f"answers up to {config.sampling.max_tokens} tokens (sampling.max_tokens)"
            ProgressBar.write(f"{config.env.id}, {config.agent.kind}, {longest}", file=sys.stderr)
        baseline = Baseline(config, counted, examples.gather(config, style))
        units = plan(tasks, config.run.tasks, config.run.seeds)
        chosen = {unit.task_id: tasks.find(unit.task_id).family for unit in units}
        described = chosen, about, parties, pool.data_source, baseline.prompt_versions
        started = results.started_json(config, *described, dict(model.identity))
        if is_new:
            folders.write_started(folder, config, started)
        else:
            started = folders.read_started(folder, started)
        self.store = store = Store(folder, baseline.trials)
        self.lost = folders.read_lost(folder)
        left = [unit for unit in units if unit.key not in store]
        left.sort(key=lambda unit: unit.key in self.lost)  # units that were never played come first
        if left:
            folders.add_versions(folder, started)
        stopped: EvaluationStopped | None = None
        with _session_noted(folder, store, model):
            try:
                most = (
                    (about["max_turns"] or 0)
                    * baseline.trials
                    * (config.agent.kind not in SEARCHES)
                )
                await self._play(left, len(units), pool, baseline, pace, most)
            except EvaluationStopped as e:
                stopped = e
        if stopped is None or store:
            self._finish(folder, started, store)
        if stopped is not None:
            raise stopped

    async def _play(
        self,
        left: Sequence[PlannedUnit],
        total: int,
        pool: EnvPool,
        baseline: Baseline,
        pace: AnswerPace,
        most: int,
    ) -> None:
        """Play the units left of `total`; `most` is the most answers of a unit, 0 if unknown."""
        assert self.store is not None
        store = self.store
        places = asyncio.Semaphore(self.config.run.concurrency)

        async def play_one(unit: PlannedUnit) -> None:
            async with places:
                played = await play(unit, pool, baseline)
            self._keep(unit, played, store)
            bar.update(len(store) - bar.n)
            self._hint(pace)

        title, done, began = f"evaluate {self.config.env.split}", len(store), time.monotonic()

        def beside() -> str:
            known = f"success={store.successes() / len(store):.1%}" if store else ""
            ended = len(store) - done
            seconds = (time.monotonic() - began) * (total - len(store)) / ended if ended else None
            bound = pace.most_seconds(len(left) * most) if most else None
            if seconds and bound is not None:
                seconds = min(seconds, bound)  # the first to end tell little
            rest = in_words(seconds) or most_in_words(pace, len(left) * most)
            return ", ".join(filter(None, [pace.text(), known, rest]))

        with ProgressBar(
            total=total, initial=done, desc=title, unit="samples", beside=beside, bar_format=_BAR
        ) as bar:
            tasks = [asyncio.create_task(play_one(unit)) for unit in left]
            try:
                await asyncio.gather(*tasks)
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)

    def _hint(self, pace: AnswerPace) -> None:
        """Log once that most of the work goes into answers without an end."""
        hint = None if self._is_hinted else pace.hint("sampling.max_tokens")
        if hint is not None:
            self._is_hinted = True
            _log.warning("%s", hint)

    def _keep(self, unit: PlannedUnit, played: list[Recording] | LostUnit, store: Store) -> None:
        """Store a unit or count it as lost; `EvaluationStopped` after too many in a row."""
        if not isinstance(played, LostUnit):
            self._lost_in_a_row = 0
            self._lock.check()
            store.append(unit.key, played)
            return
        self.lost[unit.key] = played
        self._lost_in_a_row += 1
        _log.warning("%s, seed %d, is missing: %s", unit.task_id, unit.seed, played.error)
        if self._lost_in_a_row == LOST_IN_A_ROW:
            raise EvaluationStopped(
                f"{LOST_IN_A_ROW} episodes in a row were lost, the last one to {played.error}"
            )

    def _finish(self, folder: Path, started: Mapping[str, Any], store: Store) -> None:
        """Sort the recordings, write `result.json` from them, and write the report.

        A stopped evaluation does so too, so that the report names what is missing. Raises
        `EvaluationStopped` if no episode was finished.
        """
        if not store:
            why = next(iter(self.lost.values())).error
            raise EvaluationStopped(f"not one episode could be finished, the first for {why}")
        self._lock.check()
        store.sort()
        results.write(folder, started, self.lost)
        if self.config.search.preferences:
            write_preferences(store.path)
        if self._write_report:
            self._write_report(folder)


@contextmanager
def _session_noted(folder: Path, store: Store, model: Model) -> Iterator[None]:
    """Close the store and write `provenance.json` when the `with` block ends, also by an error."""
    started, clock = time.time(), time.monotonic()

    def note() -> None:
        store.close()
        wall_s, report = time.monotonic() - clock, model.report()
        results.add_session(folder, started, wall_s=wall_s, finished=len(store), model=report)

    try:
        yield
    except BaseException:
        with suppress(OSError):  # the first error is the one to report
            note()
        raise
    note()
