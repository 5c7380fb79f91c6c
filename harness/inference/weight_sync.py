"""Weight sync: sends the policy's weights to vLLM servers after an update.

`"disk"`, the default on the CPU: servers read them from a folder of the run, under the same path.
`"nccl"`: they are broadcast from the policy's GPU to the workers of all servers at once. `"ipc"`:
the workers read the policy's memory on the same GPU. The last two use vLLM's weight transfer
(`device_transfer`). So vLLM must be installed where the policy learns, and servers are started
with `--weight-transfer-config '{"backend": "nccl"}'` (or "ipc"; then vLLM also needs
VLLM_ALLOW_INSECURE_SERIALIZATION=1).

Weights have the servers' type and transformers' names, with adapters merged. The output layer is
sent even if it is tied to the embedding, because vLLM would keep the old one.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Literal, Protocol

import torch

from harness.distributed.process_group import ProcessGroup
from harness.inference.completers.vllm_server import VLLMServer, concurrently
from harness.inference.device_transfer import DeviceTransfer, to_type
from harness.model.policy import Policy
from harness.types.errors import ConfigError, TrainingError

_SHARD_BYTES: Final = 4 * 2**30


class Transfer(Protocol):
    """Sends the policy's weights to servers.

    `senders` says which training processes may call `send`; with `"all"`, all must.
    """

    @property
    def senders(self) -> Literal["any", "first", "all"]: ...  # noqa: D102 - above

    def publish(self, version: str) -> None:
        """Make the policy's current weights ready; all processes that train call this."""
        ...

    def send(self, servers: Sequence[VLLMServer]) -> dict[VLLMServer, Exception]:
        """Send the published weights to paused servers at once.

        Returns an error for each server that did not get them: `ModelUnavailable` if it does not
        answer, `TrainingError` if it could not load them.
        """
        ...


class DiskTransfer:
    """Sends weights as files in `folder`, which holds the latest ones alone."""

    senders: Literal["any"] = "any"  # see `Transfer`

    def __init__(
        self, policy: Policy, folder: Path, processes: ProcessGroup, dtype: torch.dtype
    ) -> None:
        self._policy, self._folder, self._processes = policy, folder.resolve(), processes
        self._dtype = dtype
        self._latest: Path | None = None

    def publish(self, version: str) -> None:
        """Write all weights as shards of at most 4 GiB into a new folder."""
        latest = self._folder / f"weights-{version}"
        if self._processes.is_first:
            shutil.rmtree(self._folder, ignore_errors=True)
            latest.mkdir(parents=True)
        self._write(latest)
        self._latest = latest

    def _write(self, folder: Path) -> None:
        from safetensors.torch import save_file

        shard: dict[str, torch.Tensor] = {}
        count = size = 0
        for name, found in self._policy.named_weights():
            if not self._processes.is_first:
                continue  # all processes take part in gathering
            weight = to_type(found, self._dtype)
            if shard and size + weight.nbytes > _SHARD_BYTES:
                save_file(shard, folder / f"model-{count:05d}.safetensors")
                shard, count, size = {}, count + 1, 0
            shard[name] = weight.detach().to("cpu", copy=True).contiguous()
            size += weight.nbytes
        if shard:
            save_file(shard, folder / f"model-{count:05d}.safetensors")

    def send(self, servers: Sequence[VLLMServer]) -> dict[VLLMServer, Exception]:
        """Let servers load the folder."""
        return concurrently(self._send, servers)

    def _send(self, server: VLLMServer) -> None:
        try:
            server.reload(str(self._latest))
        except TrainingError as e:
            raise TrainingError(
                f"{e}\nDoes the server see {self._latest} under this path? If not, mount it there, "
                "or use rollout.transfer = 'nccl'"
            ) from e


def make_transfer(
    policy: Policy,
    kind: str | None,
    folder: Path,
    processes: ProcessGroup,
    servers: Sequence[VLLMServer],
) -> Transfer:
    """Return the transfer `kind` to servers; None means "nccl" on a GPU and "disk" on the CPU."""
    kind = kind or ("disk" if policy.device.type == "cpu" else "nccl")
    dtype = _common_dtype(servers)
    if kind == "disk":
        return DiskTransfer(policy, folder, processes, dtype)
    if policy.device.type == "cpu":
        raise ConfigError(
            f"rollout.transfer = {kind!r} sends weights from a GPU, and the policy is on the CPU: "
            "use 'disk'"
        )
    for server in servers:
        if server.transfer != kind:
            raise ConfigError(
                f"the vLLM server at {server.url} cannot take weights by {kind!r}: start it with "
                f'--weight-transfer-config \'{{"backend": "{kind}"}}\', or use '
                "rollout.transfer = 'disk'"
            )
    return DeviceTransfer(policy, kind, processes, dtype)


def _common_dtype(servers: Sequence[VLLMServer]) -> torch.dtype:
    """Return the type of the servers' weights; raise `ConfigError` if they have different ones."""
    first = servers[0]
    for server in servers:
        if server.dtype != first.dtype:
            raise ConfigError(
                f"the vLLM server at {server.url} has weights in {server.dtype}, and that at "
                f"{first.url} in {first.dtype}: start all with the same --dtype"
            )
    dtype: torch.dtype = getattr(torch, first.dtype)
    return dtype
