"""Print the peak bytes of one process in the passes of two micro-batches, on fake tensors.

    memory_probe.py JSON

JSON is a list of [settings of `alfworld-gigpo-7b`, name of a model, layers, processes]. Fake
tensors have shapes and no numbers. AdamW's moments, a reference policy, other models that learn,
and the generator are left out. So is what `policy.offload = "parameters"` leaves in main memory.
"""

import json
import math
import sys

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.testing._internal.distributed.fake_pg import FakeStore
from torch.utils.weak import WeakIdKeyDictionary
from transformers import AutoConfig, AutoModelForCausalLM

from harness import config as configs
from harness.distributed import fsdp
from harness.distributed.process_group import ProcessGroup
from harness.model.forward import Network
from harness.model.learning_mode import add_in_place, checkpoint_activations, set_learning
from harness.model.packed_rows.attention import language_model
from harness.model.vocabulary.output_layer import token_scores
from harness.preflight import activations, passes
from harness.preflight.model_shapes import KNOWN, measure


def scores(network, tokens, scored):
    """Return log-probabilities as `Network.logprobs` does, without its choice by a mask."""
    with network.autocast():
        ids = torch.zeros(1, tokens, dtype=torch.long)
        out = language_model(network.model)(input_ids=ids, use_cache=False)
    hidden = out.last_hidden_state.flatten(0, 1)[:scored]
    head, chosen = network.model.get_output_embeddings(), torch.zeros(scored, dtype=torch.long)
    return network._sharded.run_head(token_scores, head, hidden, chosen, 1.0)[0]


def described(model, layers):
    """Return the configuration of a known model with another number of layers."""
    found = AutoConfig.for_model(**KNOWN[model])
    found.num_hidden_layers = layers
    found.layer_types = getattr(found, "layer_types", None) and found.layer_types[:layers]
    return found


def build(network, config, model, processes):
    """Give a network its model, sharded as a run's is."""
    own = config.policy
    network.model = activations.made(
        AutoModelForCausalLM, model, 2 if own.precision == "bfloat16" else 4, own.lora
    )
    activations.fill(network.model)
    if own.gradient_checkpointing:
        checkpoint_activations(network.model)
        set_learning(network.model)
    if processes == 1:
        add_in_place(network.model)
    network.layout = fsdp.Layout(offload=own.offload)
    network.shard(ProcessGroup(0, processes))


def peaks(config, model, processes):
    """Return the peak bytes of each phase."""
    if processes > 1:
        torch.distributed.init_process_group(
            "fake", store=FakeStore(), rank=0, world_size=processes
        )
        fsdp.mesh_of(torch.device("cpu"))  # its numbers must be real ones
    shape = measure(model)
    tokens = passes.max_micro_batch_tokens(config, shape)
    scored = math.ceil(passes.response_share(config, shape) * tokens)
    network, found = Network(torch.nn.Linear(1, 1), 0, "cpu", config.policy.precision), {}
    with FakeTensorMode(allow_non_fake_inputs=True):
        build(network, config, model, processes)
        weights = [getattr(p, "_local_tensor", p) for p in network.model.parameters()]
        elsewhere, offloaded = 0, WeakIdKeyDictionary()
        tracker = activations.Tracker(lambda one: one.untyped_storage() not in offloaded)
        for weight in weights:
            if config.policy.offload == "parameters":
                offloaded[weight.untyped_storage()] = True
            else:
                tracker.add(weight)
        with tracker:
            for number in (1, 2):
                inputs = network, tokens, scored
                out = network._sharded.run(scores, *inputs)
                found[f"forward {number}"], tracker.most = tracker.most - elsewhere, 0
                out.sum().backward()
                del out
                found[f"backward {number}"], tracker.most = tracker.most - elsewhere, 0
                if config.policy.offload == "parameters":
                    found = found if elsewhere else {}  # the first one's gradients came meanwhile
                    grads = [parameter.grad for parameter in network.model.parameters()]
                    elsewhere = sum(grad._local_tensor.nbytes for grad in grads)
    if processes > 1:
        torch.distributed.destroy_process_group()
        fsdp._MESHES.clear()
    return found


if __name__ == "__main__":
    for settings, name, layers, processes in json.loads(sys.argv[1]):
        config = configs.load("alfworld-gigpo-7b", settings)
        found = peaks(config, described(name, layers), processes)
        sys.stdout.write(json.dumps(found) + "\n")
        sys.stdout.flush()
