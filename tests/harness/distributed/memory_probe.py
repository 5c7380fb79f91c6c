"""Print the peak bytes of one of 8 processes in forward and backward pass, on fake tensors.

    memory_probe.py LAYERS PRECISION

The model is Qwen2.5-7B with this number of layers and activation checkpointing; the work is 8
sequences of 2,048 tokens, of which 3,200 are scored. Fake tensors have shapes and no numbers.
AdamW's moments and a reference policy come on top.
"""

import sys

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.distributed._tools.mem_tracker import MemTracker
from torch.testing._internal.distributed.fake_pg import FakeStore
from transformers import AutoModelForCausalLM, Qwen2Config

from harness.distributed import fsdp
from harness.distributed.process_group import ProcessGroup
from harness.model.attention import language_model
from harness.model.forward import Network
from harness.model.output_layer import token_scores

PROCESSES, ROWS, TOKENS, SCORED = 8, 8, 2048, 3200


def scores(network):
    """Return log-probabilities as `Network.logprobs` does, without its choice by a mask."""
    with network.autocast():
        tokens = torch.zeros(ROWS, TOKENS, dtype=torch.long)
        out = language_model(network.model)(input_ids=tokens, use_cache=False)
    hidden = out.last_hidden_state.flatten(0, 1)[:SCORED]
    head, chosen = network.model.get_output_embeddings(), torch.zeros(SCORED, dtype=torch.long)
    return network._sharded.run_head(token_scores, head, hidden, chosen, 1.0)[0]


def peak(layers, precision):
    """Return the peak in bytes, gradients and activations included."""
    torch.distributed.init_process_group("fake", store=FakeStore(), rank=0, world_size=PROCESSES)
    config = Qwen2Config(
        hidden_size=3584,
        num_hidden_layers=layers,
        num_attention_heads=28,
        num_key_value_heads=4,
        intermediate_size=18944,
        vocab_size=152064,
        tie_word_embeddings=False,
    )
    fsdp.mesh_of(torch.device("cpu"))  # its numbers must be real ones
    network = Network(torch.nn.Linear(1, 1), 0, "cpu", precision)
    with FakeTensorMode(allow_non_fake_inputs=True):
        network.model = AutoModelForCausalLM.from_config(config, attn_implementation="sdpa")
        network.model.activation_checkpointing_enable({"use_reentrant": False})
        network.model.train()
        network.shard(ProcessGroup(0, PROCESSES))
        tracker = MemTracker()
        tracker.track_external(network.model)
        with tracker:
            network._sharded.run(scores, network).sum().backward()
        snapshot = tracker.get_tracker_snapshot("peak")
    return max(sum(v for k, v in one.items() if "Total" in str(k)) for one in snapshot.values())


if __name__ == "__main__":
    sys.stdout.write(f"{peak(int(sys.argv[1]), sys.argv[2])}\n")
