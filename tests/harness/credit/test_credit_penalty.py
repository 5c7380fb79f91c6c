"""The penalty of invalid actions: in every estimator, and nowhere else."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from strategies import turn_tables

from harness import credit
from harness.config import methods
from harness.config import replace as change
from harness.config.files import load
from harness.credit import TurnTable
from harness.credit.registry import hyperparameters_of, preset
from harness.credit.shared import overlong_penalties
from harness.credit.tokens import by_turn, token_table
from harness.preflight.method_trial import check_method
from harness.types.errors import ConfigError

TAKES_PENALTIES = [name for name in credit.names() if "penalty_on" in hyperparameters_of(name)]
READS_VALIDITY = {
    "scpo": {"drop_invalid": False},
    "imitation": {"valid_only": False},
}
"""Estimators that invalid turns matter to beside the penalty, and the settings that end that."""
ENDS_APART = {"graft": {"sinks": "outcome"}}
"""Estimators to which an end is its state: here successes and failures end in one."""
COUNTS_INVALID_AS_ONE = ("ecpo",)
"""Estimators to which all invalid actions of a state are one action."""
INVALID_NEVER_WINS = ("dpo", "ipo", "kto")
"""Estimators of preferences, to which an invalid turn is never the better one."""
READS_SUCCESS = ("graft", "planpo", "prime", "procredit", "scpo")
"""Estimators to which a penalty on the return is not a failure, as a lower reward may be."""
TWO = TurnTable.from_columns(
    rollout=[0, 0, 1], group=[0, 0, 0], reward=[0.0, 1.0, 0.0], valid=[True, False, True]
)
"""A success of two turns, the second one invalid, and a failure of one turn."""


def penalised(name, table, **hyperparameters):
    return credit.get(name)(table, invalid_penalty=0.5, **hyperparameters)


def some_table(seed=0, rollouts=6, turns=4):
    """Return groups of three rollouts through few states, a third of whose actions are invalid."""
    rng = np.random.default_rng(seed)
    n = rollouts * turns
    wins = np.arange(rollouts) % 3 == 0
    return TurnTable.from_columns(
        rollout=np.repeat(np.arange(rollouts), turns),
        group=np.repeat(np.arange(rollouts) // 3, turns),
        reward=[float(wins[i // turns]) if i % turns == turns - 1 else 0.0 for i in range(n)],
        valid=rng.random(n) < 0.7,
        failed=rng.random(n) < 0.3,
        state_key=[f"s{i % turns}" for i in range(n)],
        next_state_key=[f"s{i % turns + 1}" for i in range(n)],
        action_key=[f"a{k}" for k in rng.integers(0, 2, n)],
        text=[f"a || {i % turns}" for i in range(n)],
        **{name: rng.uniform(0.1, 0.9, n) for name in ("value", "process_reward", "entropy")},
        **{name: rng.uniform(0.1, 0.9, n) for name in ("hindsight", "kl", "length")},
        **{name: rng.uniform(0.1, 0.9, n) for name in ("state_value", "teacher_kl", "energy")},
        next_atoms=[{"clean": bool(met)} for met in rng.random(n) < 0.5],
    )


def method_credit(row, penalty_on, invalid_penalty):
    """Return a method's estimator with its settings and a penalty, without models."""
    own = {key: value for key, value in row.credit.items() if key != "scorer"}
    given = {**preset("paper", row.estimator, own), **own}
    given |= READS_VALIDITY.get(row.estimator, {}) | ENDS_APART.get(row.estimator, {})
    if "penalty_on" in given:
        given |= {"penalty_on": penalty_on, "invalid_penalty": invalid_penalty}
    return lambda table: credit.get(row.estimator)(table, **given)


def flips(assign, table):
    """Return whether the credit changes when some turn's `valid` is flipped."""
    before = assign(table)
    for row in range(len(table)):
        valid = table.valid.copy()
        valid[row] = not valid[row]
        if not np.allclose(assign(replace(table, valid=valid)), before, atol=1e-9):
            return True
    return False


