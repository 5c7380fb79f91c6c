"""Chats of real models' templates, to the token: thoughts stay, and what the prompt has opened."""

import re
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.model import tiny
from harness.model.tokenizer import ChatTokenizer
from harness.prompts.answers import Parsed
from harness.prompts.parsing import PARSERS

FOLDER = Path(__file__).parents[2] / "golden" / "chat_templates"
NAMES = sorted(path.stem for path in FOLDER.glob("*.jinja"))
MARK = re.compile(r"<\|[\w ]+\|>|<｜[\w▁]+｜>|<(?:start|end)_of_turn>|<bos>|<eos>")
STOPS = {
    "deepseekv3": ["<｜end▁of▁sentence｜>"],
    "gemma3": ["<end_of_turn>"],
    "glm4moe": ["<|user|>", "<|observation|>"],
    "gptoss": ["<|return|>"],
    "llama3_1": ["<|eot_id|>"],
    "llama3_2": ["<|eot_id|>"],
    "phi3": ["<|end|>"],
}
THINKS = dict.fromkeys(["deepseekv3", "qwen3_5_think", "qwen3_6"], "<think>\n") | {
    "nemotron_3_nano": "<think>\n",
    "qwen3_5_nothink": "<think>\n\n</think>\n\n",
}
WORDS = [
    "you see a mug",
    "look",
    "<think>",
    "</think>\n\n",
    "<action>look</action>",
    "\n",
    " ",
    "é",
]


class Settings:
    def __init__(self, ids):
        self.eos_token_id = ids


@cache
def chats(name):
    """Return the chat tokenizer of a template with its marks as special tokens."""
    template = (FOLDER / f"{name}.jinja").read_text(encoding="utf-8")
    stops = STOPS.get(name, ["<|im_end|>"])
    marks = sorted({*MARK.findall(template), *stops} - {tiny.TURN_START, tiny.TURN_END})
    corpus = [" ".join([*WORDS, "What is on the shelf? assistant user system model"])] * 50
    tokenizer = tiny.make_tokenizer(corpus, 500, marks, template)
    tokenizer.bos_token = "<bos>" if "<bos>" in marks else tiny.END_OF_TEXT
    tokenizer.add_tokens(["<think>", "</think>"])  # known to the tokenizer, and shown in texts
    return ChatTokenizer(tokenizer, Settings(tokenizer.convert_tokens_to_ids(stops)))


def written(name, messages, **kwargs):
    return chats(name).tokenizer.apply_chat_template(messages, tokenize=False, **kwargs)


@pytest.mark.parametrize("name", NAMES)
def test_the_first_prompt_has_the_templates_own_tokens(name):
    encoder, messages = chats(name), [{"role": "user", "content": "you see a mug"}]
    assert encoder.encode_chat(messages) == encoder.encode(
        written(name, messages, add_generation_prompt=True)
    )


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=20)
@given(data=st.data())
def test_ten_turns_keep_every_token_that_was_read_or_generated(name, data):
    """Whatever is generated, thoughts too; observations may hold the template's own marks."""
    encoder = chats(name)
    special = encoder.tokenizer.all_special_ids
    marks = encoder.tokenizer.convert_ids_to_tokens(special)
    texts = st.lists(st.sampled_from([*WORDS, *marks]), min_size=1, max_size=4).map(" ".join)
    tokens = st.integers(0, len(encoder.tokenizer) - 1).filter(lambda i: i not in special)
    answers = st.lists(tokens, max_size=5)
    messages = [{"role": "user", "content": data.draw(texts)}]
    prompt = encoder.encode_chat(messages)
    for _ in range(10):
        ends = data.draw(st.sampled_from([(), *((i,) for i in sorted(encoder.stop_ids))]))
        generated = (*data.draw(answers), *ends) or (40,)
        observation = data.draw(texts)
        messages += [
            {"role": "assistant", "content": "?", "token_ids": generated},
            {"role": "user", "content": observation},
        ]
        longer = encoder.encode_chat(messages)
        assert longer[: len(prompt) + len(generated)] == prompt + generated
        added = longer[len(prompt) + len(generated) :]
        harmless = encoder.encode_chat([*messages[:-1], {"role": "user", "content": "you"}])
        assert [i for i in longer if i in special] == [i for i in harmless if i in special]
        assert len(added) > 0
        prompt = longer


@pytest.mark.parametrize("name", NAMES)
def test_the_text_of_an_answer_begins_with_the_thought_that_the_prompt_has_opened(name):
    encoder, prefill = chats(name), THINKS.get(name, "")
    assert encoder.chat_encoder.prefill == prefill
    if "</think>" in prefill:
        text = "<action>look</action>"
    else:
        text = ("" if prefill else "<think>") + "a mug?\n</think>\n\n<action>look</action>"
    answer = encoder.decode_answer(encoder.encode(text))
    for parser in ("tagged", "action_tags", "webshop_tags", "alfworld_tags"):
        assert PARSERS[parser].parse(answer) == Parsed("look")
    code = text.replace("action>", "code>")
    assert PARSERS["code_tags"].parse(encoder.decode_answer(encoder.encode(code))).valid


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("parser", ["tagged", "action_tags", "webshop_action_tags"])
def test_an_experts_answer_is_what_the_model_would_generate(name, parser):
    """Imitation learns tokens that follow the prompt and parse to the action."""
    encoder = chats(name)
    ids = encoder.encode_answer(PARSERS[parser].write("look"))
    answer = encoder.decode_answer(ids)
    assert PARSERS[parser].parse(answer) == Parsed("look")
    assert answer.count("<think>") == answer.count("</think>") <= 1
    messages = [
        {"role": "user", "content": "you"},
        {"role": "assistant", "content": PARSERS[parser].write("look")},
        {"role": "user", "content": "look"},
    ]
    begun = encoder.encode_chat(messages[:1]) + ids
    assert encoder.encode_chat(messages)[: len(begun)] == begun


TEN = [
    {"role": role, "content": f"{role} {turn}"}
    for turn in range(10)
    for role in ("user", "assistant")
]


@pytest.mark.parametrize(
    "name", [name for name in NAMES if name not in THINKS and name != "glm4moe"]
)
def test_a_chat_without_thoughts_reads_as_the_template_writes_it(name):
    encoder = chats(name)
    chat = [*TEN, {"role": "user", "content": "on"}]
    text = encoder.tokenizer.decode(encoder.encode_chat(chat))
    rendered = written(name, chat, add_generation_prompt=True)
    if name == "gptoss":  # the channel is generated by the model, and here the answer has none
        rendered = rendered.replace(
            "<|start|>assistant<|channel|>final<|message|>", "<|start|>assistant"
        )
    assert text == rendered
