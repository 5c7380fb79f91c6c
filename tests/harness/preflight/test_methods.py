"""Every method trains: a few on the corridor at once, all on ALFWorld among the slow tests."""

import math
import shutil
from dataclasses import replace

import gymnasium as gym
import numpy as np
import pytest
import torch
from run_contents import header_of, left
from small_training import SMALL, last_checkpoint, lines, run
from tiny_scorers import bert, saved

from agentgyms.core.errors import EnvUnavailable
from agentgyms.envs.corridor import CorridorEnv
from harness import config as configs
from harness.config import methods
from harness.model.packing import samples
from harness.model.policy import Policy
from harness.preflight.checks import check
from harness.preflight.defaults import credit_settings, resolve
from harness.rollouts import rollout_files
from harness.rollouts.branches import Branches
from harness.runs import checkpoints
from harness.training import setup
from harness.types.errors import ConfigError, ContextOverflow

DIAGNOSTICS = {
    "agent_opsd": ("teacher/kl",),
    "dapo": ("rollout/rounds", "rollout/groups_dropped"),
    "distill": ("teacher/kl",),
    "dmpo": ("credit/pairs",),
    "dpo": ("credit/pairs", "credit/preference_loss"),
    "ecpo": ("credit/reliability", "credit/anchor_std", "credit/anchor_std_raw"),
    "ei": ("credit/imitated_turns", "update/nll"),
    "empg": ("credit/entropy_mean", "credit/entropy_std"),
    "gvpo": ("credit/shaped_turns", "credit/turns_per_rollout"),
    "hcapo": ("credit/hindsight", "credit/hindsight_clipped"),
    "hgpo": ("credit/common_history",),
    "ipo": ("credit/pairs", "credit/preference_loss"),
    "kto": ("credit/preference_loss", "credit/reference_point", "credit/desirable_turns"),
    "loop": ("update/epochs", "update/ratio_max"),
    "opsd": ("teacher/kl",),
    "oracle": ("rollout/continuations", "rollout/continuation_steps"),
    "oprl": ("credit/process_reward_mean", "process_reward/loss", "process_reward/grad_norm"),
    "oprl_ground_truth": ("credit/process_reward_mean", "credit/process_reward_std"),
    "oprl_grpo": ("credit/process_reward_std", "process_reward/pairs"),
    "oprl_reinforce_pp": ("credit/process_reward_std", "process_reward/pairs"),
    "ppo": ("credit/explained_variance", "critic/loss", "critic/grad_norm"),
    "prime": ("credit/process_reward_mean", "process_reward/loss"),
    "reinforce_pp": ("credit/divergence",),
    "rft": ("credit/imitated_turns", "update/nll"),
    "salt": ("credit/merge_rate",),
    "salt_rloo": ("credit/merge_rate",),
    "scpo": ("credit/credited_turns", "credit/auxiliary_reward"),
    "sdar": ("teacher/kl",),
    "sft": ("credit/imitated_turns", "update/nll"),
    "vineppo": ("rollout/continuation_tokens", "update/epochs"),
}
"""What a method logs besides what all do."""

EVERYONES = (
    "credit/advantage_std",
    "credit/advantage_range",
    "credit/divergent_anchors",
    "credit/silent_groups",
    "update/loss",
    "update/grad_norm",
    "rollout/success",
)


def steps_of(trainer):
    return [record for record in lines(trainer) if "update/loss" in record]


def check_figures(name, records, count):
    """Numbers are there and finite; somewhere there is a gradient, and what the method logs.

    A step may be silent: without a success, or a pair, some figures have nothing to tell.
    """
    assert len(records) == count
    for record in records:
        assert not [key for key in EVERYONES if key not in record]
        assert all(math.isfinite(value) for value in record.values())
    assert set(DIAGNOSTICS.get(name, ())) <= set().union(*records)
    assert any(record["update/grad_norm"] > 0 for record in records)


@pytest.fixture(scope="module")
def warm(tmp_path_factory):
    """A policy that solves the corridor now and then."""
    folder = tmp_path_factory.mktemp("warm")
    settings = [f"run.output='{folder}'", "run.name='warm'", "run.steps=0", *SMALL]
    trainer = run(configs.load("corridor-tiny", [*settings, "warmstart.steps=24", "eval.tasks=1"]))
    return last_checkpoint(trainer).folder


def corridor(warm, tmp_path, name, *overrides, run_name="run"):
    settings = [
        f"run.output='{tmp_path}'",
        f"run.name={run_name!r}",
        *SMALL,
        f"policy.model='{warm}'",
        "warmstart.episodes=0",
        f"method.name={name!r}",
        "method.loss={}",
        "run.steps=2",
        "eval.every=0",
        "eval.tasks=1",
    ]
    return configs.load("corridor-tiny", [*settings, *overrides])


