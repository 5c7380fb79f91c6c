"""The annotator of teachers, against one forward pass for each answer and written-out formulas."""

import dataclasses
import json

import numpy as np
import pytest
import torch
from completions_server import NAME, serving
from random_rollouts import some_rollouts

from harness import annotators, credit
from harness.annotators import AnnotatorContext
from harness.annotators.skills import MOST, SkillBank
from harness.config import TinyConfig
from harness.credit import TurnTable
from harness.credit.tokens import token_table
from harness.model import tiny
from harness.model.policy import Policy
from harness.types.errors import ConfigError, ModelUnavailable
from harness.types.rollout import lengths_of

KINDS = [("window", "turn"), ("window", "token"), ("transcript", "token"), ("summary", "token")]
HINT = "\nThe answer: {best} of {golden}, then {observation}"
ORACLE = {"best": "open door", "golden": ["Ada", "Grace"]}


@pytest.fixture(scope="module")
def teacher(policy, tmp_path_factory):
    """A wider model with the policy's tokenizer, and its folder."""
    size = TinyConfig(layers=1, hidden=48, heads=4, feed_forward=64, max_length=128)
    made = Policy(tiny.make_model(size, policy.tokenizer, seed=2), policy.tokenizer, "cpu")
    folder = tmp_path_factory.mktemp("teacher") / "model"
    made.save(folder)
    return made, str(folder)


def rollouts_of(policy, context):
    """Rollouts of random words; with summaries, each turn but the first has one in front."""
    rollouts = some_rollouts(policy, context)
    if context == "summary":
        for rollout, other in zip(rollouts, reversed(rollouts), strict=True):
            said = other.turns[0].completion
            rollout.turns[1:] = [dataclasses.replace(t, summary=said) for t in rollout.turns[1:]]
    return rollouts


def table_of(rollouts, rows):
    turns = TurnTable.from_rollouts(rollouts)
    return turns if rows == "turn" else token_table(turns, lengths_of(rollouts))


def annotated(settings, policy, rollouts, context="window", rows="token", **more):
    own = AnnotatorContext(policy, context=context, rows=rows, **more)
    return annotators.make("teacher", settings, own).annotate(table_of(rollouts, rows), rollouts)


def by_hand(model, prompt, response, temperature=1.0):
    """Return log p of the response's tokens: one forward pass of transformers' model."""
    ids = torch.tensor([prompt + response])
    with torch.no_grad():
        logits = model.model(input_ids=ids).logits[0].double() / temperature
    picked = torch.log_softmax(logits, -1)[range(len(ids[0]) - 1), ids[0, 1:]]
    return picked[len(prompt) - 1 :].numpy()


def expected_kl(policy, teacher, rollouts, rows, temperature=1.0, prompt_of=None):
    found = []
    for turn in (turn for rollout in rollouts for turn in rollout.turns):
        kl = []
        for answer in turn.answers:
            prompt, response = answer.prompt_ids, answer.response_ids
            seen = prompt if prompt_of is None else prompt_of(prompt)
            own = by_hand(policy, prompt, response, temperature)
            kl.append(own - by_hand(teacher, seen, response, temperature))
        found.append(np.concatenate(kl))
    return np.array([kl.sum() for kl in found]) if rows == "turn" else np.concatenate(found)


@pytest.mark.parametrize(("context", "rows"), KINDS)
def test_the_divergence_is_the_difference_of_log_probabilities(policy, teacher, context, rows):
    rollouts = rollouts_of(policy, context)
    before = [parameter.clone() for parameter in policy.model.parameters()]
    table = annotated({"model": teacher[1]}, policy, rollouts, context, rows, temperature=0.7)
    expected = expected_kl(policy, teacher[0], rollouts, rows, 0.7)
    np.testing.assert_allclose(table.teacher_kl, expected, atol=1e-5)
    assert np.abs(expected).max() > 0.1
    assert all(map(torch.equal, before, policy.model.parameters()))
    advantage = credit.get("distill")(table)
    np.testing.assert_allclose(advantage, -expected, atol=1e-5)


