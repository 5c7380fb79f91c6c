import pytest
from hypothesis import settings

from harness import tiny
from harness.policy import Policy

settings.register_profile("shared machine", deadline=None)  # a busy one is slow, not wrong
settings.load_profile("shared machine")

WORDS = "go to drawer 1 take mug 2 from shelf put a clean plate in cabinet left right open door key"


@pytest.fixture(scope="session")
def policy():
    """A tiny random Qwen2 on the CPU."""
    corpus = [WORDS, *WORDS.split()] * 20
    tokenizer = tiny.make_tokenizer(corpus, 400)
    config = tiny.TinyConfig(layers=2, hidden=32, heads=4, feed_forward=64, max_length=128)
    return Policy(tiny.make_model(config, tokenizer, seed=1), tokenizer, "cpu")
