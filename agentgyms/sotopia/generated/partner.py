"""The scripted partner: manners and patience; how it plays is in `offers` and `clues`."""

from __future__ import annotations

from typing import Any, Final

from agentgyms.chance import Chance
from agentgyms.errors import BadOption
from agentgyms.sotopia.dialogue import Act, Dialogue, Kind, Rules
from agentgyms.sotopia.generated import clues, offers
from agentgyms.sotopia.generated.acts import acts_of, is_insult, last_act
from agentgyms.sotopia.generated.contact import Contact
from agentgyms.sotopia.generated.curves import Temper, draw_temper
from agentgyms.sotopia.generated.haggling import Haggling
from agentgyms.sotopia.parties import Reply
from agentgyms.sotopia.profiles import Encounter

IDENTITY: Final = "scripted-v1"

_LEAVE: Final = Act(Kind.LEAVE)
_GOODBYE: Final = Act(Kind.SPEAK, "Thank you. Goodbye.")
_POLITE: Final = Act(Kind.SPEAK, "Please be polite, or I leave.")
_HURRY: Final = Act(Kind.SPEAK, "This leads nowhere. I will leave soon.")
_INSULTS: Final = 2


class ScriptedPartner:
    """Plays a seat of a generated game by rules, without a model.

    What it does is a function of the encounter, the rules, the dialogue and the seed. Of the game
    it uses its own seat's numbers and what is public, never the other seat's. In this order:

    1. When there is a deal, or both have named one person that it knows, it says goodbye once,
       and then leaves.
    2. It asks for politeness after the first insult, and leaves after the second.
    3. It accepts an offer that is good enough now, or names a contact of its own whose name it
       has heard.
    4. It leaves when the other one's last turns, as many as its patience (4 or 5), brought no
       progress, and says so one turn before.
    5. It answers questions, and else makes the offer that it demands now, or tells of a contact.

    What it demands falls with the serious offers that it gets, not while the other one only talks.
    """

    @property
    def identity(self) -> str:
        """`scripted-v1`."""
        return IDENTITY

    def reply(
        self, encounter: Encounter, rules: Rules, dialogue: Dialogue, seat: int, seed: int
    ) -> Reply:
        """Return what it does next.

        Raises:
            BadOption: The encounter has no generated game.
        """
        game = encounter.game
        if not isinstance(game, Haggling | Contact):
            raise BadOption(
                f"partner {IDENTITY} plays generated scenarios, and {encounter.task_id!r} is none:"
                " give a model as partner"
            )
        if _is_done(game, dialogue, seat):
            return Reply(_LEAVE if _GOODBYE in acts_of(dialogue, seat) else _GOODBYE)
        name = encounter.scenario.scenario_id
        temper = draw_temper(name, rules, seat, seed)
        chance = Chance(IDENTITY, "clues", name, seat, seed)
        return Reply(_manners(dialogue, seat) or _act(game, dialogue, seat, temper, chance))


def _is_done(game: Contact | Haggling[Any], dialogue: Dialogue, seat: int) -> bool:
    if isinstance(game, Contact):
        return clues.agreed(game, dialogue, seat)
    return game.settled(dialogue)


def _act(
    game: Contact | Haggling[Any], dialogue: Dialogue, seat: int, temper: Temper, chance: Chance
) -> Act:
    if isinstance(game, Contact):
        return (
            clues.recognised(game, dialogue, seat)
            or _patience(clues.count_stalls(game, dialogue, seat), temper)
            or clues.next_clue(game, dialogue, seat, chance)
        )
    return (
        offers.acceptance(game, dialogue, seat, temper)
        or _patience(offers.count_stalls(game, dialogue, seat), temper)
        or offers.next_offer(game, dialogue, seat, temper)
    )


def _manners(dialogue: Dialogue, seat: int) -> Act | None:
    if sum(map(is_insult, acts_of(dialogue, 1 - seat))) >= _INSULTS:
        return _LEAVE
    return _POLITE if is_insult(last_act(dialogue, 1 - seat)) else None


def _patience(stalls: int, temper: Temper) -> Act | None:
    if stalls >= temper.patience:
        return _LEAVE
    return _HURRY if stalls == temper.patience - 1 else None