@pytest.mark.parametrize("penalty_on", ["row", "return"])
@pytest.mark.parametrize("name", methods.METHODS)
def test_flipping_valid_changes_credit_where_a_penalty_is_set_and_nowhere_else(name, penalty_on):
    row = methods.get(name)
    with_penalty = "penalty_on" in hyperparameters_of(row.estimator)
    reads_rewards = row.loss != "nll" and row.estimator != "distill"
    assert with_penalty == reads_rewards  # what else could a penalty be taken from?
    for seed in range(3):
        table = some_table(seed)
        if row.estimator not in COUNTS_INVALID_AS_ONE + INVALID_NEVER_WINS:
            assert not flips(method_credit(row, penalty_on, 0.0), table)
        reads = with_penalty or row.estimator in INVALID_NEVER_WINS
        assert flips(method_credit(row, penalty_on, 0.1), table) == reads


@pytest.mark.parametrize("name", TAKES_PENALTIES)
@settings(max_examples=10)
@given(turn_tables())
def test_valid_turns_pay_nothing(name, table):
    table = replace(table, valid=np.ones(len(table), np.bool_))
    expected = penalised(name, table)
    for penalty_on in ("row", "return"):
        got = penalised(name, table, penalty_on=penalty_on)
        np.testing.assert_allclose(got, expected, atol=1e-6)


@pytest.mark.parametrize("name", [name for name in TAKES_PENALTIES if name not in READS_SUCCESS])
@settings(max_examples=10)
@given(turn_tables())
def test_a_penalty_on_the_return_is_a_reward(name, table):
    lower = replace(table, reward=table.reward - 0.5 * ~table.valid)
    got = penalised(name, table, penalty_on="return")
    expected = credit.get(name)(lower, invalid_penalty=0.0)
    np.testing.assert_allclose(got, expected, atol=1e-6)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("dr_grpo", [1 - 0.375, 0.5 - 0.375, -0.375]),
        ("rloo", [1.0, 0.5, -0.75]),
        ("reinforce", [1.0, 0.5, 0.0]),
        ("gae", [1.0, 0.5, 0.0]),
    ],
)
def test_a_penalty_on_the_row_by_hand(name, expected):
    """Scores are 1 and 1/2, which share a weight, and 0: their mean is 3/8."""
    table = replace(TWO, value=np.zeros(3))
    np.testing.assert_allclose(penalised(name, table, penalty_on="row"), expected)


def test_grpo_with_a_penalty_on_the_row_by_hand():
    variance = (0.625**2 + 0.125**2) / 2 + 0.375**2  # over one degree of freedom
    expected = np.array([0.625, 0.125, -0.375]) / np.sqrt(variance)
    np.testing.assert_allclose(penalised("grpo", TWO, penalty_on="row", eps=0.0), expected)


def test_a_rollout_alone_in_its_group_pays_nothing_on_the_row():
    alone = TurnTable.from_columns(rollout=[0, 0], reward=[0, 1], valid=[True, False])
    for name in ("grpo", "dr_grpo", "rloo"):
        assert penalised(name, alone, penalty_on="row").tolist() == [0.0, 0.0]


def test_gigpo_with_a_penalty_on_the_row_has_it_in_both_parts():
    table = some_table()
    step = penalised("gigpo", table, penalty_on="step") - credit.get("grpo")(table)
    got = penalised("gigpo", table, penalty_on="row")
    np.testing.assert_allclose(got, step + penalised("grpo", table, penalty_on="row"), atol=1e-9)


@pytest.mark.parametrize("preset_name", ["paper", "verl_agent"])
def test_beacon_pays_in_its_step_returns_too(preset_name):
    """Both rollouts end at the milestone at once, the second one by an invalid turn."""
    table = TurnTable.from_columns(
        rollout=[0, 1], reward=[0, 0], valid=[True, False], process_reward=[1, 1]
    )
    own = preset(preset_name, "beacon")
    assert own["penalty_on"] == "row"
    # Each part: 0 and -0.1 less their mean.
    np.testing.assert_allclose(credit.get("beacon")(table, **own), [0.1, -0.1])
    step = credit.get("beacon")(table, **{**own, "penalty_on": "return"})
    np.testing.assert_allclose(step, [0.05, -0.05])


def test_beacon_compares_no_penalty_of_a_turn_without_a_milestone_after_it():
    table = TurnTable.from_columns(
        rollout=[0, 1, 2], reward=[0] * 3, valid=[1, 1, 0], process_reward=[1, 1, 0]
    )
    got = penalised("beacon", table, penalty_on="row")
    np.testing.assert_allclose(got, penalised("dr_grpo", table, penalty_on="row"))
    every = penalised("beacon", table, penalty_on="row", reached_only=False)
    np.testing.assert_allclose(every - got, [3.5, 3.5, -7.0])  # 10, 10 and -1/2 less their mean


