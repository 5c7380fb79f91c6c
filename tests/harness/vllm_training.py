"""Trains with vLLM in this process: JSON on stdin, what came of it on stdout. Of
`test_vllm_training.py`."""

import asyncio
import json
import shutil
import sys
from pathlib import Path

import torch

from harness import config as configs
from harness.inference.completers import Sampling
from harness.inference.completers.hf import HFCompleter
from harness.inference.device_transfer import make_source
from harness.training.setup import resume, start
from harness.types.errors import HarnessError

PROMPTS = ["go", "take mug 2 from shelf", "a key " * 30, "left or right?"]


def settings(folder, home, name, **rollout):
    """Return a short run on the corridor that keeps its rollouts."""
    base = configs.load("corridor-tiny")
    values = configs.to_dict(base)
    values["run"] |= {"name": name, "output": str(home), "steps": 3, "keep_rollouts": 1}
    values["run"]["threads"] = 1
    values["policy"] |= {"model": str(folder), "device": "cpu"}
    values["warmstart"] |= {"episodes": 0}
    values["optimizer"] |= {"learning_rate": 3e-4}
    values["rollout"] |= rollout
    values["eval"] |= {"tasks": 4}
    values["checkpoint"] |= {"every": 1}
    values["log"] |= {"outputs": []}
    return configs.from_dict(values)


def greedy(completer):
    """Return a completer's greedy answers: tokens, and their log-probabilities."""

    async def everything():
        calls = [
            completer.complete([{"role": "user", "content": text}], Sampling(0.0, 24), 0)
            for text in PROMPTS
        ]
        return await asyncio.gather(*calls)

    return [(a.response_ids, a.logprobs) for a in asyncio.run(everything())]


def watched(trainer):
    """Compare greedy answers of the generator with the policy's own before and after each sync."""
    seen, sync = [], trainer.generator.sync

    def compared():
        before = greedy(trainer.generator.completer)
        sync()
        own, after = greedy(HFCompleter(trainer.policy)), greedy(trainer.generator.completer)
        seen.append(
            {
                "tokens": [a[0] for a in after] == [a[0] for a in own],
                "changed": [a[1] for a in after] != [a[1] for a in before],
                "difference": max(
                    abs(x - y)
                    for a, b in zip(after, own, strict=True)
                    for x, y in zip(a[1], b[1], strict=True)
                ),
            }
        )

    trainer.generator.sync = compared
    return seen


def trained(trainer, copied=None):
    """Train to the end; return what was seen at each sync.

    Args:
        trainer: Is not closed.
        copied: Where a copy of its folder goes, as it is before the last step's end.
    """
    seen, keep = watched(trainer), trainer._keep_rollouts
    last = trainer.config.run.steps - 1

    def keep_and_copy(*more):
        if copied and trainer.step == last:
            shutil.copytree(trainer.folder.path, copied, symlinks=True)
        keep(*more)

    trainer._keep_rollouts, close, trainer.close = keep_and_copy, trainer.close, lambda: None
    trainer.run()
    trainer.close = close
    return seen


def stale(trainer):
    """Return what is said when the engine is given weights, but not the tied output layer."""
    generator = trainer.generator
    with torch.no_grad():
        for weight in trainer.policy.model.parameters():
            weight += 0.05 * torch.randn_like(weight)
    whole = trainer.policy.named_weights

    def without_head():
        return ((name, weight) for name, weight in whole() if name != "lm_head.weight")

    trainer.policy.named_weights = without_head
    try:
        generator.sync()
    except HarnessError as e:
        return [type(e).__name__, str(e)]
    finally:
        del trainer.policy.named_weights
    generator.sync()
    return ["none", ""]


def sent(policy):
    """Return whether vLLM's own check of what a trainer sends finds it in order."""
    from vllm.distributed.weight_transfer.nccl_engine import NCCLTrainerWeightTransferEngine

    source = make_source(policy.named_weights, torch.bfloat16)
    check = NCCLTrainerWeightTransferEngine._checked_iter
    twice = [[name for name, _ in check(source, source.metadata())] for _ in range(2)]
    return {"names": twice[0], "again": twice[0] == twice[1]}


def main():
    given = json.load(sys.stdin)
    folder, home = given["folder"], Path(given["home"])
    engine = {"gpu_memory_utilization": 0.2}
    whole = start(settings(folder, home, "whole", backend="vllm", engine=engine))
    told = {"syncs": trained(whole, home / "broken"), "sent": sent(whole.policy)}
    told["stale"] = stale(whole)
    whole.close()
    again = resume(home / "broken")
    told["resumed"] = trained(again)
    again.close()
    sys.stdout.write(json.dumps(told))


if __name__ == "__main__":
    main()
