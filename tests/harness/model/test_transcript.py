"""The context `transcript`: one growing chat, to the token."""

import asyncio
import json

import numpy as np
import pytest
import torch

from harness import prompts
from harness.config import TinyConfig, WarmstartConfig
from harness.inference.completers import Sampling
from harness.inference.completers.hf import HFCompleter
from harness.inference.completers.scripted import ScriptedCompleter
from harness.model import tiny, tiny_vl
from harness.model.chat_templates import trusted
from harness.model.packing import Sample, to_batch
from harness.model.policy import Policy
from harness.rollouts.agent import Agent
from harness.rollouts.collect import collect
from harness.rollouts.demonstrations import Demonstrator
from harness.rollouts.env_pool import EnvPool
from harness.rollouts.groups import CollectOptions
from harness.rollouts.views import EpisodeView
from harness.training.sft import fine_tune
from harness.types.errors import ConfigError, ContextOverflow
from harness.types.messages import GENERATED_IMAGE_TOKEN, shared_image
from harness.types.rollout import StopReason
from harness.types.task_draws import TaskDraw
from tests.harness.lamp_env import LAMPS

CORRIDOR = "agentgyms/Corridor-v0"
WORDS = "you are in a corridor go left right door key box locked open take put the lamp shines at"

QWEN2_5 = (
    "{%- if messages[0]['role'] == 'system' %}"
    "{{- '<|im_start|>system\\n' + messages[0]['content'] + '<|im_end|>\\n' }}"
    "{%- else %}{{- '<|im_start|>system\\nBe brief and kind.<|im_end|>\\n' }}{%- endif %}"
    "{%- for message in messages %}"
    "{%- if not (loop.first and message.role == 'system') %}"
    "{{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>' + '\\n' }}"
    "{%- endif %}{%- endfor %}"
    "{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}"
)
"""The form of Qwen2.5's template: a system prompt of its own, and a line break after each turn."""

FORGETFUL = (
    "{% for message in messages %}{{ '<|im_start|>' + message.role + ' ' }}"
    "{{ message.content.split('</think>')[-1] }}{{ '<|im_end|>' }}{% endfor %}"
    "{{ '<|im_start|>assistant ' }}"
)
"""Drops the thoughts of earlier answers, as templates of reasoning models do."""

COUNTING = "{{ messages | length }} messages" + FORGETFUL
"""Begins with how many messages there are, so that a longer chat begins otherwise."""

STRICT = (
    "{% for message in messages %}{% if loop.index0 %}{{ raise_exception('one message only') }}"
    "{% endif %}{{ message.content }}{% endfor %}"
)


def make_policy(template=trusted.TINY, max_length=2048, seed=1):
    tokenizer = tiny.make_tokenizer([WORDS, *WORDS.split()] * 20, 400, (), template)
    size = TinyConfig(layers=1, hidden=32, heads=4, feed_forward=64, max_length=max_length)
    return Policy(tiny.make_model(size, tokenizer, seed=seed), tokenizer, "cpu")


@pytest.fixture(scope="module", params=[trusted.TINY, QWEN2_5], ids=["tiny", "qwen2.5"])
def own_policy(request):
    return make_policy(request.param)


@pytest.fixture(scope="module")
def seeing():
    tokenizer = tiny_vl.make_tokenizer([WORDS, *WORDS.split()] * 20, 400)
    size = TinyConfig(layers=1, hidden=32, heads=4, feed_forward=64, max_length=1024)
    model = tiny_vl.make_model(size, tokenizer, seed=1)
    return Policy(model, tokenizer, "cpu", tiny_vl.make_image_processor())


def play(agent, env_id=CORRIDOR, members=3, **kwargs):
    pool = EnvPool(env_id, members, 64, **{"max_turns": 6, **kwargs})
    task_id = pool.take().envs[0].tasks[0]
    return asyncio.run(
        collect(pool, [TaskDraw(task_id, 5)], agent, seed=1, options=CollectOptions(pause_s=0))
    )


