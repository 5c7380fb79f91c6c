"""Low-rank adapters: what is trained, shared, merged, kept and found again."""

import copy
import json
import shutil
import warnings

import pytest
import torch
from evaluation_helpers import config as evaluation_of
from evaluation_helpers import result
from sequences import sample
from small_training import last_checkpoint, lines, run, small

from harness.config import LoraConfig, OptimizerConfig
from harness.evaluation import model_source
from harness.model import adapters
from harness.model.learning_mode import checkpoint_activations
from harness.model.packing import to_batch
from harness.model.policy import Policy
from harness.reporting import run_and_report
from harness.runs import checkpoints
from harness.training import setup
from harness.training.learner import Learner
from harness.types.errors import ConfigError

ROWS = [sample(6, 3), sample(2, 4, -1.0), sample(9, 2)]
SIZE = LoraConfig(rank=3, alpha=6.0)


@pytest.fixture(scope="module")
def base(policy, tmp_path_factory):
    folder = tmp_path_factory.mktemp("run") / "base"
    policy.save(folder)
    return folder


@pytest.fixture(scope="module")
def adapted(policy, base):
    """Makes copies of the policy with adapters."""

    def make(size=SIZE, seed=0, precision=None, where=base):
        own = Policy(copy.deepcopy(policy.model), policy.tokenizer, "cpu", precision=precision)
        own.adapt(size, str(where), seed)
        return own

    return make


def learn(policy, times=3):
    cut = OptimizerConfig(learning_rate=1e-2, mini_batches=1)
    learner = Learner(policy, None, cut, "clipped", {}, 1.0)
    for step in range(times):
        learner.update(ROWS, step=step, seed=0)
    return policy


@torch.no_grad()
def told(policy):
    return policy.logprobs(to_batch(ROWS, 0))[0]


def copied(model, kind):
    """Weights of adapters, or of what they are on."""
    is_adapter = kind == "adapters"
    found = model.named_parameters()
    return {n: w.detach().clone() for n, w in found if ("lora_" in n) == is_adapter}


def equal(one, other):
    return all(torch.equal(one[name], other[name]) for name in one)


def test_adapters_change_nothing_at_first_and_are_all_that_learns(policy, adapted):
    own = adapted()
    assert torch.equal(told(own), told(policy))
    below, above = copied(own.model, "base"), copied(own.model, "adapters")
    learner = Learner(own, None, OptimizerConfig(), "clipped", {}, 1.0)
    trained = {id(p) for group in learner.optimizer.param_groups for p in group["params"]}
    named = {name for name, weight in own.model.named_parameters() if id(weight) in trained}
    assert named == set(above)
    assert not any("lm_head" in name or "embed" in name for name in named)
    assert len(named) == 2 * 2 * 7  # A and B of the seven linear layers of two blocks
    learn(own)
    assert not torch.equal(told(own), told(policy))
    assert equal(below, copied(own.model, "base"))
    assert all(not torch.equal(w, above[n]) for n, w in copied(own.model, "adapters").items())


def test_first_weights_are_a_function_of_the_seed_alone(adapted):
    torch.manual_seed(1)
    before = torch.get_rng_state()
    one = copied(adapted().model, "adapters")
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(2)
    assert equal(one, copied(adapted().model, "adapters"))
    assert not equal(one, copied(adapted(seed=1).model, "adapters"))


