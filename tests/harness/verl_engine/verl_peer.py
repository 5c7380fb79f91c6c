"""Checks that run where verl is: `python verl_peer.py CHECK ...`; it fails by an assertion.

Words after a `+` are a further check of the same process.
"""

import contextlib
import itertools
import json
import sys
import time
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import torch

from harness import config as configs
from harness import credit
from harness.credit.registry import needs
from harness.preflight.defaults import resolve


def names(*recipes):
    """verl's own configuration has every setting that recipes are translated into."""
    import verl
    from hydra import compose, initialize_config_dir
    from omegaconf import OmegaConf
    from verl.workers.config import FSDPEngineConfig

    from harness.training.verl.settings import translate

    folder = str(Path(verl.__file__).parent / "trainer" / "config")
    with initialize_config_dir(folder, version_base=None):
        known = compose("ppo_trainer")
    for recipe in recipes:
        given = translate(configs.load(recipe, ["eval.final_splits=[]"]))
        for name in given:
            section, _, key = name.rpartition(".")
            keys = OmegaConf.select(known, section).keys()  # those without a value too
            assert key in keys or key in {field.name for field in fields(FSDPEngineConfig)}, name


def plugin():
    """verl finds episodes and trainer by the entry point alone."""
    from verl.experimental.agent_loop.agent_loop import _agent_loop_registry
    from verl.trainer.ppo.v1.trainer_base import get_trainer_cls

    assert get_trainer_cls("agentgyms").__module__ == "harness.training.verl.credit"
    assert "agentgyms" in _agent_loop_registry


def credits_of(file, context):
    """The rows that verl trains have the advantages of our trainer, with every estimator."""
    from harness.model.packing import samples
    from harness.rollouts import rollout_files
    from harness.training.verl.credit import _row, credit_of, rollouts_of
    from harness.training.verl.episodes import TURNS, outputs_of

    played = rollout_files.read(file).rollouts
    tried, different = 0, set()
    for name in credit.names():
        if needs(name, {}):
            continue
        own = [f"agent.context={context}", "method.name=gigpo", "method.loss={}"]
        config = resolve(configs.load("corridor-tiny", own))
        assigned = credit_of(config)
        assigned.use(name, credit.registry.hyperparameters_of(name, {}))
        rows = []
        for rollout in played:
            uid = f"{rollout.group:08d}"
            for number, row in enumerate(outputs_of(rollout, config)):
                key = f"{uid}_{rollout.member}_{number}"
                rows.append((key, row, dict(row.extra_fields), True))
        rows.append(("padding", rows[0][1], rows[-1][2], False))  # it copies a real row's fields
        order = np.random.default_rng(0).permutation(len(rows))
        keys, outputs, told, own_rows = zip(*(rows[i] for i in order), strict=True)
        rollouts, first = rollouts_of(keys, told, own_rows)
        found = assigned.assign(rollouts)
        expected = samples(rollouts, found.advantage, context)
        wanted = {}
        for sample in expected:
            wanted.setdefault((sample.prompt_ids, sample.response_ids), []).append(sample.advantage)
        for output, about, start in zip(outputs, told, first, strict=True):
            if start is None:
                continue
            row = _row(found, start, about[TURNS]).numpy()
            sampled = row[np.array(output.response_mask) > 0]
            sequence = tuple(output.prompt_ids), tuple(output.response_ids)
            one = [np.float32(np.broadcast_to(w, sampled.shape)) for w in wanted[sequence]]
            assert any((sampled == each).all() for each in one), name
        assert len(rollouts) == len(played)
        tried += 1
        different.add(str(found.advantage))
    assert tried >= 20, tried
    assert len(different) >= 10, different
    sys.stdout.write(f"{tried}\n")


def gradients(run):
    """The first update's gradients in verl are those of this harness's trainer."""
    from harness.losses import get
    from harness.model.packing import samples, to_batch
    from harness.model.policy import Policy
    from harness.preflight.defaults import loss_settings
    from harness.rollouts import rollout_files
    from harness.training.verl.credit import credit_of

    run = Path(run)
    config = configs.from_dict(json.loads((run / "config.json").read_text()))
    policy = Policy.load(str(run / "verl" / "start"), "cpu")
    file = min((run / "rollouts").iterdir())
    rollouts = rollout_files.read(file).rollouts
    advantage = credit_of(config).assign(rollouts).advantage
    batch = to_batch(samples(rollouts, advantage), policy.pad_id)
    logprob, _ = policy.logprobs(batch, config.agent.temperature)
    batch = replace(batch, old_logprob=logprob.detach())
    loss, _ = get("clipped")(logprob, batch, **loss_settings(config))
    loss.backward()
    whole = torch.cat([p.grad.flatten() for p in policy.model.parameters()])
    scale = min(1.0, config.optimizer.max_grad_norm / (whole.norm().item() + 1e-6))
    state = torch.load(
        run / "verl/global_step_1/actor/optim_world_size_1_rank_0.pt", weights_only=False
    )["state"]
    compared = 0
    for number, own in enumerate(policy.model.parameters()):  # torch numbers them in this order
        moment = state[number]["exp_avg"]
        moment = moment.full_tensor() if hasattr(moment, "full_tensor") else moment
        theirs = moment / (1 - config.optimizer.betas[0])
        near = 1e-4 * float(whole.abs().max())
        torch.testing.assert_close(theirs, own.grad * scale, rtol=1e-4, atol=near)
        compared += own.numel()
    assert compared == whole.numel()
    assert whole.norm() > 0
    sys.stdout.write(f"{compared} parameters, norm {float(whole.norm())}\n")


def fill(address):
    """Take all room in a cluster's object store, from the first line of the input on."""
    import ray
    from ray.exceptions import OutOfDiskError

    ray.init(address, log_to_driver=False)
    sys.stdin.readline()
    held = []
    while True:
        for size in (1 << 22, 1 << 18, 1 << 16):
            with contextlib.suppress(OutOfDiskError):
                while True:
                    held.append(ray.put(bytes(size)))
        time.sleep(0.1)  # the run frees some


if __name__ == "__main__":
    for is_end, given in itertools.groupby(sys.argv[1:], "+".__eq__):
        if not is_end:
            check, *words = given
            globals()[check](*words)
