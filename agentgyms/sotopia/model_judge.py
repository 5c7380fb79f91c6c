"""A judge that is a model behind a server of chat completions."""

from __future__ import annotations

from agentgyms.chat.asking import Asker
from agentgyms.errors import ModelUnavailable, PromptTooLong
from agentgyms.sotopia import prompts
from agentgyms.sotopia.dialogue import Dialogue, Rules
from agentgyms.sotopia.exchange import Exchange
from agentgyms.sotopia.parties import Verdict
from agentgyms.sotopia.profiles import Encounter
from agentgyms.sotopia.rating import read_ratings
from agentgyms.sotopia.reading import Refusal


class ModelJudge:
    """Asks a model to rate both people, with the prompt of `sotopia` 0.1.4.

    Departs from the package: an answer out of form or out of range is asked for once more with
    what was wrong; if that does not help there is no rating, where the package rates 0.
    """

    def __init__(self, asker: Asker) -> None:
        """Ask nothing yet."""
        self.asker = asker

    @property
    def identity(self) -> str:
        """The model's name."""
        return self.asker.model.name

    def rate(self, encounter: Encounter, rules: Rules, dialogue: Dialogue, seed: int) -> Verdict:
        """Return the verdict; without ratings where the answers are none or cannot be had.

        Raises:
            BadOption: The server does not take the request.
        """
        prompt = prompts.judge(encounter, dialogue)
        exchange = Exchange(self.asker, prompt, prompts.ratings_schema(), ("judge", seed))
        names = [person.name for person in encounter.people]
        try:
            ratings = exchange.ask(lambda text: read_ratings(text, names))
        except (ModelUnavailable, PromptTooLong) as error:
            return Verdict(None, f"the judge gave no answer: {error}", exchange.spent)
        if isinstance(ratings, Refusal):
            exchange.forget()  # else the episode would be unrated however often it is played
            reason = f"the judge's answer cannot be used: {ratings.reason}"
            return Verdict(None, reason, exchange.spent)
        return Verdict(ratings, spent=exchange.spent)
