"""Configuration: recipes parse, mistakes are named."""

import json

import pytest

from agentgyms.core.errors import AgentGymsError
from harness import annotators, credit, losses
from harness import config as configs
from harness.config import methods
from harness.credit.table import ATOMS
from harness.preflight import checks, defaults
from harness.training import setup
from harness.types.errors import ConfigError


def test_overrides():
    config = configs.load(
        "corridor-tiny",
        ["run.seed=7", "run.name=other", "env.kwargs.url='http://x'", "optimizer.betas=[0.8, 0.9]"],
    )
    assert (config.run.seed, config.run.name) == (7, "other")
    assert config.env.kwargs == {"url": "http://x"}
    assert config.optimizer.betas == (0.8, 0.9)


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("run.sead=7", "unknown configuration key run.sead.*did you mean run.seed"),
        ("rum.seed=7", "unknown configuration key rum.*did you mean run"),
        ("run.seed=x", "run.seed must be of type int, got 'x'"),
        ("run.seed=true", "run.seed must be of type int, got True"),
        ("run.seed", "an override has the form section.key=value"),
        ("run.seed.deep=1", "'seed' is no section"),
        ("optimizer.betas=[0.9]", "optimizer.betas needs 2 values"),
        ("policy.tiny=3", "policy.tiny must be a section"),
        ("eval.final_splits=['a', 3]", "eval.final_splits must be of type str"),
        ("method.name='gippo'", "unknown method 'gippo'"),
        ("method.preset='own'", "unknown preset 'own'"),
        ("method.credit.gama=1", "no hyperparameter 'gama'"),
        ("method.loss.clip=1", "no hyperparameter 'clip'"),
        ("agent.style='terse'", "unknown prompt style 'terse'"),
        ("method.credit.norm='max'", "norm must be"),
        ("method.credit.gamma='x'", "gamma must be a number"),
        ("method.loss.num_tokens=7", "no hyperparameter 'num_tokens'"),
        ("method.loss.clip_low='x'", "clip_low must be a number"),
        ("rollout.group_size=0", "rollout.group_size must be at least 1"),
        ("rollout.max_batch=0", "rollout.max_batch must be at least 1"),
        ("rollout.max_draws=3", "no setting rollout.max_draws any more: .* at most ten rounds"),
        ("optimizer.max_kl=0.1", "no setting optimizer.max_kl any more: .* with optimizer.epochs"),
        ("policy.tiny.initial_std=0.2", "no setting policy.tiny.initial_std any more"),
        ("rollout.branch.max_steps=4", r"any more: use rollout.branch.budget = \{ steps"),
        ("rollout.branch.budget={steps=0}", "branch.budget has 'steps' = 0: expected steps or"),
        ("rollout.branch.budget={turns=4}", "branch.budget has 'turns' = 4: expected steps or"),
        ("rollout.curriculum.easy=0.8", "any more: use the second of rollout.curriculum.bounds"),
        ("log.wandb='agents'", 'any more: add "wandb" to log.outputs, and set log.project'),
        ("log.outputs=['wandbs']", "one of 'pictures', .* got 'wandbs'; did you mean 'wandb'"),
        ("run.seed=-1", "run.seed must be at least 0"),
        ("optimizer.learning_rate=-1.0", r"optimizer.learning_rate must be in \(0, 10\]"),
        (
            "optimizer.learning_rate=1e38",
            r"optimizer.learning_rate must be in \(0, 10\], got 1e\+38",
        ),
        ("warmstart.learning_rate=11.0", r"warmstart.learning_rate must be in \(0, 10\], got 11.0"),
        ("optimizer.learning_rate=nan", r"optimizer.learning_rate must be in \(0, 10\]"),
        ("optimizer.betas=[0.9, 1.0]", r"optimizer.betas must be in \[0, 1\)"),
        ("agent.temperature=0", "agent.temperature must be greater than 0"),
        ("eval.tasks=0", "eval.tasks must be at least 1"),
        (
            "sampling.max_tokens=8",
            "unknown configuration key sampling.max_tokens: here it is agent",
        ),
        ("sampling.top_p=0.9", "unknown configuration key sampling: expected one of"),
        ("run.tasks=8", "unknown configuration key run.tasks: here it is eval.tasks"),
        ("eval.split='valid_sen'", "no split 'valid_sen'"),
        ("env.train_split='tain'", "no split 'tain'"),
        ("env.id='agentgyms/Corrido-v0'", "there is no environment.*did you mean Corridor"),
        ("env.kwargs.foo=1", "takes no argument .foo."),
        ("policy.device='gpu'", "policy.device 'gpu' cannot be used"),
        ("policy.tiny.heads=5", "policy.tiny.hidden must be a multiple"),
        ("warmstart.steps=0", "warmstart.steps must be at least 1"),
        ("warmstart.noise=1.0", r"warmstart.noise must be in \[0, 1\)"),
        ("warmstart.episodes=0", "a tiny model needs warmstart.episodes"),
        ("agent.context='chat'", "agent.context must be one of 'window', 'transcript'"),
        ("method.rows='word'", "method.rows must be one of None, 'turn', 'token'"),
        ("method.rows='token'", "method.rows is 'token', but the estimator 'gigpo' compares turns"),
        ("rollout.enough_members=5", "enough_members is 5, but rollout.group_size only 4"),
        ("rollout.enough_share=1.5", r"rollout.enough_share must be in \(0, 1\]"),
        ("run.keep_rollouts=-1", "run.keep_rollouts must be at least 0"),
        (
            "run.plugins='mine'",
            "run.plugins must be of type list, got 'mine'",
        ),
        ("eval.max_turns=0", "eval.max_turns must be at least 1"),
        ("method.reward_scale=nan", "method.reward_scale must be greater than 0"),
        ("method.reward_scale=0.0", "method.reward_scale must be greater than 0"),
        ("optimizer.learning_rate=inf", r"optimizer.learning_rate must be in \(0, 10\]"),
        ("eval.temperature=inf", "eval.temperature must be at least 0 and finite"),
        ("method.reward_scale=inf", "method.reward_scale must be greater than 0 and finite"),
        ("method.annotators.critic={}", "method gigpo has no annotator 'critic': expected none"),
    ],
)
def test_mistakes_are_named(override, message):
    with pytest.raises(AgentGymsError, match=message):
        checks.check(configs.load("corridor-tiny", ["run.seed=1", override]))


