"""Plays generated games by pure functions: dialogues written as lines, and learners by rule."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from agentgyms.core.randomness import Chance
from agentgyms.envs.sotopia.dialogue import Act, Dialogue, Ending, Kind, Rules, Turn
from agentgyms.envs.sotopia.generated import expert
from agentgyms.envs.sotopia.generated.bargaining import Bargaining
from agentgyms.envs.sotopia.generated.contact import Contact, Entry
from agentgyms.envs.sotopia.generated.division import Division
from agentgyms.envs.sotopia.generated.negotiation import Negotiation
from agentgyms.envs.sotopia.generated.partner import ScriptedPartner
from agentgyms.envs.sotopia.generated.scenarios import draw_game, encounter
from agentgyms.envs.sotopia.profiles import Encounter

Learner = Callable[[Encounter, Rules, Dialogue, int], str]

PARTNER = ScriptedPartner()
KINDS = {"act": Kind.ACTION, "speak": Kind.SPEAK}

LAMP = Bargaining("lamp", 120, (60, 100), (110, 70), ("garden", "move"))
"""The buyer wants 60 and goes below 110; the seller wants 100 and goes above 70."""
TOYS = Division(("balls", "dolls", "boxes"), (2, 2, 1), ((1, 2, 4), (4, 1, 0)), (3, 4))
PARTY = Contact(
    (
        (Entry("Alma", "Acorn", "chess"), Entry("Boris", "Beacon", "chess")),
        (Entry("Clara", "Acorn", "rowing"), Entry("Alma", "Acorn", "chess")),
    )
)


def act(line: str) -> Act:
    """Return an act written as an agent writes it."""
    kind, _, argument = line.partition(": ")
    return Act(KINDS[kind], argument) if kind in KINDS else Act(Kind(kind))


def talk(*lines: str) -> list[Turn]:
    """Return a dialogue in round-robin order, one act a line."""
    return [((number % 2, act(line)),) for number, line in enumerate(lines)]


def play(task_id: str, learner: Learner, rules: Rules | None = None, seed: int = 0) -> list[Turn]:
    """Return the dialogue of a learner with the scripted partner."""
    rules, met = rules or Rules(), encounter(task_id)
    dialogue: list[Turn] = []
    while rules.ending(dialogue) is Ending.OPEN:
        turn: list[tuple[int, Act]] = []
        for seat in rules.acting(len(dialogue)):
            if seat == met.seat:
                turn.append((seat, act(learner(met, rules, dialogue, seat))))
            else:
                turn.append((seat, PARTNER.reply(met, rules, dialogue, seat, seed).act))
        dialogue.append(tuple(turn))
    return dialogue


def best(met: Encounter, rules: Rules, dialogue: Dialogue, seat: int) -> str:
    return expert.next_action(met, rules, dialogue, seat, 0, "best")


def plain(met: Encounter, rules: Rules, dialogue: Dialogue, seat: int) -> str:
    return expert.next_action(met, rules, dialogue, seat, 0, "plain")


def stubborn(met: Encounter, rules: Rules, dialogue: Dialogue, seat: int) -> str:
    """Insist on the own aim; name one own contact after the other without ever asking."""
    game = met.game
    assert isinstance(game, Contact | Negotiation)
    if game.settled(dialogue):
        return "leave"
    if isinstance(game, Contact):
        uttered = game.uttered(dialogue, seat, seat)
        left = [name for name in game.names(seat) if name not in uttered]
        return f"act: name {left[0]}" if left else "leave"
    theirs = game.offer_state(dialogue).standing[1 - seat]
    if theirs is not None and game.gain(seat, theirs) >= game.aspiration(seat):
        return "act: accept"
    return f"act: offer {game.format_offer(seat, game.propose(seat, game.aspiration(seat), None))}"


def generous(met: Encounter, rules: Rules, dialogue: Dialogue, seat: int) -> str:
    """Accept the first offer that is worth anything, concede all at once, tell all names."""
    game = met.game
    if isinstance(game, Contact):
        heard = game.uttered(dialogue, 1 - seat, seat)
        return f"act: name {min(heard)}" if heard else f"speak: I know {game.names(seat)}."
    assert isinstance(game, Negotiation)
    theirs = game.offer_state(dialogue).standing[1 - seat]
    if theirs is not None and game.worth(seat, theirs) > 0:
        return "act: accept"
    offer = game.propose(seat, game.reservation(seat) + game.step, None)
    return f"act: offer {game.format_offer(seat, offer)}"


def random(met: Encounter, rules: Rules, dialogue: Dialogue, seat: int) -> str:
    """Do anything, whatever it means."""
    chance, game = Chance("random learner", met.task_id, len(dialogue)), met.game
    if isinstance(game, Contact):
        bound = f"act: name {chance.pick(game.names(seat))}"
    else:
        assert isinstance(game, Negotiation)
        bound = f"act: offer {game.format_offer(seat, chance.pick(game.outcomes()))}"
    return chance.pick([bound, "act: accept", "act: reject", "speak: Hello.", "none", "leave"])


def silent(met: Encounter, rules: Rules, dialogue: Dialogue, seat: int) -> str:
    return "none"


def leaving(met: Encounter, rules: Rules, dialogue: Dialogue, seat: int) -> str:
    return "leave"


def changed(met: Encounter, seat: int) -> Any:
    """Return the encounter's game with other private numbers of a seat."""
    game, chance = met.game, Chance("changed", met.task_id)

    def swap(pair: Any, value: Any) -> Any:
        return (value, pair[1]) if seat == 0 else (pair[0], value)

    if isinstance(game, Bargaining):
        return replace(
            game,
            targets=swap(game.targets, 3),
            limits=swap(game.limits, 177),
            reasons=swap(game.reasons, "whim"),
        )
    if isinstance(game, Division):
        return replace(game, points=swap(game.points, (2, 2, 2)), minima=swap(game.minima, 2))
    assert isinstance(game, Contact)
    common = next(entry for entry in game.tables[seat] if entry.name == game.common)
    drawn = draw_game(chance, "contact", "test").tables[0]
    known = {*game.names(0), *game.names(1)}
    strangers = tuple(replace(entry, name=f"New{entry.name}") for entry in drawn)
    assert known.isdisjoint(entry.name for entry in strangers)
    return replace(game, tables=swap(game.tables, (*strangers, common)))