@pytest.mark.parametrize(("context", "rows"), KINDS)
def test_the_policy_teaches_itself_by_what_it_did_not_see(policy, context, rows):
    """The teacher's prompt is the policy's, with the hint at the end of its last message."""
    rollouts = rollouts_of(policy, context)
    told = json.dumps(ORACLE)
    for rollout in rollouts:
        rollout.turns[:] = [dataclasses.replace(turn, oracle=told) for turn in rollout.turns]
    rendered = policy.chat_encoder.render([{"role": "user", "content": "x"}])
    ending = policy.encode(rendered.rpartition("x")[2])
    hint = policy.encode("\nThe answer: open door of Ada, Grace, then shelf key")

    def hinted(prompt):
        assert prompt[-len(ending) :] == ending
        return prompt[: -len(ending)] + hint + ending

    for name in ("policy", "initial"):
        table = annotated(
            {"model": name, "hint": HINT}, policy, rollouts, context, rows, reference=policy
        )
        expected = expected_kl(policy, policy, rollouts, rows, prompt_of=hinted)
        np.testing.assert_allclose(table.teacher_kl, expected, atol=1e-5)
    assert np.abs(expected).max() > 1e-3
    plain = annotated({"model": "initial"}, policy, rollouts, context, rows, reference=policy)
    assert not plain.teacher_kl.any(), "a teacher that is the policy and sees no more"


def test_where_the_oracle_lacks_a_part_there_is_no_hint(policy):
    rollouts = some_rollouts(policy)
    first = rollouts[0].turns[0]
    rollouts[0].turns[0] = dataclasses.replace(first, oracle=json.dumps({"best": "go"}))
    settings = {"model": "policy", "hint": "\nBest: {best}"}
    table = annotated(settings, policy, rollouts, rows="turn")
    assert np.flatnonzero(np.abs(table.teacher_kl) > 1e-5).tolist() == [0]
    with pytest.raises(ConfigError, match=r"part of the oracle that no state here has: .* best$"):
        annotated({"model": "policy", "hint": "{goal}"}, policy, rollouts)
    assert annotators.needs_oracle("teacher", settings)
    assert not annotators.needs_oracle("teacher", {"hint": "In the end: {observation}"})


def test_a_hint_is_cut_and_a_sequence_that_is_too_long_is_refused(policy, teacher, tmp_path):
    rollouts = some_rollouts(policy)
    long = {"model": teacher[1], "hint": "go to drawer 1 " * 200}
    annotator = annotators.make("teacher", long, AnnotatorContext(policy, rows="token"))
    rows = annotator._hinted(annotator._hints, rollouts)
    assert {row.length for row in rows} == {128}
    size = TinyConfig(layers=1, hidden=32, heads=4, feed_forward=32, max_length=8)
    short = Policy(tiny.make_model(size, policy.tokenizer, seed=2), policy.tokenizer, "cpu")
    short.save(tmp_path / "short")
    with pytest.raises(ConfigError, match="too long for the teacher, which reads 8"):
        annotated({"model": f"{tmp_path}/short"}, policy, rollouts)


def test_a_teacher_with_other_tokens_is_refused(policy, tmp_path):
    corpus = [f"{a}{b} knows everything else" for a in "abcdefghij" for b in "klmnopqrst"]
    tokenizer = tiny.make_tokenizer([" ".join(corpus)] * 9, 400)
    size = TinyConfig(layers=1, hidden=32, heads=4, feed_forward=32, max_length=128)
    other = Policy(tiny.make_model(size, tokenizer, seed=2), tokenizer, "cpu")
    other.save(tmp_path / "other")
    with pytest.raises(ConfigError, match="teacher.model .* has other tokens than the policy"):
        annotated({"model": f"{tmp_path}/other"}, policy, some_rollouts(policy))
    with (
        serving(other) as (url, _),
        pytest.raises(ConfigError, match="has other tokens than the policy.* reads 'Open"),
    ):
        annotated({"model": f"{NAME}@{url}"}, policy, some_rollouts(policy))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "no teacher to learn from: set method.annotators.teacher.model"),
        ({"model": "runs/none"}, "teacher.model.*'runs/none'.* cannot be loaded"),
        ({"model": 3}, "teacher.model must be a model's name, got 3"),
        ({"model": {"name": "big"}}, "teacher.model has no url"),
        ({"model": "big@http://a?b"}, "teacher.model: the model's url has more than a server"),
        ({"model": "policy", "hint": 3}, "teacher.hint must be a text, got 3"),
        ({"model": "policy", "precision": "half"}, "teacher.precision must be one of None, 'fl"),
    ],
)
def test_wrong_settings_are_named(policy, settings, message):
    with pytest.raises(ConfigError, match=message):
        annotators.make("teacher", settings, AnnotatorContext(policy))


