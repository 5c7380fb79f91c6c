"""Plays an episode over HTTP with a model behind a server, and prints the spans: for tests.

Runs in a Python with OpenTelemetry's SDK; prints JSON.
"""

import asyncio
import json
import sys
from contextlib import suppress

from chat_server import ChatServer, status
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from agentgyms.core import tracing
from env_servers import Server, create_app
from harness import prompts
from harness.inference.completers import Sampling
from harness.inference.completers.openai import OpenAICompleter
from harness.inference.completers.scripted import ScriptedCompleter
from harness.rollouts.agent import Agent
from harness.rollouts.collect import collect
from harness.rollouts.env_pool import EnvPool
from harness.rollouts.groups import CollectOptions
from harness.types.errors import ConfigError
from harness.types.task_draws import TaskDraw

CORRIDOR = "agentgyms/Corridor-v0"


class Local(ScriptedCompleter):
    """A model in this process."""

    complete = tracing.traced("transformers")(ScriptedCompleter.complete)


async def play(url, completer, group_size):
    """Play a group of two turns each."""
    pool = EnvPool(CORRIDOR, group_size, 8, url=url, max_turns=2)
    agent = Agent(completer, prompts.load("direct", CORRIDOR), Sampling(0.5, 32), 2)
    try:
        draws = [TaskDraw("train/free-000", 7)]
        options = CollectOptions(retries=0, pause_s=0)
        return await collect(pool, draws, agent, seed=1, options=options)
    finally:
        pool.close()
        if isinstance(completer, OpenAICompleter):
            await completer.close()


def plain(span):
    return {
        "name": span.name,
        "kind": span.kind.name,
        "id": span.context.span_id,
        "trace": span.context.trace_id,
        "parent": span.parent and span.parent.span_id,
        "status": span.status.status_code.name,
        "attributes": dict(span.attributes),
    }


def main():
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    usage = {"prompt_tokens": 9, "completion_tokens": 4}
    answer = {"content": "<think>on</think><action>right</action>", "usage": usage}
    found = {}
    with Server(create_app(CORRIDOR, token="")) as server:
        for name, on, faults in (
            ("off", False, []),
            ("on", True, [status(503)]),
            ("failed", True, [status(401)] * 9),
            ("local", True, []),
        ):
            if on:
                tracing.enable(provider)
            with ChatServer(lambda _: answer, faults) as chat:
                model = OpenAICompleter("scripted", chat.url, first_pause_s=0.01)
                model = Local(lambda _: "<action>right</action>") if name == "local" else model
                with suppress(ConfigError):  # what a refusal comes to
                    asyncio.run(play(server.url, model, 2 if name == "on" else 1))
            tracing.disable()
            found[name] = [plain(span) for span in exporter.get_finished_spans()]
            exporter.clear()
    json.dump(found, sys.stdout)


main()
