"""A server that takes weights as vLLM's does, with gloo in place of NCCL, and the trainer's side.

It answers by a policy of its own, into which it loads what it is given. Each of its workers is a
thread with a process group of its own.
"""

import base64
import json
import pickle
import threading
from contextlib import ExitStack
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import torch
from safetensors.torch import load_file
from torch.distributed import ProcessGroupGloo, TCPStore

from harness.inference.device_transfer import own_address
from harness.model.logprobs import score_tokens
from harness.model.packing import Sample

PATIENCE = timedelta(seconds=60)


def joined(address, port, rank, size):
    store = TCPStore(address, port, size, rank == 0, PATIENCE, wait_for_workers=False)
    return ProcessGroupGloo(store, rank, size, PATIENCE)


class GlooTrainer:
    """What `connect` returns in place of vLLM's trainer side."""

    def __init__(self, kind, rank, group, source, buffer_bytes):
        self.group, self.source = group, source
        address, port = own_address(group.servers[0].url)
        size = 1 + sum(server.num_workers for server in group.servers)
        told = {"master_address": address, "master_port": port, "rank_offset": 1}
        asking = threading.Thread(
            target=group.init_weight_transfer_engine, args=({**told, "world_size": size},)
        )
        asking.start()
        self.processes = joined(address, port, rank, size)
        asking.join()

    def send_weights(self):
        weights = [(name, weight.detach().contiguous()) for name, weight in self.source()]
        info = [[name, str(one.dtype).split(".")[1], list(one.shape)] for name, one in weights]
        self.group.start_weight_update()
        receiving = threading.Thread(target=self.group.update_weights, args=({"all": info},))
        receiving.start()
        for _, weight in weights:
            self.processes.broadcast(weight, 0).wait()
        receiving.join()
        self.group.finish_weight_update()


class HandleTrainer:
    """What `connect` returns in place of vLLM's trainer side for IPC: all processes are in it.

    A handle is the weight itself, and a process's rank stands for its GPU.
    """

    def __init__(self, kind, rank, group, source, buffer_bytes):
        self.rank, self.group, self.source = rank, group, source
        if rank == 0:
            group.init_weight_transfer_engine({"packed": True})

    def send_weights(self):
        if self.rank == 0:
            self.group.start_weight_update()
        for name, weight in self.source():
            found = [None] * torch.distributed.get_world_size()
            torch.distributed.all_gather_object(found, {self.rank: weight.detach().clone()})
            if self.rank == 0:
                merged = {key: value for one in found for key, value in one.items()}
                self.group.update_weights({"names": [name], "ipc_handles": merged})
            torch.distributed.barrier()
        if self.rank == 0:
            self.group.finish_weight_update()


class WeightServer:
    """The server.

    Attributes:
        asked: The routes that were called, in their order.
        fails: Routes that answer with an error.
        version: Label of its weights.
        joins: Number of groups that it was in.
        ranks: Ranks of its workers in the latest group.
        gpu: Whose handles it reads.
    """

    def __init__(self, policy, workers=1, dtype="float32", transfer="nccl", gpu=0):
        self.gpu, self.policy, self.workers, self.dtype, self.transfer = (
            gpu,
            policy,
            workers,
            dtype,
            transfer,
        )
        self.asked, self.fails, self.version = [], set(), "default"
        self.groups, self.joins, self.ranks = [], 0, []
        self._httpd = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        threading.Thread(target=self._httpd.serve_forever, args=(0.01,), daemon=True).start()
        self.url = f"http://127.0.0.1:{self._httpd.server_port}"

    def close(self):
        self._httpd.shutdown()
        self._httpd.server_close()

    def answer(self, path, body):
        known = {
            "/v1/models": {"data": [{"id": "tiny", "max_model_len": 512}]},
            "/weight_info": {"weight_version": self.version},
            "/get_world_size": {"world_size": self.workers},
            "/reset_prefix_cache": {"success": True},
            "/server_info": {
                "vllm_config": {
                    "model_config": {"dtype": self.dtype, "logprobs_mode": "processed_logprobs"},
                    "weight_transfer_config": {"backend": self.transfer},
                }
            },
        }
        change = getattr(self, path.strip("/").rpartition("/")[2], None)
        return known[path] if path in known else change(body) if change else {}

    def update_weight_version(self, body):
        self.version = body["new_version"]

    def collective_rpc(self, body):
        """Load files."""
        for file in sorted(Path(body["kwargs"]["weights_path"]).glob("*.safetensors")):
            self._load(load_file(file).items())

    def init_weight_transfer_engine(self, body):
        """Let each worker join."""
        told, found = body["init_info"], [None] * self.workers
        self.joins += 1
        if "rank_offset" not in told:
            return
        self.ranks = [told["rank_offset"] + worker for worker in range(self.workers)]

        def join(worker):
            address, size = (told["master_address"], told["master_port"]), told["world_size"]
            found[worker] = joined(*address, self.ranks[worker], size)

        self._in_workers(join)
        self.groups = found

    def update_weights(self, body):
        """Receive weights in each worker, and load the first one's."""
        if "names" in body["update_info"]:
            told = body["update_info"]
            handles = pickle.loads(base64.b64decode(told["ipc_handles_pickled"]))
            self._load([(told["names"][0], handles[self.gpu])])
            return
        info, found = body["update_info"]["all"], [[] for _ in self.groups]

        def receive(worker):
            for name, dtype, shape in info:
                weight = torch.empty(shape, dtype=getattr(torch, dtype))
                self.groups[worker].broadcast(weight, 0).wait()
                found[worker].append((name, weight))

        self._in_workers(receive)
        for other in found[1:]:
            assert all(torch.equal(a[1], b[1]) for a, b in zip(found[0], other, strict=True))
        self._load(found[0])

    def generate(self, body):
        """Score a prompt."""
        ids = body["token_ids"]
        row = Sample(tuple(ids[:1]), tuple(ids[1:]), (0.0,) * (len(ids) - 1), 0.0)
        (scored,) = score_tokens(self.policy, [row])
        pairs = zip(ids[1:], scored.logprob, strict=True)
        steps = [{str(token): {"logprob": float(value)}} for token, value in pairs]
        return {"prompt_logprobs": [None, *steps]}

    def _in_workers(self, work):
        threads = [threading.Thread(target=work, args=(i,)) for i in range(self.workers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    @torch.no_grad()
    def _load(self, weights):
        own = self.policy.model.state_dict()
        for name, weight in weights:
            own[name].copy_(weight)


def _handler(server):
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            path = urlsplit(self.path).path
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length)) if length else None
            server.asked.append(path)
            failed = path in server.fails
            content = json.dumps({} if failed else server.answer(path, body)).encode()
            self.send_response(500 if failed else 200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST

        def log_message(self, *_): ...

    return Handler


def started(policy, *options):
    """Return a stack of running servers, each with a copy of the policy's initial weights."""
    held, servers = ExitStack(), []
    for chosen in options:
        server = WeightServer(policy.frozen_copy(), **chosen)
        held.callback(server.close)
        servers.append(server)
    return held, servers
