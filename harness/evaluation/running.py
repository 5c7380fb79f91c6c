"""Runs evaluations: every task once per seed, many at once, what is finished safe at once.

A unit is a task at a seed: one trial or, for agents that reflect, several. A unit that
infrastructure spoils in any trial is missing as a whole, and `resume` plays it again. The seed of
an episode depends on the evaluation's seed and on the task's place in its split alone, so all
agents and models meet the same episodes; the seeds of decisions depend on the trial, too.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from tqdm import tqdm

from agentgyms.errors import AgentGymsError
from agentgyms.transcript import Recording
from agentgyms.unfinished import held
from harness import baselines, prompts
from harness.baselines import Baseline, examples
from harness.collect import EnvPool
from harness.completers.opening import Model, open_model
from harness.errors import ConfigError, EvaluationStopped, ResultError
from harness.evaluation import defaults, folders, results
from harness.evaluation.config import EvaluationConfig
from harness.evaluation.playing import Planned, described, open_pool, plan, play
from harness.evaluation.results import Lost
from harness.evaluation.store import Place, Store
from harness.reporting import details, loading, page

_log = logging.getLogger(__name__)

TABLE: Final = "table.md"
PAGE: Final = "page.html"

LOST_IN_A_ROW: Final = 8
"""So many units lost with none finished in between stop the evaluation: each of them was played
twice, and every request of a played one sent `service.retries` times, so what answers them is gone
and not only busy."""


def run(config: EvaluationConfig) -> Path:
    """Run a new evaluation and return its folder, `run.name` in `run.output`.

    Raises:
        ConfigError: A setting cannot be used, or the folder is in use.
        EvaluationStopped: Too much was lost. What was finished is kept, as after any error.
    """
    return _Session(config, None).run()


def resume(folder: str | Path, config: EvaluationConfig | None = None) -> Path:
    """Play what is missing of an evaluation and return its folder.

    Args:
        folder: Of the evaluation.
        config: Settings to go on with; None keeps those it was started with. Only where and how
            fast it runs may differ: addresses, concurrency, time limits, retries, rates, cache.

    Raises:
        ConfigError: Other settings differ; the message names them.
        ResultError: The folder holds no evaluation, or a damaged one.
        EvaluationStopped: Too much was lost. What was finished is kept, as after any error.
    """
    before = folders.read_config(folder)
    results.read_json(Path(folder) / results.STARTED)
    config = config or before
    changed = folders.differences(results.fixed(before), results.fixed(config))
    if changed:
        raise ConfigError(
            f"{folder} was started with other settings: {'; '.join(changed)}. Resume it without "
            "these, or evaluate under another name"
        )
    return _Session(config, Path(folder)).run()


class _Session:
    """One run of the program at an evaluation, from its start or where it was left."""

    def __init__(self, config: EvaluationConfig, folder: Path | None) -> None:
        self.config, self.folder = config, folder
        self.store: Store | None = None
        self.lost: dict[Place, Lost] = {}
        self._lost_in_a_row = 0

    def run(self) -> Path:
        try:
            asyncio.run(self._run())
        except KeyboardInterrupt:
            raise KeyboardInterrupt(f"interrupted{self._how_to_go_on()}") from None
        except AgentGymsError as e:  # before OSError: some are both
            advice = self._how_to_go_on()
            if advice:
                raise type(e)(f"{e}{advice}") from e
            raise
        except OSError as e:
            said = f"{e.filename or self.folder} cannot be used: {e.strerror or e}"
            raise ResultError(f"{said}{self._how_to_go_on()}") from e
        assert self.folder is not None
        return self.folder

    def _how_to_go_on(self) -> str:
        if self.folder is None or not self.store or not self.store.path.exists():
            return ""
        return (
            f"; {len(self.store)} episodes are finished and safe, go on with: "
            f"harness eval --resume {self.folder}"
        )

    async def _run(self) -> None:
        defaults.check(self.config)
        async with AsyncExitStack() as stack:
            model = await open_model(self.config)
            stack.push_async_callback(model.close)
            begins = self.folder is None
            if self.folder is None:
                self.config = defaults.resolve(self.config, model.trained)
                self.folder = Path(self.config.run.output) / self.config.run.name
            stack.enter_context(held(self.folder))
            if begins:
                folders.check_unused(self.folder)
            pool = open_pool(self.config)
            stack.callback(pool.close)
            await self._evaluate(self.folder, model, pool, begins=begins)

    async def _evaluate(self, folder: Path, model: Model, pool: EnvPool, *, begins: bool) -> None:
        config = self.config
        style = prompts.load(str(config.agent.style), config.env.id)
        tasks, about, parties = await described(pool)
        baseline = baselines.make(config, model.completer, examples.gather(config, style))
        units = plan(tasks, config.run.tasks, config.run.seeds)
        chosen = {unit.task_id: tasks.find(unit.task_id).family for unit in units}
        begun = results.started(
            config, chosen, about, parties, baseline.prompt_versions, dict(model.identity)
        )
        if begins:
            folders.begin(folder, config, begun)
        else:
            begun = folders.go_on(folder, begun)
        self.store = store = Store(folder, baseline.trials)
        self.lost = folders.lost_before(folder)
        left = [unit for unit in units if unit.place not in store]
        left.sort(key=lambda unit: unit.place in self.lost)  # others must get their turn
        if left:
            folders.note_versions(folder, begun)
        stopped: EvaluationStopped | None = None
        with _noted(folder, store, model):
            try:
                await self._play(left, len(units), pool, baseline)
            except EvaluationStopped as e:
                stopped = e
        if stopped is None or store:
            self._finish(folder, begun, store)
        if stopped is not None:
            raise stopped

    async def _play(
        self, left: Sequence[Planned], total: int, pool: EnvPool, baseline: Baseline
    ) -> None:
        """Play the units that have not ended yet of `total`, `run.concurrency` at once."""
        assert self.store is not None
        store = self.store
        places = asyncio.Semaphore(self.config.run.concurrency)

        async def play_one(unit: Planned) -> None:
            async with places:
                played = await play(unit, pool, baseline)
            self._keep(unit, played, store)
            _advance(bar, store)

        title = f"evaluate {self.config.env.split}"
        with tqdm(total=total, initial=len(store), desc=title, unit="task") as bar:
            tasks = [asyncio.create_task(play_one(unit)) for unit in left]
            try:
                await asyncio.gather(*tasks)
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)

    def _keep(self, unit: Planned, played: list[Recording] | Lost, store: Store) -> None:
        """Write a unit down, or count it as lost.

        Raises:
            EvaluationStopped: Too many were lost in a row.
        """
        if not isinstance(played, Lost):
            self._lost_in_a_row = 0
            store.append(unit.place, played)
            return
        self.lost[unit.place] = played
        self._lost_in_a_row += 1
        _log.warning("%s, seed %d, is missing: %s", unit.task_id, unit.seed, played.error)
        if self._lost_in_a_row == LOST_IN_A_ROW:
            raise EvaluationStopped(
                f"{LOST_IN_A_ROW} episodes in a row were lost, the last one to {played.error}"
            )

    def _finish(self, folder: Path, begun: Mapping[str, Any], store: Store) -> None:
        """Put the recordings in order, count them, and write all that is read.

        So it is too after a stop, that everyone sees what is missing.

        Raises:
            EvaluationStopped: Not one episode was finished.
        """
        if not store:
            why = next(iter(self.lost.values())).error
            raise EvaluationStopped(f"not one episode could be finished, the first for {why}")
        store.sort()
        results.write(folder, begun, self.lost)
        evaluated = loading.load(folder)
        table = details.page(evaluated)
        (folder / TABLE).write_text(table, encoding="utf-8")
        page.write(folder / PAGE, [evaluated])


@contextmanager
def _noted(folder: Path, store: Store, model: Model) -> Iterator[None]:
    """Close the store and write down the session, however it ends; for a `with` block."""
    started, clock = time.time(), time.monotonic()

    def note() -> None:
        store.close()
        wall_s, told = time.monotonic() - clock, model.report()
        results.note(folder, started, wall_s=wall_s, finished=len(store), model=told)

    try:
        yield
    except BaseException:
        with suppress(OSError):  # what ended the session has to be heard of
            note()
        raise
    note()


def _advance(bar: Any, store: Store) -> None:
    bar.update(len(store) - bar.n)
    if store:
        bar.set_postfix(success=f"{store.successes() / len(store):.1%}", refresh=False)