def test_a_reference_shares_the_frozen_weights_and_stays(policy, adapted):
    own = adapted(LoraConfig(rank=3, dropout=0.5))
    own.model.train()
    reference, critic = own.frozen_copy(), own.trainable_copy()
    for twin in (reference, critic):
        for (name, a), b in zip(own.model.named_parameters(), twin.model.parameters(), strict=True):
            assert (a is b) == ("lora_" not in name), name
    assert not any(p.requires_grad for p in reference.model.parameters())
    learn(own)
    assert torch.equal(told(reference), told(policy))  # dropout is off in it
    own.model.eval()
    later = own.frozen_copy()  # as after a warm start
    assert torch.equal(told(later), told(own))
    assert not torch.equal(told(later), told(policy))
    before = told(own)
    learn(critic)
    critic.model.eval()
    assert torch.equal(told(own), before)
    assert not torch.equal(told(critic), told(policy))


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_merged_weights_are_those_of_a_whole_model(policy, base, adapted, precision, tmp_path):
    own = learn(adapted(precision=precision))
    before = told(own)
    named = dict(own.named_weights())
    assert list(named) == list(policy.model.state_dict())
    assert "lm_head.weight" in named  # tied, and there all the same
    assert torch.equal(told(own), before)
    close = {"atol": 1e-5, "rtol": 1e-5} if precision == "float32" else {"atol": 0.06, "rtol": 0.06}
    whole = Policy.load(str(base), "cpu", precision=precision)
    whole.model.load_state_dict(named)
    torch.testing.assert_close(told(whole), before, **close)
    own.save(tmp_path / "whole", merged=True)
    again = Policy.load(str(tmp_path / "whole"), "cpu")
    assert not again.is_adapted
    assert {w.dtype for w in again.model.parameters()} == {torch.float32}
    assert equal({n: w.float() for n, w in named.items()}, again.model.state_dict())
    plain = dict(policy.named_weights())
    assert equal(plain, policy.model.state_dict())
    policy.save(tmp_path / "plain", merged=True)
    assert equal(plain, Policy.load(str(tmp_path / "plain"), "cpu").model.state_dict())


def test_adapters_are_read_again_by_everyone(adapted, tmp_path):
    from peft import AutoPeftModelForCausalLM
    from transformers import AutoModelForCausalLM

    own = learn(adapted())
    own.save(tmp_path / "kept")
    assert not (tmp_path / "kept/model.safetensors").exists()
    again = Policy.load(str(tmp_path / "kept"), "cpu")
    assert equal(own.model.state_dict(), again.model.state_dict())
    assert torch.equal(told(own), told(again))
    trained = [name for name, weight in again.model.named_parameters() if weight.requires_grad]
    assert sorted(trained) == sorted(copied(own.model, "adapters"))
    ids = torch.tensor([[5, 6, 7, 8]])
    own.model.eval()
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")  # peft's use of transformers
        for kind in (AutoModelForCausalLM, AutoPeftModelForCausalLM):
            theirs = kind.from_pretrained(tmp_path / "kept").eval()
            assert torch.equal(theirs(ids).logits, own.model(ids).logits)
    again.save(tmp_path / "twice")
    for file in ("adapter_config.json", "adapter_model.safetensors"):
        assert (tmp_path / "twice" / file).read_bytes() == (tmp_path / "kept" / file).read_bytes()


def test_a_run_that_was_moved_finds_its_base(base, adapted, tmp_path):
    here = tmp_path / "here"
    shutil.copytree(base, here / "base")
    adapted(where=here / "base").save(here / "checkpoints" / "step-000001")
    (here / "checkpoints/step-000001/checkpoint.json").write_text('{"step": 1, "files": {}}')
    before = model_source.digest(here / "checkpoints/step-000001")
    moved = tmp_path / "there"
    here.rename(moved)
    source = model_source.find(str(moved))
    assert source.step == 1
    assert adapters.base_of(source.path) == str(moved / "base")
    assert Policy.load(source.path, "cpu").is_adapted
    assert model_source.digest(source.path) == before
    weights = moved / "base/model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"\1")
    assert model_source.digest(source.path) != before


@pytest.mark.parametrize(("precision", "padding_free"), [("bfloat16", False), ("mixed", True)])
def test_checkpointing_changes_no_gradient(adapted, precision, padding_free):
    slopes = []
    for saves_memory in (False, True):
        own = learn(adapted(precision=precision), 1)
        own.set_padding_free(padding_free)
        if saves_memory:
            checkpoint_activations(own.model)
        own.model.train()
        own.model.zero_grad()
        own.logprobs(to_batch(ROWS, 0))[0].sum().backward()
        found = {n: p.grad.clone() for n, p in own.model.named_parameters() if p.grad is not None}
        assert found.keys() == copied(own.model, "adapters").keys()
        assert {slope.dtype for slope in found.values()} == {torch.float32}
        slopes.append(found)
    assert equal(*slopes)
    assert any(slope.any() for slope in slopes[0].values())


