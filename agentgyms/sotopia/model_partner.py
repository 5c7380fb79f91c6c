"""A partner that is a model behind a server of chat completions."""

from __future__ import annotations

from typing import Final

from agentgyms.chat.asking import Asker
from agentgyms.errors import PromptTooLong
from agentgyms.sotopia import prompts
from agentgyms.sotopia.answers import objects, spoken, unwrapped
from agentgyms.sotopia.dialogue import NOTHING, Act, Dialogue, Rules
from agentgyms.sotopia.exchange import Exchange
from agentgyms.sotopia.parties import Reply
from agentgyms.sotopia.profiles import Encounter
from agentgyms.sotopia.reading import Refusal, read_action, read_fields

_FIRST_TURNS: Final = 2


class ModelPartner:
    """Asks a model for each act, with the prompt of `sotopia` 0.1.4.

    Departs from the package: an answer that is no act is asked for once more with what was wrong,
    and if that does not help, the turn is marked as malformed and not passed silently; acts may
    also be written as a learner writes them; an argument is one line.
    """

    def __init__(self, asker: Asker) -> None:
        """Ask nothing yet."""
        self.asker = asker

    @property
    def identity(self) -> str:
        """The model's name."""
        return self.asker.model.name

    def reply(
        self, encounter: Encounter, rules: Rules, dialogue: Dialogue, seat: int, seed: int
    ) -> Reply:
        """Return what the model does next; equal arguments make equal requests.

        A dialogue that has become too long for the model makes its turns malformed.

        Raises:
            ModelUnavailable: The model gave no answer; asking again is safe.
            BadOption: The server does not take the request.
            PromptTooLong: Not even the context fits.
        """
        prompt = prompts.agent(encounter, dialogue, seat)
        name = ("partner", seed, seat, len(dialogue))
        exchange = Exchange(self.asker, prompt, prompts.action_schema(), name)
        try:
            act = exchange.ask(read_answer)
        except PromptTooLong:
            if len(dialogue) < _FIRST_TURNS:
                raise
            return Reply(NOTHING, malformed=True, spent=exchange.spent)
        if isinstance(act, Refusal):
            return Reply(NOTHING, malformed=True, spent=exchange.spent)
        return Reply(act, spent=exchange.spent)


def read_answer(text: str) -> Act | Refusal:
    """Return the act in a model's answer; no text raises.

    The first JSON object in it that is an act, else the whole of it as a learner's action.
    """
    text = spoken(text)
    refusals: list[Refusal] = []
    for fields in objects(text):
        act = read_fields(unwrapped(fields, "properties"))
        if isinstance(act, Act):
            return act
        refusals.append(act)
    act = read_action(text)
    return refusals[0] if isinstance(act, Refusal) and refusals else act