@pytest.mark.parametrize(
    ("name", "overrides"),
    [
        ("ppo", ()),
        ("ppo", ("method.rows='token'", "agent.context='transcript'")),
        pytest.param("ppo", ("method.annotators.critic.model='head'",), marks=pytest.mark.slow),
        pytest.param("reinforce_pp", ("method.rows='token'",), marks=pytest.mark.slow),
        pytest.param("dapo", (), marks=pytest.mark.slow),
        pytest.param("gspo", ("agent.context='transcript'",), marks=pytest.mark.slow),
        pytest.param("loop", (), marks=pytest.mark.slow),
        pytest.param("hcapo", ("agent.context='transcript'",), marks=pytest.mark.slow),
        pytest.param("prime", (), marks=pytest.mark.slow),
        ("scpo", ("method.credit.scorer='lexical'",)),
        pytest.param(
            "gvpo", ("rollout.enough_turns=0", "rollout.enough_members=2"), marks=pytest.mark.slow
        ),
        pytest.param("salt", ("method.credit.base='empg'",), marks=pytest.mark.slow),
        ("oprl", ("agent.context='transcript'",)),
        pytest.param("vineppo", (), marks=pytest.mark.slow),
        pytest.param(
            "oracle",
            ("rollout.dynamic_sampling=true",),
            marks=pytest.mark.slow,
        ),
        pytest.param("oprl", ("method.rows='token'",), marks=pytest.mark.slow),
        pytest.param(
            "sft", ("agent.context='transcript'", "warmstart.noise=0.3"), marks=pytest.mark.slow
        ),
        pytest.param("rft", (), marks=pytest.mark.slow),
        pytest.param("dmpo", ("agent.context='transcript'",), marks=pytest.mark.slow),
        ("dpo", ("optimizer.mini_batches=1",)),
        pytest.param("kto", ("agent.context='transcript'",), marks=pytest.mark.slow),
    ],
    ids=lambda value: value if isinstance(value, str) else "-".join(value),
)
def test_a_method_trains(warm, tmp_path, name, overrides):
    trainer = run(corridor(warm, tmp_path, name, *overrides))
    check_figures(name, steps_of(trainer), 2)
    before = Policy.load(str(warm), "cpu").model.parameters()
    assert not all(
        torch.equal(a, b) for a, b in zip(before, trainer.policy.model.parameters(), strict=True)
    )


