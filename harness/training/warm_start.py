"""The warm start: the policy learns from the expert's episodes before reinforcement learning."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from tqdm import tqdm

from harness.config import Config
from harness.distributed.signals import Abandoned, StopSignal
from harness.model.policy import Policy
from harness.rollouts.build import make_pool, make_prompt_agent
from harness.rollouts.demonstrations import Demonstrator, demonstrate
from harness.runs.progress import EXPERT, WARM_START, Progress
from harness.training import sft_state
from harness.training.sft import fine_tune
from harness.types.errors import TrainingError
from harness.types.task_draws import TaskSampler, seed_of

_DEMONSTRATIONS, _FINE_TUNING = 11, 13


@dataclass(frozen=True, slots=True)
class WarmStart:
    """The warm start of a run. `state` is the folder to save at a signal and to resume from."""

    config: Config
    state: Path
    stop: StopSignal
    progress: Progress

    def demonstrate(self) -> Demonstrator:
        """Return a demonstrator that has played the expert episodes.

        Raises `Abandoned` at a signal, and `TrainingError` if every episode was lost.
        """
        config, warm = self.config, self.config.warmstart
        demonstrator = Demonstrator(make_prompt_agent(config), warm.expert, warm.noise)
        pool = make_pool(config, config.env.train_split, 1, oracle=True)
        seed = seed_of(config.run.seed, _DEMONSTRATIONS)
        draws = TaskSampler(pool.tasks(), seed).draw(0, warm.episodes)
        try:
            with self.progress.phase(EXPERT, len(draws), "episodes") as advance:
                played = demonstrate(
                    demonstrator, pool, draws, seed=seed, on_finish=lambda _: advance("")
                )
                rollouts = self.stop.run(played)
        finally:
            pool.close()
        if self.stop.number:
            raise Abandoned
        lost = [rollout.error for rollout in rollouts if rollout.error]
        if len(lost) == len(rollouts):
            raise TrainingError(f"every expert episode was lost: {lost[0]}")
        return demonstrator

    def learn(self, policy: Policy, demonstrator: Demonstrator) -> None:
        """Train a policy on demonstrations; raise `Abandoned` at a signal, after saving."""
        warm = self.config.warmstart
        left = warm.steps - len(sft_state.losses_of(self.state))
        began, passed = time.monotonic(), 0

        def stepped(loss: float, tokens: int) -> None:
            nonlocal passed
            passed += tokens
            pace = passed / max(time.monotonic() - began, 1e-9)
            advance(f"loss={loss:.3f}, {pace:.3g} tokens/s")

        with self.progress.phase(WARM_START, left, "steps") as advance:
            loss = fine_tune(
                policy,
                demonstrator.demonstrations,
                warm,
                seed=seed_of(self.config.run.seed, _FINE_TUNING),
                micro_batch_tokens=self.config.optimizer.micro_batch_tokens,
                on_step=stepped,
                state=self.state,
                is_to_stop=lambda: bool(self.stop.number),
            )
        turns = len(demonstrator.demonstrations)
        tqdm.write(f"warm start: {turns} expert turns, last loss {loss:.3f}")
