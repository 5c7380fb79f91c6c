"""One episode: a dialogue with its partner, from the first words to the judge's verdict."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from agentgyms.sotopia.dialogue import Act, Ending, Rules, Turn
from agentgyms.sotopia.parties import Judge, Partner, Spent, Verdict
from agentgyms.sotopia.profiles import Encounter

_NOTHING_SPENT: Final = Spent()


@dataclass(frozen=True, slots=True)
class State:
    """Where an episode stands.

    Attributes:
        dialogue: The turns so far.
        pending: In self-chat and simultaneous order, the act of seat 0 that waits for seat 1's.
        malformed: The learner's texts that were no action.
        partner_malformed: The partner's texts that were none.
        refusals: Why nothing came of the text that each seat's caller gave last, else "".
        spent: What models took.
        verdict: The judge's, once the episode is over.
    """

    dialogue: tuple[Turn, ...] = ()
    pending: Act | None = None
    malformed: int = 0
    partner_malformed: int = 0
    refusals: tuple[str, str] = ("", "")
    spent: Spent = _NOTHING_SPENT
    verdict: Verdict | None = None


@dataclass(frozen=True, slots=True)
class Episode:
    """What an episode is played with; its states are values, so that a turn happens or does not.

    Attributes:
        encounter: Who meets whom; `encounter.seat` is the learner's.
        rules: Of the dialogue.
        partner: Acts for the other seat; None where the caller acts for both.
        judge: Rates the dialogue when it is over.
        seed: Of partner and judge.
        max_turns: Actions of the caller after which the episode is over.
    """

    encounter: Encounter
    rules: Rules
    partner: Partner | None
    judge: Judge
    seed: int
    max_turns: int

    def begin(self) -> State:
        """Return the first state in which the caller acts.

        Raises:
            EnvUnavailable: The partner speaks first and is not reached.
        """
        return self._answered(State())

    def take(self, state: State, act: Act, refusal: str = "", *, malformed: bool = False) -> State:
        """Return the state after an act of the caller, the partner's answer and the verdict.

        Where the partner's first words ended the dialogue, the act comes too late and is left out.

        Args:
            state: In which the caller acts.
            act: What the seat does; `NOTHING` for a text that was no action.
            refusal: Why nothing comes of it, for the seat's caller.
            malformed: The text was no action.

        Raises:
            EnvUnavailable: The partner is not reached; the state stands as it was.
        """
        state = self._with_refusal(state, refusal, malformed)
        if self.ending(state) is Ending.OPEN:
            state = self._answered(self._with_act(state, act))
        if self.ending(state) is Ending.OPEN and self.taken(state) < self.max_turns:
            return state
        verdict = self.judge.rate(self.encounter, self.rules, state.dialogue, self.seed)
        return replace(state, verdict=verdict, spent=state.spent + verdict.spent)

    def ending(self, state: State) -> Ending:
        """Return why the dialogue is over, if it is."""
        return self.rules.ending(state.dialogue)

    def taken(self, state: State) -> int:
        """Return how many actions the caller has taken."""
        acts = sum(self._calls(seat) for turn in state.dialogue for seat, _ in turn)
        return acts + (state.pending is not None)

    def acting(self, state: State) -> int:
        """Return the seat that the caller acts for next; at the end it is the learner's."""
        if self.partner is not None or state.verdict is not None:
            return self.encounter.seat
        return 1 if state.pending is not None else self.rules.acting(len(state.dialogue))[0]

    def first_unread(self, state: State, seat: int) -> int | None:
        """Return the first turn that a seat did not read before it last acted.

        None stands for a seat that has not acted: it has not read the context either.
        """
        for number in range(len(state.dialogue) - 1, -1, -1):
            if any(actor == seat for actor, _ in state.dialogue[number]):
                return number
        return None

    def _calls(self, seat: int) -> bool:
        return self.partner is None or seat == self.encounter.seat

    def _with_refusal(self, state: State, refusal: str, malformed: bool) -> State:
        seat = self.acting(state)
        own = seat == self.encounter.seat
        first, second = state.refusals
        return replace(
            state,
            refusals=(refusal, second) if seat == 0 else (first, refusal),
            malformed=state.malformed + (malformed and own),
            partner_malformed=state.partner_malformed + (malformed and not own),
        )

    def _with_act(self, state: State, act: Act) -> State:
        """Return the state after the caller's act; in simultaneous order with the other one's."""
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

    def _answered(self, state: State) -> State:
        """Return the state after the turns in which the partner alone acts."""
        seat = 1 - self.encounter.seat
        while self.partner is not None and self.ending(state) is Ending.OPEN:
            if self.rules.acting(len(state.dialogue)) != (seat,):
                break
            state, act = self._reply(state)
            state = _with_turn(state, ((seat, act),))
        return state

    def _reply(self, state: State) -> tuple[State, Act]:
        assert self.partner is not None, "in self-chat the caller acts for both seats"
        seat = 1 - self.encounter.seat
        reply = self.partner.reply(self.encounter, self.rules, state.dialogue, seat, self.seed)
        told = replace(
            state,
            spent=state.spent + reply.spent,
            partner_malformed=state.partner_malformed + reply.malformed,
        )
        return told, reply.act


def _with_turn(state: State, turn: Turn) -> State:
    return replace(state, dialogue=(*state.dialogue, turn))
