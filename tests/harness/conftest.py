import asyncio
import os
from dataclasses import replace

import pytest
import recorded_evaluations
import vllm_serving
from hypothesis import settings
from tiny_scorers import bert, saved
from transformers import BertModel

from harness.config import TinyConfig
from harness.model import tiny
from harness.model.policy import Policy
from harness.training.players.player import Player

if not os.environ.get("FULL"):
    settings.register_profile("harness", settings(), max_examples=40)
    settings.load_profile("harness")

WORDS = "go to drawer 1 take mug 2 from shelf put a clean plate in cabinet left right open door key"


@pytest.fixture
def at_once(monkeypatch):
    """What is lost is played again without a pause."""

    async def no_pause(_, wait=asyncio.sleep):
        await wait(0)

    monkeypatch.setattr("harness.rollouts.collect.asyncio.sleep", no_pause)


@pytest.fixture(scope="session")
def policy():
    """A tiny random Qwen2 on the CPU."""
    return make_policy()


@pytest.fixture(scope="module")
def new_policy():
    """The same, which tests of other modules have not trained."""
    return make_policy()


def make_policy():
    corpus = [WORDS, *WORDS.split()] * 20
    tokenizer = tiny.make_tokenizer(corpus, 400)
    config = TinyConfig(layers=2, hidden=32, heads=4, feed_forward=64, max_length=128)
    return Policy(tiny.make_model(config, tokenizer, seed=1), tokenizer, "cpu")


@pytest.fixture(scope="session")
def scorers(tmp_path_factory):
    root = tmp_path_factory.mktemp("scorers")
    return {
        "cross-encoder": saved(root / "judge", bert, num_labels=1),
        "embedding": saved(root / "encoder", bert, kind=BertModel),
    }


@pytest.fixture
def half_succeed(monkeypatch):
    """Every second episode of a group has succeeded, and a turn earlier than it was played.

    A model that has learned nothing reaches nothing, and no method learns from that.
    """

    def play(player, *given, played_by=Player.play, **more):
        played = played_by(player, *given, **more)
        for rollout in played.rollouts:
            rollout.success = (rollout.group + rollout.member) % 2 == 0
            rollout.score = float(rollout.success)
            if rollout.success and len(rollout.turns) > 1:
                del rollout.turns[-1]
            rollout.turns[-1] = replace(rollout.turns[-1], reward=rollout.score)
        return played

    monkeypatch.setattr(Player, "play", play)


@pytest.fixture(scope="session")
def vllm_folder(tmp_path_factory):
    """The folder of a tiny random Qwen2 that vLLM can run."""
    return vllm_serving.make_folder(tmp_path_factory.mktemp("vllm") / "tiny")


@pytest.fixture(scope="session")
def vllm_server(vllm_folder, tmp_path_factory):
    """A real vLLM server on the CPU that has this model; for tests marked `vllm`."""
    with vllm_serving.serving(vllm_folder, tmp_path_factory.mktemp("vllm-server")) as server:
        yield server


@pytest.fixture(scope="session")
def react(tmp_path_factory):
    """An evaluation with two missing episodes, as its folder is loaded."""
    folder = tmp_path_factory.mktemp("one") / "react"
    return recorded_evaluations.evaluation(folder, missing=((0, 3), (1, 1)))


@pytest.fixture(scope="session")
def reflexion(tmp_path_factory):
    """Another one of the same tasks, in up to three trials."""
    folder = tmp_path_factory.mktemp("two") / "reflexion"
    return recorded_evaluations.evaluation(folder, noise=0.6, trials=3, model="other-model")
