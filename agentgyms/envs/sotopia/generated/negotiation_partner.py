"""The scripted partner's strategy in negotiation games."""

from __future__ import annotations

from fractions import Fraction
from typing import Final, TypeVar

from agentgyms.envs.sotopia.dialogue import Act, Dialogue, Kind
from agentgyms.envs.sotopia.generated.acts import Verb, acts_of, commitment, is_question, last_act
from agentgyms.envs.sotopia.generated.concession import ConcessionStrategy
from agentgyms.envs.sotopia.generated.negotiation import Negotiation

Outcome = TypeVar("Outcome")

_FIRM: Final = Act(Kind.SPEAK, "My offer stands.")


def demanded_gain(
    game: Negotiation[Outcome], dialogue: Dialogue, seat: int, strategy: ConcessionStrategy
) -> Fraction:
    """Return the gain that a scripted person demands now.

    aspiration - concession(turns) (aspiration - reservation), where turns is the number of its own
    turns so far, but at most that of the other seat's serious offers: talk alone brings no
    concession.
    """
    aim, least = game.aspiration(seat), min(game.reservation(seat), game.aspiration(seat))
    offers = [gain for gain in _offered_gains(game, dialogue, seat) if gain is not None]
    turns = min(len(acts_of(dialogue, seat)), len(offers))
    return aim - strategy.concession(turns) * (aim - least)


def accept_offer(
    game: Negotiation[Outcome], dialogue: Dialogue, seat: int, strategy: ConcessionStrategy
) -> Act | None:
    """Return the act of accepting if the standing offer gives the demanded gain, else None."""
    theirs = game.offer_state(dialogue).standing[1 - seat]
    if theirs is None or game.gain(seat, theirs) < demanded_gain(game, dialogue, seat, strategy):
        return None
    return Act(Kind.ACTION, "accept")


def next_offer(
    game: Negotiation[Outcome], dialogue: Dialogue, seat: int, strategy: ConcessionStrategy
) -> Act:
    """Return the answer to a question, each once, or else the offer for the demanded gain."""
    last = last_act(dialogue, 1 - seat)
    if is_question(last):
        answer = Act(Kind.SPEAK, game.answer(seat, last.argument))
        if answer not in acts_of(dialogue, seat):
            return answer
    table = game.offer_state(dialogue)
    offers = table.offers[1 - seat]
    demand = demanded_gain(game, dialogue, seat, strategy)
    offer = game.propose(seat, demand, offers[-1] if offers else None)
    if offer == table.standing[seat]:
        return _FIRM
    return Act(Kind.ACTION, f"offer {game.format_offer(seat, offer)}")


def count_stalls(game: Negotiation[Outcome], dialogue: Dialogue, seat: int) -> int:
    """Return the other seat's turns since a serious offer at least one step above all before."""
    best: int | None = None
    stalls = 0
    for gain in _offered_gains(game, dialogue, seat):
        if gain is not None and (best is None or gain >= best + game.step):
            best, stalls = gain, 0
        else:
            stalls += 1
    return stalls


def _offered_gains(game: Negotiation[Outcome], dialogue: Dialogue, seat: int) -> list[int | None]:
    """Return a seat's gain by each act of the other seat; None if it is no serious offer.

    An offer is serious if the gain is greater than minus the seat's aspiration.
    """
    gains: list[int | None] = []
    for act in acts_of(dialogue, 1 - seat):
        bound = commitment(act)
        offer = (
            game.parse_offer(1 - seat, bound.rest) if bound and bound.verb is Verb.OFFER else None
        )
        gain = None if offer is None else game.gain(seat, offer)
        gains.append(gain if gain is not None and gain > -game.aspiration(seat) else None)
    return gains
