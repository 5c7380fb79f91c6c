"""Chats of real models' templates, to the token: thoughts stay, and what the prompt has opened."""

import asyncio
import re
from datetime import datetime
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers.utils import chat_template_utils

from agentgyms.core.tools import Tool, Tools
from harness import prompts
from harness.inference.completers import Sampling
from harness.model import tiny
from harness.model.chat_templates import clock
from harness.model.packing import samples
from harness.model.tokenizer import ChatTokenizer
from harness.prompts import tool_formats
from harness.prompts.answers import Parsed, has_thoughts
from harness.prompts.parsing import PARSERS
from harness.rollouts.agent import Agent
from harness.rollouts.views import EpisodeView
from harness.types.errors import ConfigError
from harness.types.rollout import Completion, Rollout, Turn

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


@pytest.fixture(autouse=True, scope="module")
def _a_fixed_day():
    """transformers' clock tells the date that templates are told here."""

    class Day(datetime):
        @classmethod
        def now(cls, tz=None):
            return cls.fromisoformat(clock.DATE)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chat_template_utils, "datetime", Day)
        yield


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


TOOLS = Tools(
    Tool("look", "Look around.", "look"),
    Tool("go_to", "Walk.", "go to {place}", {"place": "Where."}),
)
WITHOUT_TOOLS = ["deepseekv3", "gemma3", "phi3", "qwen2_5_vl"]
WITH_TOOLS = [name for name in NAMES if name not in [*WITHOUT_TOOLS, "gptoss"]]
RESULTS = ["<tool_response>", "</tool_response>", "</tool_call>"]


def offered(*messages):
    first, *rest = messages
    return [{**first, "tools": TOOLS.schemas}, *rest]


@pytest.mark.parametrize("name", WITH_TOOLS)
def test_the_first_prompt_with_tools_has_the_templates_own_tokens(name):
    encoder, messages = chats(name), [{"role": "user", "content": "you see a mug"}]
    assert encoder.encode_chat(offered(*messages)) == encoder.encode(
        written(name, messages, add_generation_prompt=True, tools=TOOLS.schemas)
    )


@pytest.mark.parametrize("name", WITH_TOOLS)
@settings(max_examples=4)
@given(data=st.data())
def test_ten_turns_of_calls_and_results_keep_every_token(name, data):
    """Calls, thoughts and other text as generated; results may hold marks of any kind."""
    encoder = chats(name)
    special = encoder.tokenizer.all_special_ids
    marks = encoder.tokenizer.convert_ids_to_tokens(special)
    texts = st.lists(st.sampled_from([*WORDS, *marks, *RESULTS]), min_size=1, max_size=4)
    form = tool_formats.FORMATS.get(encoder.chat_encoder.tool_format)
    call = form.write(TOOLS.call("go to shelf 1"))
    answers = st.lists(st.sampled_from([call, *WORDS]), max_size=3).map("".join)
    messages = offered({"role": "user", "content": data.draw(texts.map(" ".join))})
    prompt = encoder.encode_chat(messages)
    for _ in range(10):
        ends = data.draw(st.sampled_from([(), *((i,) for i in sorted(encoder.stop_ids))]))
        generated = (*encoder.encode(data.draw(answers)), *ends) or (40,)
        messages += [
            {"role": "assistant", "content": "?", "token_ids": generated},
            {"role": "tool", "content": data.draw(texts.map(" ".join))},
        ]
        longer = encoder.encode_chat(messages)
        assert longer[: len(prompt) + len(generated)] == prompt + generated
        harmless = encoder.encode_chat([*messages[:-1], {"role": "tool", "content": "you"}])
        assert [i for i in longer if i in special] == [i for i in harmless if i in special]
        shown, plain = (encoder.tokenizer.decode(ids[len(prompt) :]) for ids in (longer, harmless))
        for tag in RESULTS:
            assert shown.count(tag) == plain.count(tag)
        prompt = longer


@pytest.mark.parametrize("name", [n for n in WITH_TOOLS if n not in THINKS and n != "glm4moe"])
def test_a_chat_of_calls_reads_as_the_template_writes_it(name):
    """An answer is the text of the call, as the template would write it itself."""
    encoder = chats(name)
    form = tool_formats.FORMATS.get(encoder.chat_encoder.tool_format)
    call = TOOLS.call("go to shelf 1")
    own, theirs = offered({"role": "user", "content": "on"}), [{"role": "user", "content": "on"}]
    function = {"name": call.name, "arguments": dict(call.arguments)}
    calls = [{"type": "function", "function": function}]
    for turn in range(3):
        result = {"role": "tool", "content": f"shelf {turn}"}
        own += [{"role": "assistant", "content": form.write(call)}, result]
        theirs += [{"role": "assistant", "content": "", "tool_calls": calls}, result]
    text = encoder.tokenizer.decode(encoder.encode_chat(own))
    rendered = written(name, theirs, add_generation_prompt=True, tools=TOOLS.schemas)
    assert text == rendered


@pytest.mark.parametrize("name", WITH_TOOLS)
def test_transcripts_with_tools_are_taken(name):
    chats(name).chat_encoder.check_transcripts(TOOLS.schemas)


