"""How the scripted partner plays games of offers."""

from __future__ import annotations

from fractions import Fraction
from typing import Final, TypeVar

from agentgyms.sotopia.dialogue import Act, Dialogue, Kind
from agentgyms.sotopia.generated.acts import Verb, acts_of, commitment, is_question, last_act
from agentgyms.sotopia.generated.curves import Temper
from agentgyms.sotopia.generated.haggling import Haggling

Outcome = TypeVar("Outcome")

_FIRM: Final = Act(Kind.SPEAK, "My offer stands.")


def demanded(game: Haggling[Outcome], dialogue: Dialogue, seat: int, temper: Temper) -> Fraction:
    """Return the gain that a scripted person asks for now.

    aim - conceded(turns) (aim - least), where turns are its own so far, but as many at most as the
    other one's serious offers: talk alone moves nobody.
    """
    aim, least = game.aim(seat), min(game.least(seat), game.aim(seat))
    offers = [gain for gain in _offered(game, dialogue, seat) if gain is not None]
    turns = min(len(acts_of(dialogue, seat)), len(offers))
    return aim - temper.conceded(turns) * (aim - least)


def acceptance(
    game: Haggling[Outcome], dialogue: Dialogue, seat: int, temper: Temper
) -> Act | None:
    """Return to accept the other one's offer if it gives the gain that is asked for now."""
    theirs = game.table(dialogue).standing[1 - seat]
    if theirs is None or game.gain(seat, theirs) < demanded(game, dialogue, seat, temper):
        return None
    return Act(Kind.ACTION, "accept")


def next_offer(game: Haggling[Outcome], dialogue: Dialogue, seat: int, temper: Temper) -> Act:
    """Return an answer to a question, once each, or else the offer that is asked for now."""
    asked = last_act(dialogue, 1 - seat)
    if is_question(asked):
        answer = Act(Kind.SPEAK, game.answer(seat, asked.argument))
        if answer not in acts_of(dialogue, seat):
            return answer
    table = game.table(dialogue)
    made = table.made[1 - seat]
    demand = demanded(game, dialogue, seat, temper)
    offer = game.ask(seat, demand, made[-1] if made else None)
    if offer == table.standing[seat]:
        return _FIRM
    return Act(Kind.ACTION, f"offer {game.tell(seat, offer)}")


def count_stalls(game: Haggling[Outcome], dialogue: Dialogue, seat: int) -> int:
    """Return how many turns of the other one since its last progress.

    Progress is a serious offer that is better for this seat by a step than all before.
    """
    best: int | None = None
    stalls = 0
    for gain in _offered(game, dialogue, seat):
        if gain is not None and (best is None or gain >= best + game.step):
            best, stalls = gain, 0
        else:
            stalls += 1
    return stalls


def _offered(game: Haggling[Outcome], dialogue: Dialogue, seat: int) -> list[int | None]:
    """Return what a seat would gain by each act of the other one; None if it offers nothing.

    An offer is serious unless it is as far below nothing as the seat's aim is above.
    """
    gains: list[int | None] = []
    for act in acts_of(dialogue, 1 - seat):
        bound = commitment(act)
        offer = game.read(1 - seat, bound.rest) if bound and bound.verb is Verb.OFFER else None
        gain = None if offer is None else game.gain(seat, offer)
        gains.append(gain if gain is not None and gain > -game.aim(seat) else None)
    return gains
