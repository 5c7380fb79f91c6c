"""Teachers that a run refuses before it starts, and what the dry run tells of them."""

import pytest
from completions_server import NAME, serving

from harness import config as configs
from harness.config import TinyConfig
from harness.model import tiny
from harness.model.policy import Policy
from harness.preflight import checks, memory, planning, step_time
from harness.preflight.defaults import resolve
from harness.preflight.memory import Machine
from harness.preflight.model_shapes import shape_of
from harness.training import setup
from harness.types.errors import ConfigError, ModelUnavailable


def distilling(tmp_path, teacher, *overrides, name="distill"):
    own = [f"run.output='{tmp_path}'", f"method.name={name!r}", "method.loss={}"]
    given = "" if teacher is None else f"method.annotators.teacher={teacher}"
    return configs.load("corridor-tiny", [*own, *filter(None, [given]), *overrides])


@pytest.fixture(scope="module")
def folders(policy, tmp_path_factory):
    """A policy, a teacher with its tokens and a short context, and one with other tokens."""
    folder = tmp_path_factory.mktemp("teachers")
    other = tiny.make_tokenizer(["open the door and go on"] * 9, 400)
    for name, tokenizer, length in (
        ("policy", policy.tokenizer, 128),
        ("short", policy.tokenizer, 64),
        ("other", other, 128),
    ):
        size = TinyConfig(layers=1, hidden=32, heads=4, feed_forward=32, max_length=length)
        Policy(tiny.make_model(size, tokenizer, seed=2), tokenizer, "cpu").save(folder / name)
    return folder


def refused(config):
    with pytest.raises(ConfigError) as error:
        checks.check(config)
    return str(error.value)


def test_a_teacher_that_is_missing_or_has_nothing_to_teach(tmp_path):
    def said(teacher, *more, **named):
        return refused(distilling(tmp_path, teacher, *more, **named))

    assert "method distill: there is no teacher to learn from: set" in said(None)
    assert "sees what the policy sees" in said("{model='policy'}")
    assert "sees what the policy sees" in said("{model='policy'}", "method.credit.base='grpo'")
    assert "sees what the policy sees" in said("{hint=''}", name="opsd")
    assert "teacher.model: there is no folder" in said(f"{{model='{tmp_path}/none'}}")
    checks.check(distilling(tmp_path, "{model='initial'}", "method.credit.base='grpo'"))
    checks.check(distilling(tmp_path, None, name="opsd"))
    assert "teacher.model must be a model's name" in said("{model=3}")


def test_a_base_that_compares_states_needs_turns(tmp_path):
    config = distilling(tmp_path, None, "method.credit.base='gigpo'", name="opsd")
    assert "compares turns in equal states: use 'turn'" in refused(config)
    more = ("method.credit.base='gigpo'", "method.rows='turn'")
    checks.check(distilling(tmp_path, None, *more, name="opsd"))


def test_other_tokens_and_shorter_contexts_are_refused(folders, tmp_path):
    own = f"policy.model='{folders}/policy'"
    said = refused(distilling(tmp_path, f"{{model='{folders}/other'}}", own))
    assert "teacher.model" in said
    assert "has other tokens than the policy, whose responses it scores" in said
    said = refused(distilling(tmp_path, f"{{model='{folders}/short'}}", own))
    assert "up to 128 tokens, and the teacher reads 64: set agent.max_context" in said
    fits = distilling(tmp_path, f"{{model='{folders}/short'}}", own, "agent.max_context=64")
    checks.check(fits)


def test_a_tiny_policys_tokens_are_compared_before_its_first_step(folders, tmp_path):
    teacher = f"{{model='{folders}/policy'}}"
    more = ("run.name='run'", "warmstart.steps=1", "agent.max_context=128")
    config = distilling(tmp_path, teacher, *more)
    checks.check(config)
    with pytest.raises(ConfigError, match="has other tokens than the policy"):
        setup.start(config)


def test_servers_are_asked_for_a_score(folders, policy, tmp_path):
    own = f"policy.model='{folders}/policy'"

    def served(url, *more):
        return distilling(tmp_path, f"{{model='{NAME}@{url}'}}", own, *more)

    with serving(policy) as (url, asked):
        checks.check(served(url))
        assert len(asked) == 1
        assert "temperature 1: set agent.temperature to 1, it is 0.5" in refused(
            served(url, "agent.temperature=0.5")
        )
        seen = ("env.id='agentgyms/VisualSokoban-v0'", "agent.style='look'")
        seen += ("policy.model='tiny-vl'",)
        assert "takes only tokens" in refused(served(url, *seen))
    with serving(policy, max_length=65) as (url, _):
        assert "up to 128 tokens, and the teacher reads 64" in refused(served(url))
    with serving(policy, (200, {"choices": [{"logprobs": None}]})) as (url, _):
        assert "gives no log-probabilities of prompts" in refused(served(url))
    with serving(Policy.load(f"{folders}/other", "cpu")) as (url, _):
        assert "is out of vocabulary" in refused(served(url))
    with pytest.raises(ModelUnavailable, match="does not answer"):
        checks.check(served(url))
    assert any("does not answer" in line for line in planning.plan(served(url)).missing)


def test_the_plan_has_the_teachers_memory_and_time(folders, tmp_path):
    def planned(**settings):
        given = ", ".join(f"{key}={value!r}" for key, value in settings.items())
        config = resolve(distilling(tmp_path, f"{{{given}}}"))
        shape = shape_of(config.policy)
        held = {h.name: h.size for h in memory.memory(config, shape, Machine("cuda", 2))}
        time = step_time.step_time(config, shape, Machine("cuda", 2), 100, 10)
        return held.get("teacher"), time.teacher, planning.plan(config)

    local = f"{folders}/policy"
    policy = configs.load("corridor-tiny").policy
    size = shape_of(configs.replace(policy, model=local)).parameters
    held, seconds, plan = planned(model=local)
    assert held == size * 4 / 2, "weights in float32, over two GPUs"
    assert f"teacher: {local}: {size / 1e6:.2f} M parameters, frozen" in plan.sections["model"]
    assert planned(model=local, precision="bfloat16")[0] == size * 2 / 2
    unknown, _, plan = planned(model="some/model")
    assert unknown == shape_of(policy).parameters * 4 / 2, "as large as the policy"
    assert "teacher: some/model" in plan.sections["model"]
    assert any("some/model is not on this machine" in line for line in plan.missing)
    server, own, plan = planned(model="big@http://127.0.0.1:9/v1")
    assert server is None
    assert 0 < own < seconds, "the policy's own pass alone"
    assert "teacher: big at http://127.0.0.1:9/v1" in plan.sections["model"]
    assert planned(model="initial", hint="{best}")[1] == own, "the reference counts already"
