"""The first ratios of a run are 1, or it stops: generation and training are broken on purpose."""

import asyncio
import copy
import math
from dataclasses import replace

import pytest
import torch
from small_training import run, small

from harness import config as configs
from harness.config import LoraConfig, OptimizerConfig
from harness.inference.completers import Sampling, decoding, decoding_check
from harness.inference.completers.hf import HFCompleter
from harness.model.packing import Sample
from harness.model.policy import Policy
from harness.training import learner as learning
from harness.training import setup
from harness.training.first_update import Drift, FirstUpdateAlarm, alarm_of
from harness.training.learner import Learner
from harness.types.errors import TrainingError

STOPS = "the first update does not see the policy that played"
ALARM = FirstUpdateAlarm("float32", "optimizer.packing (now None)")


@pytest.fixture
def untested(monkeypatch):
    """The self-test, which would refuse what breaks cached decoding first, is left out."""
    monkeypatch.setattr(decoding_check, "check", lambda policy: None)


@pytest.fixture
def own(policy):
    """A policy that may be broken, with dropout of its own, which updates leave out."""
    model = copy.deepcopy(policy.model)
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(2)  # more certain
    for module in model.modules():
        if hasattr(module, "attention_dropout"):
            module.attention_dropout = 0.3
    return Policy(model, policy.tokenizer, "cpu")


def played(policy, temperature=1.0):
    """Answers to prompts of several lengths, as samples."""
    chats = [[{"role": "user", "content": "go left " * n}] for n in (1, 7, 3, 5)]

    async def play():
        completer, sampling = HFCompleter(policy), Sampling(temperature, 12)
        return await asyncio.gather(
            *(completer.complete(c, sampling, seed=i) for i, c in enumerate(chats))
        )

    answers = asyncio.run(play())
    return [
        Sample(one.prompt_ids, one.response_ids, one.logprobs, (-1.0) ** i)
        for i, one in enumerate(answers)
    ]


def update(policy, rows, alarm=ALARM, temperature=1.0, **optimizer):
    config = OptimizerConfig(mini_batches=1, **optimizer)
    return Learner(policy, None, config, "clipped", {}, temperature, alarm=alarm).update(
        rows, step=0, seed=0
    )


def weights(policy):
    return torch.cat([weight.detach().flatten() for weight in policy.model.parameters()])


@pytest.mark.parametrize("temperature", [1.0, 0.5])
@pytest.mark.parametrize("path", ["padded", "packed", "shared"])
def test_what_is_right_is_not_stopped(own, path, temperature):
    rows = played(own, temperature)
    own.set_padding_free(path == "packed")
    own.set_share_prefixes(path == "shared")
    figures = update(own, rows * 2, temperature=temperature)  # equal ones are merged
    assert figures["update/ratio_max"] == pytest.approx(1, abs=1e-4)


def scaled(of):
    """A forward pass in training whose log-probabilities are those of another temperature."""
    return lambda batch, temperature, **more: of(batch, 1.05 * temperature, **more)


def break_sampling_temperature(monkeypatch, policy):
    decode = decoding.DecodeBatch.decode
    monkeypatch.setattr(decoding.DecodeBatch, "decode", lambda batch: decode(batch) * 1.05)


def break_training_scale(monkeypatch, policy):
    monkeypatch.setattr(policy, "logprobs", scaled(policy.logprobs))


def break_positions(monkeypatch, policy):
    """Cached decoding counts the padding."""
    forward = decoding.DecodeBatch._forward

    def shifted(batch, position, **tokens):
        width = batch._mask.shape[1]
        own = torch.arange(width - position.shape[1], width)[None].expand_as(position)
        return forward(batch, own * 3, **tokens)

    monkeypatch.setattr(decoding.DecodeBatch, "_forward", shifted)


def break_dropout(monkeypatch, policy):
    monkeypatch.setattr(learning, "set_learning", lambda model: model.train())


BROKEN_MODEL = [
    break_sampling_temperature,
    break_training_scale,
    break_positions,
    break_dropout,
]


@pytest.mark.parametrize("broken", BROKEN_MODEL)
def test_a_broken_path_stops_the_first_update(own, monkeypatch, broken, untested):
    broken(monkeypatch, own)
    rows, before = played(own), weights(own)
    torch.manual_seed(0)
    with pytest.raises(TrainingError, match=f"{STOPS}.*off 1 by a factor of up to .* in float32"):
        update(own, rows)
    assert torch.equal(weights(own), before)
    update(own, rows, alarm=None)  # what it would have learned


def other_end(row):
    """The token that ended the answer, or its last, is another one in training."""
    return replace(row, response_ids=(*row.response_ids[:-1], (row.response_ids[-1] + 1) % 300))