@pytest.mark.parametrize("name", [*WITHOUT_TOOLS, "gptoss"])
def test_templates_without_tools_are_refused(name):
    with pytest.raises(ConfigError, match="tells the model of no tools|refuses a chat"):
        chats(name).chat_encoder.check_transcripts(TOOLS.schemas)


class Speaker:
    """A completer that gives the drawn tokens, one answer after the other."""

    def __init__(self, encoder, answers):
        self.encoder, self.answers, self.asked = encoder, iter(answers), []

    async def complete(self, messages, sampling, seed):
        self.asked = messages
        said, prompt = next(self.answers), self.encoder.encode_chat(messages)
        return Completion(self.encoder.decode_answer(said), prompt, said, (-1.0,) * len(said))


def turn_of(view, decision, observation):
    return Turn(
        observation=view.observation,
        state_key="",
        completion=decision.completion,
        action=decision.action,
        action_key="",
        feedback="ok",
        reward=0.0,
        next_observation=observation,
        next_state_key="",
        progress=0.0,
    )


def ten_turns(speaker, observations, thoughts):
    """Return the episode of an agent with this model."""
    style = prompts.load("compact", "agentgyms/Corridor-v0")
    agent = Agent(speaker, style, Sampling(), 0, "transcript", thoughts=thoughts)
    info = {"goal": "look", "admissible_actions": [], "turn": 0}
    rollout = Rollout("t", "f", 0, 0, 0)
    view = EpisodeView(observations[0], observations[0], info, 10, rollout.turns)
    for after in [*observations[1:], "the end"]:
        decision = asyncio.run(agent.act(view, 0))
        rollout.turns.append(turn_of(view, decision, after))
        view.observation = after
    return rollout


@pytest.mark.parametrize("thoughts", ["keep", "strip"])
@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=4)
@given(data=st.data())
def test_each_generated_token_is_trained_once_behind_what_the_model_read(name, thoughts, data):
    encoder = chats(name)
    special = encoder.tokenizer.all_special_ids
    tokens = st.integers(0, len(encoder.tokenizer) - 1).filter(lambda i: i not in special)
    texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join)
    answers = []
    for _ in range(10):
        end = data.draw(st.sampled_from([(), *((i,) for i in sorted(encoder.stop_ids))]))
        free = tuple(data.draw(st.lists(tokens, max_size=4)))
        said = encoder.encode(data.draw(texts)) if data.draw(st.booleans()) else ()
        answers.append((*free, *said, *end) or (40,))
    observations = [data.draw(texts) for _ in range(10)]
    rollout = ten_turns(Speaker(encoder, answers), observations, thoughts)
    rows = samples([rollout], np.arange(10.0) + 1, "transcript")
    completions = [turn.completion for turn in rollout.turns]
    assert sum(row.num_actions for row in rows) == sum(map(len, answers))
    read = iter(
        [c.prompt_ids + c.response_ids[:i] for c in completions for i in range(len(c.response_ids))]
    )
    for row in rows:
        whole, start = row.prompt_ids + row.response_ids, len(row.prompt_ids)
        places = row.turn or (0,) * len(row.response_ids)
        for i, turn in enumerate(places):
            if turn >= 0:
                assert whole[: start + i] == next(read)
    assert next(read, None) is None
    forks = sum(has_thoughts(c.text) for c in completions[:-1]) if thoughts == "strip" else 0
    assert len(rows) <= 1 + forks


STRIPPED = ["qwen3", "qwen3_5_think", "qwen3_6", "glm4moe", "deepseekv3", "nemotron_3_nano"]


@pytest.mark.parametrize("name", STRIPPED)
def test_without_earlier_thoughts_a_chat_reads_as_the_template_writes_it(name):
    """The template leaves out the thoughts of earlier answers too."""
    encoder = chats(name)
    opening = "" if name in THINKS else "<think>\n"
    end = encoder.tokenizer.convert_tokens_to_ids(STOPS.get(name, ["<|im_end|>"])[0])
    said = [f"{opening}a mug?\n</think>\n\nlook" for _ in range(10)]
    if name in ("deepseekv3", "nemotron_3_nano"):  # they keep line breaks behind a thought
        said = [text.replace("\n\n", "") for text in said]
    speaker = Speaker(encoder, [(*encoder.encode(text), end) for text in said])
    rollout = ten_turns(speaker, ["you see a mug"] * 10, "strip")
    answered = iter(turn.completion.text for turn in rollout.turns)
    chat = [
        {**message, "content": next(answered)} if message["role"] == "assistant" else message
        for message in speaker.asked
    ]
    seen = encoder.tokenizer.decode(rollout.turns[-1].completion.prompt_ids)
    assert seen == written(name, chat, add_generation_prompt=True)
    assert seen.count("a mug?") == 0


def test_a_token_that_ends_chats_takes_nothing_of_the_next_message():
    """Phi-3's template writes its last token only at the end of a chat, behind the turn's."""
    encoder = chats("phi3")
    answer = {
        "role": "assistant",
        "content": "look",
        "token_ids": (40, encoder.tokenizer.eos_token_id),
    }
    messages = [{"role": "user", "content": "you"}, answer, {"role": "user", "content": "a mug"}]
    text = encoder.tokenizer.decode(list(encoder.encode_chat(messages)))
    assert text.endswith("<|im_end|><|end|>\n<|user|>\na mug<|end|>\n<|assistant|>\n")
