"""Training with vLLM for real, on the CPU: an engine in the trainer's process, and servers."""

import asyncio
import itertools
import json
import subprocess
import threading
import time

import gateway_peer
import numpy as np
import pytest
import vllm_serving
import vllm_training

from env_servers import Server, create_app
from harness import config as configs
from harness.inference.completers import Sampling
from harness.rollouts import rollout_files
from harness.runs import metrics
from harness.training.setup import start
from harness.types.errors import TrainingError

pytestmark = pytest.mark.vllm

ROUNDING = 1e-4
"""Nats by which log-probabilities in float32 may differ: measured 6e-6."""


@pytest.fixture(scope="module")
def folder(vllm_folder, tmp_path_factory):
    """A policy that solves the corridor now and then."""
    config = vllm_training.settings(vllm_folder, tmp_path_factory.mktemp("warm"), "warm")
    warm = configs.replace(configs.load("corridor-tiny").warmstart, steps=14, batch_size=24)
    trainer = start(configs.replace(config, warmstart=warm))
    trainer.policy.save(vllm_folder.parent / "warm")
    trainer.close()
    return vllm_folder.parent / "warm"


@pytest.fixture(scope="module")
def servers(folder, tmp_path_factory):
    """Two servers that start while the other tests run."""
    home = tmp_path_factory.mktemp("training-servers")
    started = [vllm_serving.TrainingServer(folder, home) for _ in range(2)]
    yield started
    for server in started:
        server.end()


