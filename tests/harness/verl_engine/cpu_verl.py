"""What verl lacks on the CPU, for tests alone: a platform, an engine, and a server of answers.

verl imports it by VERL_USE_EXTERNAL_MODULES, with VERL_PLATFORM=cpu and rollout.name=cpu_hf.
"""

import asyncio
import tempfile
import types
from contextlib import contextmanager
from typing import Any

import ray
import torch
import torch.distributed
from verl.plugin.platform.platform_base import PlatformBase
from verl.plugin.platform.platform_manager import PlatformRegistry

NAME = "cpu_hf"


class _Device(types.ModuleType):
    """The part of `torch.cuda` that verl calls."""

    def is_available(self):
        return True

    def device_count(self):
        return 1

    def current_device(self):
        return "cpu"

    def mem_get_info(self, *_):
        return 8 << 30, 16 << 30

    def get_device_name(self, *_):
        return "cpu"

    def get_rng_state(self, *_):
        return torch.get_rng_state()

    def set_rng_state(self, state, *_):
        torch.set_rng_state(state)

    def get_device_properties(self, *_):
        return types.SimpleNamespace(total_memory=16 << 30, name="cpu", multi_processor_count=1)

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *_, **__: 0


@PlatformRegistry.register(platform="cpu")
class CpuPlatform(PlatformBase):
    """Two processes on one machine, with gloo."""

    device_name = "cpu"
    vendor_name = "cpu"
    device_module = _Device("torch_cpu")

    def is_available(self):
        return True

    def is_platform_available(self, use_smi_check=False):
        return True

    def current_device(self):
        return "cpu"

    def device_count(self):
        return 1

    def set_device(self, *_):
        pass

    def synchronize(self, *_):
        pass

    def manual_seed(self, seed):
        torch.manual_seed(seed)

    def manual_seed_all(self, seed):
        torch.manual_seed(seed)

    def set_allocator_settings(self, *_):
        pass

    def empty_cache(self):
        pass

    def get_device_capability(self, *_):
        return None, None

    def communication_backend_name(self):
        return "gloo"

    def visible_devices_envvar(self):
        return "CUDA_VISIBLE_DEVICES"

    @contextmanager
    def nvtx_range(self, *_):
        yield

    def profiler_start(self):
        pass

    def profiler_stop(self):
        pass

    def ray_resource_name(self):
        return "GPU"

    def ray_noset_envvars(self):
        return ["RAY_EXPERIMENTAL_NOSET_CUDA_VISIBLE_DEVICES"]

    def is_ipc_supported(self):
        return False

    def cudart(self):
        return None


_init = torch.distributed.init_process_group


def _with_gloo(backend=None, *words, **named):
    """verl asks for gloo twice, which torch refuses."""
    return _init("gloo" if backend == "cpu:gloo,cpu:gloo" else backend, *words, **named)


torch.distributed.init_process_group = _with_gloo

# What follows imports verl's workers, which ask for the platform.
from verl.trainer.ppo.v1.replay_buffer import ReplayBuffer  # noqa: E402
from verl.workers.engine.base import EngineRegistry  # noqa: E402
from verl.workers.engine.fsdp.transformer_impl import FSDPEngineWithLMHead  # noqa: E402
from verl.workers.rollout.base import _ROLLOUT_REGISTRY, BaseRollout  # noqa: E402
from verl.workers.rollout.replica import RolloutReplica, RolloutReplicaRegistry  # noqa: E402

_wait = ReplayBuffer._wait_for_next_poll


def _soon(self, *words):
    """verl looks for episodes every two seconds, which is longer than they take here."""
    self.poll_interval = 0.1
    return _wait(self, *words)


ReplayBuffer._wait_for_next_poll = _soon


class Replica(RolloutReplica):
    """A server of answers in an actor of its own."""

    async def launch_servers(self):
        name = f"cpu_server_{self.replica_rank}"
        from cpu_server import Server

        actor = ray.remote(Server).options(name=name, num_cpus=0, max_concurrency=256)
        server = actor.remote(self.model_config.path)
        self.servers, self._server_handle, self._server_address = [server], server, name


class Adapter(BaseRollout):
    """Gives the server of its rank the weights."""

    async def resume(self, tags):
        pass

    async def release(self):
        pass

    async def update_weights(self, weights, global_steps=None, **_: Any):
        whole = {}
        for name, weight in weights:
            full = weight.full_tensor() if hasattr(weight, "full_tensor") else weight
            whole[name] = full.detach().float().cpu()
        server = ray.get_actor(f"cpu_server_{torch.distributed.get_rank()}")
        with tempfile.NamedTemporaryFile() as file:  # not by Ray, as verl's servers take them
            torch.save(whole, file.name)
            await asyncio.wrap_future(server.update.remote(file.name, global_steps).future())


_ROLLOUT_REGISTRY[NAME, "async"] = f"{__name__}.Adapter"
RolloutReplicaRegistry.register(NAME, lambda: Replica)
EngineRegistry.register(model_type="language_model", backend=["fsdp", "fsdp2"], device=["cpu"])(
    FSDPEngineWithLMHead
)
