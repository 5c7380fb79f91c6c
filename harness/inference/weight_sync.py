"""Weight sync: sends the policy's weights to vLLM servers after an update.

`"disk"`: all weights are written to a folder of the run, which the servers read under the same
path. It is the default on the CPU.

`"nccl"`: weights are broadcast from the policy's GPU to the workers of one server after the other,
on this machine or others. `"ipc"`: the workers read the policy's memory on the same GPU. Both use
vLLM's weight transfer. So vLLM must be installed where the policy learns, and servers are started
with `--weight-transfer-config '{"backend": "nccl"}'` (or "ipc"; then vLLM also needs
VLLM_ALLOW_INSECURE_SERIALIZATION=1).

Weights have transformers' names, with adapters merged. The output layer is sent even if it is tied
to the embedding, because vLLM would keep the old one.
"""

from __future__ import annotations

import shutil
import socket
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Final, Protocol
from urllib.parse import urlsplit

import torch

from harness.distributed.process_group import ProcessGroup
from harness.inference.completers.vllm_server import VLLMServer
from harness.model.policy import Policy
from harness.types.errors import ConfigError, ModelUnavailable, TrainingError

_SHARD_BYTES: Final = 4 * 2**30


class Transfer(Protocol):
    """Sends the policy's weights to servers."""

    def publish(self, version: str) -> None:
        """Make the policy's current weights ready; all processes that train call this."""
        ...

    def send(self, server: VLLMServer) -> None:
        """Send the published weights to a server that is paused.

        Raises:
            ModelUnavailable: It does not answer.
            TrainingError: It could not load them.
        """
        ...


class DiskTransfer:
    """Sends weights as files.

    Args:
        policy: Its weights are sent.
        folder: Gets the latest weights; older ones are deleted.
        processes: The first process writes.
    """

    def __init__(self, policy: Policy, folder: Path, processes: ProcessGroup) -> None:
        """Write nothing yet."""
        self._policy, self._folder, self._processes = policy, folder.resolve(), processes
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
        for name, weight in self._policy.named_weights():
            if not self._processes.is_first:
                continue  # all processes take part in gathering
            if shard and size + weight.nbytes > _SHARD_BYTES:
                save_file(shard, folder / f"model-{count:05d}.safetensors")
                shard, count, size = {}, count + 1, 0
            shard[name] = weight.detach().to("cpu", copy=True).contiguous()
            size += weight.nbytes
        if shard:
            save_file(shard, folder / f"model-{count:05d}.safetensors")

    def send(self, server: VLLMServer) -> None:
        """Let a server load the folder."""
        try:
            server.reload(str(self._latest))
        except TrainingError as e:
            raise TrainingError(
                f"{e}\nDoes the server see {self._latest} under this path? If not, mount it there, "
                "or use rollout.transfer = 'nccl'"
            ) from e


