"""What an update computes with: rows without padding, precisions, adapters, learning rates."""

import copy
import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from picture_chats import CHATS
from random_rollouts import some_rollouts
from sequences import sample
from torch._subclasses.fake_tensor import FakeTensorMode
from transformers.integrations.sdpa_attention import sdpa_attention_forward

from harness import annotators, config, losses
from harness.annotators import AnnotatorContext
from harness.config import OptimizerConfig
from harness.credit import TurnTable
from harness.model.logprobs import score_tokens
from harness.model.packed_rows import attention
from harness.model.packing import Sample, micro_batch_indices, samples, to_batch
from harness.model.policy import Policy
from harness.model.vocabulary.output_layer import token_scores
from harness.preflight.checks import check
from harness.training.learner import Learner, learning_rate
from harness.training.optimizer import make_optimizer
from harness.types.errors import ConfigError
from harness.types.messages import Image
from tests.harness.tiny_families import SEEING, make_seeing


def packed_copy(policy):
    """The same policy, through which sequences pass without padding."""
    twin = policy.trainable_copy()
    twin.set_padding_free(True)
    return twin


def slopes(policy):
    return {n: p.grad.clone() for n, p in policy.model.named_parameters() if p.grad is not None}


def computed(policy, rows, **settings):
    """Loss, log-probabilities, entropies and gradients of samples in one batch."""
    policy.model.zero_grad()
    batch = to_batch(rows, policy.pad_id)
    logprob, entropy = policy.logprobs(batch, 0.7, entropy_gradient=True)
    batch = replace(batch, reference_logprob=logprob.detach() - 0.1 * batch.action_mask)
    total, _ = losses.get("clipped")(logprob, batch, entropy=entropy, **settings)
    total.backward()
    return total.detach(), logprob.detach(), entropy.detach(), slopes(policy)


@st.composite
def conversations(draw):
    """A turn, or turns of one chat with the environment's words between them."""
    chance = np.random.default_rng(draw(st.integers(0, 10**6)))
    sizes = chance.integers(1, 9, size=(draw(st.integers(1, 3)), 2)).tolist()
    place = [k for i, (own, told) in enumerate(sizes) for k in [i] * own + [-1] * told]
    place = place[: len(place) - sizes[-1][1]]
    count = sum(k >= 0 for k in place)
    prompt = chance.integers(0, 300, draw(st.integers(1, 40))).tolist()
    return Sample(
        (*prompt,),
        (*chance.integers(0, 300, len(place)).tolist(),),
        (*chance.normal(-3, 1, count).tolist(),),
        (*chance.normal(0, 1, count).tolist(),),
        turn=(*place,),
    )


@settings(max_examples=15)
@given(st.lists(conversations(), min_size=1, max_size=6))
def test_rows_without_padding_give_the_same_loss_and_gradient(policy, rows):
    terms = {"kl_coefficient": 0.1, "entropy_coefficient": 0.01, "ratio": "turn"}
    padded = computed(policy, rows, **terms)
    packed = computed(packed_copy(policy), rows, **terms)
    for one, other in zip(padded[:3], packed[:3], strict=True):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-5)
    for name, slope in padded[3].items():
        torch.testing.assert_close(slope, packed[3][name], atol=1e-5, rtol=1e-4, msg=name)


def test_no_sequence_of_a_row_sees_another(policy):
    packed = packed_copy(policy)
    rows = [sample(5, 3), sample(9, 4), sample(2, 1)]
    with torch.no_grad():
        before, _ = packed.logprobs(to_batch(rows, 0))
        changed = replace(rows[1], prompt_ids=(250,) * 9)
        after, _ = packed.logprobs(to_batch([rows[0], changed, rows[2]], 0))
    assert torch.equal(before[::2], after[::2])
    assert not torch.equal(before[1], after[1])


