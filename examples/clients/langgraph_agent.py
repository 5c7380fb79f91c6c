"""Plays an episode with an agent of LangGraph, from which a run of this harness learns.

pip install -e '.[harness,server]' langgraph langchain-openai requests
python -m env_servers agentgyms/ALFWorld-v0 --port 8001
harness gateway alfworld-tiny --set env.kwargs.url='"http://127.0.0.1:8001"'
python examples/clients/langgraph_agent.py 7 0      # the seed, and one of the group's members
"""

import sys

import requests
from langchain_openai import ChatOpenAI
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command

from agentgyms.adapters.messages import INSTRUCTIONS, parse_action, user_text


def post(url, **body):
    """Return what the server says of a request."""
    reply = requests.post(url, json=body, timeout=600)
    reply.raise_for_status()
    return reply.json()


def play(gateway, server, seed, group, member, max_turns=30, **options):
    """Play an episode and return what the gateway says of its end."""
    session = post(f"{server}/v1/sessions", kwargs={})["session_id"]
    at = f"{server}/v1/sessions/{session}"
    begun = post(f"{at}/reset", seed=seed, options=options)
    model = ChatOpenAI(
        model="policy",
        base_url=f"{gateway}/rollouts/{member}/v1",
        api_key="AGENTGYMS_GATEWAY_TOKEN, if it is set",
        default_headers={"X-Group-Id": group, "X-Session-Id": session},
    )

    def policy(state):
        return {"messages": [model.invoke(state["messages"])]}

    def environment(state):
        turn = len(state["messages"]) // 2
        told = post(f"{at}/step", action=parse_action(state["messages"][-1].text), turn=turn)
        over = told["terminated"] or told["truncated"] or turn == max_turns
        message = ("user", user_text(told["observation"], told["info"]))
        return Command(update={"messages": [message]}, goto=[] if over else "policy")

    graph = StateGraph(MessagesState).add_node(policy).add_node(environment)
    graph = graph.add_edge(START, "policy").add_edge("policy", "environment").compile()
    first = [("system", INSTRUCTIONS), ("user", user_text(begun["observation"], begun["info"]))]
    graph.invoke({"messages": first}, {"recursion_limit": 4 * max_turns})
    return post(f"{gateway}/v1/rollouts/{member}/reward")


if __name__ == "__main__":
    seed, member = sys.argv[1:]
    group = f"seed-{seed}"
    gateway, server = "http://127.0.0.1:8600", "http://127.0.0.1:8001"
    print(play(gateway, server, int(seed), group, f"{group}-{member}"))
