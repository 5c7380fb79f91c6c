"""A server of answers for verl on the CPU: tokens in, tokens out, by this harness's generator."""

import asyncio
from typing import Any

import numpy as np
import torch

from harness.inference.completers import Sampling
from harness.inference.completers.hf import HFCompleter
from harness.inference.completers.local_answers import Request
from harness.model.policy import Policy
from harness.model.tokenizer import ThoughtLimit


class Server:
    """Tokens in, tokens out, by this harness's own generator."""

    def __init__(self, path: str) -> None:
        torch.set_num_threads(1)
        self.policy, self.step = Policy.load(path, "cpu"), 0
        self.completer = HFCompleter(self.policy, 64)

    async def generate(self, request_id, prompt_ids, sampling_params, **_: Any):
        from verl.workers.rollout.replica import TokenOutput  # which imports the platform

        size = int(sampling_params["max_tokens"])
        own = Sampling(float(sampling_params["temperature"]), size)
        uniforms = np.random.default_rng(int(sampling_params["seed"])).random(size)
        limit = ThoughtLimit(self.policy.chat_tokenizer, None)
        done = asyncio.get_running_loop().create_future()
        asked = Request(tuple(prompt_ids), (), own, uniforms, done, limit, limit.room(()))
        made = await self.completer.answer(asked)
        return TokenOutput(
            token_ids=list(made.response_ids),
            log_probs=list(made.logprobs),
            stop_reason="completed",
            extra_fields={"global_steps": self.step},
        )

    async def update(self, path, step):
        own = dict(self.policy.model.named_parameters())
        with torch.no_grad():
            for name, weight in torch.load(path).items():
                if name in own:
                    own[name].copy_(weight)
        self.step = step or 0

    async def sleep(self):
        pass

    async def wake_up(self):
        pass

    async def clear_kv_cache(self):
        pass

    async def abort_all_requests(self, reject_request=False):
        pass

    async def resume_generation(self):
        pass