@pytest.mark.filterwarnings("ignore::UserWarning:peft")
@pytest.mark.parametrize("shared", ["lm_head", "embed_tokens"])
def test_adapters_on_a_weight_that_two_layers_share_are_refused(adapted, shared):
    with pytest.raises(ConfigError, match=f"{shared}.*leave it out"):
        adapted(LoraConfig(rank=2, targets=("q_proj", shared)))


def test_adapters_that_do_not_fit_are_refused(adapted, tmp_path):
    with pytest.raises(ConfigError, match=r"policy\.lora\.targets \('nothing',\)"):
        adapted(LoraConfig(rank=2, targets=("nothing",)))
    adapted().save(tmp_path)
    described = json.loads((tmp_path / "adapter_config.json").read_text())
    (tmp_path / "adapter_config.json").write_text(json.dumps({**described, "r": 5}))
    with pytest.raises(ConfigError, match="have other sizes"):
        Policy.load(str(tmp_path), "cpu")
    own = adapted(LoraConfig(rank=2, targets=("q_proj", "v_proj")))
    assert len(copied(own.model, "adapters")) == 2 * 2 * 2


def learned(record):
    """Figures without those of the machine."""
    return {k: v for k, v in record.items() if not k.startswith(("memory/", "cost/", "time/"))}


def flat(value):
    """A training state, its tensors as bytes."""
    if isinstance(value, dict):
        return {key: flat(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [flat(one) for one in value]
    return value.numpy().tobytes() if isinstance(value, torch.Tensor) else value


LORA = ["policy.lora.rank=4", "policy.lora.dropout=0.1", "method.loss.kl_coefficient=0.01"]


@pytest.mark.slow
def test_a_run_of_adapters_resumes_exactly_and_is_evaluated(tmp_path):
    """PRM and reference included; dropout draws from torch's generator, which is kept too."""
    more = [
        "optimizer.packing='packed'",
        "policy.precision='mixed'",
        "policy.gradient_checkpointing=true",
        "eval.every=0",
        "method.name='oprl'",
        "checkpoint.keep=9",
        "checkpoint.every=2",
    ]
    whole = run(small(tmp_path, "whole", "run.steps=4", *LORA, *more))
    part = tmp_path / "part"
    shutil.copytree(whole.folder.path, part, symlinks=True)
    for later in checkpoints.find_all(part)[2:]:
        shutil.rmtree(later.folder)
    resumed = setup.resume(part)
    assert resumed.step == 2
    own = {id(weight) for weight in resumed.policy.model.parameters()}
    reference = resumed.learner.reference.model.parameters()
    assert sum(id(weight) in own for weight in reference) > 5
    resumed.run()
    for ours, theirs in zip(lines(resumed), lines(whole), strict=True):
        assert learned(ours) == learned(theirs)
    ours, theirs = last_checkpoint(resumed).folder, last_checkpoint(whole).folder
    assert flat(torch.load(ours / "trainer.pt")) == flat(torch.load(theirs / "trainer.pt"))
    for file in ("adapter_config.json", "adapter_model.safetensors"):
        assert (ours / file).read_bytes() == (theirs / file).read_bytes()
    chosen = {"model__name": str(whole.folder.path), "model__device": "cpu", "env__id": ""}
    folder = run_and_report.run(evaluation_of(tmp_path, **chosen, env__split="valid_seen"))
    trained = [r for r in lines(whole) if "eval/valid_seen/success" in r][-1]
    assert result(folder)["model"]["step"] == 4
    assert trained["eval/valid_seen/success"] > 0


@pytest.mark.slow
def test_a_run_goes_on_from_anothers_adapters(tmp_path):
    first = run(small(tmp_path, "first", *LORA, "run.steps=1"))
    name = f"policy.model='{last_checkpoint(first).folder}'"
    again = small(tmp_path, "again", *LORA, name, "run.steps=1", "warmstart.episodes=0")
    run(again)
    other = small(tmp_path, "other", name, "policy.lora.rank=2", "warmstart.episodes=4")
    with pytest.raises(ConfigError, match="holds adapters of rank 4"):
        setup.start(other)
