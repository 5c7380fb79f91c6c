"""A server of vLLM's protocol that answers with a policy of transformers, and takes its time.

It has the routes that training uses. Weights come as files (`rollout.transfer = "disk"`).
"""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file

from harness.inference.completers import Sampling
from harness.inference.completers.hf import HFCompleter
from harness.inference.completers.local_answers import Request
from harness.model.logprobs import score_tokens
from harness.model.packing import Sample
from harness.model.policy import Policy
from harness.model.tokenizer import ThoughtLimit
from harness.types.rollout import Completion

Seconds = Callable[[int], float]
"""Returns how long the request with a seed takes."""


class PolicyServer:
    """The answers of the routes.

    Args:
        policy: Answers, once weights are loaded into it.
        seconds: How long each request takes at least.

    Attributes:
        versions: Labels of the weights, in the order in which they came.
        answered: Number of requests of generation.
    """

    def __init__(self, policy: Policy, seconds: Seconds) -> None:
        """Start the thread that generates."""
        self._policy, self._seconds = policy, seconds
        self._completer = HFCompleter(policy)
        self.versions, self.answered = ["default"], 0
        self._loop, self._ended = asyncio.new_event_loop(), asyncio.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._ended.wait())

    def close(self) -> None:
        """End the thread; requests that are being answered are given up."""
        self._loop.call_soon_threadsafe(self._ended.set)
        self._thread.join()

    def answer(self, path: str, body: dict[str, Any]) -> Any:
        """Return what a route answers, JSON-plain."""
        if path == "/inference/v1/generate":
            asked = body["sampling_params"]
            return self._scored(body) if "prompt_logprobs" in asked else self._generated(body)
        if path == "/collective_rpc":
            self._load(Path(body["kwargs"]["weights_path"]))
        if path == "/update_weight_version":
            self.versions.append(body["new_version"])
        length = self._policy.max_length
        told: dict[str, Any] = {
            "/v1/models": {"data": [{"id": "policy", "max_model_len": length}]},
            "/weight_info": {"weight_version": self.versions[-1]},
            "/server_info": {
                "vllm_config": {
                    "model_config": {"dtype": "float32", "logprobs_mode": "processed_logprobs"},
                    "weight_transfer_config": None,
                }
            },
            "/get_world_size": {"world_size": 1},
            "/reset_prefix_cache": {"success": True},
        }
        return told.get(path, {})

    @torch.no_grad()
    def _load(self, folder: Path) -> None:
        own = dict(self._policy.model.named_parameters(remove_duplicate=False))
        for shard in sorted(folder.glob("*.safetensors")):
            for name, weight in load_file(shard).items():
                own[name].copy_(weight)

    def _scored(self, body: dict[str, Any]) -> Any:
        ids = tuple(body["token_ids"])
        row = Sample(ids[:1], ids[1:], (0.0,) * (len(ids) - 1), 0.0)
        found = score_tokens(self._policy, [row])[0].logprob
        steps = [{str(i): {"logprob": float(p)}} for i, p in zip(ids[1:], found, strict=True)]
        return {"prompt_logprobs": [None, *steps]}

    def _generated(self, body: dict[str, Any]) -> Any:
        begin, asked = time.monotonic(), body["sampling_params"]
        version = self.versions[-1]
        sampling = Sampling(asked["temperature"], asked["max_tokens"], asked["top_p"])
        request = self._made(tuple(body["token_ids"]), sampling, asked["seed"])
        made = asyncio.run_coroutine_threadsafe(request, self._loop).result()
        time.sleep(max(self._seconds(asked["seed"]) - (time.monotonic() - begin), 0.0))
        self.answered += 1
        steps = [
            {"token_id": token, "logprob": logprob}
            for token, logprob in zip(made.response_ids, made.logprobs, strict=True)
        ]
        choice = {
            "token_ids": list(made.response_ids),
            "finish_reason": "stop" if made.finished else "length",
            "logprobs": {"content": steps},
            "weight_versions": [{"version": version, "start": 0, "end": len(steps)}],
        }
        return {"choices": [choice]}

    async def _made(self, ids: tuple[int, ...], sampling: Sampling, seed: int) -> Completion:
        done: asyncio.Future[Completion] = asyncio.get_running_loop().create_future()
        uniforms = np.random.default_rng(seed).random(sampling.max_tokens)
        limit = ThoughtLimit(self._policy.chat_tokenizer, None)
        return await self._completer.answer(
            Request(ids, (), sampling, uniforms, done, limit, limit.room(()))
        )


@contextmanager
def serving(policy: Policy, seconds: Seconds = lambda _: 0.0) -> Iterator[tuple[str, PolicyServer]]:
    """Serve a copy of a policy on a free port; yield the address and the server."""
    answers = PolicyServer(policy.frozen_copy(), seconds)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._answer({})

        def do_POST(self) -> None:
            content = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            self._answer(json.loads(content) if content else {})

        def _answer(self, body: dict[str, Any]) -> None:
            content = json.dumps(answers.answer(self.path.split("?")[0], body)).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: Any) -> None: ...

    class Server(ThreadingHTTPServer):
        daemon_threads, request_queue_size = True, 256

    httpd = Server(("127.0.0.1", 0), Handler)
    threading.Thread(target=httpd.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{httpd.server_port}", answers
    finally:
        httpd.shutdown()
        httpd.server_close()
        answers.close()