@pytest.mark.parametrize(("context", "rows"), KINDS)
def test_a_server_scores_as_the_model_does_here(policy, teacher, context, rows, monkeypatch):
    rollouts = rollouts_of(policy, context)
    monkeypatch.setenv("TEACHER_KEY", "secret")
    with serving(teacher[0], key="secret") as (url, asked):
        model = {"name": NAME, "url": url, "key_variable": "TEACHER_KEY"}
        served = annotated({"model": model}, policy, [*rollouts, *rollouts], context, rows)
        local = annotated({"model": teacher[1]}, policy, [*rollouts, *rollouts], context, rows)
    np.testing.assert_allclose(served.teacher_kl, local.teacher_kl, atol=1e-5)
    sequences = AnnotatorContext(policy, context=context).sequences(rollouts)
    assert len(asked) == 1 + len({row.prompt_ids + row.response_ids for row in sequences})


def test_a_server_is_asked_again_after_passing_errors(policy, teacher, monkeypatch):
    monkeypatch.setattr("harness.annotators.scoring_server._FIRST_PAUSE_S", 0.01)
    busy = 429, {"error": {"message": "slow down"}}
    down = 503, {"error": {"message": "starting"}}
    rollouts = some_rollouts(policy)[:1]
    with serving(teacher[0], busy, down, down) as (url, asked):
        settings = {"model": {"name": NAME, "url": url, "retries": 3}}
        table = annotated(settings, policy, rollouts)
        assert [one["prompt"] for one in asked[:4]] == [asked[0]["prompt"]] * 4
    local = annotated({"model": teacher[1]}, policy, rollouts)
    np.testing.assert_allclose(table.teacher_kl, local.teacher_kl, atol=1e-5)
    with (
        serving(teacher[0], down, down) as (url, _),
        pytest.raises(ModelUnavailable, match=r"no answer in 2 attempts: status 503: starting"),
    ):
        annotated({"model": {"name": NAME, "url": url, "retries": 1}}, policy, rollouts)
    with pytest.raises(ModelUnavailable, match="does not answer"):
        annotated({"model": f"{NAME}@{url}"}, policy, rollouts)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ((200, {"choices": [{"text": "", "logprobs": None}]}), "no log-probabilities of prompts"),
        (
            (200, {"choices": [{"logprobs": {"tokens": ["a"], "token_logprobs": [-0.5]}}]}),
            "no log-probabilities of prompts",
        ),
        ((200, {"object": "none"}), "no log-probabilities of prompts"),
        ((404, {"detail": "Not Found"}), r"refuses to score \d+ tokens \(status 404: Not Found\)"),
        ((400, {"error": {"message": "echo is not supported"}}), "echo is not supported"),
    ],
)
def test_a_server_that_cannot_score_prompts_is_named(policy, teacher, answer, message):
    with serving(teacher[0], answer) as (url, _), pytest.raises(ConfigError, match=message):
        annotated({"model": f"{NAME}@{url}"}, policy, some_rollouts(policy))


def test_a_model_that_the_server_lacks_and_a_short_one_are_named(policy, teacher):
    with serving(teacher[0], max_length=9) as (url, _):
        with pytest.raises(ConfigError, match="big at .* is unknown there: the server has teacher"):
            annotated({"model": f"big@{url}"}, policy, some_rollouts(policy))
        with pytest.raises(ConfigError, match="too long for the teacher, which reads 8"):
            annotated({"model": f"{NAME}@{url}"}, policy, some_rollouts(policy))


def test_figures_are_nats_of_a_token_and_there_is_no_state(policy, teacher):
    rollouts = some_rollouts(policy)
    for rows in ("turn", "token"):
        context = AnnotatorContext(policy, rows=rows)
        annotator = annotators.make("teacher", {"model": teacher[1]}, context)
        table = annotator.annotate(table_of(rollouts, rows), rollouts)
        figures = annotator.learn(table, rollouts, step=0, seed=0)
        tokens = expected_kl(policy, teacher[0], rollouts, "token")
        assert figures["teacher/kl"] == pytest.approx(tokens.mean(), abs=1e-5)
        assert annotator.state_dict() == {}
        annotator.load_state_dict({})


