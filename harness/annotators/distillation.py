"""The annotator of distillation: a teacher scores the tokens of the policy's turns."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final, Protocol

import numpy as np

from agentgyms.core.errors import BadOption
from agentgyms.models.model_config import Model, read_model
from agentgyms.models.types import Sampling
from harness.annotators.context import AnnotatorContext
from harness.annotators.hints import Hints
from harness.annotators.measures import Measure
from harness.annotators.scoring_server import ScoringServer
from harness.annotators.skills import SkillBank
from harness.annotators.text_reader import check_tokens
from harness.credit import TurnTable
from harness.distributed.process_group import ProcessGroup
from harness.model.logprobs import score_tokens
from harness.model.packing import Sample
from harness.model.policy import Policy
from harness.types.arrays import Floats
from harness.types.errors import ConfigError
from harness.types.hyperparameters import one_of
from harness.types.rollout import Rollout, Turn, lengths_of

NAME: Final = "teacher"
"""Name of the annotator."""

SELF: Final = ("policy", "initial")
"""Teachers that are the policy itself: as it is now, and as it was before training."""

MISSING: Final = (
    "there is no teacher to learn from: set method.annotators.teacher.model to a folder, a hub "
    "name, or a model on a server, 'name@http://host:8000/v1'"
)

_PRECISIONS: Final = (None, "float32", "mixed", "bfloat16")
_FIELD: Final = re.compile(r"\{(\w+)\}")
_OUTCOME: Final = "observation"
_SKILL: Final = "skill"


@dataclass(frozen=True, slots=True)
class TeacherSettings:
    """Settings of `Teacher`."""

    # The teacher, without default: a folder or a hub name; `"name@http://host:8000/v1"` or a
    # mapping with name and url, for a model on a server; `"policy"` or `"initial"`, the policy in
    # training or before it.
    model: str | Mapping[str, Any] | None = None
    # Text at the end of the teacher's prompts, which the policy does not see. `{name}` is replaced
    # by that part of the oracle of the turn's state, such as `{best}`, the expert's next action;
    # `{observation}` by the last observation of the rollout; `{skill}` by what solved the most
    # similar task of the family in an earlier step.
    hint: str = ""
    precision: str | None = None  # a loaded teacher's precision; None takes the policy's

    def __post_init__(self) -> None:
        if self.model is not None and (not isinstance(self.model, str | Mapping) or not self.model):
            raise ConfigError(f"teacher.model must be a model's name, got {self.model!r:.80}")
        if not isinstance(self.hint, str):
            raise ConfigError(f"teacher.hint must be a text, got {self.hint!r:.80}")
        one_of("teacher.precision", self.precision, _PRECISIONS)
        _ = self.served

    @property
    def needs_reference(self) -> bool:
        """Whether the teacher is the policy before training."""
        return self.model == "initial"

    @property
    def oracle_parts(self) -> set[str]:
        """The parts of the oracle that the hint names."""
        return set(_FIELD.findall(self.hint)) - {_OUTCOME, _SKILL}

    @property
    def needs_oracle(self) -> bool:
        """Whether the hint has parts of the oracle."""
        return bool(self.oracle_parts)

    @property
    def needs_skills(self) -> bool:
        """Whether the hint has skills."""
        return _SKILL in _FIELD.findall(self.hint)

    @property
    def served(self) -> Model | None:
        """The model on a server, None if the teacher is none."""
        if self.model is None or (isinstance(self.model, str) and "@http" not in self.model):
            return None
        try:
            return read_model(self.model, "teacher.model", Sampling())
        except BadOption as e:
            raise ConfigError(str(e)) from None

    @property
    def name(self) -> str:
        """The teacher in words."""
        served = self.served
        return f"{served.name} at {served.url}" if served else str(self.model)

    @property
    def loaded(self) -> str | None:
        """The folder or hub name of a teacher that is loaded beside the policy, else None."""
        own = isinstance(self.model, str) and self.model not in SELF and not self.served
        return str(self.model) if own else None


class Teacher(Measure):
    """Fills `teacher_kl`: log pi - log pi_T of each token that the policy sampled, in nats.

    Its mean over samples of the policy is the reverse KL divergence KL(pi || pi_T) (k1). pi_T is
    the teacher, given the tokens that the policy saw and the hint: at the run's temperature, or at
    temperature 1 on a server. log pi is recomputed, so the policy as its teacher without a hint
    gives exactly 0. With a hint each turn is scored with its prompt alone, also in the context
    "transcript"; a hint that does not fit is cut at its end, and one that names a missing part of
    the oracle, or a skill that no success has shown yet, is left out.
    Reference: GKD (Agarwal et al. 2023), arXiv:2306.13649, for the divergence on the student's
    outputs; OPSD (Zhao et al. 2026), arXiv:2601.18734, for the privileged teacher.
    """

    columns: ClassVar[tuple[str, ...]] = ("teacher_kl",)

    def __init__(self, settings: TeacherSettings, context: AnnotatorContext) -> None:
        self._settings, self._context = settings, context
        self._teacher = _open(settings, context)
        limits = (self._teacher.max_length, context.policy.max_length)
        self._longest = min(limit for limit in limits if limit)
        self._hints = Hints(context.policy, self._longest) if settings.hint else None
        self._skills = SkillBank()

    def annotate(self, turns: TurnTable, rollouts: Sequence[Rollout]) -> TurnTable:
        """Return the table with its divergences: of tokens, or summed over each turn's."""
        context = self._context
        rows = self._hinted(self._hints, rollouts) if self._hints else context.sequences(rollouts)
        longest = max((row.length for row in rows), default=0)
        if longest > self._longest:
            raise ConfigError(
                f"a sequence of {longest} tokens is too long for the teacher, which reads "
                f"{self._longest}: set agent.max_context to that"
            )
        policy, _ = context.scores(context.policy, rollouts)  # [A]
        # A hinted row has one answer, another row a sequence: both hold all answers in order.
        teacher = np.concatenate([np.zeros(0), *self._teacher.score(rows)])  # [A]
        return replace(turns, teacher_kl=context.as_rows(policy - teacher, lengths_of(rollouts)))

    def learn(
        self, turns: TurnTable, rollouts: Sequence[Rollout], *, step: int, seed: int
    ) -> dict[str, float]:
        """Take the step's skills; return the divergence in nats a token, and how many there are."""
        assert turns.teacher_kl is not None
        told = {"teacher/kl": float(turns.teacher_kl.sum() / lengths_of(rollouts).sum())}
        if self._settings.needs_skills:
            self._skills.take(rollouts)
            told["teacher/skills"] = float(len(self._skills))
        return told

    def state_dict(self) -> dict[str, Any]:
        """Return the skills."""
        return self._skills.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from `state_dict`."""
        self._skills.load_state_dict(state)

    def _hinted(self, hints: Hints, rollouts: Sequence[Rollout]) -> list[Sample]:
        """Return each answer after its prompt with the hint."""
        texts: list[str | None] = []
        for rollout in rollouts:
            parts = {_OUTCOME: rollout.turns[-1].next_observation} if rollout.turns else {}
            skill = self._skills.find(rollout) if self._settings.needs_skills else None
            parts |= {} if skill is None else {_SKILL: skill}
            texts += [self._hint(turn, parts) for turn in rollout.turns]
        turns = [turn for rollout in rollouts for turn in rollout.turns]
        if turns and not any(self._settings.oracle_parts <= _oracle(turn).keys() for turn in turns):
            raise ConfigError(
                f"teacher.hint {self._settings.hint!r:.80} names a part of the oracle that no "
                f"state here has: they have {', '.join(_oracle(turns[0])) or 'none'}"
            )
        return [
            hints.row(answer, text or "")
            for turn, text in zip(turns, texts, strict=True)
            for answer in turn.answers
        ]

    def _hint(self, turn: Turn, of_rollout: Mapping[str, str]) -> str | None:
        parts = {**_oracle(turn), **of_rollout}
        if not set(_FIELD.findall(self._settings.hint)) <= parts.keys():
            return None
        # The oracle and the world's texts must not write the chat template's special tokens.
        escape = self._context.policy.chat_encoder.escape_special_tokens
        return _FIELD.sub(lambda match: escape(parts[match[1]]), self._settings.hint)


def _oracle(turn: Turn) -> dict[str, str]:
    read = json.loads(turn.oracle) if turn.oracle else {}
    return {
        name: ", ".join(map(str, part)) if isinstance(part, list) else str(part)
        for name, part in read.items()
    }


class _Scorer(Protocol):
    """Scores samples; `max_length` is the longest that it takes, None if it is unknown."""

    @property
    def max_length(self) -> int | None: ...

    def score(self, rows: Sequence[Sample]) -> list[Floats]: ...


@dataclass(frozen=True, slots=True, eq=False)
class _Local:
    policy: Policy
    context: AnnotatorContext

    @property
    def max_length(self) -> int:
        return self.policy.max_length

    def score(self, rows: Sequence[Sample]) -> list[Floats]:
        own = self.context
        scored = score_tokens(self.policy, rows, own.temperature, own.max_tokens)
        return [one.logprob for one in scored]


@dataclass(frozen=True, slots=True, eq=False)
class _Served:
    """A teacher on a server, which the first process asks."""

    server: ScoringServer
    processes: ProcessGroup
    max_length: int | None

    def score(self, rows: Sequence[Sample]) -> list[Floats]:
        return self.processes.run_on_first(lambda: self.server.score(rows))


def _open(settings: TeacherSettings, context: AnnotatorContext) -> _Scorer:
    """Return the teacher's scorer; raise `ConfigError` or `ModelUnavailable` if it cannot score."""
    if settings.served is not None:
        server, tokenizer = ScoringServer(settings.served), context.policy.chat_tokenizer
        context.processes.run_on_first(lambda: server.check(tokenizer))
        longest = context.processes.run_on_first(lambda: server.max_length)
        return _Served(server, context.processes, longest)
    if settings.model in SELF:
        chosen = context.policy if settings.model == "policy" else context.reference
        assert chosen is not None
        return _Local(chosen, context)
    return _Local(_load(settings, context.policy, context.processes), context)


def _load(settings: TeacherSettings, policy: Policy, processes: ProcessGroup) -> Policy:
    if settings.loaded is None:
        raise ConfigError(MISSING)
    precision = settings.precision or policy.precision
    teacher = Policy.load(
        settings.loaded, str(policy.device), precision=precision, setting="teacher.model"
    )
    check_tokens(f"teacher.model {settings.loaded!r}", teacher.tokenizer, policy.tokenizer)
    if (teacher.vision is None) != (policy.vision is None):
        raise ConfigError(
            f"teacher.model {settings.loaded!r} and the policy must both see images, or neither"
        )
    teacher.layout = policy.layout
    teacher.set_padding_free(None)
    teacher.model.requires_grad_(False)
    teacher.shard(processes)
    return teacher
