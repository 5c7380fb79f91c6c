"""Old log-probabilities under the policy, and tokens weighed by how far the generator is off."""

import asyncio
import itertools

import numpy as np
import pytest

from harness import config as configs
from harness.config.rollout_settings import correction_of
from harness.inference.completers.vllm import VLLMCompleter
from harness.inference.generation import check_generation
from harness.inference.old_logprobs import (
    RecomputedRollouts,
    mismatch,
    recompute_logprobs,
    recomputes,
    update_correction,
)
from harness.inference.weight_check import WeightCheck
from harness.model.packing import merge, samples
from harness.preflight.defaults import resolve
from harness.training.learner import Learner
from harness.training.players.player import rollout_figures
from harness.types.errors import ConfigError, ModelUnavailable, TrainingError
from harness.types.rollout import Completion, Rollout, StopReason, Turn


def run(method="gigpo", **rollout):
    values = configs.to_dict(configs.load("corridor-tiny"))
    values["rollout"] |= rollout
    values["method"] |= {"name": method, "loss": {}}
    return resolve(configs.from_dict(values))


def turn(policy, prompt, said, logprobs):
    ids = policy.encode(said)
    completion = Completion(said, policy.encode(prompt), ids, tuple(logprobs[: len(ids)]))
    return Turn("", "", completion, "", "", "", 0.0, "", "", 0.0)


@pytest.fixture
def rollouts(policy):
    drawn = np.random.default_rng(0).normal(-3, 1, 40).tolist()
    turns = [
        turn(policy, "go to drawer 1", text, drawn[i:])
        for i, text in enumerate(["left", "door key"])
    ]
    ended = {"turns": turns[:1], "stop_reason": StopReason.CONTEXT_LIMIT}
    return [Rollout("a", "f", 0, 0, 0, **ended), Rollout("a", "f", 0, 1, 0, turns=turns[1:])]


def logprobs_of(rollouts):
    return [turn.completion.logprobs for one in rollouts for turn in one.turns]


def test_the_policys_own_log_probabilities_stay_as_they_are(policy, rollouts):
    assert not recomputes(run())
    assert not recomputes(run("sft", old_logprobs="recompute"))
    assert RecomputedRollouts(rollouts).figures == {}


@pytest.mark.parametrize("context", ["window", "transcript"])
def test_recomputed_ones_are_the_policys_and_the_rollouts_keep_theirs(policy, rollouts, context):
    config = run(old_logprobs="recompute")
    config = configs.replace(config, agent=configs.replace(config.agent, context=context))
    before = logprobs_of(rollouts)
    once = recompute_logprobs(config, policy, rollouts)
    assert logprobs_of(rollouts) == before
    twice = recompute_logprobs(config, policy, once.rollouts)
    assert logprobs_of(twice.rollouts) == logprobs_of(once.rollouts) != before
    assert twice.figures["mismatch/difference_max"] == 0
    assert once.figures["mismatch/difference"] > 0.1
    assert once.weight is None


def test_backends_that_are_not_the_policy_are_recomputed_unless_told_otherwise():
    assert recomputes(run(backend="vllm"))
    assert not recomputes(run(backend="vllm", old_logprobs="rollout"))
    assert not recomputes(run())


def test_mismatch_by_hand():
    figures = mismatch(np.log([0.5, 0.25, 0.5]), np.log([0.25, 0.25, 0.5]))
    log2 = np.log(2)
    assert figures["mismatch/kl_k1"] == pytest.approx(-log2 / 3)
    assert figures["mismatch/kl_k3"] == pytest.approx((1 - log2) / 3)
    assert figures["mismatch/difference"] == pytest.approx(log2 / 3)
    assert figures["mismatch/difference_max"] == pytest.approx(log2)
    assert figures["mismatch/far_share"] == pytest.approx(1 / 3)
    assert figures["mismatch/correlation"] == pytest.approx(0.5)


def test_tokens_weigh_what_the_policy_would_have_drawn_them_but_at_most_the_cap(policy, rollouts):
    seen = recompute_logprobs(run(old_logprobs="recompute", correction="clip"), policy, rollouts)
    own, drawn = np.hstack(logprobs_of(seen.rollouts)), np.hstack(logprobs_of(rollouts))
    expected = np.minimum(np.exp(own - drawn), 2.0)
    assert np.hstack(seen.weight) == pytest.approx(expected)
    assert seen.figures["mismatch/weight"] == pytest.approx(expected.mean())
    assert seen.figures["mismatch/capped_share"] == np.mean(np.exp(own - drawn) > 2.0)
    weighed = seen.weighted(np.asarray([2.0, -1.0]))
    assert np.hstack(weighed) == pytest.approx(
        expected * np.repeat([2.0, -1.0], [len(w) for w in seen.weight])
    )