def transcript_agent(policy, style="compact", env_id=CORRIDOR, max_tokens=7, temperature=1.0):
    sampling = Sampling(temperature, max_tokens)
    return Agent(HFCompleter(policy), prompts.load(style, env_id), sampling, 0, "transcript")


def assert_growing(rollout):
    for before, after in zip(rollout.turns, rollout.turns[1:], strict=False):
        said = before.completion.prompt_ids + before.completion.response_ids
        assert after.completion.prompt_ids[: len(said)] == said
        assert len(after.completion.prompt_ids) > len(said)


def test_every_prompt_begins_with_the_prompt_and_the_answer_before_it(own_policy):
    rollouts = play(transcript_agent(own_policy))
    completions = [turn.completion for rollout in rollouts for turn in rollout.turns]
    assert {c.finished for c in completions} == {True, False}
    texts = [own_policy.encode(c.text) for c in completions]
    own = [tuple(i for i in c.response_ids if i > 2) for c in completions]
    assert texts != own, "random answers are encoded in another way than they were said"
    for rollout in rollouts:
        assert len(rollout.turns) == 6
        assert_growing(rollout)


def test_an_answer_is_closed_once_whether_it_ended_or_was_cut_off(own_policy):
    """Every answer is followed by one end-of-turn token, the model's own or an added one."""
    end = own_policy.tokenizer.convert_tokens_to_ids(tiny.TURN_END)
    for rollout in play(transcript_agent(own_policy)):
        for before, after in zip(rollout.turns, rollout.turns[1:], strict=False):
            begun = len(before.completion.prompt_ids + before.completion.response_ids)
            added = after.completion.prompt_ids[begun:]
            assert (added[0] == end) is not before.completion.finished


CHAT = [
    {"role": "user", "content": "you are in a corridor"},
    {"role": "assistant", "content": "<think>the door?</think>go left"},
    {"role": "user", "content": "the door is locked"},
    {"role": "assistant", "content": " take key\n"},
    {"role": "user", "content": "open the door"},
]


@pytest.mark.parametrize("with_tokens", [True, False])
def test_the_tokens_of_a_chat_read_as_the_template_writes_it(own_policy, with_tokens):
    end = own_policy.tokenizer.convert_tokens_to_ids(tiny.TURN_END)
    chat = [dict(message) for message in CHAT]
    for message in chat:
        if with_tokens and message["role"] == "assistant":
            message["token_ids"] = (*own_policy.encode(message["content"]), end)
    tokens = own_policy.encode_chat(chat)
    written = own_policy.tokenizer.apply_chat_template(
        CHAT, tokenize=False, add_generation_prompt=True
    )
    assert own_policy.tokenizer.decode(list(tokens)) == written
    assert tokens[: len(own_policy.encode_chat(chat[:3]))] == own_policy.encode_chat(chat[:3])


def test_an_answer_that_ended_in_another_stop_token_is_still_closed():
    policy = make_policy(QWEN2_5)
    over, end = policy.tokenizer.convert_tokens_to_ids([tiny.END_OF_TEXT, tiny.TURN_END])
    policy.model.generation_config.eos_token_id = [end, over]
    chat = [CHAT[0], {**CHAT[1], "token_ids": (300, over)}, CHAT[2]]
    begun = policy.encode_chat(chat[:1])
    tokens = policy.encode_chat(chat)
    assert tokens[len(begun) : len(begun) + 3] == (300, over, end)


def test_thoughts_stay_where_the_template_would_drop_them():
    policy = make_policy(FORGETFUL)
    text = policy.tokenizer.decode(policy.encode_chat(CHAT))
    assert text.count("<think>the door?</think>go left<|im_end|>") == 1
    assert_growing(play(transcript_agent(policy))[0])


@pytest.mark.parametrize("template", [COUNTING, STRICT])
def test_a_template_that_rewrites_messages_is_refused(template):
    policy = make_policy(template)
    policy.encode_chat(CHAT[:1])
    with pytest.raises(ConfigError, match="chat template (does not keep|refuses)"):
        policy.encode_chat(CHAT)
    with pytest.raises(ConfigError, match="chat template"):
        policy.chat_encoder.check_transcripts()


