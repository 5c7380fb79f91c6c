"""Plans of the memory of an update against one on fake tensors, by phase."""

import json
import subprocess
import sys
from pathlib import Path

import memory_probe
import pytest

from harness import config as configs
from harness.preflight import memory, model_shapes
from harness.preflight.machine import PASSES, Machine
from harness.preflight.model_shapes import measure

PROBE = Path(memory_probe.__file__)
MIXED = ["policy.precision='mixed'", "policy.gradient_checkpointing=true"]
WHOLE = ["policy.precision='mixed'", "policy.gradient_checkpointing=false"]
SHORT = [
    "agent.context='transcript'",
    "agent.max_context=4096",
    "optimizer.micro_batch_tokens=4096",
]
LORA = "policy.lora.rank=16"
HALF, ONE_AND_A_HALF, SEVEN, THIRTY_TWO = (
    f"Qwen/Qwen2.5-{size}B-Instruct" for size in ("0.5", "1.5", "7", "32")
)
LONG = [
    *MIXED,
    "agent.context='transcript'",
    "agent.max_context=32768",
    "policy.offload='parameters'",
]
CASES = [
    [MIXED, SEVEN, 2, 8],
    [MIXED, SEVEN, 3, 8],
    [[*MIXED, *SHORT], SEVEN, 2, 8],
    [["policy.precision='float32'", MIXED[1]], SEVEN, 2, 8],
    [[*MIXED, LORA], SEVEN, 2, 1],
    [["policy.precision='bfloat16'", MIXED[1], LORA], SEVEN, 4, 8],
    [LONG, THIRTY_TWO, 2, 8],
    [LONG, THIRTY_TWO, 3, 8],
    [MIXED, ONE_AND_A_HALF, 2, 1],
    [WHOLE, ONE_AND_A_HALF, 2, 2],
    [MIXED, HALF, 2, 4],
]


def probed(cases):
    """Return the peaks in bytes of each case, by phase."""
    call = [sys.executable, str(PROBE), json.dumps(cases)]
    done = subprocess.run(call, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return [json.loads(line) for line in done.stdout.splitlines()]


def planned(settings, model, layers, processes):
    """Return the bytes that are planned for the policy's passes, without AdamW's moments."""
    config = configs.load("alfworld-gigpo-7b", settings)
    shape = measure(memory_probe.described(model, layers))
    held = memory.memory(config, shape, Machine("cuda", processes))
    beside = ("policy: AdamW", "generator", "reference", "vLLM")
    own = [one for one in held if not one.name.startswith(beside)]
    return {phase: memory.during(own, phase) for phase in PASSES}


@pytest.mark.slow
def test_plans_are_within_5_percent_of_passes_on_fake_tensors():
    found = probed(CASES)
    for case, peaks in zip(CASES, found, strict=True):
        most = max(planned(*case).values())
        assert most == pytest.approx(max(peaks.values()), rel=0.05), case
    # Each further layer takes as much as the one before, up to 28.
    two, three = (peaks["backward 1"] for peaks in found[:2])
    assert 12e9 < two + (28 - 2) * (three - two) <= 17e9, "of one micro-batch"
    two, three = (
        max(peaks.values()) for case, peaks in zip(CASES, found, strict=True) if case[0] is LONG
    )
    assert two + (64 - 2) * (three - two) < 50e9, "32B on 8 GPUs, offloaded"


@pytest.mark.parametrize(
    ("settings", "most"),
    [
        (["eval.tasks=5"], 8),
        (["eval.tasks=20"], 20),
        (["eval.tasks=20", "rollout.max_live=16"], 16),
        (["eval.tasks=30", "eval.split_tasks=4", "eval.final_splits=['train']"], 30),
        ([], 256),
    ],
)
def test_an_evaluation_that_plays_more_at_once_than_a_step_is_planned(settings, most):
    step = ["rollout.tasks_per_step=2", "rollout.group_size=4", "eval.final_splits=[]"]
    config = configs.load("corridor-tiny", [*step, *settings])
    shape = model_shapes.shape_of(config.policy)
    assert memory.most_at_once(config) == most
    found = {one.name: one.size for one in memory.memory(config, shape, Machine("cpu"))}
    assert found["generator: keys and values"] == pytest.approx(
        memory.cache_size(config, shape, Machine("cpu"), most)
    )


def test_kept_texts_and_packed_weights_of_a_cpu_are_counted(monkeypatch):
    path = "harness.model.weights.usual_precision.has_bfloat16"
    small = ["policy.model='tiny'", "policy.tiny={hidden=1024, layers=4, feed_forward=2048}"]

    def held(kind, *settings):
        config = configs.load("corridor-tiny", [*small, *settings])
        shape = model_shapes.shape_of(config.policy)
        found = memory.memory(config, shape, Machine(kind))
        return {one.name: one.size for one in found}, shape

    monkeypatch.setattr(path, lambda: True)
    own, shape = held("cpu")
    assert own["generator: packed weights"] == 2 * shape.parameters > 2e7
    assert own["generator: kept keys and values"] == 1e9
    assert held("cpu", "rollout.cache_gb=0.01")[0]["generator: kept keys and values"] == 1e7
    assert "generator: kept keys and values" not in held("cpu", "rollout.cache_gb=0")[0]
    assert "generator: kept keys and values" not in held("cpu", "rollout.ahead=1")[0]
    assert not {"generator: packed weights", "generator: kept keys and values"} & set(
        held("cuda")[0]
    )
    monkeypatch.setattr(path, lambda: False)
    own, _ = held("cpu")
    assert not any("generator: " in name and "keys" not in name for name in own)
    assert own["generator: kept keys and values"] == 1e9
    small[1] = "policy.tiny={hidden=256, layers=2}"
    assert "generator: kept keys and values" not in held("cpu")[0]
