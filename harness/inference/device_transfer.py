"""Weights from the policy's GPUs to vLLM servers, by vLLM's weight transfer: NCCL or IPC.

One connection has all servers: with NCCL they are one group, in which the first process is rank 0
and each broadcast reaches every worker of every server; with IPC each process gives the handles of
its own GPU, and a worker reads the one of the GPU that it shares.
Reference: vLLM's `vllm.distributed.weight_transfer`.
"""

from __future__ import annotations

import base64
import pickle
import socket
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal
from urllib.parse import urlsplit

import torch

from harness.distributed.process_group import ProcessGroup
from harness.inference.completers.vllm_server import LOAD_S, VLLMServer, concurrently
from harness.model.policy import Policy
from harness.types.errors import HarnessError, ModelUnavailable, TrainingError

BUFFER_BYTES: Final = 2**30
"""Bytes of a buffer in which weights travel, and of one in main memory."""

_ALIGNED: Final = 512
Weights = Iterable[tuple[str, torch.Tensor]]
"""Pairs of name and full weight."""


class ServerGroup:
    """Sends requests of vLLM's trainer side (`VLLMWeightSyncClient`) to several servers at once.

    `strict` raises the first error; otherwise a server that fails gets no more requests, because
    the training processes wait for each other. Workers' ranks follow the trainer's rank 0.
    """

    def __init__(self, servers: Sequence[VLLMServer], *, strict: bool) -> None:
        self.servers, self.strict = tuple(servers), strict
        self.errors: dict[VLLMServer, Exception] = {}

    def init_weight_transfer_engine(self, init_info: Mapping[str, Any]) -> None:
        """Let the servers join, each with the rank of its first worker."""
        bodies, rank = {}, 1
        for server in self.servers:
            own = {"rank_offset": rank} if "rank_offset" in init_info else {}
            bodies[server] = {"init_info": {**init_info, **own}}
            rank += server.num_workers
        self._post("/init_weight_transfer_engine", bodies)

    def shutdown_weight_transfer_engine(self) -> None:
        """Let the servers leave."""
        self._post("/shutdown_weight_transfer_engine")

    def start_weight_update(self) -> None:
        """Let the servers await weights."""
        self._post("/start_weight_update")

    def update_weights(self, update_info: Any) -> None:
        """Let the servers receive weights, and wait until they have them."""
        several = isinstance(update_info, list)
        plain = [_as_json(one) for one in (update_info if several else [update_info])]
        body = {"update_info": plain if several else plain[0]}
        self._post("/update_weights", dict.fromkeys(self.servers, body))

    def finish_weight_update(self, weight_version: str | None = None) -> None:
        """Let the servers use the weights."""
        body = None if weight_version is None else {"weight_version": weight_version}
        self._post("/finish_weight_update", dict.fromkeys(self.servers, body) if body else {})

    def _post(self, path: str, bodies: Mapping[VLLMServer, Any] | None = None) -> None:
        asked = [server for server in self.servers if server not in self.errors]
        known = bodies or {}
        self.errors |= concurrently(
            lambda server: server.call("POST", path, known.get(server), timeout_s=LOAD_S), asked
        )
        if self.strict and self.errors:
            raise next(iter(self.errors.values()))


def _as_json(info: Mapping[str, Any]) -> dict[str, Any]:
    plain = dict(info)
    if (handles := plain.pop("ipc_handles", None)) is not None:
        plain["ipc_handles_pickled"] = base64.b64encode(pickle.dumps(handles)).decode()
    return plain


