"""The real SmolLM2-135M and all-MiniLM-L6-v2, out of their packages."""

import os

import pytest
import torch

from harness.annotators.semantic import open_scorer
from harness.model import self_test
from harness.model.policy import Policy
from harness.model.weights import converted

pytestmark = pytest.mark.smollm2

NAME = "smollm2-135m"


@pytest.fixture(scope="module")
def policy(tmp_path_factory):
    """The policy, converted into a cache of this module, or into AGENTGYMS_TEST_MODELS."""
    place = os.environ.get("AGENTGYMS_TEST_MODELS") or str(tmp_path_factory.mktemp("home"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AGENTGYMS_DATA", place)
        yield Policy.load(NAME, "cpu")  # with the strict load and the self-test
    converted.names._folder.cache_clear()


def test_it_is_the_model_that_the_package_names(policy):
    config = policy.model.config
    assert sum(weight.numel() for weight in policy.model.parameters()) == 134_515_008
    assert (config.num_hidden_layers, config.hidden_size, config.vocab_size) == (30, 576, 49_152)
    tokens = policy.chat_tokenizer
    assert tokens.stop_ids == {2}
    chat = tokens.encode_chat([{"role": "user", "content": "go to drawer 12"}])
    assert tokens.tokenizer.decode(chat).endswith(
        "<|im_start|>user\ngo to drawer 12<|im_end|>\n<|im_start|>assistant\n"
    )
    assert chat.count(1) == 3  # the beginnings of system, user and assistant


def test_it_knows_english_and_every_path_agrees(policy):
    text = "The capital of France is Paris, and the capital of Germany is"
    ids = torch.tensor([policy.chat_tokenizer.encode(text)])
    with torch.no_grad():
        logits = policy.model(ids).logits[0, -1]
    assert policy.chat_tokenizer.decode([int(logits.argmax())]) == " Berlin"
    policy.set_padding_free(True)
    policy.set_share_prefixes(True)
    for path in (self_test.PACKED, self_test.SHARED):
        self_test.check_path(policy, path)


def test_minilm_tells_sentences_apart(tmp_path, monkeypatch):
    monkeypatch.setenv("AGENTGYMS_DATA", str(tmp_path))
    scorer = open_scorer("embedding:all-minilm", "cpu")
    near, far = scorer(["open the door"], ["please open a door", "she eats an apple"])[0]
    assert near > 0.7 > 0.4 > far
