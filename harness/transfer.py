"""How the policy's weights reach servers of vLLM after an update.

`"disk"`: all weights are written to a folder of the run that the servers read; they have to see it
under the same path. Nothing else is needed, so it is what the CPU takes.

`"nccl"`: they are broadcast from the policy's GPU to the workers of one server after the other, on
this machine or others. `"ipc"`: the workers read them where the policy has them, on the same GPU.
Both are vLLM's own weight transfer, so vLLM is also installed where the policy learns, and servers
are started with `--weight-transfer-config '{"backend": "nccl"}'` (or "ipc"; then also with
VLLM_ALLOW_INSECURE_SERIALIZATION=1, as vLLM asks for it).

Weights travel under transformers' names, adapters merged in, and the output layer is among them
also where it is tied to the embedding: vLLM would keep a stale one.
"""

from __future__ import annotations

import shutil
import socket
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Final, Protocol
from urllib.parse import urlsplit

import torch

from harness.completers.vllm_server import VLLMServer
from harness.errors import ConfigError, ModelUnavailable, TrainingError
from harness.policy import Policy
from harness.ranks import Ranks

TRANSFERS: Final = ("disk", "nccl", "ipc")

_SHARD_BYTES: Final = 4 * 2**30


class Transfer(Protocol):
    """A way for weights."""

    def publish(self, version: str) -> None:
        """Make the policy's weights of now ready; all processes that train call this."""
        ...

    def send(self, server: VLLMServer) -> None:
        """Let a server take what was published; it answers nothing meanwhile.

        Raises:
            ModelUnavailable: It does not answer.
            TrainingError: It could not take them.
        """
        ...


class DiskTransfer:
    """Weights by way of a folder.

    Args:
        policy: Whose weights.
        folder: Holds the latest ones; older ones are deleted.
        ranks: The first writes.
    """

    def __init__(self, policy: Policy, folder: Path, ranks: Ranks) -> None:
        """Write nothing yet."""
        self._policy, self._home, self._ranks = policy, folder.resolve(), ranks
        self._latest: Path | None = None

    def publish(self, version: str) -> None:
        """Write all weights, as shards of at most 4 GiB, into a folder of their own."""
        latest = self._home / f"weights-{version}"
        if self._ranks.is_first:
            shutil.rmtree(self._home, ignore_errors=True)
            latest.mkdir(parents=True)
        self._write(latest)
        self._latest = latest

    def _write(self, folder: Path) -> None:
        from safetensors.torch import save_file

        shard: dict[str, torch.Tensor] = {}
        count = size = 0
        for name, weight in self._policy.named_weights():
            if not self._ranks.is_first:
                continue  # gathering whole weights takes all processes
            if shard and size + weight.nbytes > _SHARD_BYTES:
                save_file(shard, folder / f"model-{count:05d}.safetensors")
                shard, count, size = {}, count + 1, 0
            shard[name] = weight.detach().to("cpu", copy=True).contiguous()
            size += weight.nbytes
        if shard:
            save_file(shard, folder / f"model-{count:05d}.safetensors")

    def send(self, server: VLLMServer) -> None:
        """Let a server read the folder."""
        try:
            server.reload(str(self._latest))
        except TrainingError as e:
            raise TrainingError(
                f"{e}\nDoes the server see {self._latest} under this path? If not, mount it there, "
                "or use rollout.transfer = 'nccl'"
            ) from e


