"""Plays episodes with an agent of LangGraph, from which a run of this harness learns.

pip install -e '.[harness,server]' langgraph langchain-openai requests
python -m env_servers agentgyms/Corridor-v0 --port 8001 --set split=train --set max_turns=8
harness gateway corridor-tiny-demo --set run.steps=12 --set rollout.group_size=4 \
  --set optimizer.learning_rate=4e-4 --set agent.style=chat --set env.kwargs.url='"http://127.0.0.1:8001"'
python examples/clients/langgraph_agent.py http://127.0.0.1:8600 http://127.0.0.1:8001
"""

import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import requests
from langchain_openai import ChatOpenAI
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command

from agentgyms.adapters.messages import INSTRUCTIONS, parse_action, user_text

STEPS, GROUPS, MEMBERS = 12, 8, 4  # run.steps, rollout.tasks_per_step and rollout.group_size


def post(url, **body):
    """Return what the server says of a request."""
    reply = requests.post(url, json=body, timeout=600)
    reply.raise_for_status()
    return reply.json()


def play(gateway, server, seed, group, member, **options):
    """Play an episode and return what the gateway says of its end."""
    session = post(f"{server}/v1/sessions", kwargs={})["session_id"]
    at = f"{server}/v1/sessions/{session}"
    begun = post(f"{at}/reset", seed=seed, options=options)
    own = {"X-Group-Id": group, "X-Session-Id": session}
    url, key = f"{gateway}/rollouts/{member}/v1", "AGENTGYMS_GATEWAY_TOKEN, if it is set"
    model = ChatOpenAI(model="policy", base_url=url, api_key=key, default_headers=own)

    def turn(state):
        chat = [*state["messages"], model.invoke(state["messages"])]
        told = post(f"{at}/step", action=parse_action(chat[-1].text), turn=len(chat) // 2)
        over = told["terminated"] or told["truncated"]
        chat = [chat[-1], ("user", user_text(told["observation"], told["info"]))]
        return Command(update={"messages": chat}, goto=[] if over else "turn")

    graph = StateGraph(MessagesState).add_node(turn).add_edge(START, "turn").compile()
    first = f"{INSTRUCTIONS}\n\n{user_text(begun['observation'], begun['info'])}"
    graph.invoke({"messages": [("user", first)]}, {"recursion_limit": 1000})
    return post(f"{gateway}/v1/rollouts/{member}/reward")


if __name__ == "__main__":
    with ThreadPoolExecutor(GROUPS * MEMBERS) as players:
        for step in range(STEPS):
            seeds = [step * GROUPS + n // MEMBERS for n in range(GROUPS * MEMBERS)]
            ids = [f"{seed}-{n}" for n, seed in enumerate(seeds)]
            told = list(players.map(partial(play, *sys.argv[1:]), seeds, map(str, seeds), ids))
            print(f"step {step + 1}: success {sum(one['success'] for one in told) / len(told):.0%}")