def test_another_engines_tokens_are_weighed_unless_told_otherwise():
    def corrected(*method, **rollout):
        own = run(*method, **rollout).rollout
        return own.correction, own.correction_bounds

    assert corrected() == ("none", {})
    assert corrected(backend="vllm", correction_bounds={"cap": 3.0}) == ("clip", {"cap": 3.0})
    assert corrected(backend="vllm") == ("clip", {"cap": 2.0})
    assert corrected(backend="vllm", old_logprobs="rollout") == ("clip", {"cap": 2.0})
    assert corrected(backend="vllm", correction="none") == ("none", {})
    assert corrected(correction="reject") == ("reject", {"unit": "token", "low": 0.0, "high": 2.0})
    assert corrected("rft", backend="vllm") == ("none", {})
    assert corrected("sft", backend="vllm") == ("none", {})


@pytest.mark.parametrize("ratio", ["geometric", "product"])
def test_bounds_of_rejection_are_those_of_its_ratio(ratio):
    given = {"unit": "sequence", "ratio": ratio, "high": 3.0}
    own = correction_of(run(correction="reject", correction_bounds=given).rollout)
    assert (own.low, own.high) == ({"geometric": 0.999, "product": 0.5}[ratio], 3.0)


def test_the_update_corrects_where_nothing_is_recomputed():
    assert update_correction(run()) is None
    assert update_correction(run(backend="vllm")) is None
    settings = run(backend="vllm", old_logprobs="rollout")
    assert update_correction(settings).config == correction_of(settings.rollout)
    assert update_correction(run("gspo", correction="clip")).ratio == "sequence"


def three_turns(policy):
    """A rollout whose prompts extend each other, and one of a single turn."""
    chat, turns = (5, 6), []
    for i, text in enumerate(["left", "door key", "left left"]):
        ids = policy.encode(text)
        logprobs = tuple(np.random.default_rng(i).normal(-2, 1, len(ids)).tolist())
        turns.append(
            Turn("", "", Completion(text, chat, ids, logprobs), "", "", "", 0.0, "", "", 0.0)
        )
        chat = (*chat, *ids, 7)
    return [Rollout("a", "f", 0, 0, 0, turns=turns), Rollout("a", "f", 0, 1, 0, turns=turns[:1])]


@pytest.mark.parametrize("context", ["window", "transcript"])
@pytest.mark.parametrize("unit", ["turn", "sequence"])
def test_rejected_turns_are_context_and_rejected_sequences_are_gone(policy, context, unit):
    rollouts = three_turns(policy)
    config = run(old_logprobs="recompute", correction="reject", correction_bounds={"unit": unit})
    config = configs.replace(config, agent=configs.replace(config.agent, context=context))
    before = recompute_logprobs(config, policy, rollouts)
    own, drawn = logprobs_of(before.rollouts), logprobs_of(rollouts)
    off = [np.asarray(a) - np.asarray(b) for a, b in zip(own, drawn, strict=True)]
    units = (
        [[0], [1], [2], [3]]
        if "turn" in (unit, {"window": "turn"}.get(context))
        else [[0, 1, 2], [3]]
    )
    ratios = [float(np.exp(np.mean(np.hstack([off[i] for i in members])))) for members in units]
    low, high = sorted(ratios)[0] - 0.01, sorted(ratios)[-1] - 1e-6  # all but the largest
    bounds = {"unit": unit, "low": low, "high": high}
    rollout = configs.replace(config.rollout, correction_bounds=bounds)
    config = configs.replace(config, rollout=rollout)
    seen = recompute_logprobs(config, policy, rollouts)
    expected = [low <= ratios[k] <= high for k, members in enumerate(units) for _ in members]
    assert seen.kept == expected
    sizes = [len(one) for one in drawn]
    rejected = sum(size for size, keep in zip(sizes, expected, strict=True) if not keep)
    assert seen.figures["mismatch/rejected_share"] == pytest.approx(rejected / sum(sizes))
    rows = samples(seen.rollouts, np.arange(1.0, 5.0), context, kept=seen.kept)
    assert sum(row.num_actions for row in rows) == sum(sizes) - rejected
    left = [one for one, keep in zip(own, expected, strict=True) if keep]
    assert np.hstack([row.old_logprobs for row in rows]).tolist() == np.hstack(left).tolist()
    for row in rows:
        assert len(row.turn) in (0, len(row.response_ids))
        assert row.num_actions == (sum(t >= 0 for t in row.turn) or len(row.response_ids))