class HostCopy:
    """A copy of weights in main memory, in the servers' type, in buffers that are used again."""

    def __init__(self, dtype: torch.dtype, device: torch.device) -> None:
        self._dtype, self._device = dtype, device
        self._copies: dict[str, torch.Tensor] = {}
        self._free = torch.empty(0, dtype=torch.uint8)

    def take(self, weights: Weights, *, keep: bool) -> None:
        """Copy weights, in processes that keep them; names and shapes never change."""
        for name, weight in weights:
            if keep:
                own = to_type(weight.detach(), self._dtype)
                if name not in self._copies:
                    self._copies[name] = self._allocated(own)
                self._copies[name].copy_(own, non_blocking=True)
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)

    def _allocated(self, like: torch.Tensor) -> torch.Tensor:
        if self._free.numel() < like.nbytes:
            size, pinned = max(BUFFER_BYTES, like.nbytes), self._device.type == "cuda"
            self._free = torch.empty(size, dtype=torch.uint8, pin_memory=pinned)
        own = self._free[: like.nbytes].view(like.dtype).view(like.shape)
        self._free = self._free[-(-like.nbytes // _ALIGNED) * _ALIGNED :]
        return own

    def __iter__(self) -> Iterator[tuple[str, torch.Tensor]]:
        for name, weight in self._copies.items():
            yield name, weight.to(self._device, non_blocking=True)


def to_type(weight: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Return a weight in another type, unless it is no floating-point number's."""
    return weight.to(dtype) if weight.is_floating_point() else weight


class DeviceTransfer:
    """Sends weights from the policy's GPU by vLLM's weight transfer, `"nccl"` or `"ipc"`.

    With NCCL the first of several processes sends, from a copy in main memory: to a server that is
    started again it must send without the other processes. With IPC all processes send at once,
    each from its own GPU and without a copy, so such a server waits for the next update. `senders`
    says which processes call `send`.
    """

    def __init__(
        self, policy: Policy, kind: str, processes: ProcessGroup, dtype: torch.dtype
    ) -> None:
        self._policy, self._kind, self._processes = policy, kind, processes
        several = processes.size > 1
        self.senders: Literal["any", "first", "all"] = (
            "all" if kind == "ipc" and several else "first"
        )
        self._copy = HostCopy(dtype, policy.device) if several and kind == "nccl" else None
        self._dtype, self._lock = dtype, threading.Lock()
        self._version, self._labels = "", dict[VLLMServer, str]()
        self._group: ServerGroup | None = None
        self._engine: Any = None

    def publish(self, version: str) -> None:
        """Keep the label; copy weights that are sharded and that one process sends."""
        self._version = version
        if self._copy is not None:
            self._copy.take(self._policy.named_weights(), keep=self._processes.is_first)

    def send(self, servers: Sequence[VLLMServer]) -> dict[VLLMServer, Exception]:
        """Send the weights to paused servers at once; connect to them first if necessary."""
        if not servers:
            return {}
        with self._lock:
            errors = self._errors_of(lambda: self._connect(servers), servers)
            if not self._any_process_has(errors):
                errors = self._errors_of(lambda: self._engine.send_weights(), servers)
            self._labels = {one: self._version for one in servers if one not in errors}
        return errors

    def _any_process_has(self, errors: Mapping[VLLMServer, Exception]) -> bool:
        return self._processes.any(bool(errors)) if self.senders == "all" else bool(errors)

    def _is_connected(self, servers: Sequence[VLLMServer]) -> bool:
        """Whether the connection has these servers, and none was started again since."""
        if self._group is None or self._group.servers != tuple(servers) or self._group.errors:
            return False
        return all(server.weight_version() == self._labels.get(server) for server in servers)

    def _connect(self, servers: Sequence[VLLMServer]) -> None:
        if not self._processes.is_first:
            self._engine = self._engine or self._trainer(None)
            return
        if self._is_connected(servers):
            return
        self._group = ServerGroup(servers, strict=True)
        self._group.shutdown_weight_transfer_engine()  # of an earlier run, or of other servers
        self._engine = self._trainer(self._group)
        self._group.strict = self.senders != "all"

    def _trainer(self, group: ServerGroup | None) -> Any:
        largest = max(weight.numel() for weight in self._policy.model.parameters())
        buffer = max(BUFFER_BYTES, largest * self._dtype.itemsize)
        source = make_source(self._weights, self._dtype)
        return connect(self._kind, self._processes.rank, group, source, buffer)

    def _weights(self) -> Weights:
        return self._policy.named_weights() if self._copy is None else self._copy

    def _errors_of(
        self, work: Callable[[], None], servers: Sequence[VLLMServer]
    ) -> dict[VLLMServer, Exception]:
        """Do something with the servers, and return the errors of those that it failed for.

        If there is one, all others have failed with it, except that with IPC each fails alone.
        """
        if not self._processes.is_first:
            work()
            return {}
        try:
            work()
            return dict(self._group.errors) if self._group is not None else {}
        except (HarnessError, OSError, RuntimeError, ValueError) as e:
            self._group = None
            gone = concurrently(lambda server: server.call("GET", "/health"), servers)
            kind = ModelUnavailable if gone else TrainingError
            other = {one: kind(f"weights did not reach {one.url}: {e}") for one in servers}
            return {**other, **gone}


def connect(kind: str, rank: int, group: ServerGroup | None, source: Any, buffer_bytes: int) -> Any:
    """Return vLLM's trainer side (`send_weights`); `buffer_bytes` must hold the largest weight."""
    from vllm.distributed.weight_transfer.factory import WeightTransferTrainerFactory
    from vllm.distributed.weight_transfer.ipc_engine import IPCTrainerInitInfo
    from vllm.distributed.weight_transfer.nccl_engine import NCCLTrainerInitInfo

    buffer = {"packed": True, "packed_buffer_size_bytes": buffer_bytes}
    if kind == "ipc" or group is None:
        info = IPCTrainerInitInfo(rank=rank, **buffer)
    else:
        address, port = own_address(group.servers[0].url)
        workers = sum(server.num_workers for server in group.servers)
        info = NCCLTrainerInitInfo(address, port, 1 + workers, rank=rank, **buffer)
    return WeightTransferTrainerFactory.trainer_init(info, client=group, source=source)


def make_source(weights: Callable[[], Weights], dtype: torch.dtype) -> Any:
    """Return weights of constant names and shapes as vLLM's `WeightSource`, in `dtype`."""
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
                yield name, to_type(weight, dtype)

    return PolicySource()


def own_address(url: str) -> tuple[str, int]:
    """Return this machine's address as a server sees it, and a free port."""
    parts = urlsplit(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    with socket.create_connection((parts.hostname, port), timeout=10) as connection:
        address = connection.getsockname()[0]
    with socket.socket() as listener:
        listener.bind((address, 0))
        return str(address), int(listener.getsockname()[1])
