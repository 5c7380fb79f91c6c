"""Annotators that read the environment's oracle: the right answer, or the length of a solution."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final, Literal

import numpy as np

from harness.annotators.measures import Measure, last_token_rows
from harness.credit import TurnTable
from harness.model.logprobs import score_tokens
from harness.model.packing import Sample
from harness.types.arrays import Floats
from harness.types.errors import ConfigError
from harness.types.hyperparameters import one_of
from harness.types.rollout import Rollout, lengths_of

_EMPTY_THOUGHT: Final = "<think></think>"
_UNSOLVABLE: Final = -1
"""`optimal_remaining` of a state that no solution starts from; smaller ones mean unknown."""


@dataclass(frozen=True, slots=True)
class InformationGainSettings:
    """Settings of `InformationGain`."""

    # mean log-probability (the paper), or its exponential (the code)
    measure: Literal["logprob", "prob"] = "logprob"
    # stands before the answer, in styles with thoughts
    thought: str = "Now there's enough information to answer"
    needs_oracle: ClassVar[bool] = True

    def __post_init__(self) -> None:
        one_of("information_gain.measure", self.measure, ("logprob", "prob"))
        if not isinstance(self.thought, str) or "think>" in self.thought:
            raise ConfigError(
                f"information_gain.thought must be a text without tags, got {self.thought!r:.80}"
            )


class InformationGain(Measure):
    """Fills `process_reward`: the turn's gain in the probability of the right answer.

    g_t = L_{t+1} - L_t. L_t is the mean log-probability of the tokens of the first golden answer,
    given the prompt of turn t and the beginning of a response that gives it, under the policy that
    played, at its temperature. The response is written in the run's style, with a fixed thought.
    The last turn of a rollout has no prompt after it, and g = 0; with rows of tokens, the last one
    of a turn has its number. The golden answer comes from the environment's oracle; it is scored
    after the rollout's prompts and never part of one. A prompt that leaves no room for it loses its
    beginning.
    Reference: IGPO (Wang et al. 2025), arXiv:2510.14967; the paper's text was not at hand, so this
    follows its released code, GuoqingWang1/IGPO, the thought included.
    Departs from it: the tokens of the answer begin at its first character, whatever the tokenizer
    would merge with the text before.
    """

    columns: ClassVar[tuple[str, ...]] = ("process_reward",)

    def annotate(self, turns: TurnTable, rollouts: Sequence[Rollout]) -> TurnTable:
        """Return the table with the gains."""
        context = self._context
        rows = [row for rollout in rollouts for row in self._rows(rollout)]
        scored = score_tokens(context.policy, rows, context.temperature, context.max_tokens)
        mean = np.array([one.logprob.mean() for one in scored], dtype=np.float64)  # [N]
        belief = np.exp(mean) if self._settings.measure == "prob" else mean
        gain: Floats = np.append(belief[1:], 0.0) - belief
        # The next row of a rollout's last turn belongs to another rollout.
        gain[np.cumsum([len(rollout.turns) for rollout in rollouts]) - 1] = 0.0
        return replace(turns, process_reward=last_token_rows(context, gain, lengths_of(rollouts)))

    def _rows(self, rollout: Rollout) -> Iterator[Sample]:
        """Yield the right answer after the prompt of each turn."""
        before, answer = self._encoded(*_answer_of(rollout))
        room = max(1, self._context.policy.max_length - len(before) - len(answer))
        for completion in (turn.completion for turn in rollout.turns):
            yield Sample(
                completion.prompt_ids[-room:],
                before + answer,
                (0.0,) * len(answer),
                0.0,
                completion.images,
                (-1,) * len(before) + (0,) * len(answer),  # -1: context, not scored
            )

    def _encoded(self, action: str, golden: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the tokens of a response in front of the answer, and those of the answer."""
        assert self._context.style is not None
        policy = self._context.policy
        thought = f"<think>{self._settings.thought}</think>"
        response = self._context.style.answer(action).replace(_EMPTY_THOUGHT, thought)
        if self._context.style.name.endswith("/think") and thought not in response:
            response = f"{thought}\n{response}"
        # The last occurrence: a thought before it may name the answer too.
        start = response.rfind(golden)
        if start < 0:
            raise ConfigError(
                f"the style writes the answer {golden!r:.60} as {response!r:.80}, without its words"
            )
        written = policy.chat_encoder.generated_text(response[:start])
        return policy.encode(written), policy.encode(golden)


@dataclass(frozen=True, slots=True)
class SolverGainSettings:
    """Settings of `SolverGain`: none."""

    needs_oracle: ClassVar[bool] = True


class SolverGain(Measure):
    """Fills `process_reward`: the number of moves of the environment's solver that a turn saves.

    N(s) - N(s'), N the number of moves that the solver or expert needs from a state: 1 for one of
    the best moves. It is -N(s) if s' has no solution, and 0 if s has none or a number is unknown.
    With rows of tokens, the last one of a turn has its number.
    Reference: CAST (Wang et al. 2026), arXiv:2607.25308; the paper's text was not at hand, so this
    follows its released code, Wloner0809/CAST.
    Departs from it: N of ALFWorld and SearchQA are those of this package's experts.
    """

    columns: ClassVar[tuple[str, ...]] = ("process_reward",)

    def annotate(self, turns: TurnTable, rollouts: Sequence[Rollout]) -> TurnTable:
        """Return the table with the moves saved."""
        saved = np.array(
            [
                _saved(_remaining(turn.oracle), _remaining(turn.next_oracle))
                for one in rollouts
                for turn in one.turns
            ],
            dtype=np.float64,
        )
        rows = last_token_rows(self._context, saved, lengths_of(rollouts))
        return replace(turns, process_reward=rows)


def _answer_of(rollout: Rollout) -> tuple[str, str]:
    """Return the action that gives the first golden answer, and the answer."""
    oracle = _read(rollout.turns[0].oracle)
    golden, action = oracle.get("golden"), oracle.get("answer")
    if not golden or not isinstance(action, str):
        raise ConfigError(
            "the annotator 'information_gain' needs environments whose oracle has 'golden' answers "
            f"and the action 'answer', such as SearchQA's; got {rollout.turns[0].oracle!r:.60}"
        )
    return action, str(golden[0])


def _remaining(oracle: str) -> int:
    left = _read(oracle).get("optimal_remaining")
    if not isinstance(left, int):
        raise ConfigError(
            "the annotator 'solver_gain' needs environments whose oracle has 'optimal_remaining', "
            f"such as ALFWorld, Sokoban or SearchQA's generated questions; got {oracle!r:.60}"
        )
    return left


def _saved(before: int, after: int) -> int:
    if before < 0 or after < _UNSOLVABLE:
        return 0
    return -before if after == _UNSOLVABLE else before - after


def _read(oracle: str) -> dict[str, Any]:
    read: dict[str, Any] = json.loads(oracle) if oracle else {}
    return read