@pytest.mark.parametrize("family", SEEING)
def test_images_pass_without_padding_too(family):
    seeing = make_seeing(family)
    rows = [
        Sample(
            seeing.encode_chat(chat), (8, 9, 10), (-3.0,) * 3, 1.0, seeing.chat_encoder.images(chat)
        )
        for chat in CHATS
    ]
    assert sum(isinstance(one, Image) for row in rows for one in row.images) == 5
    padded, packed = computed(seeing, rows), computed(packed_copy(seeing), rows)
    torch.testing.assert_close(padded[1], packed[1], atol=1e-5, rtol=1e-5)
    eyes = [name for name in padded[3] if "visual" in name]
    assert eyes
    for name, slope in padded[3].items():
        torch.testing.assert_close(slope, packed[3][name], atol=1e-5, rtol=1e-4, msg=name)


@pytest.mark.parametrize("context", ["window", "transcript"])
def test_scores_and_annotators_do_not_depend_on_padding(policy, context):
    rollouts = some_rollouts(policy, context)
    told, shared = [], policy.trainable_copy()
    shared.set_share_prefixes(True)
    for own in (policy.trainable_copy(), packed_copy(policy), shared):
        annotator_context = AnnotatorContext(own, own.frozen_copy(), context, max_tokens=150)
        rows = annotator_context.sequences(rollouts)
        figures = np.concatenate([one.logprob for one in score_tokens(own, rows, max_tokens=150)])
        turns, learned = TurnTable.from_rollouts(rollouts), {}
        for name in ("critic", "process_reward", "entropy"):
            made = annotators.make(name, {}, annotator_context)
            turns = made.annotate(turns, rollouts)
            learned |= made.learn(turns, rollouts, step=0, seed=0)
        again = annotators.make("critic", {"model": "head"}, annotator_context)
        again.learn(made_value := again.annotate(turns, rollouts), rollouts, step=0, seed=0)
        told.append((figures, turns.process_reward, turns.entropy, made_value.value, learned))
    for made in told[1:]:
        for one, other in zip(told[0][:4], made[:4], strict=True):
            np.testing.assert_allclose(one, other, atol=1e-5)
        assert told[0][4] == pytest.approx(made[4], abs=1e-5)


def test_an_update_does_not_depend_on_padding(policy):
    rollouts = some_rollouts(policy)
    credit = np.linspace(-1, 1, sum(len(r.turns) for r in rollouts))
    rows = samples(rollouts, credit)
    made = []
    for own in (policy.trainable_copy(), packed_copy(policy)):
        cut = OptimizerConfig(learning_rate=1e-3, mini_batches=2, micro_batch_tokens=200)
        learner = Learner(own, policy, cut, "clipped", {"kl_coefficient": 0.1}, 1.0)
        figures = learner.update(rows, step=0, seed=0)
        made.append((figures, torch.cat([p.detach().flatten() for p in own.model.parameters()])))
    assert made[0][0] == pytest.approx(made[1][0], rel=1e-4, abs=1e-5)
    # AdamW's first steps are the gradient's sign: where that is rounding they may differ.
    assert float((made[0][1] - made[1][1]).abs().mean()) < 1e-6


@given(st.lists(st.integers(1, 60), min_size=1, max_size=40), st.integers(20, 120))
def test_batches_without_padding_hold_every_sample_once_and_are_filled(lengths, limit):
    rows = [sample(length, 1) for length in lengths]
    parts = list(micro_batch_indices(rows, limit, padding_free=True))
    assert sorted(i for part in parts for i in part) == list(range(len(rows)))
    sizes = [sum(rows[i].length for i in part) for part in parts]
    assert all(size <= limit or len(part) == 1 for size, part in zip(sizes, parts, strict=True))
    smallest, *others = sorted(sizes)
    assert all(smallest + other > limit for other in others[:1])  # no two of them fit into one
    fewest = math.ceil(sum(min(row.length, limit) for row in rows) / limit)
    assert fewest <= len(parts) <= 11 / 9 * len(list(micro_batch_indices(rows, limit))) + 4


