"""A training run: warm start, then steps of collect, credit and update, with evaluations between.

Everything random is a function of (run seed, step), so a resumed run repeats an uninterrupted one.
"""

from __future__ import annotations

from signal import SIGTERM, Signals
from typing import Any

from tqdm import tqdm

from harness import checkpoints, durable, methods, report, rollout_files, tracking, training_state
from harness.advice import advising, check_finite
from harness.annotators import Surroundings
from harness.checkpoints import Checkpoint
from harness.collect import EnvPool
from harness.config import Config
from harness.errors import TrainingError, TrainingStopped
from harness.evaluate import Evaluation, choose, evaluate
from harness.generation import Generator, make_generator, make_own
from harness.learner import Learner
from harness.metrics import Log, MetricsLog, SilentLog
from harness.packing import samples
from harness.phases import Phases, price_of_models, spent_before
from harness.playing import Player, make_agent, make_eval_pool, tasks_of
from harness.policy import Policy
from harness.progress import Progress
from harness.ranks import ALONE, Ranks
from harness.rescoring import rescore
from harness.rollout import Rollout
from harness.runfolder import RunFolder
from harness.sampling import seed_of
from harness.settings import loss_settings
from harness.step import Credit, CreditAssignment
from harness.stopping import GRACE_S, Abandoned, StopSignal

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
        ranks: This process among those that train; the first writes and tells.
    """

    def __init__(
        self,
        config: Config,
        folder: RunFolder,
        policy: Policy,
        reference: Policy | None,
        scored: dict[str, Any],
        resumed: Checkpoint | None = None,
        ranks: Ranks = ALONE,
    ) -> None:
        """Check the settings and prepare everything."""
        self.config, self.folder, self.policy = config, folder, policy
        self.ranks = ranks
        self.step = resumed.step if resumed else 0
        self.stop = StopSignal(GRACE_S if ranks.size == 1 else None)  # all end a step together
        self._is_saved = resumed is not None
        method = methods.get(config.method.name)
        around = Surroundings(
            policy,
            reference,
            config.agent.context,
            str(config.method.rows),
            config.agent.temperature,
            config.optimizer.micro_batch_tokens,
            method.estimator,
            scored,
            ranks,
        )
        self.credit = CreditAssignment(config, method, scored, around)
        self.generator, self._playing = self._make_generators(reference)
        for shared in (policy, reference):
            if shared is not None:
                shared.shard(ranks)
        self._player = Player(config, policy, self._playing.completer, self.stop.run, ranks)
        self._evaluator = make_agent(config, self.generator.completer, config.eval.temperature)
        self._eval_pools: dict[str, EnvPool] = {}
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
        if self._playing is not self.generator:
            self._playing.sync()
        self._evaluated = ranks.of_first(lambda: folder.drop_after(self.step if resumed else -1))
        done = resumed.step if resumed else None
        if ranks.is_first:
            trackers = tracking.open_all(config, folder.path, done)
            self.log: Log = MetricsLog(folder.path, done, trackers)
        else:
            self.log = SilentLog()
        spent = spent_before(self.log.kept)
        self.phases = Phases(policy.device, config.log.price_per_hour, spent)
        self._pictures = report.Pictures(folder.path)
        episodes = config.rollout.tasks_per_step * config.rollout.group_size
        self._progress = Progress(config.run.steps, self.step, episodes)

    def _make_generators(self, reference: Policy | None) -> tuple[Generator, Generator]:
        """Return who follows the policy, and who plays training steps: mostly the same.

        An engine that plays with the first policy's weights keeps them; evaluations then are the
        policy's own.
        """
        config, folder = self.config, self.folder.path
        if methods.get(config.method.name).actor != "initial":
            generator = make_generator(config, self.policy, folder, self.ranks)
            return generator, generator
        assert reference is not None
        first = make_generator(config, reference, folder, self.ranks)
        return make_own(config, self.policy, self.ranks), first

    def run(self) -> None:
        """Train up to `run.steps`, evaluating, saving and reporting on the way.

        Raises:
            TrainingStopped: A signal asked for it; what was done is saved.
            TrainingError: It cannot go on; the message says what to change.
        """
        try:
            with self.stop.listening():
                self._run()
        except Abandoned:
            self._stop()
        except TrainingError as e:
            raise TrainingError(f"{e}\n{self._what_is_left()}") from e
        self.close()

    def _run(self) -> None:
        self._finish_step()
        while self.step < self.config.run.steps:
            figures = self.train_step()
            self.step += 1
            self._is_saved = False
            self.log.write(self.step, figures)
            self._progress.step(figures)
            self._finish_step()
            if self._is_to_stop() and self.step < self.config.run.steps:
                raise Abandoned
        self._progress.close()

    def _is_to_stop(self) -> bool:
        """Return whether a signal asked for it; asked once per step, and by all processes."""
        return self.ranks.any(bool(self.stop.number))

    def _finish_step(self) -> None:
        """Evaluate and save where the step that has ended is one for it."""
        if self._is_due(self.config.eval.every):
            self.evaluate_all(final=self.step in (0, self.config.run.steps))
        if self._is_due(self.config.checkpoint.every) and not self._is_saved:
            self.save()

    def _is_due(self, every: int) -> bool:
        ends = self.step in (0, self.config.run.steps)
        return ends or bool(every and self.step % every == 0)

    def _stop(self) -> None:
        """Save the last step, close everything and say how to go on."""
        if not self._is_saved:
            self.save()
        self.close()
        number = self.stop.number or SIGTERM  # it came to another process
        told = f"stopped by {Signals(number).name}. {self._what_is_left()}"
        raise TrainingStopped(told, number)

    def _what_is_left(self) -> str:
        """Return how to go on from the last checkpoint."""
        saved, path = checkpoints.find_all(self.folder.path), self.folder.path
        if not saved:
            return f"No step is saved yet; begin again with: harness train --resume {path}"
        return (
            f"Step {saved[-1].step} of {self.config.run.steps} is saved; go on with: harness train "
            f"--resume {path} (its settings are in {path / 'config.json'})"
        )

    def train_step(self) -> dict[str, float]:
        """Take one training step and return its figures."""
        config, step = self.config, self.step
        with self.phases("collect"), advising(config, "collect"):
            with self._progress.episodes() as on_finish:
                played = self._player.play(step, on_finish)
            turns = [turn for rollout in played.rollouts for turn in rollout.turns]
            check_finite("the log-probability", [turn.completion.logprobs for turn in turns])
            self.generator.sleep()
        with self.phases("rescore"), advising(config, "compute log-probabilities"):
            seen = rescore(config, self.policy, played.rollouts)
        with self.phases("credit"), advising(config, "compute credit"):
            credit = self.credit.assign(seen.rollouts)
            check_finite("the advantage", credit.advantage)
        self._keep(played.rollouts, credit)
        with self.phases("update"), advising(config, "learn"):
            # The first one's: a scorer on another GPU may round differently.
            advantage = self.ranks.gather(seen.weigh(credit.advantage))[0]
            rows = samples(seen.rollouts, advantage, config.agent.context)
            seed = seed_of(config.run.seed, _UPDATE, step)
            figures = self.learner.update(rows, step=step, seed=seed)
        with self.phases("annotators"), advising(config, "learn"):
            seed = seed_of(config.run.seed, _ANNOTATION, step)
            figures |= self.credit.learn(credit, seen.rollouts, step=step, seed=seed)
        with self.phases("sync"):
            self.generator.sync()
        tokens = {
            "collect": sum(len(turn.completion.response_ids) for turn in turns),
            "update": int(figures["update/model_tokens"]),
        }
        taken = self.phases.take(tokens, price_of_models(played.rollouts))
        return figures | played.figures | seen.figures | credit.figures | taken

    def _keep(self, rollouts: list[Rollout], credit: Credit) -> None:
        """Write the rollouts of every n-th step, with what annotators found."""
        every, number = self.config.run.keep_rollouts, self.step + 1
        if self.ranks.is_first and every and number % every == 0:
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
            durable.flush(path)

    def evaluate_all(self, *, final: bool) -> None:
        """Evaluate on the validation tasks; before and after training on the final splits too.

        What a run that goes on had evaluated at its checkpoint is not evaluated again.
        """
        config = self.config.eval
        splits = [config.split, *(config.final_splits if final else ())]
        for split in dict.fromkeys(splits):
            if (self.step, split) in self._evaluated:
                continue
            self._is_saved = False
            count = None if final and split in config.final_splits else config.tasks
            with self.phases("evaluate"):
                result = self.evaluate(split, count)
            figures = result.metrics() | self.phases.take(models_usd=result.models_usd)
            self.log.write(self.step, figures)
            if self.ranks.is_first:
                self.folder.write_evaluation(self.step, result)
            low, high = result.success.interval
            least, most = result.score_interval
            tqdm.write(
                f"step {self.step}: {split} success {result.success.value:.1%} "
                f"[{low:.1%}, {high:.1%}], score {result.score:.1%} [{least:.1%}, {most:.1%}] "
                f"over {result.success.count} tasks"
            )
        if self.ranks.is_first:
            self._pictures.write(final=self.step == self.config.run.steps)

    def evaluate(self, split: str, count: int | None) -> Evaluation:
        """Play `count` tasks of a split (None: all), each once."""
        if split not in self._eval_pools:
            self._eval_pools[split] = make_eval_pool(self.config, split)
        pool = self._eval_pools[split]
        chosen = choose(tasks_of(pool), count)
        seed = seed_of(self.config.run.seed, _EVALUATION)
        with advising(self.config, "collect"):
            episodes = evaluate(pool, chosen, split, self._evaluator, seed=seed, ranks=self.ranks)
            return self.stop.run(episodes)

    def save(self) -> None:
        """Write a checkpoint; what the step has logged is on the disk before it."""
        self.log.flush()
        with self.phases("save"):
            self._save()
        self._is_saved = True

    def _save(self) -> None:
        checkpoints.save(
            self.folder.path,
            self.step,
            self.policy,
            self.learner.optimizer,
            self.credit.annotators,
            keep=self.config.checkpoint.keep,
            keep_best=self.config.checkpoint.keep_best,
            best=self.config.checkpoint.best,
            validation=self.folder.validation(self.step, self.config.eval.split),
        )

    def close(self) -> None:
        """Close environments, the generator and logs."""
        self._player.close()
        self.generator.close()
        self._playing.close()
        for pool in self._eval_pools.values():
            pool.close()
        self.log.close()