@pytest.mark.parametrize("sign", ["\x00answer\x00", "<|im_end|>", "<|im_start|>"])
def test_what_an_observation_shows_is_text_and_no_part_of_the_chat(own_policy, sign):
    shown = {"role": "user", "content": f"the {sign}assistant lamp"}
    for chat in ([shown], [*CHAT[:2], shown]):
        tokens = own_policy.encode_chat(chat)
        plain = {"role": "user", "content": "the assistant lamp"}
        expected = own_policy.encode_chat([*chat[:-1], plain])
        own = own_policy.tokenizer.all_special_ids
        assert [t for t in tokens if t in own] == [t for t in expected if t in own]


def test_a_transcript_that_outgrows_the_context_ends_its_episode():
    policy = make_policy(max_length=128)
    rollouts = play(transcript_agent(policy, max_tokens=16), max_turns=30)
    assert {rollout.stop_reason for rollout in rollouts} == {StopReason.CONTEXT_LIMIT}
    assert all(0 < len(rollout.turns) < 30 for rollout in rollouts)
    with pytest.raises(ContextOverflow):
        play(transcript_agent(policy, max_tokens=120))


def test_recorded_logprobs_of_a_transcript_are_the_policys_own(own_policy):
    for rollout in play(transcript_agent(own_policy)):
        said = [turn.completion for turn in rollout.turns]
        rows = [Sample(c.prompt_ids, c.response_ids, c.logprobs, 1.0) for c in said]
        batch = to_batch(rows, own_policy.pad_id)
        with torch.no_grad():
            logprob, _ = own_policy.logprobs(batch)
        torch.testing.assert_close(logprob, batch.old_logprob, atol=2e-5, rtol=0)


def test_images_stand_where_they_were_shown(seeing):
    """Several images in one chat, and image tokens that the model says itself in between."""
    agent = transcript_agent(seeing, "look", LAMPS, max_tokens=3)
    rollouts = play(agent, LAMPS, members=16)
    mark = seeing.vision.image_token_id
    assert any(mark in t.completion.response_ids for r in rollouts for t in r.turns[:-1])
    for rollout in rollouts:
        assert_growing(rollout)
        for i, turn in enumerate(rollout.turns):
            shown = [image for image in turn.completion.images if image != GENERATED_IMAGE_TOKEN]
            assert shown == [earlier.image for earlier in rollout.turns[: i + 1]]
            tokens = sum(map(seeing.vision.num_tokens, turn.completion.images))
            assert turn.completion.prompt_ids.count(mark) == tokens
    completions = [turn.completion for rollout in rollouts for turn in rollout.turns]
    rows = [Sample(c.prompt_ids, c.response_ids, c.logprobs, 1.0, c.images) for c in completions]
    batch = to_batch(rows, seeing.pad_id)
    with torch.no_grad():
        logprob, _ = seeing.logprobs(batch)
    torch.testing.assert_close(logprob, batch.old_logprob, atol=2e-5, rtol=0)


def test_a_said_image_token_is_no_image(seeing):
    mark = seeing.vision.image_token_id
    lamp = shared_image(np.full((32, 32, 3), 7, np.uint8))
    size = seeing.vision.num_tokens(lamp)
    tokens = torch.tensor([[300, mark, 301, *[mark] * size, 302, mark]])
    seen = seeing.vision.embed(tokens, [[GENERATED_IMAGE_TOKEN, lamp]])
    plain = seeing.model.get_input_embeddings()(tokens)
    same = (seen.embedding == plain).all(-1)[0].tolist()
    assert same == [True] * 3 + [False] * size + [True] * 2