def shorter_prompt(row):
    return replace(row, prompt_ids=row.prompt_ids[1:])


def moved_mask(row):
    """The first token of the prompt's end counts as the answer's, whose last is left out."""
    return replace(
        row,
        prompt_ids=row.prompt_ids[:-1],
        response_ids=(row.prompt_ids[-1], *row.response_ids[:-1]),
    )


@pytest.mark.parametrize("broken", [other_end, shorter_prompt, moved_mask])
def test_other_tokens_in_training_stop_the_first_update(own, broken):
    with pytest.raises(TrainingError, match=STOPS):
        update(own, [broken(row) for row in played(own)])


def test_the_alarm_is_for_the_first_step_that_learns(own):
    rows = played(own)
    config = OptimizerConfig(mini_batches=1, learning_rate=1e-2)
    learner = Learner(own, None, config, "clipped", {}, 1.0, alarm=ALARM)
    nothing = [replace(row, advantage=0.0, old_logprobs=(-9.0,) * row.num_actions) for row in rows]
    learner.update(nothing, step=0, seed=0)  # no weight moves
    with pytest.raises(TrainingError, match=STOPS):
        learner.update([other_end(row) for row in rows], step=1, seed=0)
    learner.update(rows, step=1, seed=0)
    assert learner.update(rows, step=2, seed=0)["update/ratio_max"] > 1.05, "it is off policy now"


@pytest.mark.parametrize("precision", ["mixed", "bfloat16"])
def test_half_precision_may_round_but_not_differ(policy, monkeypatch, precision):
    model = copy.deepcopy(policy.model)
    own = Policy(model, policy.tokenizer, "cpu", precision=precision)
    generates = own.generation_copy() if precision == "mixed" else own
    rows, alarm = played(generates), FirstUpdateAlarm(precision)
    assert update(own, rows, alarm)["update/ratio_max"] != 1
    monkeypatch.setattr(
        own,
        "logprobs",
        lambda *given, of=own.logprobs, **more: [x * 1.1 for x in of(*given, **more)],
    )
    with pytest.raises(TrainingError, match=f"rounding in {precision} explains a mean of 0.2"):
        update(own, rows, alarm)


def test_the_figure_is_told_and_what_may_differ():
    said = r"up to 1.105 .mean \|log ratio\| 0.02 over 10 tokens.*factor of 1.01.*optimizer.packing"
    with pytest.raises(TrainingError, match=said):
        ALARM.check(Drift(0.1, 0.2), 10)
    with pytest.raises(TrainingError, match=r"up to e\^inf"):
        ALARM.check(Drift(math.inf, math.inf), 10)
    ALARM.check(Drift(0.0099, 0.0099), 1)


def test_only_runs_that_are_on_policy_have_an_alarm(policy, tmp_path):
    def has(*fields, own=policy, resumed=False):
        config = configs.load("corridor-tiny", list(fields))
        return alarm_of(config, own, is_resumed=resumed) is not None

    assert has()
    assert has("method.name='grpo'", "optimizer.epochs=2", "rollout.old_logprobs='recompute'")
    assert has(resumed=True)
    behind = ("agent.context='transcript'", "rollout.gateway='127.0.0.1:0'")
    assert has(*behind)
    assert not has(*behind, resumed=True), "its checkpoint has rollouts of the policy before it"
    assert not has("rollout.ahead=1")
    assert not has("rollout.backend='vllm'")
    assert not has(f"rollout.recorded=['{tmp_path}/x.jsonl']")
    assert not has("method.name='rft'"), "the policy before training plays"
    dropping = policy.trainable_copy()
    dropping.adapt(LoraConfig(rank=2, dropout=0.1), "nowhere", seed=0)
    assert not has(own=dropping), "adapters drop in the update alone"
    told = alarm_of(configs.load("corridor-tiny", []), policy).settings
    assert "optimizer.packing (now " in told
    assert "policy.precision (now " in told


def test_a_run_stops_at_its_first_update_and_so_does_one_that_goes_on(
    tmp_path, monkeypatch, half_succeed, untested
):
    fields = ["run.steps=2", "checkpoint.every=1", "eval.every=0", "eval.tasks=1"]
    whole = run(small(tmp_path, "whole", *fields, "run.steps=1"))
    decode = decoding.DecodeBatch.decode
    monkeypatch.setattr(decoding.DecodeBatch, "decode", lambda batch: decode(batch) * 1.2)
    with pytest.raises(TrainingError, match=STOPS):
        run(small(tmp_path, "broken", *fields))
    going_on = setup.resume(whole.folder.path)
    going_on.config = configs.replace(
        going_on.config, run=configs.replace(going_on.config.run, steps=2)
    )
    with pytest.raises(TrainingError, match=f"{STOPS}(.|\n)*harness train --resume"):
        going_on.run()
