"""Experts for generated games, with and without knowledge of the other seat's numbers."""

from __future__ import annotations

from fractions import Fraction
from typing import Final, TypeVar

from agentgyms.core.errors import BadOption
from agentgyms.envs.sotopia.dialogue import Act, Dialogue, Kind, Rules
from agentgyms.envs.sotopia.generated.acts import acts_of, is_question, last_act, num_turns
from agentgyms.envs.sotopia.generated.concession import draw_strategy
from agentgyms.envs.sotopia.generated.contact import Contact, Entry, values_in
from agentgyms.envs.sotopia.generated.contact_partner import answer, describe
from agentgyms.envs.sotopia.generated.negotiation import Negotiation
from agentgyms.envs.sotopia.generated.negotiation_partner import count_stalls
from agentgyms.envs.sotopia.generated.words import words_of
from agentgyms.envs.sotopia.profiles import Encounter

KINDS: Final = ("best", "plain")
"""`best` knows both seats' numbers; `plain` knows only its own seat's.

In contact games both ask questions and name the contact that the answers imply.
"""

Outcome = TypeVar("Outcome")

_OPENING_TURNS: Final = 3
_CONCESSION_TURNS: Final = 7


def actions(
    encounter: Encounter, rules: Rules, dialogue: Dialogue, seat: int, seed: int
) -> dict[str, str]:
    """Return the next action of each expert, by kind."""
    return {kind: next_action(encounter, rules, dialogue, seat, seed, kind) for kind in KINDS}


def next_action(
    encounter: Encounter,
    rules: Rules,
    dialogue: Dialogue,
    seat: int,
    seed: int,
    kind: str = "best",
) -> str:
    """Return the next action, as an action text, of the expert `kind` (one of `KINDS`) at a seat.

    The episode's seed decides the scripted partner's strategy. Raises `BadOption` if the encounter
    has no generated game.
    """
    game = encounter.game
    if kind not in KINDS:
        raise BadOption(f"there is no expert {kind!r}: expected one of {', '.join(KINDS)}")
    if not isinstance(game, Negotiation | Contact):
        raise BadOption(f"{encounter.task_id!r} is no generated scenario: it has no expert")
    if game.settled(dialogue):
        return "leave"
    if isinstance(game, Contact):
        return _find_contact(game, dialogue, seat)
    left = num_turns(rules, seat) - len(acts_of(dialogue, seat))
    if kind == "plain":
        leaving = "leave" in words_of(last_act(dialogue, 1 - seat).argument)
        return _negotiate(
            game, dialogue, seat, _uninformed_offer(game, dialogue, seat), left <= 1 or leaving
        )
    strategy = draw_strategy(encounter.scenario.scenario_id, rules, 1 - seat, seed)
    offer = _informed_offer(game, dialogue, seat, strategy.max_stalls - 1)
    return _negotiate(game, dialogue, seat, offer, left <= 1)


def _negotiate(
    game: Negotiation[Outcome], dialogue: Dialogue, seat: int, offer: Outcome, last_chance: bool
) -> str:
    """Accept an offer as good as its proposal, or on the last turn any worthwhile offer."""
    theirs = game.offer_state(dialogue).standing[1 - seat]
    if theirs is not None:
        worthwhile = last_chance and game.worth(seat, theirs) > 0
        if worthwhile or game.gain(seat, theirs) >= game.gain(seat, offer):
            return "act: accept"
    return f"act: offer {game.format_offer(seat, offer)}"


def _informed_offer(
    game: Negotiation[Outcome], dialogue: Dialogue, seat: int, hold: int
) -> Outcome:
    """Concede quickly to the best acceptable outcome, hold it, then concede in smallest steps."""
    other, turn = 1 - seat, len(acts_of(dialogue, seat))
    outcomes = game.outcomes()
    possible = [o for o in outcomes if game.gain(other, o) >= game.reservation(other)]
    most = max(min(game.gain(seat, o), game.full_gain(seat)) for o in possible)
    given = max(game.gain(other, o) for o in possible if game.gain(seat, o) >= most)
    levels = sorted({game.gain(other, o) for o in outcomes})
    floor = levels[max(0, levels.index(given) - max(0, _OPENING_TURNS - turn))]
    offers = game.offer_state(dialogue).offers[seat]
    if offers and count_stalls(game, dialogue, other) >= hold:
        floor = max(floor, 1 + max(game.gain(other, o) for o in offers))
    bearable = [o for o in outcomes if game.gain(seat, o) >= game.reservation(seat)]
    good = [o for o in bearable if game.gain(other, o) >= floor]
    return max(good or bearable, key=lambda o: (game.gain(seat, o), game.gain(other, o)))


def _uninformed_offer(game: Negotiation[Outcome], dialogue: Dialogue, seat: int) -> Outcome:
    """Concede from the aspiration to just above the reservation value, late rather than early."""
    x = min(Fraction(1), Fraction(len(acts_of(dialogue, seat)), _CONCESSION_TURNS))
    aim, least = game.aspiration(seat), game.reservation(seat) + game.step
    offers = game.offer_state(dialogue).offers[1 - seat]
    return game.propose(seat, aim - x * x * max(0, aim - least), offers[-1] if offers else None)


def _find_contact(game: Contact, dialogue: Dialogue, seat: int) -> str:
    own, name = game.last_named(dialogue, seat), _deduced_name(game, dialogue, seat)
    if name is not None:
        return f"speak: Do you know {name}?" if own == name else f"act: name {name}"
    last = last_act(dialogue, 1 - seat)
    if is_question(last) and values_in(last.argument):
        return f"speak: {answer(game, seat, last.argument).argument}"
    left = _possible_entries(game, dialogue, seat)
    previous_acts = acts_of(dialogue, seat)
    new = [entry for entry in left if _question_about(entry) not in previous_acts]
    return f"speak: {_question_about((new or left)[0]).argument}"


def _deduced_name(game: Contact, dialogue: Dialogue, seat: int) -> str | None:
    mentioned = game.uttered(dialogue, 1 - seat, seat)
    left = _possible_entries(game, dialogue, seat)
    if mentioned:
        return min(mentioned)
    clues = acts_of(dialogue, 1 - seat)
    for entry in left:
        if describe(entry) in clues or _answer_about(dialogue, seat, entry) == "yes":
            return entry.name
    return left[0].name if len(left) == 1 else None


def _possible_entries(game: Contact, dialogue: Dialogue, seat: int) -> list[Entry]:
    table = game.tables[seat]
    left = [entry for entry in table if _answer_about(dialogue, seat, entry) != "no"]
    return left or list(table)


def _question_about(entry: Entry) -> Act:
    return Act(Kind.SPEAK, f"Do you know someone {entry.description}?")


def _answer_about(dialogue: Dialogue, seat: int, entry: Entry) -> str:
    """Return the first word of the other seat's answer to the question about an entry."""
    waiting = False
    for turn in dialogue:
        for who, act in turn:
            if who != seat and waiting:
                return (words_of(act.argument) or [""])[0]
        waiting = waiting or (seat, _question_about(entry)) in turn
    return ""