@pytest.fixture(scope="module")
def told(folder, servers, tmp_path_factory):
    """What a process with vLLM in it says, and where its runs are; the servers start meanwhile."""
    home = tmp_path_factory.mktemp("runs")
    run = subprocess.run(
        [vllm_serving.python(), "-m", "vllm_training"],
        input=json.dumps({"folder": str(folder), "home": str(home)}),
        env=vllm_serving.environment(),
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert run.returncode == 0, run.stderr[-4000:]
    return {**json.loads(run.stdout.splitlines()[-1]), "home": home}


def lines_of(run):
    """Return a run's figures that depend on the seed alone."""
    return [metrics.repeatable(record) for record in metrics.read(run)]


def steps_of(run):
    return [line for line in lines_of(run) if "update/loss" in line]


def rollouts_of(run, step):
    files = sorted((run / "rollouts").glob(f"*{step:06d}*"))
    assert len(files) == 1, list((run / "rollouts").iterdir())
    return rollout_files.read(files[0]).rollouts


def check_mismatch(figures):
    assert figures["mismatch/difference_max"] < ROUNDING
    assert abs(figures["mismatch/kl_k1"]) < ROUNDING
    assert 0 <= figures["mismatch/kl_k3"] < ROUNDING
    assert figures["mismatch/far_share"] == 0
    assert figures["mismatch/correlation"] > 1 - ROUNDING


def test_the_engine_answers_with_the_policys_weights_after_every_update(told):
    assert len(told["syncs"]) == 3
    for sync in told["syncs"]:
        assert sync["changed"]
        assert sync["tokens"]
        assert sync["difference"] < ROUNDING


def test_the_mismatch_is_logged_and_small(told):
    figures = steps_of(told["home"] / "whole")
    assert len(figures) == 3
    for line in figures:
        check_mismatch(line)
    assert any(line["update/grad_norm"] > 0 for line in figures)


def test_a_resumed_run_repeats_the_rollouts_and_the_updates(told):
    whole, again = told["home"] / "whole", told["home"] / "broken"
    assert lines_of(whole) == lines_of(again)
    assert [line["step"] for line in steps_of(again)] == [1, 2, 3]
    assert rollouts_of(whole, 3) == rollouts_of(again, 3)
    assert len(told["resumed"]) == 1
    assert told["resumed"][0]["tokens"]


def test_an_engine_with_a_stale_output_layer_is_noticed(told):
    kind, words = told["stale"]
    assert kind == "TrainingError"
    assert "does not answer with the policy's weights" in words


def test_two_processes_have_an_engine_each(folder, tmp_path):
    settings = [
        "run.name=two",
        f"run.output='{tmp_path}'",
        "run.steps=1",
        f"policy.model='{folder}'",
        "warmstart.episodes=0",
        "rollout.backend=vllm",
        "rollout.engine.gpu_memory_utilization=0.2",
        "eval.tasks=2",
    ]
    torchrun = [vllm_serving.python(), "-m", "torch.distributed.run", "--nproc-per-node", "2"]
    run = subprocess.run(
        [*torchrun, "-m", "harness", "train", "corridor-tiny", *(f"--set={s}" for s in settings)],
        env=vllm_serving.environment(),
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert run.returncode == 0, run.stderr[-4000:]
    (line,) = steps_of(tmp_path / "two")
    check_mismatch(line)


def test_what_is_sent_from_a_gpu_agrees_with_what_is_announced(told):
    assert told["sent"]["again"]
    assert {"lm_head.weight", "model.embed_tokens.weight"} <= set(told["sent"]["names"])


def test_servers_follow_the_policy_and_may_be_killed(servers, folder, tmp_path):
    urls = tuple(server.url for server in servers)
    run = start(vllm_training.settings(folder, tmp_path, "served", backend="server", urls=urls))
    seen, play = vllm_training.watched(run), run._player.play
    answers = {server.url: 0 for server in run.generator.servers}
    for server in run.generator.servers:
        server.generate = counting(server, answers)

    def disturbed(step, *more):
        """Kill both servers in the second step and start them again, with the weights of before."""
        if step != 1:
            return play(step, *more)
        waiting = threading.Thread(target=interrupt, args=(servers, answers))
        waiting.start()
        played = play(step, *more)
        waiting.join()
        return played

    run._player.play = disturbed
    run.run()
    assert len(seen) == 3
    for sync in seen:
        assert sync["changed"]
        assert sync["tokens"]
    figures = steps_of(tmp_path / "served")
    for line in figures:
        check_mismatch(line)
        assert line["rollout/lost_groups"] == 0
    assert all(count > 0 for count in answers.values())
    stale_weights_are_noticed(run, folder)


def counting(server, answers):
    """Return the server's `generate`, which counts its answers."""
    generate = server.generate

    async def counted(client, body):
        choice = await generate(client, body)
        answers[server.url] += 1
        return choice

    return counted


def interrupt(servers, answers):
    before = sum(answers.values())
    while sum(answers.values()) < before + 4:
        time.sleep(0.01)
    for server in servers:
        server.kill()
    for server in servers:
        server.start()


def stale_weights_are_noticed(run, folder):
    """Weights that change behind the trainer's back, as by a restart between two requests."""
    generator = run.generator
    server = generator.servers[0]
    generator.servers[1].version = ""
    generator.completer.servers = [server]
    chat = [{"role": "user", "content": "go"}]
    asked = generator.completer.complete(chat, Sampling(0.0, 8), 0)
    expected = asyncio.run(asked)
    server.load("default", lambda server: server.reload(str(folder)))
    server.version = generator.completer.version  # nobody has told the trainer
    asked = generator.completer.complete(chat, Sampling(0.0, 8), 0)
    assert np.allclose(asyncio.run(asked).logprobs, expected.logprobs, atol=ROUNDING)
    assert server.weight_version() == generator.completer.version
    # A label alone proves nothing.
    server.load(generator.completer.version, lambda server: server.reload(str(folder)))
    with pytest.raises(TrainingError, match="does not answer with the policy's weights"):
        generator._restore(server)


def test_agents_of_others_play_with_the_servers_and_a_step_learns_from_it(
    servers, folder, tmp_path
):
    urls = tuple(server.url for server in servers)
    settings = vllm_training.settings(folder, tmp_path, "gate", backend="server", urls=urls)
    values = configs.to_dict(settings)
    values["agent"]["context"] = "transcript"
    values["rollout"] |= {"tasks_per_step": 1, "group_size": 2, "gateway": "127.0.0.1:0"}
    with Server(create_app("agentgyms/Corridor-v0", token="", split="train")) as environments:
        run = start(configs.from_dict(values))
        run._player.gateway._sessions._urls = [environments.url]
        where = (run._player.server.url, environments.url)
        episode = {"client": "http", "group": "g", "task": "train/free-000", "turns": 3}

        def play():
            for name, solves in (("a", True), ("b", False)):
                told = gateway_peer.play(*where, {**episode, "name": name, "solves": solves})
                assert told[0] == 200

        figures, rollouts, _ = gateway_peer.trained(run, play)
        run.close()
    check_mismatch(figures)
    assert len(rollouts) == 2
    for rollout in rollouts:
        for before, after in itertools.pairwise(rollout.turns):
            context = before.completion.prompt_ids + before.completion.response_ids
            assert after.completion.prompt_ids[: len(context)] == context
        for turn in rollout.turns:
            assert len(turn.completion.logprobs) == len(turn.completion.response_ids) > 0