class DeviceTransfer:
    """Weights from the policy's GPU by vLLM's weight transfer, `"nccl"` or `"ipc"`.

    There is one connection to each server. A server that was started again has lost its own and
    gets another. Where several processes train together the first one sends, from a copy in main
    memory, so that it can do so when only it is told of a restart. Reference: vLLM's
    `vllm.distributed.weight_transfer`.

    Args:
        policy: Whose weights.
        kind: The engine.
        ranks: The first sends.
    """

    def __init__(self, policy: Policy, kind: str, ranks: Ranks) -> None:
        """Connect to nothing yet."""
        self._policy, self._kind, self._ranks = policy, kind, ranks
        self._engines: dict[VLLMServer, Any] = {}
        self._labels: dict[VLLMServer, str] = {}
        self._version, self._copy = "", dict[str, torch.Tensor]()

    def publish(self, version: str) -> None:
        """Note the label; gather and copy what several processes share."""
        self._version = version
        if self._ranks.size == 1:
            return
        for name, weight in self._policy.named_weights():
            if self._ranks.is_first:
                self._copy[name] = weight.detach().to("cpu", copy=True)

    def send(self, server: VLLMServer) -> None:
        """Connect to a server if need be, and send."""
        if not self._ranks.is_first:
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
            server.call("GET", "/health")  # one that has ended is unavailable, and may come back
            raise TrainingError(f"weights did not reach {server.url}: {e}") from e
        self._labels[server] = self._version

    def _weights(self) -> Iterable[tuple[str, torch.Tensor]]:
        if self._ranks.size == 1:
            return self._policy.named_weights()
        return ((name, weight.to(self._policy.device)) for name, weight in self._copy.items())

    def _connect(self, server: VLLMServer) -> Any:
        from vllm.distributed.weight_transfer.clients import HTTPVLLMWeightSyncClient
        from vllm.distributed.weight_transfer.factory import WeightTransferTrainerFactory

        source = make_source(self._weights, getattr(torch, server.dtype))
        client = HTTPVLLMWeightSyncClient(server.url)
        client.shutdown_weight_transfer_engine()  # of an earlier run
        return WeightTransferTrainerFactory.trainer_init(
            self._about(server), client=client, source=source
        )

    def _about(self, server: VLLMServer) -> Any:
        if self._kind == "ipc":
            from vllm.distributed.weight_transfer.ipc_engine import IPCTrainerInitInfo

            return IPCTrainerInitInfo(rank=0, packed=True)
        from vllm.distributed.weight_transfer.nccl_engine import NCCLTrainerInitInfo

        address, port = _own_address(server.url)
        return NCCLTrainerInitInfo(address, port, 1 + server.num_workers, rank=0)


def make_source(
    weights: Callable[[], Iterable[tuple[str, torch.Tensor]]], dtype: torch.dtype
) -> Any:
    """Return weights as vLLM's `WeightSource`, in the type of the engine.

    Args:
        weights: Yields those of the time it is called; names and shapes do not change.
        dtype: Of the engine.
    """
    from vllm.distributed.weight_transfer.base import ParamMeta, WeightSource

    class PolicySource(WeightSource):  # type: ignore[misc]
        """Every pass yields the weights of its time."""

        def __init__(self) -> None:
            self._known: list[Any] = []

        def metadata(self) -> list[Any]:
            if not self._known:
                self._known = [ParamMeta(n, w.dtype, tuple(w.shape)) for n, w in self]
            return self._known

        def __iter__(self) -> Iterator[tuple[str, torch.Tensor]]:
            for name, weight in weights():
                yield name, weight.to(dtype) if weight.is_floating_point() else weight

    return PolicySource()


def _own_address(url: str) -> tuple[str, int]:
    """Return this machine's address as a server sees it, and a port that nobody uses."""
    parts = urlsplit(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    with socket.create_connection((parts.hostname, port), timeout=10) as line:
        address = line.getsockname()[0]
    with socket.socket() as probe:
        probe.bind((address, 0))
        return str(address), int(probe.getsockname()[1])


def make_transfer(policy: Policy, kind: str | None, folder: Path, ranks: Ranks) -> Transfer:
    """Return the way of a name; None takes "nccl" from a GPU and "disk" from the CPU."""
    kind = kind or ("disk" if policy.device.type == "cpu" else "nccl")
    if kind == "disk":
        return DiskTransfer(policy, folder, ranks)
    if policy.device.type == "cpu":
        raise ConfigError(
            f"rollout.transfer = {kind!r} sends weights from a GPU, and the policy is on the CPU: "
            "use 'disk'"
        )
    return DeviceTransfer(policy, kind, ranks)