@pytest.mark.parametrize(
    ("name", "overrides"),
    [
        pytest.param("ppo", (), marks=pytest.mark.slow),
        pytest.param("ppo", ("method.annotators.critic.model='head'",), marks=pytest.mark.slow),
        ("oprl", ("method.annotators.process_reward.learning_rate=1e-3",)),
        pytest.param("prime", ("agent.context='transcript'",), marks=pytest.mark.slow),
        pytest.param("dapo", (), marks=pytest.mark.slow),
        pytest.param(
            "gvpo", ("rollout.enough_turns=0", "rollout.enough_members=2"), marks=pytest.mark.slow
        ),
        ("sft", ("warmstart.noise=0.3",)),
        pytest.param("rft", (), marks=pytest.mark.slow),
        pytest.param("kto", (), marks=pytest.mark.slow),
        pytest.param(
            "oracle",
            ("method.annotators.continuations.count=2", "rollout.max_live=16"),
            marks=pytest.mark.slow,
        ),
        pytest.param(
            "tree_grpo",
            ("rollout.branch.at='uniform'", "agent.context='transcript'"),
            marks=pytest.mark.slow,
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_resumed_run_equals_an_uninterrupted_one(warm, tmp_path, name, overrides):
    config = corridor(warm, tmp_path, name, "run.steps=4", "checkpoint.every=2", *overrides)
    whole = run(config)
    part = tmp_path / "part"
    shutil.copytree(whole.folder.path, part)
    shutil.rmtree(part / "checkpoints/step-000004")
    resumed = setup.resume(part)
    assert resumed.step == 2
    resumed.run()
    assert lines(resumed) == lines(whole)
    ours = last_checkpoint(resumed).folder
    assert left(resumed.folder.path) == left(whole.folder.path)
    state = torch.load(ours / "trainer.pt", weights_only=True)["annotators"]
    assert state.keys() == whole.credit.annotators.keys()


def test_rejection_fine_tuning_plays_with_the_initial_policy_and_expert_iteration_does_not(
    warm, tmp_path
):
    """Both learn the same from the first step; then only one has learned for the second."""
    settings = ("optimizer.learning_rate=1e-2", "optimizer.mini_batches=1")
    first = steps_of(run(corridor(warm, tmp_path, "rft", *settings, run_name="rft")))
    second = steps_of(run(corridor(warm, tmp_path, "ei", *settings, run_name="ei")))
    assert first[0]["update/loss"] == second[0]["update/loss"]
    assert first[0]["rollout/success"] == second[0]["rollout/success"]
    assert first[1]["credit/advantage_std"] != second[1]["credit/advantage_std"]
    kept = (tmp_path / "rft/reference", tmp_path / "ei/reference")
    assert [folder.exists() for folder in kept] == [True, False]


def test_long_responses_cost_reward(warm, tmp_path):
    """A response of `max_tokens` tokens, as one that was cut off has, costs the whole reward."""
    settings = ("agent.max_tokens=8", "method.overlong_share=1.0", "method.reward_scale=10")
    trainer = setup.start(corridor(warm, tmp_path, "grpo", *settings))
    rollouts = trainer._player.play(0).rollouts
    turns = [turn for rollout in rollouts for turn in rollout.turns]
    lengths = np.array([len(turn.completion.response_ids) for turn in turns])
    assert lengths.min() < 8
    got = trainer.credit.assign(rollouts).turns.reward
    np.testing.assert_allclose(got, [10 * t.reward for t in turns] - 10 * lengths / 8)
    trainer.close()


def test_values_that_are_measured_while_playing_become_credit(warm, tmp_path):
    """In units of the rewards; the run's file has the values and no continuation."""
    settings = ("method.annotators.continuations.count=3", "method.reward_scale=2", "run.steps=1")
    trainer = setup.start(corridor(warm, tmp_path, "oracle", "method.credit={}", *settings))
    played = trainer._player.play(0)
    assigned = trainer.credit.assign(played.rollouts)
    values = np.concatenate([rollout.state_returns for rollout in played.rollouts])
    assert set(np.unique(values)) == {0.0, 2.0}
    turns, config = assigned.turns, trainer.config.rollout
    np.testing.assert_array_equal(turns.state_value, values.mean(axis=1))
    after = np.where(turns.goes_on, np.append(turns.state_value[1:], 0.0), 0.0)
    wanted = turns.reward + after - turns.state_value
    np.testing.assert_allclose(assigned.advantage, wanted / np.sqrt((wanted**2).mean()), rtol=1e-5)
    assert played.figures["rollout/continuations"] % 3 == 0
    assert played.figures["rollout/continuation_tokens"] > 0
    trainer.run()
    kept = rollout_files.read(trainer.folder.rollouts(1))
    assert len(kept.rollouts) == config.tasks_per_step * config.group_size
    np.testing.assert_array_equal(kept.columns["state_value"], turns.state_value)


def test_siblings_branch_where_the_measured_value_changes_most(warm, tmp_path):
    """Whatever the method is; the first turn is none of them."""
    branch = ("rollout.branch.at='pivotal'", "rollout.branch.points=2", "method.reward_scale=2")
    count = "method.annotators.continuations.count=4"
    trainer = setup.start(corridor(warm, tmp_path, "tree_grpo", *branch, count))
    rollouts = trainer._player.play(0).rollouts
    trainer.credit.assign(rollouts)
    for group in {one.group for one in rollouts}:
        gaps = {}
        for one in (r for r in rollouts if r.group == group and r.parent is None):
            values = [*one.state_returns.mean(axis=1), 0.0]
            for t, turn in enumerate(one.turns[1:], start=1):
                gaps[one.member, t] = abs(2 * turn.reward + values[t + 1] - values[t])
        most = sorted(gaps, key=lambda at: -gaps[at])[:2]
        found = {
            (r.parent, r.branch_turn) for r in rollouts if r.group == group and r.parent is not None
        }
        assert found == set(most)
    trainer.run()
    check_figures("tree_grpo", steps_of(trainer), 2)
    bare = [replace(one, state_returns=None) for one in rollouts]
    with pytest.raises(ConfigError, match="the rollouts have none: they were played without"):
        Branches(trainer.config.rollout.branch).choose(bare, 0)


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("method.rows='token'", "continuations, which begin at turns: set method.rows to 'turn'"),
        ("method.annotators.continuations.count=0", "continuations.count"),
    ],
)
def test_a_method_that_cannot_play_on_is_refused_at_once(warm, tmp_path, override, message):
    with pytest.raises(ConfigError, match=message) as caught:
        setup.start(corridor(warm, tmp_path, "oracle", override))
    assert len(str(caught.value)) < 300


class Unforked(CorridorEnv):
    """A corridor that cannot be forked."""

    def fork(self):
        raise EnvUnavailable("this server has no forks")


def test_an_environment_that_cannot_be_forked_is_refused_before_a_run(warm, tmp_path):
    if "test/Unforked-v0" not in gym.registry:
        gym.register("test/Unforked-v0", Unforked)
    config = corridor(warm, tmp_path, "vineppo", "env.id='test/Unforked-v0'")
    with pytest.raises(ConfigError, match=r"vineppo plays on from forks, and test/Unforked-v0 can"):
        check(resolve(config))


def test_the_expert_is_imitated_where_it_is_sure(warm, tmp_path):
    trainer = setup.start(corridor(warm, tmp_path, "sft", "warmstart.noise=0.4"))
    rollouts = trainer._player.play(0).rollouts
    credit = trainer.credit.assign(rollouts)
    turns = [turn for rollout in rollouts for turn in rollout.turns]
    assert 0 < credit.advantage.mean() < 1
    for turn in turns:
        said = turn.completion
        assert trainer.policy.decode(said.response_ids) == said.text
        assert said.response_ids[-1] == trainer.policy.tokenizer.eos_token_id
    weights = iter(credit.advantage)
    for rollout in rollouts:
        progress = 0.0
        for turn in rollout.turns:
            if next(weights):
                assert turn.progress >= progress, "what is imitated leads on"
            progress = turn.progress
    rows = samples(rollouts, credit.advantage)
    assert len(rows) == len(turns)
    trainer.close()


def test_an_expert_whose_prompts_do_not_fit_ends_the_run(warm, tmp_path):
    trainer = setup.start(corridor(warm, tmp_path, "sft"))
    trainer.policy.model.config.max_position_embeddings = 4
    with pytest.raises(ContextOverflow, match="exceed the model's 4"):
        trainer.train_step()
    trainer.close()


def test_a_template_that_rewrites_answers_is_refused_before_anything_is_played(warm, tmp_path):
    policy = Policy.load(str(warm), "cpu")
    last = "{% if m['role'] == 'user' or loop.last %}{{ m['content'] }}{% endif %}"
    policy.tokenizer.chat_template = f"{{% for m in messages %}}{last}{{% endfor %}}"
    policy.save(tmp_path / "forgets")
    model = f"policy.model='{tmp_path}/forgets'"
    with pytest.raises(ConfigError, match="does not keep earlier messages"):
        setup.start(corridor(warm, tmp_path, "grpo", model, "agent.context='transcript'"))


def test_rollouts_are_kept_with_what_annotators_found(warm, tmp_path):
    overrides = ("run.keep_rollouts=2", "method.rows='token'")
    trainer = run(corridor(warm, tmp_path, "ppo", *overrides))
    folder = trainer.folder.path / "rollouts"
    assert [path.name for path in folder.iterdir()] == ["step-000002.jsonl.gz"]
    rollouts, columns = rollout_files.read(folder / "step-000002.jsonl.gz")
    turns = [turn for rollout in rollouts for turn in rollout.turns]
    assert len(rollouts) == 16
    assert columns.keys() == {"value"}
    assert columns["value"].shape == (len(turns),)
    header = header_of(folder / "step-000002.jsonl.gz")
    assert (header["env"], header["step"], header["method"]) == (
        "agentgyms/Corridor-v0",
        2,
        "ppo",
    )


def test_a_scorer_is_opened_for_the_run_and_its_name_is_kept(warm, tmp_path):
    config = corridor(warm, tmp_path, "scpo", "method.credit.scorer='lexical'", "run.steps=0")
    trainer = run(config)
    assert credit_settings(trainer.folder.config())["scorer"] == "lexical"
    assert trainer.folder.config().method.credit["order"] == "balanced(4)"


@pytest.fixture(scope="module")
def household(tmp_path_factory):
    """A policy that solves some of ALFWorld's simpler tasks."""
    folder = tmp_path_factory.mktemp("household")
    trainer = run(configs.load("alfworld-tiny", [*_household(folder, "warm"), *_WARM]))
    return last_checkpoint(trainer).folder


@pytest.fixture(scope="module")
def cross_encoder(tmp_path_factory):
    """A real one, with random weights."""
    return saved(tmp_path_factory.mktemp("cross-encoder"), bert, num_labels=1)


_WARM = [
    "run.steps=0",
    "policy.tiny.hidden=64",
    "policy.tiny.heads=8",
    "policy.tiny.feed_forward=128",
    "warmstart.episodes=120",
    "warmstart.steps=360",
    "warmstart.batch_size=32",
]


def _household(folder, name):
    return [
        f"run.output='{folder}'",
        f"run.name={name!r}",
        "env.kwargs={families=['look']}",
        "env.max_turns=12",
        "agent.window=1",
        "eval.every=0",
        "eval.tasks=2",
        "eval.final_splits=[]",
        "log.outputs=['tensorboard']",
    ]


def sharper(folder, tmp_path):
    """The folder of a teacher: a policy whose logits are those of half the temperature."""
    policy = Policy.load(str(folder), "cpu")
    with torch.no_grad():
        policy.model.model.norm.weight *= 2
    policy.save(tmp_path / "sharper")
    return tmp_path / "sharper"


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        *("pgpo", "graft", "mt_grpo", "turn_credit", "procredit", "otb"),
        *("sdar", "agent_opsd"),
    ],
)
def test_the_newest_methods_take_ten_steps(warm, tmp_path, name):
    trainer = run(corridor(warm, tmp_path, name, "run.steps=10"))
    check_figures(name, steps_of(trainer), 10)