def test_the_chat_of_an_episode_to_the_letter():
    asked = []

    def script(messages):
        asked.append(messages)
        return "right"

    style = prompts.load("compact", CORRIDOR)
    agent = Agent(ScriptedCompleter(script), style, Sampling(), 2, "transcript")
    play(agent, members=1, max_turns=3)
    assert [[m["role"] for m in messages] for messages in asked] == [
        ["user"],
        ["user", "assistant", "user"],
        ["user", "assistant", "user", "assistant", "user"],
    ]
    assert asked[2] == [
        {
            "role": "user",
            "content": "open the door | stand at left end of corridor with door at its right end. "
            "are 0 steps from left end. | >",
        },
        {"role": "assistant", "content": "right", "token_ids": ()},
        {"role": "user", "content": "| are 1 steps from left end. >"},
        {"role": "assistant", "content": "right", "token_ids": ()},
        {"role": "user", "content": "| are 2 steps from left end. >"},
    ]


def view_of(info, observation="The drawer is open.", image=None):
    told = {"goal": "put a mug on shelf.", "admissible_actions": ["look", "search[<query>]"]}
    return EpisodeView("start", observation, {**told, **info}, 9, image=image)


STYLES = [
    (path.parent.name, path.stem)
    for path in sorted(prompts._FOLDER.glob("*/*.jinja"))
    if "." not in path.stem
]


@pytest.mark.parametrize(("folder", "name"), STYLES)
def test_every_style_goes_on_with_the_observation_and_without_the_task(folder, name):
    style = prompts.load(name, f"x/{folder}-v0")
    assert style.name == f"{folder}/{name}"
    page = "#####\n#P_O#\n#####\n# wall"
    image = shared_image(np.zeros((16, 16, 3), np.uint8))
    agent = Agent(ScriptedCompleter(lambda _: ""), style, Sampling(), 0)
    fields = agent._fields(view_of({}, page, image), 0)
    content = style.render_next(**{**fields, "turn": 3})
    text = content if isinstance(content, str) else "".join(p.get("text", "") for p in content)
    assert "put a mug" not in text.replace("search[put a mug on shelf.]", "")
    if style.shows_image:
        assert [p["image"] for p in content if p["type"] == "image"] == [image]
    elif folder != "webshop":  # whose compact style shows what can be chosen
        assert "P" in text
    assert ("<think>" in text) is (name == "think")


def test_a_style_without_a_follow_up_shows_the_observation_and_what_works(tmp_path, monkeypatch):
    (tmp_path / "default").mkdir()
    for parser, image in (("plain", ""), ("lettered", "{{ image }}")):
        source = f"{{# parser: {parser} #}}\n{image}{{{{ goal }}}}"
        (tmp_path / f"default/{parser}.jinja").write_text(source)
    monkeypatch.setattr(prompts, "_FOLDER", tmp_path)
    agent = Agent(ScriptedCompleter(lambda _: ""), prompts.load("plain", "x/y"), Sampling(), 0)
    image = shared_image(np.zeros((16, 16, 3), np.uint8))
    fields = agent._fields(view_of({}, image=image), 0)
    goal = "search[put a mug on shelf.]"
    text = f"The drawer is open.\n\nWhat works now:\n- look\n- {goal}\n"
    assert agent.style.render_next(**fields) == text
    seeing = prompts.load("lettered", "x/y").render_next(**fields)
    assert seeing[0]["image"] == image
    assert seeing[1]["text"] == f"The drawer is open.\n\nWhat works now:\nA look\nB {goal}\n"


def test_a_transcript_is_asked_for_at_every_turn_and_twice_is_once():
    style = prompts.load("compact", CORRIDOR)
    agent = Agent(ScriptedCompleter(lambda _: ""), style, Sampling(), 0, "transcript")
    view = view_of({})
    assert agent.messages(view) == agent.messages(view)
    assert len(view.prompts) == 1
    view.turns += ["turn", "turn"]
    with pytest.raises(ValueError, match="1 prompts for 2 turns"):
        agent.messages(view)
    with pytest.raises(ConfigError, match=r"unknown agent.context 'book': expected one of window"):
        Agent(ScriptedCompleter(lambda _: ""), style, Sampling(), 0, "book")