@pytest.mark.parametrize(
    ("section", "key", "told"),
    [
        ("agent", "max_tokens", "agent.max_tokens: here it is sampling.max_tokens"),
        ("agent", "temperature", "agent.temperature: here it is sampling.temperature"),
        ("policy", "model", "policy.model: here it is model.name"),
        ("eval", "tasks", "eval.tasks: here it is run.tasks"),
        ("agent", "lenght", "agent.lenght: expected one of kind, style"),
    ],
)
def test_an_evaluation_names_the_setting_that_a_training_run_calls_otherwise(section, key, told):
    with pytest.raises(ConfigError, match=told):
        configs.build(configs.EvaluationConfig, {section: {key: 3}})


def test_files_that_are_no_recipes(tmp_path):
    with pytest.raises(
        ConfigError, match=r"no recipe nothing: expected a TOML file or one that `harness rec"
    ):
        configs.load("nothing")
    (tmp_path / "bad.toml").write_text("[run\n")
    with pytest.raises(ConfigError, match="not valid TOML"):
        configs.load(tmp_path / "bad.toml")


def test_presets_come_first_and_recipes_last():
    config = configs.load(
        "corridor-tiny", ["method.preset='verl_agent'", "method.credit.gamma=0.5"]
    )
    chosen = defaults.credit_settings(config)
    assert chosen["statistics"] == "turn"
    assert chosen["gamma"] == 0.5
    assert defaults.loss_settings(config)["kl_coefficient"] == 0.0


def test_a_resolved_configuration_leaves_nothing_to_defaults():
    config = defaults.resolve(configs.load("corridor-tiny", ["method.loss={}"]))
    assert config.method.credit["gamma"] == 0.95
    assert config.method.credit["statistics"] == "rollout"
    assert config.method.loss["clip_low"] == 0.2
    assert config.method.loss["kl_coefficient"] == 0.01
    assert config.method.loss.keys() == losses.hyperparameters("clipped").keys()
    assert config.optimizer.epochs == 1
    assert config.rollout.dynamic_sampling is False
    assert defaults.resolve(config) == config


@pytest.mark.parametrize(
    ("changes", "on_cpu"),
    [
        ({"style": "direct"}, 64),
        ({"style": "compact"}, 64),
        ({"style": "think"}, 256),
        ({"style": "direct", "max_tokens": 300}, 300),
    ],
)
def test_answers_are_shorter_where_a_cpu_writes_them(changes, on_cpu):
    tiny = configs.load("corridor-tiny")
    agent = configs.replace(tiny.agent, **{"max_tokens": None, **changes})
    config = configs.replace(tiny, agent=agent)
    resolved = defaults.resolve(config, "cpu")
    assert resolved.agent.answer_tokens == on_cpu
    assert defaults.resolve(resolved, "cuda") == resolved, "a run keeps it on other machines"
    on_gpu = defaults.resolve(config, "cuda")
    assert on_gpu.agent.answer_tokens == changes.get("max_tokens", 512)
    served = configs.replace(tiny.rollout, backend="server")
    config = configs.replace(config, rollout=served)
    assert defaults.resolve(config, "cpu").agent == on_gpu.agent


