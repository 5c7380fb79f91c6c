"""Runs vLLM in this process: requests as JSON on stdin, answers on stdout. Of `test_vllm.py`."""

import asyncio
import dataclasses
import json
import sys

import numpy as np

from harness.config import EvaluationConfig, ModelConfig, replace
from harness.evaluation.open_model import open_model
from harness.inference.completers import Sampling
from harness.types.messages import shared_image


def ask(text):
    return [{"role": "user", "content": text}]


async def answers(completer, batch):
    """Return the answers to a batch of requests that are all made at once."""
    calls = []
    for messages, sampling, seed in batch:
        for message in messages:
            if "token_ids" in message:
                message["token_ids"] = tuple(message["token_ids"])
        calls.append(completer.complete(messages, Sampling(*sampling), seed))
    return [dataclasses.asdict(answer) for answer in await asyncio.gather(*calls)]


async def error(call):
    try:
        await call
    except Exception as e:
        return [type(e).__name__, str(e)]
    return ["none", ""]


async def refused(completer):
    image = shared_image(np.zeros((2, 2, 3), np.uint8))
    seen = [{"role": "user", "content": [{"type": "image", "image": image}]}]
    return {
        "long": await error(completer.complete(ask("go " * 9000), Sampling(), 0)),
        "image": await error(completer.complete(seen, Sampling(), 0)),
        "top_p": await error(completer.complete(ask("go"), Sampling(top_p=1.5), 0)),
    }


async def cancelled(completer):
    """Cancel requests under way; return how many were unfinished before and after."""
    long = Sampling(1.0, 300)
    calls = [asyncio.create_task(completer.complete(ask("go"), long, i)) for i in range(8)]
    while completer.engine.get_num_unfinished_requests() < len(calls):
        await asyncio.sleep(0)
    for call in calls[1:]:
        call.cancel()
    done = await asyncio.gather(*calls, return_exceptions=True)
    return {
        "answered": sum(not isinstance(answer, BaseException) for answer in done),
        "unfinished": completer.engine.get_num_unfinished_requests(),
    }


async def failed(completer):
    """Let the engine's steps fail; return what two requests under way and a later one get."""
    step = completer.engine.step

    def breaks():
        step()
        raise RuntimeError("out of memory")

    completer.engine.step = breaks
    calls = [error(completer.complete(ask("go"), Sampling(0.0, 9), i)) for i in range(2)]
    results = await asyncio.gather(*calls)
    return [*results, await error(completer.complete(ask("go"), Sampling(0.0, 9), 2))]


async def main():
    """Answer, then try what goes wrong, the engine's end last."""
    given = json.load(sys.stdin)
    wanted = ModelConfig(name=given["folder"], backend="vllm", engine=given["engine"])
    model = await open_model(EvaluationConfig(model=wanted))
    told = {
        "identity": model.identity,
        "answers": [await answers(model.completer, batch) for batch in given["batches"]],
        "refused": await refused(model.completer),
        "cancelled": await cancelled(model.completer),
        "failed": await failed(model.completer),
    }
    await model.close()
    told["closed"] = await error(model.completer.complete(ask("go"), Sampling(), 0))
    unknown = replace(wanted, engine={"no_such_argument": 1})
    told["unknown"] = await error(open_model(EvaluationConfig(model=unknown)))
    sys.stdout.write(json.dumps(told))


if __name__ == "__main__":
    asyncio.run(main())
