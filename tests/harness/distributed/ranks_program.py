"""What torchrun starts for the tests of several processes: trains, goes on, fails or dies.

    torchrun ... ranks_program.py JOBS

JOBS is a JSON file with a list of [name of a function here, its arguments...].
"""

import asyncio
import json
import os
import shutil
import signal
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
import weight_server
from function_actor import FunctionActor
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM

from harness import config as configs
from harness.distributed import fsdp, shared_writing
from harness.distributed.process_group import torchrun_processes
from harness.inference import device_transfer
from harness.inference.device_transfer import DeviceTransfer
from harness.inference.vllm_generators import ServersGenerator
from harness.model.forward import Network
from harness.model.logprobs import score_tokens
from harness.model.packing import Sample
from harness.model.policy import Policy
from harness.rollouts.collect import collect_distributed
from harness.rollouts.env_pool import EnvPool
from harness.rollouts.groups import CollectOptions
from harness.training import setup
from harness.training.first_update import FirstUpdateAlarm
from harness.training.learner import Learner
from harness.types.errors import TrainingError
from harness.types.task_draws import TaskDraw


def start(processes, overrides):
    """Train `corridor-tiny` with these settings."""
    setup.start(configs.load("corridor-tiny", overrides), processes).run()


def go_on(processes, source, folder, step):
    """Go on from one checkpoint of a run, in a copy of it."""
    processes.run_on_first(lambda: copy(source, folder, step))
    setup.resume(folder, processes).run()


def copy(source, folder, step):
    """Copy a run as it was after a step."""
    shutil.copytree(source, folder, symlinks=True)
    for checkpoint in Path(folder, "checkpoints").glob("step-*"):
        if checkpoint.name > f"step-{step:06d}":
            shutil.rmtree(checkpoint)


def fail(processes, overrides):
    """Meet an error in the last process while it plays."""
    trainer = setup.start(configs.load("corridor-tiny", overrides), processes)
    if processes.rank == processes.size - 1:

        async def complete(*_):
            raise ValueError("the model has left")

        trainer.generator.completer.complete = complete
    trainer.run()


def die(processes, overrides):
    """Kill the last process between two steps."""
    trainer = setup.start(configs.load("corridor-tiny", overrides), processes)
    take = trainer.train_step

    def train_step():
        if trainer.step == 1 and processes.rank == processes.size - 1:
            os.kill(os.getpid(), signal.SIGKILL)
        return take()

    trainer.train_step = train_step
    trainer.run()


def score_one(processes, folder, told):
    """Score fewer sequences than there are processes, and write what comes of it."""
    policy = Policy.load(folder, "cpu")
    rows = [Sample((1, 2, 3), (4, 5), (0.0, 0.0), 0.0)]
    alone = score_tokens(policy, rows)
    policy.shard(processes)
    shared = score_tokens(policy, rows)
    gap = abs(alone[0].logprob - shared[0].logprob).max()
    parts = sum(weight.to_local().numel() for weight in policy.model.parameters())
    whole = sum(weight.numel() for weight in policy.model.parameters())
    found = processes.gather([len(shared), float(gap), parts / whole])
    if processes.is_first:
        Path(told).write_text(json.dumps(found))


def gradients(
    processes,
    folder,
    told,
    precision,
    replicas=1,
    reduce_once=False,
    offload=None,
    sequence=1,
    sequences=None,
):
    """Write the gradients of a model in several micro-batches, for seeded sequences or a file's."""
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    network = Network(model, 0, "cpu", precision)
    network.layout = fsdp.Layout(
        replicas=replicas, reduce_once=reduce_once, offload=offload, sequence=sequence
    )
    network.shard(processes)
    rng = np.random.default_rng(5)
    drawn = [rng.integers(1, 200, 12 + 3 * i).tolist() for i in range(9)]
    if sequences is not None:
        drawn = json.loads(Path(sequences).read_text())
    rows = [Sample(tuple(x[:5]), tuple(x[5:]), (0.0,) * (len(x) - 5), 1.0) for x in drawn]
    for batch in network.micro_batches(rows, 64):
        logprob, _ = network.logprobs(batch)
        (-logprob.sum() / sum(row.num_actions for row in rows)).backward()
    found = {name: fsdp.full_tensor(p.grad) for name, p in model.named_parameters()}
    if processes.is_first:
        torch.save(found, told)


