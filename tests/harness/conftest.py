import pytest

from harness import tiny
from harness.policy import Policy

WORDS = "go to drawer 1 take mug 2 from shelf put a clean plate in cabinet left right open door key"


@pytest.fixture(scope="session")
def policy():
    """A tiny random Qwen2 on the CPU."""
    corpus = [WORDS, *WORDS.split()] * 20
    tokenizer = tiny.make_tokenizer(corpus, 400)
    config = tiny.TinyConfig(layers=2, hidden=32, heads=4, feed_forward=64, max_length=128)
    return Policy(tiny.make_model(config, tokenizer, seed=1), tokenizer, "cpu")