@pytest.mark.vllm
@pytest.mark.parametrize("context", ["window", "transcript"])
def test_a_server_of_vllm_scores_as_the_model_does_here(vllm_server, vllm_folder, context):
    teacher = Policy.load(str(vllm_folder), "cpu")
    size = TinyConfig(layers=1, hidden=48, heads=4, feed_forward=64, max_length=8192)
    own = Policy(tiny.make_model(size, teacher.tokenizer, seed=2), teacher.tokenizer, "cpu")
    rollouts = some_rollouts(own, context)
    server = {"model": f"{vllm_server.name}@{vllm_server.url}"}
    served = annotated(server, own, rollouts, context)
    local = annotated({"model": str(vllm_folder)}, own, rollouts, context)
    np.testing.assert_allclose(served.teacher_kl, local.teacher_kl, atol=1e-3)
    assert np.abs(local.teacher_kl).max() > 0.05


def solved(rollout, family="walk", goal="reach the door", actions=("go east", "open door")):
    """The rollout as a success of a task, with these actions."""
    turn = rollout.turns[0]
    turns = [dataclasses.replace(turn, action=action, feedback="ok") for action in actions]
    return dataclasses.replace(rollout, family=family, goal=goal, success=True, turns=turns)


def asking(policy, goal, family="walk"):
    return dataclasses.replace(some_rollouts(policy)[0], family=family, goal=goal)


def test_the_bank_has_the_shortest_success_of_the_most_similar_goal(policy):
    one = some_rollouts(policy)[0]
    long = solved(one, actions=["go west", "go east", "open door"])
    failed = dataclasses.replace(solved(one, actions=["fly"]), success=False)
    broken = dataclasses.replace(solved(one, actions=["fly"]), error="the server is gone")
    refused = solved(one, actions=["fly", "go east", "open door"])
    refused.turns[0] = dataclasses.replace(refused.turns[0], feedback="inadmissible")
    other = solved(one, goal="find the lamp", actions=["look"])
    bank = SkillBank()
    assert bank.find(asking(policy, "reach the door")) is None
    bank.take([long, failed, broken, other])
    assert bank.find(asking(policy, "reach a door")) == "reach the door: " + (
        "go west; go east; open door"
    )
    bank.take([refused])
    assert bank.find(asking(policy, "reach the door")) == "reach the door: go east; open door"
    assert bank.find(asking(policy, "find the lamps")) == "find the lamp: look"
    assert bank.find(asking(policy, "reach the door", family="swim")) is None
    again = SkillBank()
    again.load_state_dict(json.loads(json.dumps(bank.state_dict())))
    assert again.state_dict() == bank.state_dict()
    assert len(again) == 2


def test_the_bank_keeps_few_skills_whatever_the_order(policy):
    one = some_rollouts(policy)[0]
    found = [solved(one, goal=f"goal {n}", actions=["go"] * (n + 1)) for n in range(MOST + 4)]
    banks = [SkillBank(), SkillBank()]
    banks[0].take(found)
    banks[1].take(found[::-1])
    assert banks[0].state_dict() == banks[1].state_dict()
    assert len(banks[0]) == MOST
    assert banks[0].find(asking(policy, "goal 11")) == "goal 1: go; go"


def test_a_teacher_is_told_what_worked_in_an_earlier_step(policy):
    """In the first step nobody has shown anything: a teacher that is the policy agrees with it."""
    rollouts = [solved(rollout) for rollout in some_rollouts(policy)]
    settings = {"model": "policy", "hint": "\nWhat worked: {skill}"}
    made = annotators.make("teacher", settings, AnnotatorContext(policy, rows="turn"))
    assert not annotators.needs_oracle("teacher", settings)
    table = made.annotate(table_of(rollouts, "turn"), rollouts)
    assert not table.teacher_kl.any()
    assert made.learn(table, rollouts, step=1, seed=0) == {"teacher/kl": 0, "teacher/skills": 1}
    told = made.annotate(table_of(rollouts, "turn"), rollouts).teacher_kl
    same = {"model": "policy", "hint": "\nWhat worked: reach the door: go east; open door"}
    np.testing.assert_array_equal(told, annotated(same, policy, rollouts, rows="turn").teacher_kl)
    assert np.abs(told).max() > 1e-5
    with pytest.raises(ConfigError, match="part of the oracle that no state here has"):
        annotated({"model": "policy", "hint": "{skill} {best}"}, policy, rollouts)