def learn(processes, folder, told, sequence):
    """Rescore a few sequences and learn from them twice; write what came of it."""
    policy = Policy.load(folder, "cpu")
    policy.layout = fsdp.Layout(sequence=sequence)
    reference = policy.frozen_copy()
    for one in (policy, reference):
        one.shard(processes)
    rng = np.random.default_rng(7)
    rows = []
    for i in range(7):
        turn = (0, 0, -1, 1, *(1,) * i)
        drawn, credit = rng.integers(1, 200, 9 + i).tolist(), tuple(rng.standard_normal(3 + i))
        rows.append(Sample(tuple(drawn[:5]), tuple(drawn[5:]), (-5.0,) * (3 + i), credit, (), turn))
    scores = score_tokens(policy, rows, 1.0, 32)
    settings = {"ratio": "sequence", "kl_coefficient": 0.1, "entropy_coefficient": 0.01}
    optimizer = configs.OptimizerConfig(mini_batches=2, micro_batch_tokens=32)
    learner = Learner(policy, reference, optimizer, "clipped", settings, 1.0)
    figures = [learner.update(rows, step=step, seed=step) for step in (0, 1)]
    weights = {name: fsdp.full_tensor(p) for name, p in policy.model.named_parameters()}
    if processes.is_first:
        logprobs = np.concatenate([one.logprob for one in scores])
        torch.save((torch.from_numpy(logprobs), figures, weights), told)


def idle(processes, folder, told, sequence):
    """Learn, then from samples without credit, then from others' samples; write what happened."""
    policy = Policy.load(folder, "cpu")
    policy.layout = fsdp.Layout(sequence=sequence)
    policy.shard(processes)
    rng = np.random.default_rng(7)
    drawn = [rng.integers(1, 200, 9 + i).tolist() for i in range(5)]
    rows = [Sample(tuple(x[:5]), tuple(x[5:]), (0.0,) * (len(x) - 5), 1.0) for x in drawn]
    rows = [
        replace(row, old_logprobs=tuple(one.logprob))
        for row, one in zip(rows, score_tokens(policy, rows), strict=True)
    ]
    optimizer = configs.OptimizerConfig(mini_batches=1, micro_batch_tokens=32, weight_decay=0.5)

    def learner():
        alarm = FirstUpdateAlarm("float32")
        return Learner(policy, None, optimizer, "clipped", {}, 1.0, alarm=alarm)

    def weights():
        own = (fsdp.full_tensor(p).detach() for p in policy.model.parameters())
        return torch.cat([p.flatten() for p in own])

    found, own = [weights()], learner()
    for credit in (1.0, 0.0, 1.0):
        own.update([replace(row, advantage=credit) for row in rows], step=0, seed=0)
        found.append(weights())
    said = ""
    try:  # one sequence alone is off, so one process alone sees it
        away = (*rows[0].response_ids[:-1], 150)
        learner().update([replace(rows[0], response_ids=away), *rows[1:]], step=0, seed=0)
    except TrainingError as e:
        said = str(e)
    found.append(weights())
    everything = processes.gather(said)
    if processes.is_first:
        torch.save((found, everything), told)


def read_parts(processes, folder, told):
    """Shard a model that is not read yet; write what each process read and whether it is right."""
    policy = Policy.load(folder, "meta")
    stored = policy.stored
    policy.shard(processes)
    kept = load_file(Path(folder, "model.safetensors"))
    alike = all(
        torch.equal(fsdp.full_tensor(weight), kept[name])
        for name, weight in policy.model.named_parameters()
    )
    found = processes.gather([stored.bytes_read, alike])
    if processes.is_first:
        Path(told).write_text(json.dumps(found))


