"""One server of vLLM (`vllm serve`): what training asks it, and how it is given weights.

Started with

    VLLM_SERVER_DEV_MODE=1 vllm serve MODEL --enable-scale-out --logprobs-mode processed_logprobs

The first opens the addresses by which weights are exchanged, so it belongs on a network that only
the run reaches; the second the one where tokens go in and come out; the third makes
log-probabilities those of the distribution that was drawn from. MODEL is `policy.model`. A key in
the environment variable VLLM_API_KEY is sent along, and the server reads the same variable.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlsplit

import requests

from agentgyms.chat.endpoint import is_loopback
from agentgyms.chat.posting import JsonPoster
from agentgyms.chat.service import Fault
from harness.errors import ConfigError, ModelUnavailable, TrainingError

START: Final = (
    "start it with VLLM_SERVER_DEV_MODE=1 vllm serve MODEL --enable-scale-out "
    "--logprobs-mode processed_logprobs (vLLM 0.32 or newer)"
)

ANSWER_S: Final = 1800.0
"""Longest wait for an answer, time in the server's queue included."""

_CONNECT_S, _SHORT_S, _LOAD_S = 10.0, 30.0, 1800.0
_BYTES_PER_TOKEN: Final = 1024
_KEY: Final = "VLLM_API_KEY"
_GENERATE: Final = "/inference/v1/generate"


class VLLMServer:
    """A server at an address.

    Requests of episodes are asynchronous; everything else blocks, and is done between steps.

    Args:
        url: Such as `"http://127.0.0.1:8000"`.

    Attributes:
        url: Without `/v1` or a slash at its end.
        version: Label of the weights it is known to have; "" if it is down or has others.
        in_flight: Requests under way.
        name, max_length, dtype, num_workers, transfer: After `check`: of its model; its workers,
            each of which holds a part of the weights; and its weight transfer engine, or "".
    """

    def __init__(self, url: str) -> None:
        """Connect to nothing yet.

        Raises:
            ConfigError: It is no address.
        """
        self.url = url.strip().rstrip("/").removesuffix("/v1")
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ConfigError(
                f"rollout.urls has {url!r}, which is no address of a server: expected one such as "
                "http://127.0.0.1:8000"
            )
        self.version, self.in_flight = "", 0
        self.name, self.max_length, self.dtype, self.num_workers = "", 0, "", 1
        self.transfer = ""

    def check(self) -> None:
        """Learn what the server has, and refuse one that training cannot use.

        Raises:
            ModelUnavailable: Nothing answers there.
            ConfigError: It was started in another way; the message says how.
        """
        listed = self.call("GET", "/v1/models")["data"][0]
        self.name, self.max_length = listed["id"], int(listed["max_model_len"])
        self.weight_version()
        told = self.call("GET", "/server_info?config_format=json", timeout_s=120)["vllm_config"]
        self.dtype = str(told["model_config"]["dtype"]).removeprefix("torch.")
        self.transfer = (told["weight_transfer_config"] or {}).get("backend", "")
        mode = told["model_config"]["logprobs_mode"]
        if mode != "processed_logprobs":
            raise ConfigError(
                f"the vLLM server at {self.url} gives {mode}, which are not those of the "
                f"distribution that tokens are drawn from: {START}"
            )
        self.num_workers = int(self.call("GET", "/get_world_size")["world_size"])

    def weight_version(self) -> str:
        """Return the label of the weights that the server has now; vLLM starts with "default".

        Raises:
            ModelUnavailable: It does not answer.
            ConfigError: It does not tell.
        """
        return str(self.call("GET", "/weight_info")["weight_version"])

    def load(self, version: str, send: Callable[[VLLMServer], None]) -> None:
        """Stop what the server does, let it take weights, forget its cache, and label them.

        Args:
            version: The label, which from then on comes with every answer.
            send: Makes the server take the weights.

        Raises:
            ModelUnavailable: It does not answer.
            TrainingError: It is there but could not take them.
        """
        self.version = ""
        self.call("POST", "/pause?mode=abort")
        try:
            send(self)
            if not self.call("POST", "/reset_prefix_cache")["success"]:
                raise TrainingError(
                    f"the vLLM server at {self.url} keeps what it computed with older weights: let "
                    "no other program ask it while a run trains"
                )
            self.call("POST", "/update_weight_version", {"new_version": version})
        finally:
            self.call("POST", "/resume")

    def reload(self, folder: str) -> None:
        """Let the server read weights from a folder that it sees too."""
        wanted = {"method": "reload_weights", "kwargs": {"weights_path": folder}}
        self.call("POST", "/collective_rpc", wanted, timeout_s=_LOAD_S)

    def score(self, ids: Sequence[int]) -> tuple[float, ...]:
        """Return the log-probability of each token but the first, at temperature 1."""
        sampling = {"max_tokens": 1, "temperature": 0.0, "prompt_logprobs": 0, "detokenize": False}
        body = {"token_ids": list(ids), "sampling_params": sampling}
        told = self.call("POST", _GENERATE, body)["prompt_logprobs"][1:]
        return tuple(
            float(step[str(token)]["logprob"]) for step, token in zip(told, ids[1:], strict=True)
        )

    def call(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        timeout_s: float = _SHORT_S,
    ) -> Any:
        """Return what the server answers to a request of its administration, JSON-plain.

        Raises:
            ModelUnavailable: It does not answer, or is about to end.
            ConfigError: It was started without these addresses.
            TrainingError: It is there but could not do it.
        """
        try:
            with requests.Session() as session:
                session.trust_env = not is_loopback(self.url)
                answer = session.request(
                    method,
                    self.url + path,
                    json=body,
                    headers=_headers(),
                    timeout=(_CONNECT_S, timeout_s),
                )
                told = answer.json() if answer.ok and answer.content else answer.text
        except (requests.RequestException, ValueError) as e:
            raise ModelUnavailable(f"the vLLM server at {self.url} does not answer: {e}") from e
        if answer.ok:
            return told
        said = f"the vLLM server at {self.url} answers {answer.status_code} to {path}"
        if answer.status_code in (401, 403, 404, 405):
            raise ConfigError(f"{said} ({told[:300]}): {START}, and set {_KEY} if it has a key")
        if path != "/health" and answer.status_code not in (429, 503):
            self.call("GET", "/health")  # one whose engine died is unavailable
            raise TrainingError(f"{said}: {told[:600]}")
        raise ModelUnavailable(f"{said}: {told[:300]}")

    async def generate(self, poster: JsonPoster, body: Mapping[str, Any]) -> dict[str, Any]:
        """Return the first choice of an answer to a request for tokens.

        Raises:
            Fault: There is no whole answer; another attempt may bring one.
            Refused: The server does not take the request.
        """
        longest = 2**20 + _BYTES_PER_TOKEN * int(body["sampling_params"]["max_tokens"])
        told = await poster.post(_GENERATE, body, longest)
        try:
            choice: dict[str, Any] = told["choices"][0]
            whole = choice["finish_reason"] in ("stop", "length") and choice["token_ids"]
        except (KeyError, IndexError, TypeError):
            raise Fault("broken answer", f"{self.url} answers {str(told)[:300]}") from None
        if not whole:
            reason = choice["finish_reason"]
            raise Fault("ended early", f"{self.url} ended a request with {reason!r}")
        return choice

    def poster(self) -> JsonPoster:
        """Return what posts the requests of one event loop."""
        return JsonPoster(self.url, _headers(), ANSWER_S)


def _headers() -> dict[str, str]:
    key = os.environ.get(_KEY, "").strip()
    return {"Authorization": f"Bearer {key}"} if key else {}
