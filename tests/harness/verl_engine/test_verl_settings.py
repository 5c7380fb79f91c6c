"""Recipes in verl's words: every setting has one place, and what has none is refused by name."""

import json

import pytest
from click.testing import CliRunner

from harness import config as configs
from harness.cli.main import main
from harness.config import Config
from harness.training.verl.run import literal
from harness.training.verl.setting_map import OURS, REFUSED, THEIRS, TRANSLATED
from harness.training.verl.settings import flat, place_of, translate
from harness.types.errors import ConfigError

TABLES = (OURS, THEIRS, TRANSLATED, REFUSED)
ACTOR = "actor_rollout_ref.actor"
ROLLOUT = "actor_rollout_ref.rollout"


def corridor(*overrides):
    return configs.load("corridor-tiny", overrides)


def test_every_setting_is_in_one_table():
    for name in flat(Config()):
        assert len([1 for table in TABLES if place_of(name, table)]) == 1, name


def test_every_place_is_a_setting():
    names = flat(Config())
    for table in TABLES:
        for place in table:
            assert any(name == place or name.startswith(f"{place}.") for name in names), place


def test_a_recipes_settings_are_verls():
    found = translate(
        corridor(
            "method.name=gspo",
            "rollout.group_size=6",
            "optimizer.learning_rate=2e-5",
            "optimizer.epochs=3",
            "agent.max_context=300",
            "policy.precision=bfloat16",
            "policy.offload=parameters",
            "eval.every=0",
            "eval.temperature=0.0",
            "log.outputs=['pictures', 'tensorboard', 'wandb']",
            "log.project=mine",
        )
    )
    wanted = {
        f"{ROLLOUT}.n": 6,
        f"{ACTOR}.optim.lr": 2e-5,
        f"{ACTOR}.ppo_epochs": 3,
        "data.max_prompt_length": 292,
        "data.max_response_length": 8,
        f"{ROLLOUT}.max_model_len": 300,
        f"{ACTOR}.fsdp_config.model_dtype": "bf16",
        f"{ACTOR}.fsdp_config.param_offload": True,
        f"{ACTOR}.fsdp_config.optimizer_offload": True,
        f"{ACTOR}.policy_loss.loss_mode": "gspo",
        f"{ACTOR}.clip_ratio_low": 3e-4,
        f"{ACTOR}.loss_agg_mode": "seq-mean-token-mean",
        "trainer.test_freq": -1,
        f"{ROLLOUT}.val_kwargs.do_sample": False,
        "trainer.logger": ["console", "tensorboard", "wandb"],
        "trainer.project_name": "mine",
    }
    assert {name: found[name] for name in wanted} == wanted


def test_dr_grpo_divides_by_its_constant_and_a_penalty_is_verls():
    found = translate(corridor("method.name=dr_grpo", "method.loss={kl_coefficient=0.02}"))
    assert found[f"{ACTOR}.loss_agg_mode"] == "seq-mean-token-sum-norm"
    assert found[f"{ACTOR}.loss_scale_factor"] == 8.0
    assert found[f"{ACTOR}.use_kl_loss"] is True
    assert found[f"{ACTOR}.kl_loss_type"] == "low_var_kl"
    assert found[f"{ACTOR}.clip_ratio_c"] > 1e8


def test_a_transcript_has_room_on_both_sides():
    found = translate(corridor("agent.context=transcript", "agent.max_context=500"))
    assert found["data.max_prompt_length"] == found["data.max_response_length"] == 500


@pytest.mark.parametrize(
    ("override", "named"),
    [
        ("method.name=oprl", "its credit needs process_reward"),
        ("method.name=sft", "does not learn from advantages"),
        ("method.name=dapo", "rollout.dynamic_sampling is True: set it to false"),
        ("method.name=gvpo", "rollout.enough_members is 6"),
        ("rollout.branch.at=every", "rollout.branch.at is 'every'"),
        ("rollout.correction=reject", "give verl algorithm.rollout_correction.rollout_rs"),
        ("optimizer.schedule=linear", "verl has 'constant' and 'cosine'"),
        ("optimizer.name=muon", "optimizer.name is 'muon': use 'adamw'"),
        ("agent.context=summary", "use 'window' or 'transcript'"),
        ("eval.final_splits=['valid_unseen']", "harness eval --model RUN"),
        ("policy.ema=0.9", "verl averages no weights"),
    ],
)
def test_what_verl_cannot_is_named(override, named):
    with pytest.raises(ConfigError) as told:
        translate(corridor(override, "rollout.group_size=8", "method.loss={}"))
    assert named in str(told.value)


def test_all_that_is_refused_is_named_at_once():
    with pytest.raises(ConfigError) as told:
        translate(corridor("policy.ema=0.9", "optimizer.schedule=linear", "log.price_per_hour=1.0"))
    assert str(told.value).count("\n- ") == 3


def test_values_are_hydras():
    value = {"a": [1, 0.5, None, True], "b": "it's \\ here", "c": []}
    assert literal(value) == "{a:[1,0.5,null,true],b:'it\\'s \\\\ here',c:[]}"


def test_both_configurations_are_printed():
    words = ("train", "corridor-tiny", "--engine", "verl", "--print-config")
    told = CliRunner().invoke(main, [*words, "--verl", "trainer.nnodes=2", "--verl", "a.b=text"])
    assert told.exit_code == 0, told.output
    found = json.loads(told.stdout)
    assert found["harness"]["method"]["name"] == "gigpo"
    assert (found["verl"]["trainer.nnodes"], found["verl"]["a.b"]) == (2, "text")


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--verl", "a=1"), "--verl is for --engine verl"),
        (("--engine", "verl", "--dry-run"), "trains one new run"),
        (("--engine", "verl", "--seeds", "2"), "trains one new run"),
        (("--engine", "verl", "--verl", "nothing"), "takes KEY=VALUE"),
    ],
)
def test_words_that_do_not_fit_are_refused(words, why):
    told = CliRunner().invoke(main, ["train", "corridor-tiny", *words])
    assert told.exit_code == 2
    assert why in told.output


def test_without_verl_the_package_is_named():
    with pytest.raises(ConfigError, match=r"verl is not installed.*harness,verl"):
        CliRunner().invoke(
            main, ["train", "corridor-tiny", "--engine", "verl"], catch_exceptions=False
        )
