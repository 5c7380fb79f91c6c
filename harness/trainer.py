"""A training run: warm start, then steps of collect, credit and update, with evaluations between.

Everything random is a function of (run seed, step), so a resumed run repeats an uninterrupted one.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from tqdm import tqdm

from harness import checkpoints, credit, methods, prompts, report
from harness.agent import Agent
from harness.checkpoints import Checkpoint
from harness.collect import EnvPool, collect
from harness.completers import Sampling
from harness.completers.hf import HFCompleter
from harness.config import Config
from harness.credit import TurnTable, diagnostics
from harness.credit.table import INVALID_FEEDBACK, Floats
from harness.errors import TrainingError
from harness.evaluate import Evaluation, choose, evaluate
from harness.learner import Learner
from harness.metrics import MetricsLog
from harness.packing import samples
from harness.policy import Policy
from harness.rollout import Rollout
from harness.runfolder import RunFolder
from harness.sampling import TaskSampler, seed_of
from harness.settings import credit_settings, loss_settings

_ROLLOUTS, _UPDATE, _EVALUATION = 1, 2, 3
"""Streams of random numbers: each purpose has its own."""


class Trainer:
    """Trains one policy.

    Args:
        config: The run.
        folder: Where it is kept.
        policy: After its warm start, or as a checkpoint holds it.
        reference: The policy a KL penalty holds on to, or None.
        resumed: The checkpoint the policy came from, or None for a new run.
    """

    def __init__(
        self,
        config: Config,
        folder: RunFolder,
        policy: Policy,
        reference: Policy | None,
        resumed: Checkpoint | None = None,
    ) -> None:
        """Check the settings and prepare everything."""
        self.config, self.folder, self.policy = config, folder, policy
        self.step = resumed.step if resumed else 0
        self._is_new = resumed is None
        method = methods.get(config.method.name)
        settings = credit_settings(config)
        self._estimate: Callable[[TurnTable], Floats] = partial(
            credit.get(method.estimator), **settings
        )
        self.agent = make_agent(config, policy, config.agent.temperature)
        self._evaluator = make_agent(config, policy, config.eval.temperature)
        self._pool = make_pool(config, config.env.train_split, config.rollout.group_size)
        self._eval_pools: dict[str, EnvPool] = {}
        self._sampler = TaskSampler(tasks_of(self._pool), config.run.seed)
        self.learner = Learner(
            policy,
            reference,
            config.optimizer,
            method.loss,
            loss_settings(config),
            config.agent.temperature,
        )
        if resumed:
            checkpoints.load_training_state(resumed, self.learner.optimizer, policy.device)
        self.log = MetricsLog(folder.path, resumed.step if resumed else None)

    def run(self) -> None:
        """Train up to `run.steps`, evaluating, saving and reporting on the way."""
        every = self.config.eval.every
        if self._is_new:
            self.evaluate_all(final=True)
            self.save()
        bar = tqdm(total=self.config.run.steps, initial=self.step, desc="train", unit="step")
        while self.step < self.config.run.steps:
            figures = self.train_step()
            self.step += 1
            self.log.write(self.step, figures)
            bar.update()
            bar.set_postfix(success=f"{figures['rollout/success']:.2f}")
            last = self.step == self.config.run.steps
            if last or (every and self.step % every == 0):
                self.evaluate_all(final=last)
            if last or self.step % self.config.checkpoint.every == 0:
                self.save()
        bar.close()
        self.close()

    def train_step(self) -> dict[str, float]:
        """Take one training step and return its figures."""
        config, step, times = self.config, self.step, dict[str, float]()
        with _timed(times, "collect"):
            draws = self._sampler.draw(step, config.rollout.tasks_per_step)
            seed = seed_of(config.run.seed, _ROLLOUTS, step)
            played = asyncio.run(collect(self._pool, draws, self.agent, seed=seed))
        rollouts = [rollout for rollout in played if not rollout.error]
        if not rollouts:
            raise TrainingError(f"every episode of step {step} was lost: {played[0].error}")
        with _timed(times, "credit"):
            turns = TurnTable.from_rollouts(
                rollouts, reward=config.method.reward, reward_scale=config.method.reward_scale
            )
            advantage = self._estimate(turns)
        with _timed(times, "update"):
            seed = seed_of(config.run.seed, _UPDATE, step)
            figures = self.learner.update(samples(rollouts, advantage), step=step, seed=seed)
        figures |= rollout_figures(rollouts, len(played) - len(rollouts))
        return figures | diagnostics.summarise(turns, advantage) | times

    def evaluate_all(self, *, final: bool) -> None:
        """Evaluate on the validation tasks; before and after training on the final splits too."""
        config = self.config.eval
        splits = [config.split, *(config.final_splits if final else ())]
        for split in dict.fromkeys(splits):
            count = None if final and split in config.final_splits else config.tasks
            result = self.evaluate(split, count)
            self.log.write(self.step, result.metrics())
            self.folder.write_evaluation(self.step, result)
            low, high = result.success.interval
            least, most = result.score_interval
            tqdm.write(
                f"step {self.step}: {split} success {result.success.value:.1%} "
                f"[{low:.1%}, {high:.1%}], score {result.score:.1%} [{least:.1%}, {most:.1%}] "
                f"over {result.success.count} tasks"
            )
        report.write(self.folder)

    def evaluate(self, split: str, count: int | None) -> Evaluation:
        """Play `count` tasks of a split (None: all), each once."""
        if split not in self._eval_pools:
            self._eval_pools[split] = make_pool(self.config, split, 1)
        pool = self._eval_pools[split]
        chosen = choose(tasks_of(pool), count)
        seed = seed_of(self.config.run.seed, _EVALUATION)
        return asyncio.run(evaluate(pool, chosen, split, self._evaluator, seed=seed))

    def save(self) -> None:
        """Write a checkpoint."""
        keep = self.config.checkpoint.keep
        checkpoints.save(
            self.folder.path, self.step, self.policy, self.learner.optimizer, keep=keep
        )

    def close(self) -> None:
        """Close environments and logs."""
        for pool in (self._pool, *self._eval_pools.values()):
            pool.close()
        self.log.close()


def make_agent(config: Config, policy: Policy, temperature: float) -> Agent:
    """Return the agent of a run, sampling at `temperature`."""
    style = prompts.load(config.agent.style, config.env.id)
    completer = HFCompleter(policy, config.rollout.max_batch)
    sampling = Sampling(temperature, config.agent.max_tokens)
    return Agent(completer, style, sampling, config.agent.window)


def make_pool(config: Config, split: str, group_size: int, **kwargs: Any) -> EnvPool:
    """Return environments of a split."""
    settings = {**config.env.kwargs, "split": split, **kwargs}
    if config.env.max_turns is not None:
        settings["max_turns"] = config.env.max_turns
    return EnvPool(config.env.id, group_size, config.rollout.max_live, **settings)


def tasks_of(pool: EnvPool) -> Any:
    """Return the task set that a pool's environments play."""
    group = pool.take()
    tasks = group.envs[0].tasks
    pool.give_back(group)
    return tasks


def rollout_figures(rollouts: Sequence[Rollout], lost: int) -> dict[str, float]:
    """Return the figures of a step's rollouts, under `rollout/`."""
    turns = [turn for rollout in rollouts for turn in rollout.turns]
    return {
        "rollout/success": sum(r.success for r in rollouts) / len(rollouts),
        "rollout/score": sum(r.score for r in rollouts) / len(rollouts),
        "rollout/turns": len(turns) / len(rollouts),
        "rollout/invalid_share": sum(t.feedback in INVALID_FEEDBACK for t in turns) / len(turns),
        "rollout/unfinished_share": sum(not t.completion.finished for t in turns) / len(turns),
        "rollout/prompt_tokens": sum(len(t.completion.prompt_ids) for t in turns) / len(turns),
        "rollout/response_tokens": sum(len(t.completion.response_ids) for t in turns) / len(turns),
        "rollout/lost_groups": float(lost),
    }


@contextmanager
def _timed(times: dict[str, float], name: str) -> Iterator[None]:
    start = time.perf_counter()
    yield
    times[f"time/{name}_s"] = time.perf_counter() - start
