"""Chat templates that never come to an end."""

import contextlib
import threading

import pytest

from harness.config import TinyConfig
from harness.model import tiny
from harness.model.chat_templates import rendering
from harness.model.policy import Policy
from harness.types.errors import ConfigError

LOOP = "{% for i in range(99999) %}"
ENDLESS = {
    "loops": LOOP * 4 + "x" + "{% endfor %}" * 4,
    "loops that say nothing": LOOP * 4 + "{% endfor %}" * 4,
    "a macro": "{% macro m(n) %}{% if n %}{{ m(n - 1) }}{{ m(n - 1) }}{% endif %}{% endmacro %}"
    "{{ m(60) }}",
}
CHAT = [{"role": "user", "content": "Hello"}]


@pytest.fixture
def tokenizer():
    return tiny.make_tokenizer(["go to drawer 1"] * 20, 400)


def policy_with(tokenizer, template):
    config = TinyConfig(layers=1, hidden=32, heads=4, feed_forward=32, max_length=128)
    tokenizer.chat_template = template
    return Policy(tiny.make_model(config, tokenizer, seed=1), tokenizer, "cpu")


@pytest.mark.parametrize("name", ENDLESS)
def test_an_endless_template_is_stopped(tokenizer, monkeypatch, name):
    monkeypatch.setattr(rendering, "LIMIT_S", 0.2)
    usual = tokenizer.chat_template
    policy = policy_with(tokenizer, ENDLESS[name])
    errors = []

    def encode():
        with pytest.raises(ConfigError, match="chat template takes longer than .* loop without"):
            policy.encode_chat(CHAT)
        errors.append(1)

    encode()
    thread = threading.Thread(target=encode)
    thread.start()
    thread.join()
    assert errors == [1, 1]
    tokenizer.chat_template = usual
    assert policy.encode_chat(CHAT), "the next chat is encoded"


def test_a_rendering_that_just_ended_is_not_stopped_later(monkeypatch):
    """The limit is passed in each block, and the watch may notice it at its very end."""
    monkeypatch.setattr(rendering, "LIMIT_S", 0.0)
    monkeypatch.setattr(rendering, "_TICK_S", 0.0)
    for _ in range(300):
        with contextlib.suppress(rendering.TemplateTooSlow), rendering.limited():
            sum(range(50))
    for _ in range(1000):
        sum(range(100))  # an exception that came late would come here


def test_a_template_that_computes_powers_is_refused(tokenizer):
    usual = tokenizer.chat_template
    with pytest.raises(ConfigError, match="computes powers"):
        policy_with(tokenizer, "{{ 9 ** 9 ** 9 ** 9 }}")
    with pytest.raises(ConfigError, match="no Jinja template"):
        policy_with(tokenizer, "{{ 1 ? 2 }}")
    assert policy_with(tokenizer, f"{usual}{{# ** #}}**bold**").encode_chat(CHAT)