@pytest.mark.parametrize("name", methods.METHODS)
def test_the_table_of_methods_refers_to_what_exists(name):
    row = methods.get(name)
    config = from_row(name)
    checks.check(config)
    resolved = defaults.resolve(config)
    assert defaults.resolve(resolved) == resolved
    assert row.actor in methods.ACTORS
    assert row.rows in ("turn", "token")
    filled = {c for a in resolved.method.annotators for c in annotators.columns(a)}
    assert set(credit.registry.needs(row.estimator, row.credit)) <= filled | {*ATOMS}
    assert set(row.annotators) == set(resolved.method.annotators), "none is idle, none is missing"
    assert json.loads(json.dumps(configs.to_dict(resolved))), "a run can keep it"


def from_row(name, *overrides):
    rows = [f"method.name={name!r}", "method.loss={}", "method.credit={}"]
    if name == "distill":  # its teacher is the run's choice
        rows.append("method.annotators.teacher={model='policy', hint='left'}")
    return configs.load("corridor-tiny", [*rows, *overrides])


def test_a_method_brings_settings_of_a_run_that_recipes_may_change():
    gvpo = defaults.resolve(from_row("gvpo"))
    assert gvpo.rollout.enough_members == 4, "at most all of a group"
    assert gvpo.rollout.enough_share == 0.9
    assert defaults.resolve(from_row("gvpo", "rollout.group_size=8")).rollout.enough_members == 6
    assert defaults.resolve(from_row("dapo")).rollout.dynamic_sampling is True
    off = from_row("dapo", "rollout.dynamic_sampling=false")
    assert defaults.resolve(off).rollout.dynamic_sampling is False
    assert defaults.resolve(from_row("dapo")).method.overlong_share == 0.2
    assert defaults.resolve(from_row("dapo", "method.overlong_share=0")).method.overlong_share == 0
    assert defaults.resolve(from_row("grpo")).method.overlong_share == 0
    assert defaults.resolve(from_row("loop")).optimizer.epochs == 2
    assert defaults.resolve(from_row("loop", "optimizer.epochs=3")).optimizer.epochs == 3


def test_sums_over_tokens_are_divided_by_the_longest_response():
    assert defaults.loss_settings(from_row("dr_grpo"))["constant"] == 8
    other = from_row("dr_grpo", "method.loss.constant=100.0")
    assert defaults.loss_settings(other)["constant"] == 100
    assert defaults.loss_settings(from_row("dmpo"))["constant"] is None


def test_annotators_are_those_that_fill_what_the_estimator_reads():
    def of(*given):
        return defaults.annotator_settings(from_row(*given))

    assert of("gigpo") == {}
    assert list(of("salt", "method.credit.base='empg'")) == ["entropy"]
    assert list(of("reinforce_pp")) == ["reference_kl"]
    assert list(of("reinforce_pp", "method.credit.kl_coefficient=0.0")) == []
    mapped = "method.credit.base={name='reinforce_pp', kl_coefficient=0.1}"
    assert list(of("oprl", mapped)) == ["process_reward", "reference_kl"]
    oprl = of("oprl", "method.annotators.process_reward.beta=0.1")["process_reward"]
    assert oprl["beta"] == 0.1
    assert oprl["objective"] == "dpo"
    assert oprl["learning_rate"] == 1e-6
    for override, message in (
        ("method.annotators.process_reward=3", "must be a section, got 3"),
        ("method.annotators.process_reward.beta=-1", "process_reward.beta must be"),
        ("method.annotators.process_reward.gamma=1", "no hyperparameter 'gamma'"),
    ):
        with pytest.raises(ConfigError, match=message):
            checks.check(from_row("oprl", override))


def test_who_needs_the_policy_before_training():
    needing = {name for name in methods.METHODS if defaults.needs_reference(from_row(name))}
    without = {"reinforce", "dr_grpo", "dapo", "gspo", "loop", "gvpo", "maxrl", "sft", "ei", "rae"}
    without |= {"oprl", "oprl_grpo", "oprl_reinforce_pp", "oprl_ground_truth", "distill"}
    without |= {"turn_credit", "otb"}
    assert needing == methods.METHODS.keys() - without


def test_a_scorer_that_cannot_be_opened_is_refused_before_the_run_exists(tmp_path):
    for scorer, message in (
        ("cross-encoder:", "unknown scorer"),
        (f"cross-encoder:{tmp_path}/none", "cannot be loaded.*exact or lexical"),
    ):
        config = from_row(
            "scpo", f"method.credit.scorer={scorer!r}", f"run.output='{tmp_path}'", "run.name='r'"
        )
        checks.check(config)
        with pytest.raises(ConfigError, match=message):
            setup.start(config)
    assert not (tmp_path / "r").exists()
    with pytest.raises(ConfigError, match="scorer"):
        checks.check(from_row("scpo", "method.credit.scorer='psychic'"))