@pytest.mark.slow
def test_skills_of_own_successes_are_distilled_and_kept(warm, tmp_path):
    """A run that goes on from its second step has its skills, and the same figures."""
    hint = "method.annotators.teacher={model='policy', hint=' This worked: {skill}'}"
    own = (hint, "method.credit={weight=0.1}", "checkpoint.every=2", "checkpoint.keep=9")
    whole = run(corridor(warm, tmp_path, "sdar", "run.steps=4", *own, run_name="whole"))
    records = steps_of(whole)
    skills = [record["teacher/skills"] for record in records]
    assert skills == sorted(skills)
    assert skills[1] > 0
    run(corridor(warm, tmp_path, "sdar", "run.steps=2", *own, run_name="part"))
    resumed = setup.resume(tmp_path / "part", overrides=["run.steps=4"])
    resumed.run()
    same = ("teacher/kl", "teacher/skills", "update/loss", "update/grad_norm", "rollout/success")
    for one, other in zip(records, steps_of(resumed), strict=True):
        assert [one[name] for name in same] == [other[name] for name in same]
    assert records[-1]["teacher/kl"] != 0 == records[0]["teacher/kl"]


NEEDS_ANSWERS = ("igpo",)
"""Methods for environments with a golden answer, which the household has not."""

STEPS = 5
"""All of a method's parts have taken part by then: a warm-up, several updates, kept states."""


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in methods.METHODS if name not in NEEDS_ANSWERS])
def test_every_method_takes_steps_in_the_household(household, cross_encoder, tmp_path, name):
    overrides = [
        *_household(tmp_path, name),
        f"policy.model='{household}'",
        "warmstart.episodes=0",
        f"method.name={name!r}",
        "method.credit={}",
        "method.loss={}",
        f"run.steps={STEPS}",
        f"checkpoint.every={STEPS}",
        "rollout.tasks_per_step=2",
        "rollout.group_size=4",
    ]
    if name == "scpo":
        overrides.append(f"method.credit.scorer='cross-encoder:{cross_encoder}'")
    if name in ("oracle", "vineppo"):
        overrides.append("method.annotators.continuations.count=2")
    if name == "distill":
        overrides.append(f"method.annotators.teacher.model='{sharper(household, tmp_path)}'")
    trainer = run(configs.load("alfworld-tiny", overrides))
    records = steps_of(trainer)
    check_figures(name, records, STEPS)
    assert any(record["rollout/success"] > 0 for record in records), "some episodes are solved"
    assert sum(record["update/grad_norm"] > 0 for record in records) >= 2
    assert checkpoints.find_all(trainer.folder.path)[-1].step == STEPS


@pytest.mark.slow
@pytest.mark.parametrize("name", [*NEEDS_ANSWERS, "cast"])
def test_methods_with_an_oracle_take_steps_on_questions(tmp_path, name):
    overrides = [
        f"run.output='{tmp_path}'",
        f"run.name={name!r}",
        "env.id='agentgyms/SearchQA-v0'",
        "agent.max_tokens=32",
        f"method.name={name!r}",
        f"run.steps={STEPS}",
        f"checkpoint.every={STEPS}",
        "rollout.tasks_per_step=2",
        "warmstart.steps=20",
        "warmstart.batch_size=4",
        "eval.split='valid'",
        "eval.every=0",
        "eval.tasks=2",
        "eval.final_splits=[]",
    ]
    records = steps_of(run(configs.load("corridor-tiny", overrides)))
    check_figures(name, records, STEPS)
    assert any(record["credit/process_reward_mean"] for record in records), "the oracle is read"
