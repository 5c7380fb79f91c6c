"""Simulates an episode: the dialogue with a partner, from the first act to the judge's verdict."""

from __future__ import annotations

from dataclasses import dataclass, replace

from agentgyms.envs.sotopia.dialogue import Act, Ending, Rules, Turn
from agentgyms.envs.sotopia.partner_judge import Judge, Partner, Verdict
from agentgyms.envs.sotopia.profiles import Encounter
from agentgyms.models.usage import NO_USAGE, Usage


@dataclass(frozen=True, slots=True)
class DialogueState:
    """The state of an episode; `verdict` is None until it is over.

    `pending` is, in self-chat and simultaneous order, seat 0's act until seat 1 has acted.
    `feedback_texts` say for each seat why its last text had no effect, else "".
    """

    dialogue: tuple[Turn, ...] = ()
    pending: Act | None = None
    malformed: int = 0
    partner_malformed: int = 0
    feedback_texts: tuple[str, str] = ("", "")
    usage: Usage = NO_USAGE
    verdict: Verdict | None = None


@dataclass(frozen=True, slots=True)
class DialogueSimulator:
    """Maps a state and an act to the next state; neither the simulator nor a state is mutated.

    Without a partner the caller acts for both seats. `max_turns` counts the caller's actions.
    """

    encounter: Encounter
    rules: Rules
    partner: Partner | None
    judge: Judge
    seed: int
    max_turns: int

    def begin(self) -> DialogueState:
        """Return the first state in which the caller acts."""
        return self._with_partner_turns(DialogueState())

    def step(
        self, state: DialogueState, act: Act, feedback: str = "", *, malformed: bool = False
    ) -> DialogueState:
        """Return the state after the caller's act, the partner's acts and, at the end, the verdict.

        If the partner's first act ended the dialogue, the caller's act is dropped. A malformed text
        is the act `NOTHING`; `feedback` says to the seat why its text has no effect, else "". After
        an `EnvUnavailable`, `state` is still valid.
        """
        seat = self.acting(state)
        own = seat == self.encounter.seat
        first, second = state.feedback_texts
        state = replace(
            state,
            feedback_texts=(feedback, second) if seat == 0 else (first, feedback),
            malformed=state.malformed + (malformed and own),
            partner_malformed=state.partner_malformed + (malformed and not own),
        )
        if self.ending(state) is Ending.OPEN:
            state = self._with_partner_turns(self._with_act(state, act))
        if self.ending(state) is Ending.OPEN and self.num_actions(state) < self.max_turns:
            return state
        verdict = self.judge.rate(self.encounter, self.rules, state.dialogue, self.seed)
        return replace(state, verdict=verdict, usage=state.usage + verdict.usage)

    def ending(self, state: DialogueState) -> Ending:
        """Return why the dialogue ended, `Ending.OPEN` if it has not."""
        return self.rules.ending(state.dialogue)

    def num_actions(self, state: DialogueState) -> int:
        """Return how many actions the caller has taken."""
        acts = sum(self._is_caller(seat) for turn in state.dialogue for seat, _ in turn)
        return acts + (state.pending is not None)

    def acting(self, state: DialogueState) -> int:
        """Return the seat for which the caller acts next; the learner's at the end."""
        if self.partner is not None or state.verdict is not None:
            return self.encounter.seat
        return 1 if state.pending is not None else self.rules.acting(len(state.dialogue))[0]

    def first_unread(self, state: DialogueState, seat: int) -> int | None:
        """Return the turn in which a seat last acted, the first it has not read; else None."""
        for number in range(len(state.dialogue) - 1, -1, -1):
            if any(actor == seat for actor, _ in state.dialogue[number]):
                return number
        return None

    def _is_caller(self, seat: int) -> bool:
        return self.partner is None or seat == self.encounter.seat

    def _with_act(self, state: DialogueState, act: Act) -> DialogueState:
        if self.rules.order != "simultaneous":
            return _with_turn(state, ((self.acting(state), act),))
        if self.partner is not None:
            answered, other = self._reply(state)
            seat = self.encounter.seat
            acts = (act, other) if seat == 0 else (other, act)
            return _with_turn(answered, tuple(enumerate(acts)))
        if state.pending is None:
            return replace(state, pending=act)
        return _with_turn(replace(state, pending=None), ((0, state.pending), (1, act)))

    def _with_partner_turns(self, state: DialogueState) -> DialogueState:
        seat = 1 - self.encounter.seat
        while self.partner is not None and self.ending(state) is Ending.OPEN:
            if self.rules.acting(len(state.dialogue)) != (seat,):
                break
            state, act = self._reply(state)
            state = _with_turn(state, ((seat, act),))
        return state

    def _reply(self, state: DialogueState) -> tuple[DialogueState, Act]:
        assert self.partner is not None, "in self-chat the caller acts for both seats"
        seat = 1 - self.encounter.seat
        reply = self.partner.reply(self.encounter, self.rules, state.dialogue, seat, self.seed)
        updated = replace(
            state,
            usage=state.usage + reply.usage,
            partner_malformed=state.partner_malformed + reply.malformed,
        )
        return updated, reply.act


def _with_turn(state: DialogueState, turn: Turn) -> DialogueState:
    return replace(state, dialogue=(*state.dialogue, turn))
