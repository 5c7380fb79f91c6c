"""A reward model that reads, beside a policy that sees: VisualSokoban with tiny models."""

from dataclasses import replace

import numpy as np
import pytest
from small_recipes import small

from harness.annotators import text_reader
from harness.config import TinyConfig
from harness.model import tiny, tiny_vl
from harness.model.policy import Policy
from harness.training import setup
from harness.types.errors import ConfigError
from harness.types.rollout import lengths_of


@pytest.fixture(scope="module")
def trainer(tmp_path_factory):
    made = setup.start(small("visual-sokoban-oprl-7b", tmp_path_factory.mktemp("run"), {}))
    yield made
    made.close()


@pytest.fixture(scope="module")
def rollouts(trainer):
    return trainer._player.play(0).rollouts


def test_it_reads_the_room_where_the_policy_sees_it(trainer, rollouts):
    policy = trainer.policy
    read = text_reader.readable(rollouts, policy)
    before = [turn for rollout in rollouts for turn in rollout.turns]
    after = [turn for rollout in read for turn in rollout.turns]
    assert before[0].completion.images
    for seen, told in zip(before, after, strict=True):
        assert not told.completion.images
        assert policy.vision.image_token_id not in told.completion.prompt_ids
        shown = policy.decode(told.completion.prompt_ids)
        assert seen.observation in shown
        assert seen.observation not in policy.decode(seen.completion.prompt_ids)
        assert shown.replace(seen.observation, "") == policy.decode(seen.completion.prompt_ids)
        assert replace(told, completion=seen.completion) == seen
    assert lengths_of(read).tolist() == lengths_of(rollouts).tolist()
    assert "#" in before[0].observation


def test_its_rewards_are_its_own_log_probabilities_less_the_policys(trainer, rollouts):
    annotator = trainer.credit.annotators["process_reward"]
    assert annotator.model.vision is None
    context = annotator._context
    turns = trainer.credit.assign(rollouts).turns
    read = text_reader.readable(rollouts, trainer.policy)
    own, _ = context.scores(annotator.model, read)
    old, _ = context.scores(trainer.policy, rollouts)
    lengths = lengths_of(rollouts)
    expected = 0.05 * np.add.reduceat(own - old, np.cumsum(lengths) - lengths)
    assert turns.process_reward == pytest.approx(expected, abs=1e-6)


def test_a_text_policys_rollouts_stay_as_they_are(policy):
    assert text_reader.readable(["rollout"], policy) == ["rollout"]


def test_a_picture_of_no_observation_is_told(trainer, rollouts):
    first = rollouts[0].turns[0]
    alone = replace(rollouts[0], turns=[replace(first, image=None)])
    with pytest.raises(ConfigError, match="a picture that no observation has"):
        text_reader.readable([alone], trainer.policy)


def test_models_with_other_tokens_and_models_that_see_are_refused(trainer, policy, tmp_path):
    policy.save(tmp_path / "other")
    with pytest.raises(ConfigError, match="has other tokens than the policy"):
        text_reader.load(str(tmp_path / "other"), trainer.policy)
    trainer.policy.save(tmp_path / "seeing")
    with pytest.raises(ConfigError, match="sees images: expected a text model"):
        text_reader.load(str(tmp_path / "seeing"), trainer.policy)
    tokenizer = trainer.policy.tokenizer
    size = TinyConfig(layers=1, hidden=32, heads=4, feed_forward=32)
    Policy(tiny.make_model(size, tokenizer, 1), tokenizer, "cpu").save(tmp_path / "reader")
    reader = text_reader.load(str(tmp_path / "reader"), trainer.policy)
    assert all(parameter.requires_grad for parameter in reader.model.parameters())
    assert tiny_vl.IMAGE_TOKEN in reader.tokenizer.get_vocab()