def test_a_step_of_which_nothing_is_kept_says_so(policy):
    learner = Learner(policy, None, configs.OptimizerConfig(), "clipped", {}, 1.0)
    with pytest.raises(TrainingError, match=r"widen low and high of rollout.correction_bounds"):
        learner.update([], step=0, seed=0)


def test_weighed_samples_that_are_equal_are_merged_to_their_sum(policy):
    twins = [
        Rollout("a", "f", 0, i, 0, turns=[turn(policy, "go", "left", [-1.0] * 9)]) for i in (0, 1)
    ]
    size = len(twins[0].turns[0].completion.response_ids)
    seen = RecomputedRollouts(twins, [np.full(size, 0.5), np.full(size, 2.0)])
    (row,) = merge(samples(twins, seen.weighted(np.asarray([1.0, 1.0]))))
    assert row.advantage == pytest.approx((2.5,) * size)


def test_the_weight_check_allows_rounding_and_nothing_else(policy):
    weight_check = WeightCheck(policy)
    weight_check.update_expected()
    logprobs = weight_check._expected + 0.001
    weight_check.check(logprobs + 0.1, "it")  # the engine's rounding is not known yet
    weight_check.fix_limit()
    weight_check.check(logprobs + 0.3, "it")
    for wrong in (logprobs + 0.5, logprobs * np.nan):
        with pytest.raises(TrainingError, match="it does not answer with the policy's weights"):
            weight_check.check(wrong, "it")


def check_both(config):
    """Check the settings of generation, by themselves and on this machine."""
    configs.check(config)
    check_generation(config, shows_image=False)


@pytest.mark.parametrize(
    ("rollout", "words"),
    [
        ({"backend": "vllm", "transfer": "nccl"}, "transfer"),
        ({"backend": "server", "transfer": "reload"}, "transfer"),
        ({"backend": "server"}, "needs the addresses"),
        ({"urls": ["http://127.0.0.1:1"]}, "needs the addresses"),
        ({"backend": "server", "urls": ["http://127.0.0.1:1"]}, "no server can have it"),
        ({"engine": {"seed": 1}}, "leave it out"),
        (
            {"backend": "vllm", "engine": {"tensor_parallel_size": 2}},
            "rollout.engine.tensor_parallel_size is 2, but .* has an engine in each process",
        ),
        ({"backend": "vllm", "engine": {"data_parallel_size": 4}}, "data_parallel_size is 4"),
        ({"backend": "vllm", "sleep": True}, "leave it out on the CPU"),
    ],
)
def test_settings_of_generation_that_do_not_fit_are_refused(rollout, words):
    config = run(**rollout)
    config = configs.replace(config, policy=configs.replace(config.policy, device="cpu"))
    with pytest.raises(ConfigError, match=words):
        check_both(config)
    check_both(run(backend="vllm", correction="clip"))
    for wrong in ({"correction": "clip"}, {"correction": "reject"}):
        with pytest.raises(ConfigError, match="not the policy's own: leave it out"):
            check_both(run("sft", **wrong))
    with pytest.raises(ConfigError, match="shows images"):
        check_generation(run(backend="vllm"), shows_image=True)


def test_a_context_without_room_for_a_prompt_is_refused():
    config = run()
    agent = configs.replace(config.agent, max_context=config.agent.max_tokens)
    with pytest.raises(ConfigError, match="leaves no tokens for a prompt"):
        check_both(configs.replace(config, agent=agent))


def test_episodes_that_outgrow_the_context_are_counted(rollouts):
    assert rollout_figures(rollouts, 0)["rollout/context_limit_share"] == 0.5


def test_a_request_that_the_engine_lost_is_no_reason_to_wait_for_ever():
    class Forgetful:
        def add_request(self, *_): ...
        def abort_request(self, _): ...
        def has_unfinished_requests(self):
            return False

    completer = object.__new__(VLLMCompleter)
    completer.engine, completer._failure, completer._worker = Forgetful(), "", None
    completer._request_ids, completer._pending = itertools.count(), {}

    async def ask():
        return await asyncio.wait_for(completer._request((1, 2), None), 5)

    with pytest.raises(ModelUnavailable, match="lost a request"):
        asyncio.run(ask())
