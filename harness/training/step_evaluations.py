"""Evaluations of a policy in training: before the first step, between steps, after the last."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator
from typing import Any

from tqdm import tqdm

from harness.config import Config
from harness.distributed.process_group import ProcessGroup
from harness.evaluation.evaluate import Evaluation, choose, evaluate
from harness.inference.completers import Completer
from harness.preflight.expected_time import most_turns
from harness.prompts.truncation import Tokens
from harness.rollouts.build import make_agent, make_eval_pool
from harness.rollouts.env_pool import EnvPool
from harness.runs.answer_pace import AnswerPace
from harness.runs.progress import Progress
from harness.runs.runfolder import RunFolder
from harness.training.phases import with_hints
from harness.types.task_draws import seed_of

_EVALUATION = 3
"""Stream of random numbers; the trainer and rollouts use others."""


class StepEvaluations:
    """Evaluates a run's policy, split by split; `done` has (step, split) of those in the folder."""

    def __init__(
        self,
        config: Config,
        folder: RunFolder,
        completer: Completer,
        tokens: Tokens,
        run: Callable[[Coroutine[Any, Any, Evaluation]], Evaluation],
        *,
        processes: ProcessGroup,
        done: set[tuple[int, str]],
        progress: Progress,
    ) -> None:
        self._config, self._folder, self._processes = config, folder, processes
        self._agent = make_agent(config, completer, config.eval.temperature, tokens)
        self._completer = completer
        self._run, self._done, self._progress = run, done, progress
        self._pools: dict[str, EnvPool] = {}

    def due(self, step: int, *, final: bool) -> Iterator[tuple[str, int | None]]:
        """Yield the splits to evaluate after `step` steps, and how many of their tasks (None: all).

        The final splits are due before and after training (`final`). A resumed run does not repeat
        the evaluations of its checkpoint's step.
        """
        config = self._config.eval
        for split in dict.fromkeys([str(config.split), *(config.final_splits if final else ())]):
            if (step, split) not in self._done:
                yield split, config.count(split, final=final)

    def play(self, split: str, count: int | None) -> Evaluation:
        """Play `count` tasks of a split (None: all), each once."""
        if split not in self._pools:
            self._pools[split] = make_eval_pool(self._config, split)
        pool = self._pools[split]
        chosen = choose(pool.tasks(), count)
        seed = seed_of(self._config.run.seed, _EVALUATION)
        pace = AnswerPace(self._config.agent.answer_tokens, self._completer)
        turns = self._config.eval.max_turns or most_turns(self._config)
        shown = self._progress.episodes(pace, turns, len(chosen), f"evaluate {split}")
        with with_hints(self._config, "collect"), shown as on_finish:
            episodes = evaluate(
                pool,
                chosen,
                split,
                self._agent,
                seed=seed,
                processes=self._processes,
                on_finish=on_finish,
            )
            return self._run(episodes)

    def keep(self, step: int, result: Evaluation) -> None:
        """Write an evaluation after `step` into the run's folder and print its figures."""
        if self._processes.is_first:
            self._folder.write_evaluation(step, result.record())
        low, high = result.success.interval
        score_low, score_high = result.score_interval
        tqdm.write(
            f"step {step}: {result.split} success {result.success.value:.1%} "
            f"[{low:.1%}, {high:.1%}], score {result.score:.1%} "
            f"[{score_low:.1%}, {score_high:.1%}] over {result.success.count} tasks"
        )

    def close(self) -> None:
        """Close the environments."""
        for pool in self._pools.values():
            pool.close()