def save_parts(processes, folder, where, file_bytes):
    """Shard a model and save it in files of about this size."""
    policy = setup.Policy.load(folder, "meta")
    policy.shard(processes)
    usual, shared_writing.FILE_BYTES = shared_writing.FILE_BYTES, file_bytes
    policy.save(Path(where))
    shared_writing.FILE_BYTES = usual


def host_memory(processes, home, told):
    """Write what a process holds at most to load, to step, to save and to resume, in MB."""
    sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks" / "studies"))
    from host_memory import measure

    size = processes.size
    found = measure(processes, Path(home), f"run-{size}", resumes=False)
    found |= measure(processes, Path(home), f"run-{size}", resumes=True)
    if processes.is_first:
        Path(told).write_text(json.dumps(found))


def send_handles(processes, folder, home):
    """Send weights by handles of all processes to two servers; write what came of it.

    After the first update one server fails in the middle, and after the second it has ended.
    """
    device_transfer.connect = weight_server.HandleTrainer
    device_transfer.make_source = lambda weights, _: weights
    policy, servers = setup.Policy.load(folder, "cpu"), []
    whole = policy.frozen_copy()
    if processes.is_first:
        _, servers = weight_server.started(policy, *({"transfer": "ipc", "gpu": i} for i in (0, 1)))
    urls = processes.run_on_first(lambda: tuple(server.url for server in servers))
    base = configs.load("corridor-tiny")
    rollout = configs.replace(base.rollout, backend="server", urls=urls)
    policy.shard(processes)
    config = configs.replace(base, rollout=rollout)
    generator = ServersGenerator(config, policy, Path(home), processes, patience_s=2.0)
    generator._transfer = DeviceTransfer(policy, "ipc", processes, torch.float32)
    told = []
    for update in range(4):
        with torch.no_grad():
            for model in (policy.model, whole.model):
                for weight in model.parameters():
                    weight += 0.01
        if processes.is_first and update == 1:
            servers[1].fails |= {"/update_weights", "/health"}
        if processes.is_first and update == 2:
            servers[1].close()
        generator.sync()
        alike = [
            all(
                torch.equal(a, b)
                for a, b in zip(
                    one.policy.model.parameters(), whole.model.parameters(), strict=True
                )
            )
            for one in servers
        ]
        known = [bool(one.version) for one in generator.servers]
        told.append([alike, known, [server.joins for server in servers]])
    if processes.is_first:
        Path(home, "told.json").write_text(json.dumps(told))


class Waiting(FunctionActor):
    """Takes no turn until files say that six groups have ended, and then goes on slowly."""

    def __init__(self, home):
        super().__init__(lambda view, seed: "left")
        self._home = Path(home)

    async def act(self, view, seed):
        while len(list(self._home.glob("ended-*"))) < 6:
            await asyncio.sleep(0.01)
        for _ in range(500):  # in the loop that looks at the shared count 50 times meanwhile
            await asyncio.sleep(0.02)
        return await super().act(view, seed)


def collect_enough(processes, home):
    """Play eight groups until six have ended; the last process waits with its two."""
    draws = [TaskDraw(f"train/free-{2 * i:03d}", 100 + i) for i in range(8)]
    waits = processes.rank == processes.size - 1
    actor = Waiting(home) if waits else FunctionActor(lambda view, seed: "left")
    pool = EnvPool("agentgyms/Corridor-v0", 2, 64, max_turns=3)
    options = CollectOptions(
        enough_share=0.75, on_finish=lambda one: Path(home, f"ended-{one.group}").touch()
    )
    for again in range(2):
        playing = collect_distributed(processes, pool, draws, actor, seed=1, options=options)
        played = [(one.group, one.member) for one in asyncio.run(playing)]
        if processes.is_first:
            Path(home, f"told-{again}.json").write_text(json.dumps(played))
            for path in Path(home).glob("ended-*"):
                path.unlink()
        processes.gather(None)
    pool.close()


def run(jobs):
    """Do jobs as one of the processes that the environment variables of torchrun tell of."""
    torch.set_num_threads(1)
    with torchrun_processes() as joint:
        for name, *arguments in jobs:
            globals()[name](joint, *arguments)


if __name__ == "__main__":
    run(json.loads(Path(sys.argv[1]).read_text()))
