"""Exact truth in place of continuations: without error, and equal to theirs within theirs."""

import asyncio

import numpy as np
import pytest
from click.testing import CliRunner

from harness.audit.agreement import CORRELATIONS, agree
from harness.audit.policies import AgentPolicy, NoisyExpert
from harness.audit.truth import TruthOptions, measure
from harness.audit.truth_sets import TruthSet, read, write
from harness.cli.main import main
from harness.credit import registry
from harness.rollouts.env_pool import EnvPool
from harness.types.errors import ConfigError
from harness.types.task_draws import TaskSampler

LAKE = {"max_turns": 8, "success_rate": 0.8, "maps": "gymnasium"}


def truth_of(options, *, name="FrozenLake", tasks=6, noise=0.4, **kwargs):
    pool = EnvPool(f"agentgyms/{name}-v0", 4, 64, split="valid_seen", **kwargs)
    draws = TaskSampler(pool.tasks(), 0).draw(0, tasks)
    return asyncio.run(measure(pool, draws, NoisyExpert(noise), options, seed=0))


@pytest.fixture(scope="module")
def exact():
    return truth_of(TruthOptions(4, exact=True), tasks=16, **LAKE)


def test_it_has_no_error_and_a_ceiling_of_one(exact):
    truth, rollouts = exact
    assert (truth.error == 0).all()
    assert len({rollout.success for rollout in rollouts}) == 2
    agreement = agree(truth, {"reward": truth.turns.reward})
    ceilings = [agreement.ceilings[name] for name in CORRELATIONS]
    assert [one for one in ceilings if np.isfinite(one)] == pytest.approx([1.0] * 4)


def test_oracle_has_its_own_credit(exact):
    """The estimator reads the exact values, and its credit is the truth itself."""
    truth, _ = exact
    oracle = registry.get("oracle")
    credit = oracle(truth.credited())
    np.testing.assert_allclose(credit / truth.options.reward_scale, truth.advantage, atol=1e-12)


@pytest.mark.parametrize(
    ("name", "reward", "kwargs"),
    [
        ("FrozenLake", "success", LAKE),
        ("FrozenLake", "environment", {**LAKE, "slippery": False}),
        ("Blackjack", "environment", {}),
        ("Blackjack", "score", {}),
    ],
)
def test_continuations_agree_within_their_errors(name, reward, kwargs):
    """The same rollouts: their decisions do not depend on how they are valued."""
    settings = {"reward": reward, "gamma": 0.9}
    exact, _ = truth_of(TruthOptions(4, exact=True, **settings), name=name, tasks=4, **kwargs)
    played, _ = truth_of(TruthOptions(60, **settings), name=name, tasks=4, **kwargs)
    assert list(exact.turns.state_key) == list(played.turns.state_key)
    _, first = np.unique([*map(str, exact.returns[:, 0])], return_index=True)  # shared ones once
    apart = (played.returns.mean(axis=1) - exact.returns[:, 0])[first]
    error = np.sqrt(played.returns.var(axis=1, ddof=1) / 60)[first]
    scores = apart / np.maximum(error, 0.01)
    assert (np.abs(scores) <= 2).mean() > 0.8
    assert np.sqrt((scores**2).mean()) < 1.4
    assert np.abs(exact.returns).max() > 0.1


def test_a_file_keeps_it(exact, tmp_path):
    truth, rollouts = exact
    kept = TruthSet(truth, tuple(dict.fromkeys(one.task_id for one in rollouts)))
    write(tmp_path / "lake.npz", kept)
    again = read(tmp_path / "lake.npz")
    assert again.truth.options == truth.options
    assert again.digest == kept.digest
    np.testing.assert_array_equal(again.truth.returns, truth.returns)


def test_a_models_values_are_refused():
    pool = EnvPool("agentgyms/FrozenLake-v0", 2, 8, split="valid_seen")
    draws = TaskSampler(pool.tasks(), 0).draw(0, 1)
    with pytest.raises(ConfigError, match="known in every state"):
        asyncio.run(measure(pool, draws, AgentPolicy(None), TruthOptions(4, exact=True)))


def test_from_the_command_line(tmp_path):
    words = ["credit", "audit", "--env", "FrozenLake", "--exact", "--tasks", "6", "--group-size"]
    words += ["4", "--noise", "0.4", "--methods", "gigpo,oracle", "--save", str(tmp_path / "t.npz")]
    done = CliRunner().invoke(main, words, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    assert "exact values of each state, by enumeration" in done.output
    refused = CliRunner().invoke(main, [*words, "--continuations", "8"])
    assert "leave out --continuations" in refused.output
    other = CliRunner().invoke(main, ["credit", "audit", "--env", "SearchQA", "--exact"])
    assert "SearchQAEnv has no exact values" in str(other.exception)
