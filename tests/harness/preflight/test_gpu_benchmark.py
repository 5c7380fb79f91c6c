"""The benchmark of a GPU, rehearsed with shrunk models; and the operations that it counts."""

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode
from transformers import AutoConfig, AutoModelForCausalLM

from harness.model.vocabulary.output_layer import token_scores
from harness.preflight.model_shapes import measure
from harness.preflight.step_time import Passed, forward_operations, training_operations

ROOT = Path(__file__).parents[3]
SMALL = {
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 600,
}
KINDS = {
    "qwen2": {},
    "qwen3": {"head_dim": 32},
    "qwen3_moe": {
        "head_dim": 16,
        "num_experts": 8,
        "num_experts_per_tok": 2,
        "moe_intermediate_size": 32,
    },
}

EXACT = 1e-9 if torch.__version__ >= "2.7" else 1e-4  # torch 2.6 counts a few more


@pytest.mark.parametrize("kind", KINDS)
def test_operations_are_those_that_torch_counts(kind):
    config = AutoConfig.for_model(kind, **SMALL, **KINDS[kind])
    config._attn_implementation = "eager"
    config._experts_implementation = "eager"
    model = AutoModelForCausalLM.from_config(config)
    rows, length, scored = 3, 40, 17
    with FlopCounterMode(display=False) as counter:
        hidden = model.model(torch.ones(rows, length, dtype=torch.long)).last_hidden_state
        chosen = torch.ones(scored, dtype=torch.long)
        token_scores(model.lm_head, hidden.flatten(0, 1)[:scored], chosen, 1.0)
        forward = counter.get_total_flops()
    whole = Passed(rows * length, scored, rows * length**2)
    # Eager attention computes the scores of all pairs, the arithmetic those of the past.
    masked = Passed(rows * length, scored, 2 * rows * length**2)
    shape = measure(config)
    assert forward == pytest.approx(forward_operations(shape, masked), rel=EXACT)
    assert forward_operations(shape, whole) < forward
    assert training_operations(shape, whole) == 3 * forward_operations(shape, whole)
    assert training_operations(shape, whole, adapted=True) == 2 * forward_operations(shape, whole)


@pytest.mark.slow
def test_every_part_runs_with_shrunk_models(tmp_path):
    call = [sys.executable, str(ROOT / "benchmarks/gpu/measure.py"), "--small"]
    done = subprocess.run(
        [*call, "--output", str(tmp_path)],
        env=os.environ | {"CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    found = json.loads((tmp_path / "gpu.json").read_text())
    models = ("Qwen2.5-0.5B", "Qwen2.5-1.5B", "Qwen2.5-7B, LoRA", "Qwen3-1.7B")
    for model in models:
        speed = found[f"speed: {model}"]
        assert speed["tokens_per_s"].keys() == {
            "rollouts", "rescore_padded", "rescore_packed", "update_padded", "update_packed"
        }  # fmt: skip
        assert all(0 < share < 1 for share in speed["mfu"].values()), speed["mfu"]
        for sizes in speed["memory_bytes"].values():
            assert sizes["planned"] > 0
            assert sizes["measured"] is None, "a CPU does not tell"
        if "LoRA" not in model:
            agreement = found[f"agreement: {model}"]
            assert 0 < agreement["gradient_error"] < 2e-2
            assert 0 < agreement["logprob_difference"] <= agreement["logprob_difference_max"] < 1e-2
    run = found["run"]
    assert (run["repeated_steps"], run["differing"]) == (1, {})
    assert run["tokens_learned"] > 0
    assert math.isfinite(run["save_s"])
    for peer in ("trl", "vllm"):
        assert "tokens_per_s" in found[peer] or "not installed" in found[peer]["skipped"]
    table = (tmp_path / "gpu.md").read_text()
    assert all(f"| {model} |" in table for model in models)


@pytest.mark.slow
def test_without_a_gpu_only_the_rehearsal_runs(tmp_path):
    done = subprocess.run(
        [sys.executable, str(ROOT / "benchmarks/gpu/measure.py"), "--output", str(tmp_path)],
        env=os.environ | {"CUDA_VISIBLE_DEVICES": ""},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert "--small" in done.stdout
