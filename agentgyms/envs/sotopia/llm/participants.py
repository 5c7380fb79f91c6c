"""A partner and a judge that are models on a server of chat completions."""

from __future__ import annotations

from typing import Final

from agentgyms.core.errors import ModelUnavailable, PromptTooLong
from agentgyms.envs.sotopia.action_parsing import ParseFailure, parse_action, parse_fields
from agentgyms.envs.sotopia.dialogue import NOTHING, Act, Dialogue, Rules
from agentgyms.envs.sotopia.llm import prompts
from agentgyms.envs.sotopia.llm.json_extraction import json_objects, strip_thoughts, unwrap
from agentgyms.envs.sotopia.llm.rating_parsing import parse_ratings
from agentgyms.envs.sotopia.llm.retried_request import RetriedRequest
from agentgyms.envs.sotopia.partner_judge import PartnerReply, Verdict
from agentgyms.envs.sotopia.profiles import Encounter
from agentgyms.models.sync_client import SyncChatClient

_FIRST_TURNS: Final = 2


class _Participant:
    def __init__(self, client: SyncChatClient) -> None:
        self.client = client

    @property
    def identity(self) -> str:
        return self.client.model.name


class ModelPartner(_Participant):
    """Asks a model for each act, with the prompt of `sotopia` 0.1.4.

    Differences: one retry prompt names the error, then the turn counts as malformed; acts may also
    have the form of a learner's action; an argument is one line.
    """

    def reply(
        self, encounter: Encounter, rules: Rules, dialogue: Dialogue, seat: int, seed: int
    ) -> PartnerReply:
        """Return the model's next act; equal arguments make equal requests.

        If the dialogue has become too long for the model, the turn is malformed. Raises
        `ModelUnavailable` (retrying is safe), `BadOption` if the server rejects the request, and
        `PromptTooLong` for the first prompt.
        """
        prompt = prompts.agent_prompt(encounter, dialogue, seat)
        name = ("partner", seed, seat, len(dialogue))
        exchange = RetriedRequest(self.client, prompt, prompts.action_schema(), name)
        try:
            act = exchange.complete(parse_answer)
        except PromptTooLong:
            if len(dialogue) < _FIRST_TURNS:
                raise
            return PartnerReply(NOTHING, malformed=True, usage=exchange.usage)
        if isinstance(act, ParseFailure):
            return PartnerReply(NOTHING, malformed=True, usage=exchange.usage)
        return PartnerReply(act, usage=exchange.usage)


class ModelJudge(_Participant):
    """Asks a model to rate both people, with the prompt of `sotopia` 0.1.4.

    Differences: one retry prompt names the error; without a valid answer there is no rating, not 0.
    """

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


def parse_answer(text: str) -> Act | ParseFailure:
    """Return the first JSON object that is an act, else the text as an action; no text raises."""
    text = strip_thoughts(text)
    failures: list[ParseFailure] = []
    for fields in json_objects(text):
        act = parse_fields(unwrap(fields, "properties"))
        if isinstance(act, Act):
            return act
        failures.append(act)
    act = parse_action(text)
    return failures[0] if isinstance(act, ParseFailure) and failures else act
