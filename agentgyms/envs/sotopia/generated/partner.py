"""The scripted partner; its game strategies are in `offers` and `clues`."""

from __future__ import annotations

from typing import Any, Final

from agentgyms.core.errors import BadOption
from agentgyms.core.randomness import Chance
from agentgyms.envs.sotopia.dialogue import Act, Dialogue, Kind, Rules
from agentgyms.envs.sotopia.generated import contact_partner, negotiation_partner
from agentgyms.envs.sotopia.generated.acts import acts_of, is_insult, last_act
from agentgyms.envs.sotopia.generated.concession import ConcessionStrategy, draw_strategy
from agentgyms.envs.sotopia.generated.contact import Contact
from agentgyms.envs.sotopia.generated.negotiation import Negotiation
from agentgyms.envs.sotopia.partner_judge import PartnerReply
from agentgyms.envs.sotopia.profiles import Encounter

IDENTITY: Final = "scripted-v1"

_LEAVE: Final = Act(Kind.LEAVE)
_GOODBYE: Final = Act(Kind.SPEAK, "Thank you. Goodbye.")
_POLITE: Final = Act(Kind.SPEAK, "Please be polite, or I leave.")
_HURRY: Final = Act(Kind.SPEAK, "This leads nowhere. I will leave soon.")
_INSULTS: Final = 2


class ScriptedPartner:
    """Plays a seat of a generated game by rules, without a model.

    Its act is a function of the encounter, the rules, the dialogue and the seed. It uses public
    numbers and those of its own seat, never the other seat's. The first rule that applies:

    1. After a deal, or when both have named the same contact of its own, it says goodbye once and
       then leaves.
    2. It asks for politeness after the first insult and leaves after the second.
    3. It accepts an offer with the demanded gain, or names an own contact that the other seat has
       mentioned.
    4. It leaves after `max_stalls` (4 or 5) turns of the other seat without progress, with a
       warning one turn before.
    5. It answers a question, or else makes the offer for the demanded gain, or describes a contact.

    The demanded gain falls with the number of serious offers received, not with talk.
    """

    identity = IDENTITY

    def reply(
        self, encounter: Encounter, rules: Rules, dialogue: Dialogue, seat: int, seed: int
    ) -> PartnerReply:
        """Return the partner's next act; `BadOption` if the encounter has no generated game."""
        game = encounter.game
        if not isinstance(game, Negotiation | Contact):
            raise BadOption(
                f"partner {IDENTITY} plays generated scenarios, and {encounter.task_id!r} is none:"
                " give a model as partner"
            )
        if _is_done(game, dialogue, seat):
            return PartnerReply(_LEAVE if _GOODBYE in acts_of(dialogue, seat) else _GOODBYE)
        name = encounter.scenario.scenario_id
        strategy = draw_strategy(name, rules, seat, seed)
        chance = Chance(IDENTITY, "clues", name, seat, seed)
        return PartnerReply(
            _respond_to_insults(dialogue, seat) or _act(game, dialogue, seat, strategy, chance)
        )


def _is_done(game: Contact | Negotiation[Any], dialogue: Dialogue, seat: int) -> bool:
    if isinstance(game, Contact):
        return contact_partner.has_agreed(game, dialogue, seat)
    return game.settled(dialogue)


def _act(
    game: Contact | Negotiation[Any],
    dialogue: Dialogue,
    seat: int,
    strategy: ConcessionStrategy,
    chance: Chance,
) -> Act:
    if isinstance(game, Contact):
        return (
            contact_partner.name_shared_contact(game, dialogue, seat)
            or _respond_to_stalls(contact_partner.count_stalls(game, dialogue, seat), strategy)
            or contact_partner.next_clue(game, dialogue, seat, chance)
        )
    return (
        negotiation_partner.accept_offer(game, dialogue, seat, strategy)
        or _respond_to_stalls(negotiation_partner.count_stalls(game, dialogue, seat), strategy)
        or negotiation_partner.next_offer(game, dialogue, seat, strategy)
    )


def _respond_to_insults(dialogue: Dialogue, seat: int) -> Act | None:
    if sum(map(is_insult, acts_of(dialogue, 1 - seat))) >= _INSULTS:
        return _LEAVE
    return _POLITE if is_insult(last_act(dialogue, 1 - seat)) else None


def _respond_to_stalls(stalls: int, strategy: ConcessionStrategy) -> Act | None:
    if stalls >= strategy.max_stalls:
        return _LEAVE
    return _HURRY if stalls == strategy.max_stalls - 1 else None