def demonstrate(style, noise, env_id=CORRIDOR):
    agent = Agent(
        ScriptedCompleter(lambda _: ""), prompts.load(style, env_id), Sampling(), 0, "transcript"
    )
    demonstrator = Demonstrator(agent, "best", noise)
    rollouts = play(demonstrator, env_id, members=4, oracle=True, max_turns=20)
    return demonstrator.demonstrations, rollouts


def test_the_expert_demonstrates_transcripts_with_foreign_actions_as_answers_in_between():
    demonstrations, rollouts = demonstrate("think", 0.4)
    turns = [turn for rollout in rollouts for turn in rollout.turns]
    assert 0 < len(demonstrations) < len(turns)
    longest = max(demonstrations, key=lambda d: len(d.messages)).messages
    assert len(longest) >= 5
    answers = [m["content"] for m in longest if m["role"] == "assistant"]
    assert all(a.startswith("<think></think><action>") for a in answers)
    experts = {d.answer for d in demonstrations}
    assert any(a not in experts for d in demonstrations for a in _answers(d)), "foreign ones"
    for demonstration in demonstrations:
        assert demonstration.messages[-1]["role"] == "user"
        assert not any(m.get("token_ids") for m in demonstration.messages)


def _answers(demonstration):
    return [m["content"] for m in demonstration.messages if m["role"] == "assistant"]


def test_a_demonstrated_prompt_is_the_one_the_policy_meets_after_these_answers(own_policy):
    """What is learned from the expert has the tokens of what is asked later."""
    demonstrations, rollouts = demonstrate("compact", 0.0)
    end = own_policy.tokenizer.eos_token_id
    assert len(demonstrations) == sum(len(rollout.turns) for rollout in rollouts)
    for demonstration in demonstrations:
        said = [
            {**m, "token_ids": (*own_policy.encode(m["content"]), end)}
            if m["role"] == "assistant"
            else m
            for m in demonstration.messages
        ]
        assert own_policy.encode_chat(said) == own_policy.encode_chat(demonstration.messages)


def test_what_does_not_fit_is_not_demonstrated():
    policy = make_policy(max_length=64)
    demonstrations, _ = demonstrate("compact", 0.0)
    settings = WarmstartConfig(episodes=1, steps=1, batch_size=2)
    long = [d for d in demonstrations if len(policy.encode_chat(d.messages)) > 64]
    assert 0 < len(long) < len(demonstrations)
    with pytest.raises(ConfigError, match="no demonstration fits into 64 tokens"):
        fine_tune(policy, long, settings, seed=0, micro_batch_tokens=999)
    assert fine_tune(policy, demonstrations, settings, seed=0, micro_batch_tokens=999) > 0


def test_where_prefixes_are_shared_a_warm_start_learns_whole_chats(monkeypatch):
    """From the same answers, the same loss and weights; a chat passes through the model once."""
    demonstrations, _ = demonstrate("compact", 0.3)
    settings = WarmstartConfig(episodes=1, steps=2, batch_size=len(demonstrations))
    found = []
    for sharing in (False, True):
        policy, passed = make_policy(), []
        policy.set_share_prefixes(sharing)
        logprobs = policy.logprobs

        def counted(batch, logprobs=logprobs, passed=passed):
            passed.append(batch.num_tokens)
            return logprobs(batch)

        monkeypatch.setattr(policy, "logprobs", counted)
        loss = fine_tune(policy, demonstrations, settings, seed=0, micro_batch_tokens=9999)
        found.append((loss, list(policy.model.parameters()), sum(passed)))
    (loss, weights, many), (shared_loss, shared_weights, few) = found
    assert shared_loss == pytest.approx(loss, abs=1e-5)
    for one, other in zip(weights, shared_weights, strict=True):
        torch.testing.assert_close(other, one, atol=1e-5, rtol=0)
    assert few < many / 2


def test_the_window_stays_as_it_was():
    asked = []
    style = prompts.load("compact", CORRIDOR)

    def script(messages):
        asked.append(messages)
        return json.dumps("left")

    play(Agent(ScriptedCompleter(script), style, Sampling(), 1), members=1)
    assert all([m["role"] for m in messages] == ["user"] for messages in asked)
