"""What papers demand of the recipes that are compared with each other."""

import numpy as np
import pytest
from small_recipes import NAMES

from harness import config as configs
from harness import credit
from harness.config import methods
from harness.credit import TurnTable
from harness.preflight import defaults

SALT = [name for name in NAMES if "-salt-" in name]
OF_OPRL = [name for name in NAMES if name.endswith(("oprl-1.5b", "oprl-7b", "oprl-8b"))]
COMPARED = [f"{env}-{size}" for env in ("alfworld", "webshop") for size in ("1.5b", "7b")]
FAILED = TurnTable.from_columns(
    rollout=[0, 0, 1, 2, 3],
    group=[0] * 5,
    reward=[0.0] * 5,
    valid=[True, False, True, True, True],
    action_key=[*"abcde"],
    next_state_key=[*"uvwxy"],
    text=[f"{action} || seen" for action in "abcde"],
)
"""A failed group of four rollouts, with one invalid turn."""


def resolved(name, *changes):
    return defaults.resolve(configs.load(name, changes))


@pytest.mark.parametrize("name", COMPARED)
def test_scpo_and_ecpo_have_gigpos_configuration(name):
    """SCPO, appendix A.3, and ECPO, section 5.1; GiGPO's statistics are over turns in its code."""
    env, size = name.split("-")
    gigpo = resolved(f"{env}-gigpo-{size}")
    for method in ("scpo", "ecpo"):
        other = resolved(f"{env}-{method}-{size}")
        normalised = {"norm"} if (env, method) == ("webshop", "ecpo") else set()  # ECPO, Table 1
        shared = gigpo.method.credit.keys() & other.method.credit.keys() - normalised
        assert {"statistics", "gamma", "invalid_penalty", "penalty_on", "ddof"} <= shared
        for key in shared:
            assert other.method.credit[key] == gigpo.method.credit[key], key
        assert other.method.loss == gigpo.method.loss
        for section in ("env", "agent", "rollout", "optimizer", "eval"):
            assert getattr(other, section) == getattr(gigpo, section), section
    assert gigpo.method.credit["statistics"] == "turn"


@pytest.mark.parametrize("name", SALT)
def test_a_failed_group_of_salts_has_no_advantage(name):
    """SALT, Eq. 3: the reward is 1 or 0, and there is no penalty of invalid actions."""
    config = resolved(name)
    settings = config.method.credit | ({"match": "exact"} if "appworld" in name else {})
    got = credit.get(methods.get(config.method.name).estimator)(FAILED, **settings)
    np.testing.assert_array_equal(got, np.zeros(5))
    assert (config.method.reward, config.method.reward_scale) == ("success", 1.0)
    assert (config.method.loss["dual_clip"], config.method.loss["entropy_coefficient"]) == (None, 0)
    penalised = credit.get("salt")(FAILED, **(settings | {"invalid_penalty": 0.1}))
    assert penalised[1] < 0, "the inherited penalty, which the paper does not have, would"


@pytest.mark.parametrize("name", OF_OPRL)
def test_oprls_loss_is_that_of_its_paper(name):
    """OPRL, Eq. 6: one ratio for an action, clipped at 0.2, a mean over actions, nothing else."""
    loss = resolved(name).method.loss
    assert {key: value for key, value in loss.items() if key not in ("kl", "constant")} == {
        "ratio": "turn",
        "clip_low": 0.2,
        "clip_high": 0.2,
        "dual_clip": None,
        "aggregation": "sequence_mean_token_mean",
        "kl_coefficient": 0.0,
        "entropy_coefficient": 0.0,
    }


@pytest.mark.parametrize("recipe", ["visual-sokoban-gigpo-7b", "visual-sokoban-oprl-7b"])
def test_oprl_and_its_baselines_have_outcome_rewards(recipe):
    """OPRL, Table 3; only its ground-truth rewards of steps are the environment's."""
    for changes in ((), ("method.name=rloo", "method.credit={}", "method.annotators={}")):
        method = resolved(recipe, *changes).method
        assert (method.reward, method.reward_scale) == ("success", 10.0)
    truth = ("method.name=oprl_ground_truth", "method.annotators={environment_reward={outcome=10}}")
    if "oprl" in recipe:
        assert resolved(recipe, *truth).method.annotators["environment_reward"]["outcome"] == 10


@pytest.mark.parametrize("name", OF_OPRL)
def test_a_batch_of_oprl_is_of_one_kind(name):
    """64 sequences, of policy and reward model: turns in a window, rollouts in a transcript."""
    config = resolved(name)
    batches = config.method.annotators["process_reward"]["mini_batches"]
    rollouts = config.rollout.tasks_per_step * config.rollout.group_size
    assert config.optimizer.mini_batch_size == 64
    if config.agent.context == "transcript":
        assert rollouts / batches == 64
    else:
        turns = 64 * batches / rollouts
        assert 7 <= turns <= 8, "turns of an episode that the parts are made for"


@pytest.mark.parametrize("name", [name for name in NAMES if "-ecpo-" in name])
def test_a_recipe_of_ecpo_names_its_readings(name):
    credit_of = resolved(name).method.credit
    text = (configs.RECIPES / f"{name}.toml").read_text(encoding="utf-8").replace("\n# ", " ")
    head = text[: text.index("extends")]
    assert "readings" in head
    for key in ("sigma", "between", "saturation"):
        assert f'{key} = "{credit_of[key]}" (Eq. 1' in head, key
    assert f"tau = {credit_of['tau']}" in head


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("webshop-oprl-1.5b", "here verl-agent's: reward, turn limit,"),
        ("webshop-oprl-7b", "here verl-agent's: reward, turn limit,"),
        (
            "visual-sokoban-oprl-7b",
            "Ours, as the paper tells of none: rooms with one box and 15 turns",
        ),
        (
            "visual-sokoban-gigpo-7b",
            "Ours, as the paper tells of neither: rooms with one box and 15",
        ),
    ],
)
def test_what_oprls_paper_does_not_tell_is_named_as_ours(name, told):
    text = (configs.RECIPES / f"{name}.toml").read_text(encoding="utf-8").replace("\n# ", " ")
    assert told in text
    assert resolved(name).env.max_turns == 15