def test_graphgpo_pays_in_its_step_returns_too():
    """Both turns lead from one state to the goal, the second one is invalid."""
    table = TurnTable.from_columns(
        rollout=[0, 1], reward=[1, 1], valid=[True, False], state_key=["s", "s"]
    )
    got = penalised("graphgpo", table, penalty_on="row", norm="mean")
    np.testing.assert_allclose(got, [0.5, -0.5])
    got = penalised("graphgpo", table, penalty_on="return", norm="mean")
    np.testing.assert_allclose(got, [0.25, -0.25])
    got = penalised("graphgpo", table, penalty_on="step", norm="mean")
    assert got.tolist() == [0.0, 0.0]


@pytest.mark.parametrize("name", ["milegpo", "planpo"])
def test_whose_code_is_unknown_pays_in_the_episode_part_alone(name):
    table = some_table()
    alone = {"milegpo": {"step_weight": 0.0}, "planpo": {"alpha": 0.0}}[name]
    on_row = penalised(name, table, penalty_on="row") - penalised(
        name, table, penalty_on="row", **alone
    )
    none = penalised(name, table) - penalised(name, table, **alone)
    np.testing.assert_allclose(on_row, none, atol=1e-9)


@pytest.mark.parametrize("name", ["reinforce_pp", "prime", "gae"])
@pytest.mark.parametrize("penalty_on", ["row", "return"])
def test_tokens_pay_once_on_the_return_and_all_on_the_row(name, penalty_on):
    """At gamma 1, and without statistics, a turn's tokens have what the turn would have."""
    turns = some_table()
    lengths = np.array([1 + i % 3 for i in range(len(turns))])
    columns = {key: np.repeat(getattr(turns, key), lengths) * 0.0 for key in ("value",)}
    columns["process_reward"] = np.zeros(int(lengths.sum()))
    tokens = token_table(turns, lengths, **columns)
    zero = np.zeros(len(turns))
    turns = replace(turns, value=zero, process_reward=zero)
    plain = {"gae": {"whiten": False, "gamma": 1.0}}.get(name, {"gamma": 1.0})
    token_credit = by_turn(penalised(name, tokens, penalty_on=penalty_on, **plain), lengths)
    turn_credit = penalised(name, turns, penalty_on=penalty_on, **plain)
    ends = np.array([part[-1] for part in token_credit])
    assert np.corrcoef(ends, turn_credit)[0, 1] == pytest.approx(1.0)
    for part in token_credit:
        np.testing.assert_allclose(part, part[-1])


def test_too_long_responses_by_hand():
    """DAPO's numbers: 20,480 tokens, the last 4,096 of which cost."""
    lengths = np.array([0, 16_384, 16_384 + 1024, 18_432, 20_480, 30_000])
    got = overlong_penalties(lengths, 20_480, 0.2)
    np.testing.assert_allclose(got, [0, 0, 0.25, 0.5, 1, 1])
    assert overlong_penalties(lengths, 20_480, 0.0).tolist() == [0.0] * 6


def recipe(method, **credit_settings):
    config = load("alfworld-grpo-1.5b")
    return change(
        config, method=change(config.method, name=method, preset="paper", credit=credit_settings)
    )


@pytest.mark.parametrize("name", [name for name, row in methods.METHODS.items()])
def test_a_penalty_that_changes_nothing_is_refused(name):
    row = methods.get(name)
    if "penalty_on" not in hyperparameters_of(row.estimator):
        with pytest.raises(ConfigError, match="invalid_penalty"):
            check_method(recipe(name, invalid_penalty=0.1))
        return
    check_method(recipe(name))
    check_method(recipe(name, invalid_penalty=0.0, penalty_on="step"))
    steps = credit.registry.reads_step_returns(row.estimator)
    if not steps:
        with pytest.raises(ConfigError, match="changes nothing: set method.credit.penalty_on"):
            check_method(recipe(name, invalid_penalty=0.1, penalty_on="step"))


def test_a_penalty_of_a_base_that_changes_nothing_is_refused():
    base = {"name": "rloo", "invalid_penalty": 0.1, "penalty_on": "step"}
    with pytest.raises(ConfigError, match="changes nothing"):
        check_method(recipe("salt", base=base, invalid_penalty=0.0))
