"""What tests of model parties share: an encounter, a dialogue, and parties behind a chat server."""

import json

import chat_server as faults

from agentgyms.envs.sotopia.dialogue import Act, Kind, Rules
from agentgyms.envs.sotopia.llm.participants import ModelJudge, ModelPartner
from agentgyms.envs.sotopia.partner_judge import RANGES
from agentgyms.envs.sotopia.profiles import Encounter, Person, Relationship, Scenario
from agentgyms.models.sync_client import Model, SyncChatClient
from agentgyms.models.types import Sampling, Service

LONG = faults.status(400, "This model's maximum context length is 100 tokens.")
"""What a server says to a prompt that its model has no room for."""


def in_turn(*texts):
    """Return what answers with one text after the other."""
    left = iter(texts)
    return lambda messages: next(left)


def person(first, last, **changes):
    fields = {
        "person_id": first.lower(),
        "first_name": first,
        "last_name": last,
        "age": 40,
        "occupation": "Baker",
        "gender": "Woman",
        "gender_pronoun": "She/her",
        "public_info": f"{first} has two cats.",
        "personality_and_values": f"{first} is patient.",
        "secret": f"{first} cannot swim.",
    }
    return Person(**(fields | changes))


ADA, BO = person("Ada", "Kern"), person("Bo", "Lind", gender="Man", gender_pronoun="He/him")
LAMP = Scenario(
    "s1", "lamp", "craigslist_bargains", "Ada sells a lamp to Bo.",
    ("Sell it for 80.", "Buy it for 60."), Relationship.STRANGER,
)  # fmt: skip
MEETING = Encounter("c1/0", LAMP, (ADA, BO), seat=0)
RULES = Rules()
DIALOGUE = (
    ((0, Act(Kind.SPEAK, "Do you like {agent}s?")),),
    ((1, Act(Kind.NONVERBAL, "nods")),),
    ((0, Act(Kind.ACTION, "offers 80")),),
)
SCORES = {"believability": 9, "relationship": -2, "knowledge": 4, "secret": 0, "social_rules": -1,
          "financial_and_material_benefits": 3, "goal": 7}  # fmt: skip


def saying(act, argument=""):
    return json.dumps({"action_type": act, "argument": argument})


def rated(scores=SCORES, other=SCORES, keys=("agent_1_evaluation", "agent_2_evaluation")):
    """Return ratings of both people as JSON-plain fields."""
    one, two = (
        {name: [f"Why {name}.", given[name]] for name in RANGES} for given in (scores, other)
    )
    return {keys[0]: one, keys[1]: two}


def model(server, **changes):
    fields = {
        "sampling": Sampling(temperature=0.7, max_tokens=512),
        "service": Service(timeout_s=10.0, retries=2),
        "cache": False,
        "price_prompt": 2.0,
        "price_response": 8.0,
    }
    return Model(server.model, server.url, **(fields | changes))


def reply(server, dialogue=DIALOGUE, seat=1, seed=5, **changes):
    client = SyncChatClient(model(server, **changes))
    try:
        return ModelPartner(client).reply(MEETING, RULES, dialogue, seat, seed)
    finally:
        client.close()


def verdict(server, dialogue=DIALOGUE, seed=5, **changes):
    client = SyncChatClient(model(server, **changes))
    try:
        return ModelJudge(client).rate(MEETING, RULES, dialogue, seed)
    finally:
        client.close()
