"""A judge that is a model on a server of chat completions."""

from __future__ import annotations

from agentgyms.core.errors import ModelUnavailable, PromptTooLong
from agentgyms.envs.sotopia.action_parsing import ParseFailure
from agentgyms.envs.sotopia.dialogue import Dialogue, Rules
from agentgyms.envs.sotopia.llm import prompts
from agentgyms.envs.sotopia.llm.rating_parsing import parse_ratings
from agentgyms.envs.sotopia.llm.retried_request import RetriedRequest
from agentgyms.envs.sotopia.partner_judge import Verdict
from agentgyms.envs.sotopia.profiles import Encounter
from agentgyms.models.sync_client import SyncChatClient


class ModelJudge:
    """Asks a model to rate both people, with the prompt of `sotopia` 0.1.4.

    Difference: after an answer that is malformed or out of range, one retry prompt names the error;
    if the second answer is invalid too, there is no rating, where the package rates 0.
    """

    def __init__(self, client: SyncChatClient) -> None:
        """Store the client; no request is sent yet."""
        self.client = client

    @property
    def identity(self) -> str:
        """The model's name."""
        return self.client.model.name

    def rate(self, encounter: Encounter, rules: Rules, dialogue: Dialogue, seed: int) -> Verdict:
        """Return the verdict; without ratings if no answer came or none can be parsed."""
        prompt = prompts.judge_prompt(encounter, dialogue)
        exchange = RetriedRequest(self.client, prompt, prompts.ratings_schema(), ("judge", seed))
        names = [person.name for person in encounter.people]
        try:
            ratings = exchange.complete(lambda text: parse_ratings(text, names))
        except (ModelUnavailable, PromptTooLong) as error:
            return Verdict(None, f"the judge gave no answer: {error}", exchange.usage)
        if isinstance(ratings, ParseFailure):
            exchange.forget()  # otherwise every repetition of the episode would be unrated
            reason = f"the judge's answer cannot be used: {ratings.reason}"
            return Verdict(None, reason, exchange.usage)
        return Verdict(ratings, usage=exchange.usage)
