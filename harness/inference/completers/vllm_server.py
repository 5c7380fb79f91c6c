"""One vLLM server (`vllm serve`): the requests of training to it, weight updates included.

It is started with

    VLLM_SERVER_DEV_MODE=1 vllm serve MODEL --enable-scale-out --logprobs-mode processed_logprobs

VLLM_SERVER_DEV_MODE opens the routes for weight updates, so only the run may reach the server's
network. `--enable-scale-out` opens the route that takes and returns tokens.
`--logprobs-mode` makes log-probabilities those of the sampling distribution. MODEL is
`policy.model`. Requests carry the key in the environment variable VLLM_API_KEY, which the server
reads too.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from agentgyms.core.errors import ServerUnavailable
from agentgyms.core.http_clients import parse_address
from agentgyms.models.json_client import JsonPoster, exchange
from agentgyms.models.rate_limit import RetryableError
from harness.types.errors import ConfigError, ModelUnavailable, TrainingError

START: Final = (
    "start it with VLLM_SERVER_DEV_MODE=1 vllm serve MODEL --enable-scale-out "
    "--logprobs-mode processed_logprobs (vLLM 0.32 or newer)"
)

ANSWER_S: Final = 1800.0
"""Longest wait for an answer, time in the server's queue included."""

LOAD_S: Final = 1800.0
"""Longest wait for a server that takes weights."""

_SHORT_S: Final = 30.0
_BYTES_PER_TOKEN: Final = 1024
_KEY: Final = "VLLM_API_KEY"
_GENERATE: Final = "/inference/v1/generate"


