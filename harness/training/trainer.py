"""A training run: steps of collecting, credit and update, with evaluations between.

Everything random is a function of (run seed, step), so a resumed run repeats an uninterrupted one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from signal import SIGTERM
from typing import Any

from agentgyms.core.errors import AgentGymsError
from agentgyms.data import writing
from harness.config import Config
from harness.distributed.process_group import SINGLE_PROCESS, ProcessGroup
from harness.distributed.signals import GRACE_S, Abandoned, StopSignal
from harness.inference.generation import Generator, make_generator, make_policy_generator
from harness.inference.old_logprobs import RecomputedRollouts, recompute_logprobs, recomputes
from harness.model.packing import samples
from harness.model.policy import Policy
from harness.model.weights.weight_average import WeightAverage
from harness.preflight import recorded_files
from harness.preflight.defaults import plays_initial
from harness.preflight.expected_time import most_turns
from harness.rollouts import rollout_files
from harness.runs import fsync, tracking, training_state
from harness.runs.answer_pace import AnswerPace
from harness.runs.checkpoints import Checkpoint
from harness.runs.metrics import Log, MetricsLog, SilentLog
from harness.runs.progress import Progress
from harness.runs.runfolder import RunFolder
from harness.training import saving
from harness.training.credit_step import Credit, make_credit
from harness.training.learner import make_learner
from harness.training.phases import PhaseTimer, check_finite, phase
from harness.training.players import make_player
from harness.training.players.ahead import AheadPlayer
from harness.training.players.player import StepRollouts
from harness.training.step_evaluations import StepEvaluations
from harness.types.errors import TrainingError, TrainingStopped
from harness.types.rollout import Completion, Rollout, models_cost
from harness.types.task_draws import seed_of

_UPDATE, _ANNOTATION = 2, 4
"""Streams of random numbers, one for each purpose; rollouts use stream 1, evaluations 3."""


class Trainer:
    """Trains one policy.

    Args:
        config: The run's settings, resolved.
        folder: The run's folder.
        policy: The policy after its warm start, or from a checkpoint.
        reference: The policy before training, or None if nothing needs it.
        credit_settings: The estimator's hyperparameters, with loaded scorers in place of names.
        resumed: The checkpoint that the policy comes from, or None for a new run.
        processes: The process group; its first process writes files and shows progress.
        progress: Shows the steps and evaluations; None shows nothing.
        report: Is called after evaluations, with whether they were the last; None reports nothing.
    """

    def __init__(
        self,
        config: Config,
        folder: RunFolder,
        policy: Policy,
        reference: Policy | None,
        credit_settings: dict[str, Any],
        *,
        resumed: Checkpoint | None = None,
        processes: ProcessGroup = SINGLE_PROCESS,
        progress: Progress | None = None,
        report: Callable[[bool], None] | None = None,
    ) -> None:
        self.config, self.folder, self.policy = config, folder, policy
        self.processes = processes
        self.step = resumed.step if resumed else 0
        # Several processes have no grace period: they end their step together.
        self.stop = StopSignal(GRACE_S if processes.size == 1 else None)
        self._is_saved = resumed is not None
        self._saving: saving.Saving | None = None
        self.credit = make_credit(config, policy, reference, credit_settings, processes)
        self.generator, self._rollout_generator = self._make_generators(reference)
        for shared in (policy, reference):
            if shared is not None:
                shared.shard(processes)
        self._player = make_player(
            config,
            policy,
            self.generator,
            self._rollout_generator.completer,
            self.stop,
            processes,
            folder.path,
        )
        self._ahead = self._player if isinstance(self._player, AheadPlayer) else None
        self.learner = make_learner(config, policy, reference, is_resumed=resumed is not None)
        self._recomputes = recomputes(config)
        self._answer_tokens, self._turns = config.agent.answer_tokens, most_turns(config)
        decay = config.policy.ema
        self._average = None if decay is None else WeightAverage(policy, decay)
        averages = {} if self._average is None else {"average": self._average}
        self._parts: dict[str, Any] = {**self._player.parts, **averages}
        if resumed:
            optimizer, annotators = self.learner.optimizer, self.credit.annotators
            training_state.read(resumed.folder, policy, optimizer, annotators, self._parts)
        self._sync()
        if self._rollout_generator is not self.generator:
            self._rollout_generator.sync()
        evaluated = processes.run_on_first(lambda: folder.drop_after(self.step if resumed else -1))
        self._progress = progress or Progress(config.run.steps, self.step, 0, is_shown=False)
        self.evaluations = StepEvaluations(
            config,
            folder,
            self.generator.completer,
            policy.chat_tokenizer,
            self.stop.run,
            processes=processes,
            done=evaluated,
            progress=self._progress,
        )
        self.log = self._open_log(resumed.step if resumed else None)
        self.phases = PhaseTimer(policy.device, config.log.price_per_hour, self.log.spent)
        self._report = report
        self._player.open()  # only now: a gateway must know which rollouts have their rewards

    def _open_log(self, resume_step: int | None) -> Log:
        if not self.processes.is_first:
            return SilentLog()
        trackers = tracking.open_all(self.config, self.folder.path, resume_step)
        return MetricsLog(self.folder.path, resume_step, trackers)

    def _make_generators(self, reference: Policy | None) -> tuple[Generator, Generator]:
        """Return the generator of the policy and the generator of the training rollouts.

        The second one has the initial weights if the method learns from rollouts of the initial
        policy. Otherwise they are the same object. Evaluations use the first one.
        """
        config, folder = self.config, self.folder.path
        if not plays_initial(config):
            generator = make_generator(config, self.policy, folder, self.processes)
            return generator, generator
        assert reference is not None
        initial = make_generator(config, reference, folder, self.processes)
        return make_policy_generator(config, self.policy, self.processes), initial

    def run(self) -> None:
        """Train up to `run.steps`, with evaluations, checkpoints and reports.

        Raises:
            TrainingStopped: A signal stopped the run; its last step is saved.
            TrainingError: Training cannot go on; the message says what to change.
        """
        try:
            with self.stop.listening():
                self._run()
        except Abandoned:
            self._stop()
        except TrainingError as e:
            raise TrainingError(f"{e}\n{self.folder.how_to_resume(self.config.run.steps)}") from e
        except OSError as e:
            if isinstance(e, AgentGymsError):
                raise
            reason = f"{self.folder.path} cannot be written: {e.strerror or e}"
            how = self.folder.how_to_resume(self.config.run.steps)
            raise TrainingError(f"{reason}\n{how}") from e
        finally:
            if self._ahead is not None:
                self._ahead.cancel()
            self.folder.lock.release()
        self.close()

    def _run(self) -> None:
        self._evaluate_and_save()
        while self.step < self.config.run.steps:
            figures = self.train_step()
            self.step += 1
            self._is_saved = False
            self.processes.run_on_first(self.folder.lock.check)
            self._finish_saving()
            self.log.write(self.step, figures)
            self._progress.step(figures)
            self._evaluate_and_save()
            if self._is_to_stop() and self.step < self.config.run.steps:
                raise Abandoned
        self._progress.close()

    def _is_to_stop(self) -> bool:
        """Return whether any process got a signal to stop; all processes call this each step."""
        return self.processes.any(bool(self.stop.number))

    def _evaluate_and_save(self) -> None:
        if self._is_due(self.config.eval.every):
            self.evaluate_all(final=self.step in (0, self.config.run.steps))
        if self._is_due(self.config.checkpoint.every) and not self._is_saved:
            self.save()

    def _is_due(self, every: int) -> bool:
        ends = self.step in (0, self.config.run.steps)
        return ends or bool(every and self.step % every == 0)

    def _stop(self) -> None:
        """Save the last step, close everything and raise `TrainingStopped`."""
        if not self._is_saved:
            self.save()
        self._finish_saving()
        self.close()
        number = self.stop.number or SIGTERM  # another process got the signal
        how = self.folder.how_to_resume(self.config.run.steps)
        raise TrainingStopped(how, number)

    def train_step(self) -> dict[str, float]:
        """Play, compute credit, learn, and give the generator the new weights; return figures."""
        played = self._collect()
        with self._progress.working("credit"):
            recomputed = self._recompute_logprobs(played.rollouts)
            credit = self._assign_credit(recomputed.rollouts)
            diagnosed = self._diagnose_credit(credit)
            self._keep_rollouts(played.rollouts, credit)
        figures = self._update_policy(recomputed, credit)
        with self._progress.working("annotators"):
            figures |= self._update_annotators(recomputed.rollouts, credit)
        if self._average is not None:
            self._average.update()
        with self.phases("sync"):
            self._sync(self.step + 1)
        if self._ahead is not None:
            figures |= self._ahead.figures(self.step, played.rollouts)
        measured = self._measured(played.rollouts, int(figures["update/model_tokens"]))
        return figures | played.figures | recomputed.figures | diagnosed | measured

    @phase("collect", "collect")
    def _collect(self) -> StepRollouts:
        played = self._play()
        check_finite("the log-probability", [one.logprobs for one in _answers(played.rollouts)])
        if self._ahead is None:
            self.generator.sleep()
        return played

    @phase("rescore", "compute log-probabilities")
    def _recompute_logprobs(self, rollouts: list[Rollout]) -> RecomputedRollouts:
        if not self._recomputes:  # the policy has sampled them as it is
            return RecomputedRollouts(rollouts)
        return recompute_logprobs(self.config, self.policy, rollouts)

    @phase("credit", "compute credit")
    def _assign_credit(self, rollouts: list[Rollout]) -> Credit:
        credit = self.credit.assign(rollouts)
        check_finite("the advantage", credit.advantage)
        return credit

    @phase("diagnostics", "compute credit")
    def _diagnose_credit(self, credit: Credit) -> dict[str, float]:
        return self.credit.diagnose(credit)

    @phase("update", "learn")
    def _update_policy(self, recomputed: RecomputedRollouts, credit: Credit) -> dict[str, float]:
        advantage = credit.advantage
        if recomputed.weight is not None:
            advantage = recomputed.weighted(advantage)
        # All take the first process's advantages: a scorer on another GPU may round differently.
        advantage = self.processes.gather(advantage)[0]
        context, kept = self.config.agent.context, recomputed.kept
        # Turns that a sibling shares with its parent are trained once, with the parent.
        rows = samples(recomputed.rollouts, advantage, context, shared=False, kept=kept)
        seed = seed_of(self.config.run.seed, _UPDATE, self.step)
        passes = self.config.optimizer.epochs or 1
        with self._progress.learning(passes * len(rows)) as advance:
            return self.learner.update(rows, step=self.step, seed=seed, on_learned=advance)

    @phase("annotators", "learn")
    def _update_annotators(self, rollouts: list[Rollout], credit: Credit) -> dict[str, float]:
        seed = seed_of(self.config.run.seed, _ANNOTATION, self.step)
        return self.credit.learn(credit, rollouts, step=self.step, seed=seed)

    def _measured(self, rollouts: list[Rollout], model_tokens: int) -> dict[str, float]:
        tokens = {"update": model_tokens}
        if self._ahead is None:  # playing ahead takes longer than the phase, which only waits
            sampled = sum(len(one.response_ids) for one in _answers(rollouts))
            tokens = {"collect": sampled, **tokens}
        return self.phases.take(tokens, models_cost(rollouts))

    def _play(self) -> StepRollouts:
        """Return a step's rollouts; if playing ahead fails, save the last update first."""
        try:
            pace = AnswerPace(self._answer_tokens, self._rollout_generator.completer)
            with self._progress.episodes(pace, self._turns) as on_finish:
                return self._player.play(self.step, on_finish)
        except Exception:
            if self._ahead is not None and not self._is_saved and not self.stop.number:
                self.save()
            raise

    def _sync(self, version: int | None = None) -> None:
        """Let the generator follow the policy, which has learned from `version` steps."""
        if self._ahead is None:
            self.generator.sync()
        else:
            self._ahead.follow(self.step if version is None else version)

    def _keep_rollouts(self, rollouts: list[Rollout], credit: Credit) -> None:
        """Write the rollouts and annotators' columns of every n-th step and of the last one."""
        every, number = self.config.run.keep_rollouts, self.step + 1
        whole = every > 0 and number % every == 0
        if self.processes.is_first and (whole or number == self.config.run.steps):
            version = self._player.data_version
            about = recorded_files.step_header(self.config, version, number, tokens=whole)
            about["tokenizer"] = self.policy.chat_tokenizer.digest
            path = self.folder.rollouts(number)
            rollout_files.write(
                path, rollouts, credit.columns(), tokens=whole, images=whole, about=about
            )
            writing.flush(path)

    def evaluate_all(self, *, final: bool) -> None:
        """Evaluate on the validation tasks; before and after training on the final splits too."""
        for split, count in self.evaluations.due(self.step, final=final):
            self._is_saved = False
            with self.phases("evaluate"), self._generator_alone(), self._averaged():
                result = self.evaluations.play(split, count)
            figures = result.metrics() | self.phases.take(models_usd=result.models_usd)
            self.log.write(self.step, figures)
            self.evaluations.keep(self.step, result)
        if self._report is not None and self.processes.is_first:
            with self._progress.working("report"):
                self._report(self.step == self.config.run.steps)

    def _generator_alone(self) -> AbstractContextManager[None]:
        return nullcontext() if self._ahead is None else self._ahead.evaluating()

    @contextmanager
    def _averaged(self) -> Iterator[None]:
        if self._average is None:
            yield
            return
        with self._average.applied():
            self.generator.sync()
            yield
        self.generator.sync()

    def save(self) -> None:
        """Write the step's metrics to the disk, then a checkpoint."""
        self.log.flush()
        wanted = self.config.checkpoint
        with self.phases("save"), self._progress.working("save"):
            self._saving = saving.begin(
                self.folder.path,
                self.step,
                self.policy,
                self.learner.optimizer,
                self.credit.annotators,
                keep=wanted.keep,
                keep_best=wanted.keep_best,
                best=wanted.best,
                validation=self.folder.validation(self.step, str(self.config.eval.split)),
                parts=self._parts,
                average=self._average,
            )
        self._is_saved = True
        if not wanted.in_background or self.step == self.config.run.steps:
            self._finish_saving()

    def _finish_saving(self) -> None:
        """Complete the checkpoint that is being saved, if one is; all processes call this."""
        if self._saving is None:
            return
        with self.phases("save"), self._progress.working("save"):
            begun, self._saving = self._saving, None
            begun.finish()
        if self.processes.is_first:
            fsync.discard(self.folder.warm_start)

    def close(self) -> None:
        """Close environments, the generator and logs."""
        self._player.close()
        self.generator.close()
        self._rollout_generator.close()
        self.evaluations.close()
        self.log.close()
        self.folder.lock.release()


def _answers(rollouts: Iterable[Rollout]) -> Iterator[Completion]:
    """Yield every answer of the learner's own turns; a turn may have several."""
    for rollout in rollouts:
        for turn in rollout.own_turns:
            yield from turn.answers
