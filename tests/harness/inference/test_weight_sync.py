"""Weights to several servers at once: by files, and by one group with gloo in place of NCCL."""

import pytest
import torch
import weight_server

from harness import config as configs
from harness.distributed.process_group import SINGLE_PROCESS, ProcessGroup
from harness.inference import device_transfer, weight_sync
from harness.inference.completers.vllm_server import VLLMServer
from harness.inference.device_transfer import DeviceTransfer, HostCopy, ServerGroup
from harness.inference.vllm_generators import ServersGenerator
from harness.types.errors import ConfigError, TrainingError


@pytest.fixture
def own(policy):
    """A policy whose weights a test may change."""
    return policy.trainable_copy()


def changed(policy, seed):
    with torch.no_grad():
        torch.manual_seed(seed)
        for weight in policy.model.parameters():
            weight += 0.05 * torch.randn_like(weight)


def alike(policy, server):
    pairs = zip(policy.model.parameters(), server.policy.model.parameters(), strict=True)
    return all(torch.equal(a, b) for a, b in pairs)


def generator_of(policy, servers, folder, kind=None, processes=SINGLE_PROCESS):
    """A generator of servers, which sends by gloo in place of NCCL if that is wanted."""
    base = configs.load("corridor-tiny")
    urls = tuple(server.url for server in servers)
    rollout = configs.replace(base.rollout, backend="server", urls=urls)
    config = configs.replace(base, rollout=rollout)
    found = ServersGenerator(config, policy, folder, SINGLE_PROCESS, patience_s=5.0)
    if kind is not None:
        found._transfer = DeviceTransfer(policy, kind, processes, torch.float32)
    return found


@pytest.fixture
def gloo(monkeypatch):
    """Send by gloo."""
    monkeypatch.setattr(device_transfer, "connect", weight_server.GlooTrainer)
    monkeypatch.setattr(device_transfer, "make_source", lambda weights, _: weights)


@pytest.mark.parametrize("size", [1, 2])
def test_one_group_has_all_workers_and_one_broadcast_reaches_them(own, tmp_path, gloo, size):
    """Of several processes the first one sends from its copy in main memory."""
    held, servers = weight_server.started(own, {"workers": 2}, {}, {})
    with held:
        generator = generator_of(own, servers, tmp_path, "nccl", ProcessGroup(0, size))
        for update in (1, 2):
            changed(own, update)
            generator.sync()
            assert all(alike(own, server) for server in servers)
            assert len({server.version for server in servers}) == 1
            assert [server.joins for server in servers] == [1, 1, 1]
        assert [server.ranks for server in servers] == [[1, 2], [3], [4]]
        assert all(one.version == generator.completer.version for one in generator.servers)
        for server in servers:
            last = server.asked[-server.asked[::-1].index("/pause") - 1 :]
            assert last.index("/finish_weight_update") < last.index("/reset_prefix_cache")
            assert last.index("/update_weight_version") < last.index("/resume")


def test_a_server_that_was_started_again_gets_the_weights_alone_and_then_joins_all(
    own, tmp_path, gloo
):
    held, servers = weight_server.started(own, {}, {})
    with held:
        generator = generator_of(own, servers, tmp_path, "nccl")
        changed(own, 1)
        generator.sync()
        changed(servers[1].policy, 7)
        servers[1].version = "default"
        generator._restore(generator.servers[1])
        assert alike(own, servers[1])
        assert [server.joins for server in servers] == [1, 2]
        changed(own, 2)
        generator.sync()
        assert all(alike(own, server) for server in servers)
        assert [server.joins for server in servers] == [2, 3]


def test_a_server_that_does_not_answer_is_left_out(own, tmp_path, gloo, caplog):
    held, servers = weight_server.started(own, {}, {}, {})
    with held:
        generator = generator_of(own, servers, tmp_path, "nccl")
        generator.sync()
        servers[1].close()
        changed(own, 1)
        generator.sync()
        assert alike(own, servers[0])
        assert alike(own, servers[2])
        assert not alike(own, servers[1])
        assert [bool(one.version) for one in generator.servers] == [True, False, True]
        assert "does not answer" in caplog.text


def test_one_that_cannot_take_them_ends_the_run(own, tmp_path, gloo):
    held, servers = weight_server.started(own, {}, {})
    with held:
        generator = generator_of(own, servers, tmp_path, "nccl")
        servers[1].fails.add("/start_weight_update")
        with pytest.raises(TrainingError, match="weights did not reach .*/start_weight_update"):
            generator.sync()
        assert all(server.asked[-1] != "/pause" for server in servers)
        assert all("/resume" in server.asked for server in servers)
        servers[1].fails.clear()
        changed(own, 1)
        generator.sync()
        assert all(alike(own, server) for server in servers)


def test_files_are_read_by_all_servers_in_their_type(own, tmp_path):
    held, servers = weight_server.started(own, {"dtype": "bfloat16"}, {"dtype": "bfloat16"})
    with held:
        changed(own, 1)
        generator = generator_of(own, servers, tmp_path)
        generator.sync()
        (file,) = tmp_path.glob("weights-*/*.safetensors")
        whole = sum(weight.numel() for _, weight in own.named_weights())
        assert 2 * whole < file.stat().st_size < 2.2 * whole
        for server in servers:
            pairs = zip(own.model.parameters(), server.policy.model.parameters(), strict=True)
            assert all(torch.equal(a.bfloat16().float(), b) for a, b in pairs)


def test_servers_that_differ_are_refused(own, tmp_path):
    held, servers = weight_server.started(own, {"dtype": "bfloat16"}, {})
    with held, pytest.raises(ConfigError, match="start all with the same --dtype"):
        generator_of(own, servers, tmp_path)
    held, servers = weight_server.started(own, {"transfer": "ipc"})
    with held:
        generator = generator_of(own, servers, tmp_path)
        own.device = torch.device("cuda")
        with pytest.raises(ConfigError, match="cannot take weights by 'nccl'"):
            weight_sync.make_transfer(own, None, tmp_path, SINGLE_PROCESS, generator.servers)


def test_a_copy_in_main_memory_is_rounded_and_its_buffers_are_used_again(monkeypatch):
    monkeypatch.setattr(device_transfer, "BUFFER_BYTES", 4096)
    copy = HostCopy(torch.bfloat16, torch.device("cpu"))
    weights = {f"w{i}": torch.randn(40 + i, 16) for i in range(6)} | {"steps": torch.arange(5)}
    copy.take(weights.items(), keep=True)
    places = [weight.data_ptr() for weight in copy._copies.values()]
    for weight in weights.values():
        weight += 1
    copy.take(weights.items(), keep=True)
    assert [weight.data_ptr() for weight in copy._copies.values()] == places
    for name, weight in copy:
        expected = weights[name]
        assert torch.equal(weight, expected.bfloat16() if name != "steps" else expected)
    assert places[1] - places[0] == 1536  # 40 x 16 x 2 bytes, up to a multiple of 512
    other = HostCopy(torch.bfloat16, torch.device("cpu"))
    other.take(weights.items(), keep=False)
    assert list(other) == []


def test_a_lenient_group_asks_no_more_of_a_server_that_failed(own):
    held, servers = weight_server.started(own, {}, {})
    with held:
        known = [VLLMServer(server.url) for server in servers]
        group = ServerGroup(known, strict=False)
        servers[0].fails.add("/start_weight_update")
        group.start_weight_update()
        group.finish_weight_update("3")
        assert list(group.errors) == known[:1]
        assert "/finish_weight_update" not in servers[0].asked
        assert "/finish_weight_update" in servers[1].asked