class DeviceTransfer:
    """Sends weights from the policy's GPU by vLLM's weight transfer, `"nccl"` or `"ipc"`.

    There is one connection to each server; a restarted server gets a new one. If several processes
    train together, the first one sends, from a copy in main memory: after a restart it must send
    without the other processes. Reference: vLLM's `vllm.distributed.weight_transfer`.

    Args:
        policy: Its weights are sent.
        kind: The backend.
        processes: The first process sends.
    """

    def __init__(self, policy: Policy, kind: str, processes: ProcessGroup) -> None:
        """Connect to nothing yet."""
        self._policy, self._kind, self._processes = policy, kind, processes
        self._engines: dict[VLLMServer, Any] = {}
        self._labels: dict[VLLMServer, str] = {}
        self._version, self._copy = "", dict[str, torch.Tensor]()

    def publish(self, version: str) -> None:
        """Keep the label; gather and copy weights that are sharded."""
        self._version = version
        if self._processes.size == 1:
            return
        for name, weight in self._policy.named_weights():
            if self._processes.is_first:
                self._copy[name] = weight.detach().to("cpu", copy=True)

    def send(self, server: VLLMServer) -> None:
        """Send the weights to a server; connect to it first if necessary."""
        if not self._processes.is_first:
            raise ModelUnavailable(f"the first process has not sent weights to {server.url} yet")
        if server.transfer != self._kind:
            raise ConfigError(
                f"the vLLM server at {server.url} cannot take weights by {self._kind!r}: start it "
                f'with --weight-transfer-config \'{{"backend": "{self._kind}"}}\', or use '
                "rollout.transfer = 'disk'"
            )
        try:
            if server.weight_version() != self._labels.get(server):  # new, or started again
                self._engines[server] = self._connect(server)
            self._engines[server].send_weights()
        except (OSError, RuntimeError, ValueError) as e:
            self._labels.pop(server, None)
            server.call("GET", "/health")  # raises ModelUnavailable if it has ended
            raise TrainingError(f"weights did not reach {server.url}: {e}") from e
        self._labels[server] = self._version

    def _weights(self) -> Iterable[tuple[str, torch.Tensor]]:
        if self._processes.size == 1:
            return self._policy.named_weights()
        return ((name, weight.to(self._policy.device)) for name, weight in self._copy.items())

    def _connect(self, server: VLLMServer) -> Any:
        from vllm.distributed.weight_transfer.clients import HTTPVLLMWeightSyncClient
        from vllm.distributed.weight_transfer.factory import WeightTransferTrainerFactory

        source = make_source(self._weights, getattr(torch, server.dtype))
        client = HTTPVLLMWeightSyncClient(server.url)
        client.shutdown_weight_transfer_engine()  # of an earlier run
        return WeightTransferTrainerFactory.trainer_init(
            self._init_info(server), client=client, source=source
        )

    def _init_info(self, server: VLLMServer) -> Any:
        if self._kind == "ipc":
            from vllm.distributed.weight_transfer.ipc_engine import IPCTrainerInitInfo

            return IPCTrainerInitInfo(rank=0, packed=True)
        from vllm.distributed.weight_transfer.nccl_engine import NCCLTrainerInitInfo

        address, port = _own_address(server.url)
        return NCCLTrainerInitInfo(address, port, 1 + server.num_workers, rank=0)


def make_source(
    weights: Callable[[], Iterable[tuple[str, torch.Tensor]]], dtype: torch.dtype
) -> Any:
    """Return weights as vLLM's `WeightSource`, in the engine's dtype.

    Args:
        weights: Yields the current weights; names and shapes never change.
        dtype: Of the engine.
    """
    from vllm.distributed.weight_transfer.base import ParamMeta, WeightSource

    class PolicySource(WeightSource):  # type: ignore[misc]
        """Yields the current weights at every iteration."""

        def __init__(self) -> None:
            self._metadata: list[Any] = []

        def metadata(self) -> list[Any]:
            if not self._metadata:
                self._metadata = [ParamMeta(n, w.dtype, tuple(w.shape)) for n, w in self]
            return self._metadata

        def __iter__(self) -> Iterator[tuple[str, torch.Tensor]]:
            for name, weight in weights():
                yield name, weight.to(dtype) if weight.is_floating_point() else weight

    return PolicySource()


def _own_address(url: str) -> tuple[str, int]:
    """Return this machine's address as a server sees it, and a free port."""
    parts = urlsplit(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    with socket.create_connection((parts.hostname, port), timeout=10) as connection:
        address = connection.getsockname()[0]
    with socket.socket() as listener:
        listener.bind((address, 0))
        return str(address), int(listener.getsockname()[1])


def make_transfer(
    policy: Policy, kind: str | None, folder: Path, processes: ProcessGroup
) -> Transfer:
    """Return the transfer `kind`; None means "nccl" on a GPU and "disk" on the CPU."""
    kind = kind or ("disk" if policy.device.type == "cpu" else "nccl")
    if kind == "disk":
        return DiskTransfer(policy, folder, processes)
    if policy.device.type == "cpu":
        raise ConfigError(
            f"rollout.transfer = {kind!r} sends weights from a GPU, and the policy is on the CPU: "
            "use 'disk'"
        )
    return DeviceTransfer(policy, kind, processes)
