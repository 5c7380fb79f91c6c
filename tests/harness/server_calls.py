"""Asks a server of these tests: one completion, or whatever a test does with a completer."""

import asyncio

from harness.config import ServiceConfig
from harness.inference.completers import Sampling
from harness.inference.completers.openai import OpenAICompleter

ASK = [{"role": "user", "content": "Where to?"}]
GREEDY = Sampling(temperature=0.0, max_tokens=50)
QUICK = {"timeout_s": 5.0, "retries": 2}


def answering(text="go north"):
    return lambda messages: text


def using(server, work, *, model=None, key=None, url=None, extra=None, **service):
    """Run `work(completer)` with a completer for the server, and close it."""

    async def run():
        settings = ServiceConfig(**(QUICK | service))
        completer = OpenAICompleter(
            model or server.model, url or server.url, key, settings, extra, first_pause_s=0.01
        )
        try:
            return await work(completer)
        finally:
            await completer.close()

    return asyncio.run(run())


def ask(server, messages=ASK, sampling=GREEDY, seed=7, **kwargs):
    """Return one completion of the server."""
    return using(server, lambda it: it.complete(messages, sampling, seed), **kwargs)
