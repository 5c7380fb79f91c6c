"""Takes the rollouts of training steps from files, in place of live play."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from agentgyms.core.env import Feedback
from agentgyms.core.errors import DataError
from harness.config import Config
from harness.model.policy import Policy
from harness.preflight import recorded_files
from harness.rollouts import rollout_files
from harness.rollouts.search import preferences
from harness.rollouts.search.preferences import Preference
from harness.training.players.player import StepRollouts, branch_figures, rollout_figures
from harness.types.errors import ConfigError
from harness.types.rollout import Completion, OnFinish, Rollout, StopReason, Turn
from harness.types.stateful import Stateful
from harness.types.task_draws import TaskSampler


class RecordedPlayer:
    """Draws the groups of `rollout.recorded` in shuffled passes, each once per pass.

    Each preference is a group of two rollouts, of one turn in one state. A step's groups depend on
    the run's seed, the step and the files alone. All rollouts are in main memory.
    """

    def __init__(self, config: Config, policy: Policy) -> None:
        source = config.rollout
        self.parts: dict[str, Stateful] = {}
        self._groups: dict[str, list[Rollout]] = {}
        self.data_version = ""
        for file in source.recorded:
            if preferences.is_file_of(file):
                for i, pair in enumerate(recorded_files.read_preferences(file)):
                    compared = self._groups[f"{file} {i}"] = _compared(pair, i, policy)
                    _check_turns(file, compared, policy)
                continue
            self.data_version = str(recorded_files.header(file)["data_version"])
            for rollout in _usable(file, policy):
                self._groups.setdefault(f"{file} {rollout.group}", []).append(rollout)
        if not self._groups:
            raise ConfigError(
                f"rollout.recorded: {source.recorded[0]} holds no rollout to learn from"
            )
        self._count = source.tasks_per_step
        self._sampler = TaskSampler([*self._groups], config.run.seed)

    def open(self) -> None:
        """Do nothing: nobody waits for this player."""

    def play(self, step: int, on_finish: OnFinish = lambda _: None) -> StepRollouts:
        """Return the rollouts of a training step, as `Player.play`."""
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


def _usable(file: str, policy: Policy) -> list[Rollout]:
    try:
        rollouts = rollout_files.read(file).rollouts
    except DataError as e:
        raise ConfigError(f"rollout.recorded: {e}") from None
    kept = [rollout for rollout in rollouts if rollout.turns and not rollout.error]
    _check_turns(file, kept, policy)
    return kept


def _check_turns(file: str, rollouts: Sequence[Rollout], policy: Policy) -> None:
    """Refuse turns without tokens, with unknown ones, and those longer than the model's context."""
    most = policy.max_length
    for answer in (one for rollout in rollouts for turn in rollout.turns for one in turn.answers):
        length = len(answer.prompt_ids) + len(answer.response_ids)
        if not answer.logprobs:
            raise ConfigError(
                f"{file[-80:]} has a turn without tokens and log-probabilities: give rollouts as "
                "run.keep_rollouts keeps them"
            )
        if length > most:
            raise ConfigError(
                f"{file[-80:]} has a turn of {length} tokens, and the model reads {most}: leave it "
                "out, or take a model with a longer context"
            )
        unknown = policy.chat_tokenizer.first_unknown(answer.response_ids)
        if unknown is not None:
            raise ConfigError(
                f"{file[-80:]} has a turn with the id {unknown}, which the tokenizer does not have "
                "and the model gives no probability: leave the turn out"
            )


def _compared(pair: Preference, number: int, policy: Policy) -> list[Rollout]:
    """Return a preference as two rollouts of one turn, whose rewards are the answers' values."""
    prompt = policy.encode_chat(pair.messages)
    return [
        Rollout(
            task_id=pair.task_id,
            family="",
            group=number,
            member=member,
            seed=pair.seed,
            turns=[_turn(policy, pair, prompt, answer, value)],
            stop_reason=StopReason.STOPPED,
            success=answer == pair.chosen,
            score=float(answer == pair.chosen),
        )
        for member, (answer, value) in enumerate(
            ((pair.chosen, pair.value_chosen), (pair.rejected, pair.value_rejected))
        )
    ]


def _turn(
    policy: Policy, pair: Preference, prompt: tuple[int, ...], answer: str, value: float
) -> Turn:
    """Return a turn with an answer's tokens; all log-probabilities are 0: no loss reads them."""
    response = policy.chat_tokenizer.encode_response(answer, pair.messages)
    completion = Completion(answer, prompt, response, (0.0,) * len(response))
    feedback = Feedback.OK.value
    return Turn("", "compared", completion, answer, answer, feedback, value, "", answer, math.nan)
