"""Runs in the Python that has sotopia 0.1.4: plays what it is told and says what the package shows.

Reads one request per line from standard input, JSON, and answers each with one line. Models are
never asked: what would be sent to them is answered and recorded here.
"""

# ruff: noqa: E402

import asyncio
import json
import logging
import os
import sys
from types import SimpleNamespace

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
ANSWERS = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)  # the package prints

from redis_om.model import model as stored

stored.has_redis_json = lambda *args, **kwargs: True  # profiles are made here, and never stored

from sotopia.agents import Agents, LLMAgent
from sotopia.database import AgentProfile, EnvironmentProfile
from sotopia.envs.evaluators import (
    EpisodeLLMEvaluator,
    EvaluationForTwoAgents,
    RuleBasedTerminatedEvaluator,
    SotopiaDimensions,
    unweighted_aggregate_evaluate,
)
from sotopia.envs.parallel import ParallelSotopiaEnv
from sotopia.generation_utils import generate
from sotopia.renderers import RenderContext, XMLRenderer

logging.disable(logging.CRITICAL)

ACTION_TYPES = ["none", "speak", "non-verbal communication", "action", "leave"]
TAGS = ["extra_info", "clarification_hint", "strategy_hint"]
asked = []  # (prompt, sampling)
told = []  # what the models say next


async def completion(**request):
    asked.append(request)
    message = SimpleNamespace(content=told.pop(0))
    return SimpleNamespace(choices=[SimpleNamespace(message=message)])


generate.acompletion = completion


class NoJudge:
    """Rates nothing at the end of an episode, see `judge`."""

    prompt = ""

    async def __acall__(self, **_):
        return []


def profile(cls, fields):
    """Drops what says that there is none, as the package's own types want it."""
    return cls(**{name: value for name, value in fields.items() if value != "none"})


async def play(request):
    env = ParallelSotopiaEnv(
        action_order=request["order"],
        evaluators=[RuleBasedTerminatedEvaluator(request["max_turns"], request["stale_turns"])],
        terminal_evaluators=[NoJudge()],
        env_profile=profile(EnvironmentProfile, request["environment"]),
    )
    env.available_action_types = ACTION_TYPES
    people = [
        LLMAgent(agent_profile=profile(AgentProfile, fields), model_name="gpt-4o")
        for fields in request["agents"]
    ]
    agents = Agents({agent.agent_name: agent for agent in people})
    views = env.reset(agents=agents)
    agents.reset()
    for index, name in enumerate(env.agents):
        agents[name].goal = env.profile.agent_goals[index]
    answer = {
        "first": [views[name].to_natural_language() for name in env.agents],
        "context": env.background.to_natural_language(),
        "turns": [],
    }
    for acts in request["dialogue"]:
        answer["turns"].append(turn := {"prompts": {}, "histories": []})
        done = {}
        for seat, (name, act) in enumerate(zip(env.agents, acts, strict=True)):
            asked.clear()
            told[:] = [json.dumps({"action_type": act[0], "argument": act[1]})]
            done[name] = await agents[name].aact(views[name])
            if asked:
                turn["prompts"][seat] = asked[0]["messages"][0]["content"]
            inbox = agents[name].inbox
            turn["histories"].append("\n".join(m.to_natural_language() for _, m in inbox))
        views, _, terminated, _, info = await env.astep(done)
        turn["lines"] = [views[name].to_natural_language() for name in env.agents]
        turn["terminated"] = all(terminated.values())
        turn["comments"] = info[env.agents[0]]["comments"]
        if turn["terminated"]:
            break
    return answer | await judge(env, request.get("verdict", "{}"))


async def judge(env, verdict):
    evaluator = EpisodeLLMEvaluator("gpt-4o", EvaluationForTwoAgents[SotopiaDimensions])
    asked.clear()
    told[:] = [verdict, verdict]
    ratings = await evaluator.__acall__(env.turn_number, env.inbox)
    rated = unweighted_aggregate_evaluate(ratings) if ratings else None
    return {
        "judge_prompt": asked[0]["messages"][0]["content"],
        "judge_temperature": asked[0]["temperature"],
        "rates": rated and [rated.p1_rate, rated.p2_rate],
    }


def show(request):
    viewers = ["agent_0", "agent_1", "environment"]
    contexts = [RenderContext(viewer=viewer, tags_to_render=TAGS) for viewer in viewers]
    return [[XMLRenderer()(text, context) for context in contexts] for text in request["texts"]]


for line in sys.stdin:
    request = json.loads(line)
    answer = show(request) if "texts" in request else asyncio.run(play(request))
    print(json.dumps(answer), file=ANSWERS, flush=True)
