"""A training run: warm start, then steps of collect, credit and update, with evaluations between.

Everything random is a function of (run seed, step), so a resumed run repeats an uninterrupted one.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tqdm import tqdm

from harness import checkpoints, methods, report, rollout_files, training_state
from harness.annotators import Surroundings
from harness.checkpoints import Checkpoint
from harness.collect import EnvPool
from harness.config import Config
from harness.evaluate import Evaluation, choose, evaluate
from harness.generation import make_generator
from harness.learner import Learner
from harness.metrics import MetricsLog
from harness.packing import samples
from harness.playing import Player, make_agent, make_eval_pool, tasks_of
from harness.policy import Policy
from harness.rollout import Rollout
from harness.runfolder import RunFolder
from harness.sampling import seed_of
from harness.settings import loss_settings
from harness.step import Credit, CreditAssignment

_UPDATE, _EVALUATION, _ANNOTATION = 2, 3, 4
"""Streams of random numbers: each purpose has its own; rollouts have 1."""


class Trainer:
    """Trains one policy.

    Args:
        config: The run.
        folder: Where it is kept.
        policy: After its warm start, or as a checkpoint holds it.
        reference: The policy before training, or None if nobody needs it.
        scored: The estimator's hyperparameters, its scorers opened.
        resumed: The checkpoint the policy came from, or None for a new run.
    """

    def __init__(
        self,
        config: Config,
        folder: RunFolder,
        policy: Policy,
        reference: Policy | None,
        scored: dict[str, Any],
        resumed: Checkpoint | None = None,
    ) -> None:
        """Check the settings and prepare everything."""
        self.config, self.folder, self.policy = config, folder, policy
        self.step = resumed.step if resumed else 0
        self._is_new = resumed is None
        method = methods.get(config.method.name)
        self.generator = make_generator(config, policy)
        playing = self.generator
        if method.actor == "initial":
            assert reference is not None
            playing = make_generator(config, reference)
        self._player = Player(config, policy, playing.completer)
        self._evaluator = make_agent(config, self.generator.completer, config.eval.temperature)
        self._eval_pools: dict[str, EnvPool] = {}
        around = Surroundings(
            policy,
            reference,
            config.agent.context,
            str(config.method.rows),
            config.agent.temperature,
            config.optimizer.micro_batch_tokens,
            method.estimator,
            scored,
        )
        self.credit = CreditAssignment(config, method, scored, around)
        loss = loss_settings(config)
        self.learner = Learner(
            policy,
            reference if loss.get("kl_coefficient") else None,
            config.optimizer,
            method.loss,
            loss,
            config.agent.temperature,
            config.run.steps,
        )
        if resumed:
            training_state.read(
                resumed.folder, policy, self.learner.optimizer, self.credit.annotators
            )
        self.generator.sync()
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
            played = self._player.play(step)
        with _timed(times, "credit"):
            credit = self.credit.assign(played.rollouts)
        self._keep(played.rollouts, credit)
        with _timed(times, "update"):
            rows = samples(played.rollouts, credit.advantage, config.agent.context)
            seed = seed_of(config.run.seed, _UPDATE, step)
            figures = self.learner.update(rows, step=step, seed=seed)
        with _timed(times, "annotators"):
            seed = seed_of(config.run.seed, _ANNOTATION, step)
            figures |= self.credit.learn(credit, played.rollouts, step=step, seed=seed)
        with _timed(times, "sync"):
            self.generator.sync()
        return figures | played.figures | credit.figures | times

    def _keep(self, rollouts: list[Rollout], credit: Credit) -> None:
        """Write the rollouts of every n-th step, with what annotators found."""
        every, number = self.config.run.keep_rollouts, self.step + 1
        if every and number % every == 0:
            method = self.config.method
            about = {
                "env": self.config.env.id,
                "step": number,
                "method": method.name,
                "reward": method.reward,
                "reward_scale": method.reward_scale,
            }
            path = self.folder.rollouts(number)
            rollout_files.write(path, rollouts, credit.columns(), about=about)

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
        report.write(self.folder.path)

    def evaluate(self, split: str, count: int | None) -> Evaluation:
        """Play `count` tasks of a split (None: all), each once."""
        if split not in self._eval_pools:
            self._eval_pools[split] = make_eval_pool(self.config, split)
        pool = self._eval_pools[split]
        chosen = choose(tasks_of(pool), count)
        seed = seed_of(self.config.run.seed, _EVALUATION)
        return asyncio.run(evaluate(pool, chosen, split, self._evaluator, seed=seed))

    def save(self) -> None:
        """Write a checkpoint."""
        checkpoints.save(
            self.folder.path,
            self.step,
            self.policy,
            self.learner.optimizer,
            self.credit.annotators,
            keep=self.config.checkpoint.keep,
        )

    def close(self) -> None:
        """Close environments, the generator and logs."""
        self._player.close()
        self.generator.close()
        for pool in self._eval_pools.values():
            pool.close()
        self.log.close()


@contextmanager
def _timed(times: dict[str, float], name: str) -> Iterator[None]:
    start = time.perf_counter()
    yield
    times[f"time/{name}_s"] = time.perf_counter() - start
