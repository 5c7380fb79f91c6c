"""Takes the rollouts of training steps from files, in place of live play."""

from __future__ import annotations

from dataclasses import replace

from agentgyms.core.errors import DataError
from harness.config import Config
from harness.model.policy import Policy
from harness.preflight import recorded_files
from harness.rollouts import rollout_files
from harness.rollouts.collect_options import OnFinish
from harness.rollouts.player import StepRollouts, branch_figures, rollout_figures
from harness.types.errors import ConfigError
from harness.types.rollout import Rollout
from harness.types.task_draws import TaskSampler


class RecordedPlayer:
    """Draws the groups of `rollout.recorded` in shuffled passes: each once per pass.

    The groups of a step depend on the run's seed, the step and the files alone. All rollouts are in
    main memory.

    Args:
        config: The run, resolved.
        policy: Its longest sequence is the limit of those recorded.

    Attributes:
        data_version: Of the environment that was played.
    """

    def __init__(self, config: Config, policy: Policy) -> None:
        """Read the files.

        Raises:
            ConfigError: A file is damaged or has no rollouts, or the policy cannot read a turn.
        """
        files = config.rollout.recorded
        self.data_version = str(recorded_files.header(files[0])["data_version"])
        self._groups: dict[str, list[Rollout]] = {}
        for file in files:
            for rollout in _usable(file, policy.max_length):
                self._groups.setdefault(f"{file} {rollout.group}", []).append(rollout)
        if not self._groups:
            raise ConfigError(f"rollout.recorded: {len(files)} files hold no rollout with a turn")
        self._count = config.rollout.tasks_per_step
        self._sampler = TaskSampler([*self._groups], config.run.seed)

    def play(self, step: int, on_finish: OnFinish = lambda _: None) -> StepRollouts:
        """Return the rollouts of a training step; arguments as of `Player.play`."""
        drawn = self._sampler.draw(step, self._count)
        groups = [self._groups[draw.task_id] for draw in drawn]
        rollouts = [replace(one, group=i) for i, group in enumerate(groups) for one in group]
        for rollout in rollouts:
            on_finish(rollout)
        members = [rollout for rollout in rollouts if rollout.parent is None]
        siblings = branch_figures(rollouts) if len(members) < len(rollouts) else {}
        return StepRollouts(rollouts, rollout_figures(members, 0) | siblings)

    def close(self) -> None:
        """Do nothing: no environment is open."""


def _usable(file: str, most: int) -> list[Rollout]:
    """Return the rollouts of a file without errors, each with a turn."""
    try:
        rollouts = rollout_files.read(file).rollouts
    except DataError as e:
        raise ConfigError(f"rollout.recorded: {e}") from None
    kept = [rollout for rollout in rollouts if rollout.turns and not rollout.error]
    for answer in (one for rollout in kept for turn in rollout.turns for one in turn.answers):
        length = len(answer.prompt_ids) + len(answer.response_ids)
        if not answer.logprobs:
            raise ConfigError(
                f"rollout.recorded: {file[-80:]} has a turn without tokens and log-probabilities: "
                "give rollouts as run.keep_rollouts keeps them"
            )
        if length > most:
            raise ConfigError(
                f"rollout.recorded: {file[-80:]} has a turn of {length} tokens, and the model "
                f"reads {most}: leave the file out, or take a model with a longer context"
            )
    return kept