class VLLMServer:
    """One vLLM server.

    Only `generate` is asynchronous; all other requests block, and are made between steps. `url` is
    an address such as `"http://127.0.0.1:8000"`, kept without `/v1` or a slash at its end; another
    text raises `ConfigError`. `version` is the label of the server's weights; "" if it is down or
    has other weights. Its model's name, type and limits are known after `check`.
    """

    def __init__(self, url: str) -> None:
        try:
            self.url = parse_address(url).geturl().removesuffix("/v1")
        except ValueError as e:
            raise ConfigError(
                f"rollout.urls has {url!r}, which is no address of a server ({e}): expected one "
                "such as http://127.0.0.1:8000"
            ) from None
        self.version, self.in_flight = "", 0
        self.name, self.max_length, self.dtype, self.num_workers = "", 0, "", 1
        self.transfer = ""

    def check(self) -> None:
        """Read the server's settings, and refuse settings that training cannot use.

        Raises `ModelUnavailable` if it does not answer, `ConfigError` for other options.
        """
        listed = self.call("GET", "/v1/models")["data"][0]
        self.name, self.max_length = listed["id"], int(listed["max_model_len"])
        self.weight_version()
        settings = self.call("GET", "/server_info?config_format=json", timeout_s=120)["vllm_config"]
        self.dtype = str(settings["model_config"]["dtype"]).removeprefix("torch.")
        self.transfer = (settings["weight_transfer_config"] or {}).get("backend", "")
        mode = settings["model_config"]["logprobs_mode"]
        if mode != "processed_logprobs":
            raise ConfigError(
                f"the vLLM server at {self.url} gives {mode}, which are not those of the "
                f"sampling distribution: {START}"
            )
        self.num_workers = int(self.call("GET", "/get_world_size")["world_size"])

    def weight_version(self) -> str:
        """Return the label of the server's weights, at first "default"; errors as in `call`."""
        return str(self.call("GET", "/weight_info")["weight_version"])

    def load(self, version: str, send: Callable[[VLLMServer], None]) -> None:
        """Abort requests, update and label the weights, clear the cache; errors as in `call`."""
        self.pause()
        try:
            send(self)
            self.finish_load(version)
        finally:
            self.resume()

    def pause(self) -> None:
        """Abort the server's requests; it begins no others."""
        self.version = ""
        self.call("POST", "/pause?mode=abort")

    def finish_load(self, version: str) -> None:
        """Clear the cache of a paused server that has new weights, and label the weights."""
        if not self.call("POST", "/reset_prefix_cache")["success"]:
            raise TrainingError(
                f"the vLLM server at {self.url} could not clear its cache: let no other "
                "program use it while a run trains"
            )
        self.call("POST", "/update_weight_version", {"new_version": version})

    def resume(self) -> None:
        """Let a paused server answer again."""
        self.call("POST", "/resume")

    def reload(self, folder: str) -> None:
        """Let the server load weights from a folder that it can read."""
        command = {"method": "reload_weights", "kwargs": {"weights_path": folder}}
        self.call("POST", "/collective_rpc", command, timeout_s=LOAD_S)

    def score(self, ids: Sequence[int]) -> tuple[float, ...]:
        """Return the log-probability of each token but the first, at temperature 1."""
        sampling = {"max_tokens": 1, "temperature": 0.0, "prompt_logprobs": 0, "detokenize": False}
        body = {"token_ids": list(ids), "sampling_params": sampling}
        logprobs = self.call("POST", _GENERATE, body)["prompt_logprobs"][1:]
        return tuple(
            float(step[str(token)]["logprob"])
            for step, token in zip(logprobs, ids[1:], strict=True)
        )

    def call(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        timeout_s: float = _SHORT_S,
    ) -> Any:
        """Return the server's answer to an administrative request, JSON-plain.

        Raises `ModelUnavailable` if it does not answer or is shutting down, `ConfigError` if it was
        started without this route, and `TrainingError` if the request failed.
        """
        try:
            status, text = exchange(
                method, self.url + path, body, headers=_headers(), timeout_s=timeout_s
            )
            if status < 400:
                return json.loads(text) if text else ""
        except (ServerUnavailable, ValueError) as e:
            raise ModelUnavailable(f"the vLLM server at {self.url} does not answer: {e}") from e
        failure = f"the vLLM server at {self.url} answers {status} to {path}"
        if status in (401, 403, 404, 405):
            raise ConfigError(f"{failure} ({text[:300]}): {START}, and set {_KEY} if it has a key")
        if path != "/health" and status not in (429, 503):
            self.call("GET", "/health")  # one whose engine died is unavailable
            raise TrainingError(f"{failure}: {text[:600]}")
        raise ModelUnavailable(f"{failure}: {text[:300]}")

    async def generate(self, poster: JsonPoster, body: Mapping[str, Any]) -> dict[str, Any]:
        """Return the first choice; raise `RetryableError` (incomplete) or `RequestRejected`."""
        max_bytes = 2**20 + _BYTES_PER_TOKEN * int(body["sampling_params"]["max_tokens"])
        answer = await poster.post(_GENERATE, body, max_bytes)
        try:
            choice: dict[str, Any] = answer["choices"][0]
            complete = choice["finish_reason"] in ("stop", "length") and choice["token_ids"]
        except (KeyError, IndexError, TypeError):
            raise RetryableError(
                "broken answer", f"{self.url} answers {str(answer)[:300]}"
            ) from None
        if not complete:
            reason = choice["finish_reason"]
            raise RetryableError("ended early", f"{self.url} ended a request with {reason!r}")
        return choice

    def poster(self) -> JsonPoster:
        """Return the HTTP connections of one event loop."""
        return JsonPoster(self.url, _headers(), ANSWER_S)


def _headers() -> dict[str, str]:
    key = os.environ.get(_KEY, "").strip()
    return {"Authorization": f"Bearer {key}"} if key else {}


def concurrently(
    work: Callable[[VLLMServer], Any], servers: Sequence[VLLMServer]
) -> dict[VLLMServer, Exception]:
    """Do something with all servers at once, and return the errors of those that it failed for."""
    with ThreadPoolExecutor(max(1, len(servers))) as pool:
        futures = {server: pool.submit(work, server) for server in servers}
    errors: dict[VLLMServer, Exception] = {}
    for server, future in futures.items():
        error = future.exception()
        if isinstance(error, Exception):
            errors[server] = error
    return errors
