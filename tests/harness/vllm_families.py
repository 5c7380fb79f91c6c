"""Runs vLLM in this process on one tiny model: JSON on stdin, what it says on stdout."""

import asyncio
import json
import sys

import torch

from harness.inference.completers import Sampling
from harness.inference.completers.hf import HFCompleter
from harness.inference.completers.vllm import VLLMCompleter
from harness.model.policy import Policy

PROMPTS = ["go left", "take the lamp", "you are in a corridor " * 9]


def greedy(completer):
    async def everything():
        calls = [
            completer.complete([{"role": "user", "content": text}], Sampling(0.0, 12), 0)
            for text in PROMPTS
        ]
        return await asyncio.gather(*calls)

    return [(list(a.response_ids), list(a.logprobs)) for a in asyncio.run(everything())]


def main():
    """Compare greedy answers of vLLM with the policy's own, before and after an update."""
    given = json.load(sys.stdin)
    policy = Policy.load(given["folder"], "cpu")
    engine = VLLMCompleter(given["folder"], arguments=given["engine"])
    told = [(greedy(HFCompleter(policy)), greedy(engine))]
    torch.manual_seed(2)
    with torch.no_grad():
        for weight in policy.model.parameters():
            weight.add_(0.05 * torch.randn_like(weight))
    engine.load_weights(policy.named_weights())
    told.append((greedy(HFCompleter(policy)), greedy(engine)))
    sys.stdout.write("\n" + json.dumps(told))


if __name__ == "__main__":
    main()