def test_attention_of_a_row_is_that_of_each_sequence_alone():
    layer = torch.nn.Module()
    layer.num_key_value_groups, layer.is_causal = 2, True
    generator = torch.Generator().manual_seed(0)
    query = torch.randn(1, 4, 12, 8, generator=generator)
    key, value = torch.randn(2, 1, 2, 12, 8, generator=generator)
    ends = torch.tensor([0, 5, 6, 12], dtype=torch.int32)
    row, _ = attention.attend(layer, query, key, value, None, cu_seq_lens_q=ends, max_length_q=6)
    for start, end in [(0, 5), (5, 6), (6, 12)]:
        own = (x[:, :, start:end] for x in (query, key, value))
        alone, _ = sdpa_attention_forward(layer, *own, None)
        torch.testing.assert_close(row[:, start:end], alone)
    plain, _ = attention.attend(layer, query, key, value, None)
    assert torch.equal(plain, sdpa_attention_forward(layer, query, key, value, None)[0])


def test_who_can_do_without_padding_and_who_does(policy):
    twin = policy.trainable_copy()
    twin.set_padding_free(None)
    assert not twin.padding_free  # slower on a CPU
    twin.set_padding_free(True)
    assert twin.padding_free
    assert twin.frozen_copy().padding_free
    twin.set_padding_free(False)
    assert not twin.padding_free
    eager = policy.trainable_copy()
    eager.model.set_attn_implementation("eager")
    eager.set_padding_free(None)
    with pytest.raises(ConfigError, match=r"its attention is 'eager'.*leave it out"):
        eager.set_padding_free(True)
    windowed = policy.trainable_copy()
    windowed.model.config.layer_types = ["full_attention", "sliding_attention"]
    with pytest.raises(ConfigError, match="layers of sliding_attention"):
        windowed.set_padding_free(True)


class Adapted(torch.nn.Linear):
    """An output layer of another class, as one with adapters."""


@pytest.mark.parametrize("temperature", [1.0, 0.6])
@pytest.mark.parametrize("kind", [torch.nn.Linear, Adapted])
def test_a_large_vocabulary_takes_turns(temperature, kind):
    generator = torch.Generator().manual_seed(0)
    layer = kind(6, 50, bias=kind is torch.nn.Linear)
    hidden = torch.randn(23, 6, generator=generator)
    chosen = torch.randint(50, (23,), generator=generator)
    made = []
    for most in (50 * 23, 50 * 4, 1):
        seen = hidden.clone().requires_grad_()
        layer.zero_grad()
        logprob, entropy = token_scores(
            layer, seen, chosen, temperature, entropy_gradient=True, most_logits=most
        )
        (logprob.exp().sum() + entropy.square().sum()).backward()
        slopes = [weight.grad.clone() for weight in layer.parameters()]
        made.append((logprob.detach(), entropy.detach(), seen.grad, *slopes))
    for parts in made[1:]:
        for whole, part in zip(made[0], parts, strict=True):
            torch.testing.assert_close(whole, part)
    told = torch.distributions.Categorical(logits=layer(hidden) / temperature)
    torch.testing.assert_close(made[0][0], told.log_prob(chosen).detach())
    torch.testing.assert_close(made[0][1], told.entropy().detach())
    with torch.no_grad():
        _, entropy = token_scores(layer, hidden, chosen, temperature)
    torch.testing.assert_close(entropy, made[0][1])


@pytest.mark.parametrize("padding_free", [False, True])
def test_mixed_precision_keeps_weights_and_gradients_in_float32(policy, padding_free):
    rows = [sample(6, 3), sample(2, 4, -1.0)]
    exact = computed(policy, rows)
    twin = Policy(policy.trainable_copy().model, policy.tokenizer, "cpu", precision="mixed")
    twin.set_padding_free(padding_free)
    rough = computed(twin, rows)
    assert rough[1].dtype == torch.float32
    assert {slope.dtype for slope in rough[3].values()} == {torch.float32}
    torch.testing.assert_close(rough[1], exact[1], atol=0.05, rtol=0)
    assert not torch.equal(rough[1], exact[1])  # bfloat16 it was
    learner = Learner(twin, None, OptimizerConfig(learning_rate=1e-5), "clipped", {}, 1.0)
    before = {name: weight.clone() for name, weight in twin.model.state_dict().items()}
    learner.update(rows, step=0, seed=0)
    moved = [float((twin.model.state_dict()[n] - w).abs().max()) for n, w in before.items()]
    assert 0 < max(moved) < 1e-4  # smaller than bfloat16 could tell from weights of 0.1
    assert all(weight.grad is None for weight in twin.model.parameters())


def test_weights_in_bfloat16_are_for_adapters():
    fields = ["policy.precision='bfloat16'", "warmstart.episodes=1"]
    with pytest.raises(ConfigError, match=r"policy\.precision 'bfloat16' is for adapters"):
        check(config.load("corridor-tiny", fields))
    check(config.load("corridor-tiny", [*fields, "policy.lora.rank=2"]))


def stepped(offload, device="cpu", kept=None):
    """Return weights and AdamW after three steps, or after one more than a kept state has."""
    torch.manual_seed(0)
    weights = [torch.nn.Parameter(torch.randn(4, 3, device=device)) for _ in range(2)]
    model = torch.nn.ParameterList(weights)
    optimizer = make_optimizer(model, OptimizerConfig(learning_rate=0.1), offload=offload)
    if kept is not None:
        optimizer.load_state_dict(kept)
    for number in range(3):
        for weight in weights:
            weight.grad = torch.sin(weight.detach() + number)
        optimizer.step()
    return weights, optimizer


def test_adamw_with_moments_elsewhere_takes_the_same_steps():
    whole, optimizer = stepped(False)
    kept = optimizer.state_dict()
    for state in (None, kept):
        exact, found = (stepped(offload, kept=copy.deepcopy(state)) for offload in (False, True))
        assert all(map(torch.equal, exact[0], found[0]))
        assert len(found[1].param_groups[0]["params"]) == 2
    assert not torch.equal(whole[0], exact[0][0])


@pytest.mark.parametrize(("offload", "where"), [(False, "cuda"), (True, "cpu")])
def test_moments_are_offloaded_from_a_gpu(offload, where):
    """Fake tensors have a device that is not there."""
    with FakeTensorMode():
        _, optimizer = stepped(offload, "cuda")
        for kept in (None, optimizer.state_dict()):
            weights, optimizer = stepped(offload, "cuda", kept)
            assert {weight.device.type for weight in weights} == {"cuda"}
            for state in optimizer.state.values():
                assert {state[n].device.type for n in ("exp_avg", "exp_avg_sq")} == {where}


COURSES = {  # worked by hand: 3 of 11 steps are warm-up, and 8 are left
    "constant": [1 / 3, 2 / 3, 1, 1, 1, 1, 1, 1, 1, 1, 1],
    "linear": [1 / 3, 2 / 3, 1, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2],
    "cosine": [
        1 / 3,
        2 / 3,
        1,
        *(0.2 + 0.4 * (1 + math.cos(math.pi * k / 8)) for k in range(1, 9)),
    ],
}


@pytest.mark.parametrize("name", COURSES)
def test_courses_of_a_learning_rate(name):
    course = OptimizerConfig(learning_rate=2.0, schedule=name, warmup_steps=3, final_share=0.2)
    got = [learning_rate(course, step, 11) for step in range(11)]
    assert got == pytest.approx([2.0 * share for share in COURSES[name]])


def test_an_update_takes_its_steps_rate_whatever_came_before(policy):
    cut = OptimizerConfig(learning_rate=1.0, schedule="linear", warmup_steps=2)
    learner = Learner(policy.trainable_copy(), None, cut, "nll", {}, 1.0, steps=10)
    rates = [
        learner.update([sample(3, 2, 0.0)], step=step, seed=0)["update/learning_rate"]
        for step in (0, 9, 4)
    ]
    assert rates == pytest.approx([0.5, 0.0, 0.625])
