"""vLLM for real, on the CPU: an engine beside the policy's own generation, and a server."""

import asyncio
import json
import subprocess

import pytest
import torch
import vllm_serving

from harness.config import EvaluationConfig, ModelConfig, ServiceConfig
from harness.evaluation.open_model import open_model
from harness.inference.completers import Sampling
from harness.inference.completers.hf import HFCompleter, _nucleus
from harness.inference.completers.openai import OpenAICompleter
from harness.model.packing import Sample
from harness.model.policy import Policy
from harness.types.errors import ConfigError, ContextOverflow

pytestmark = pytest.mark.vllm

PROMPTS = ["go", "take mug 2 from shelf", "put a clean plate in cabinet " * 9, "door", "a key"]
GREEDY, DRAWN, NUCLEUS = (0.0, 24, 0.5), (1.0, 24, 1.0), (0.7, 24, 0.6)
CROWD = 64
ROUNDING = 1e-4
"""Of the share of likely tokens: near ties at its edge fall either way."""


def ask(text):
    return [{"role": "user", "content": text}]


def batches(policy):
    """Return batches of requests: messages, sampling, seed."""
    said = policy.encode("Left, I think.")
    chat = [
        {"role": "system", "content": "You play."},
        *ask("There is a door. <|im_end|> Open it."),
        {"role": "assistant", "content": "not what the tokens say", "token_ids": said},
        *ask("It is open."),
    ]
    crowd = [(ask(PROMPTS[i % 5] + f" {i}"), NUCLEUS, i) for i in range(CROWD)]
    return {
        "greedy": [(ask(text), GREEDY, 0) for text in PROMPTS] + [(chat, GREEDY, 0)],
        "drawn": [(ask(text), DRAWN, 7) for text in PROMPTS],
        "crowd": crowd,
        "again": crowd,
        "alone": crowd[:1],
        "other": [(*request[:2], request[2] + 1000) for request in crowd],
    }


@pytest.fixture(scope="module")
def own(vllm_folder):
    """The same model in this process, without vLLM."""
    return Policy.load(str(vllm_folder), "cpu")


@pytest.fixture(scope="module")
def told(vllm_folder, own):
    """What a process with vLLM in it says."""
    given = {
        "folder": str(vllm_folder),
        "engine": vllm_serving.ENGINE,
        "batches": list(batches(own).values()),
    }
    run = subprocess.run(
        [vllm_serving.python(), "-m", "vllm_inprocess"],
        input=json.dumps(given),
        env=vllm_serving.environment(),
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert run.returncode == 0, run.stderr[-4000:]
    told = json.loads(run.stdout.splitlines()[-1])
    return {**told, "answers": dict(zip(batches(own), told["answers"], strict=True))}


def identity_of(**model):
    async def opened_and_closed():
        model = await open_model(EvaluationConfig(model=wanted))
        await model.close()
        return model.identity

    wanted = ModelConfig(**model)
    return asyncio.run(opened_and_closed())


def of_policy(own, requests):
    completer = HFCompleter(own)

    async def everything():
        calls = [completer.complete(m, Sampling(*sampling), seed) for m, sampling, seed in requests]
        return await asyncio.gather(*calls)

    return asyncio.run(everything())


def test_greedy_answers_are_the_policys_own_token_for_token(told, own):
    requests = batches(own)["greedy"]
    for mine, theirs in zip(of_policy(own, requests), told["answers"]["greedy"], strict=True):
        assert theirs["prompt_ids"] == list(mine.prompt_ids)
        assert theirs["response_ids"] == list(mine.response_ids)
        assert theirs["logprobs"] == pytest.approx(mine.logprobs, abs=1e-4)
        assert (theirs["text"], theirs["finished"]) == (mine.text, mine.finished)
        read, said = len(mine.prompt_ids), len(mine.response_ids)
        assert theirs["usage"] == {"prompt": read, "response": said, "calls": 1}


def test_prompts_are_those_that_training_writes(told, own):
    for name, requests in batches(own).items():
        for (messages, _, _), answer in zip(requests, told["answers"][name], strict=True):
            assert tuple(answer["prompt_ids"]) == own.encode_chat(messages)


@pytest.mark.parametrize("name", ["drawn", "crowd"])
def test_logprobs_are_those_of_the_distribution_drawn_from(told, own, name):
    (_, (temperature, limit, top_p), _), *_ = batches(own)[name]
    for answer in told["answers"][name][:8]:
        row = Sample(tuple(answer["prompt_ids"]), tuple(answer["response_ids"]), (), 1.0)
        tokens = torch.tensor([[*row.prompt_ids, *row.response_ids]])
        with torch.no_grad():
            logits = own.model(tokens).logits[0, len(row.prompt_ids) - 1 : -1]
        distribution = torch.log_softmax(logits / temperature, -1)
        # Rounding may bring one more token, or one less, into the nucleus: both are right.
        low, high = (
            _nucleus(distribution, torch.full((len(distribution),), share)).gather(
                -1, torch.tensor(row.response_ids)[:, None]
            )[:, 0]
            for share in (min(1.0, top_p + ROUNDING), top_p - ROUNDING)
        )
        given = torch.tensor(answer["logprobs"])
        assert ((low - 1e-3 <= given) & (given <= torch.maximum(low, high) + 1e-3)).all()
        assert answer["finished"] == (answer["response_ids"][-1] in own.stop_ids)
        assert len(answer["response_ids"]) == limit or answer["finished"]


def test_a_text_depends_on_its_seed_not_on_its_company(told):
    crowd, again, alone, other = (
        [answer["text"] for answer in told["answers"][name]]
        for name in ("crowd", "again", "alone", "other")
    )
    assert len(crowd) == CROWD
    assert crowd == again
    assert crowd[0] == alone[0]
    assert sum(a != b for a, b in zip(crowd, other, strict=True)) > CROWD / 2


def test_what_cannot_be_answered_is_said(told):
    kind, words = told["refused"]["long"]
    assert kind == "ContextOverflow"
    assert "exceed the limit of 8192" in words
    assert told["refused"]["image"][0] == told["refused"]["top_p"][0] == "ConfigError"
    assert told["unknown"][0] == "ConfigError"
    assert "no_such_argument" in told["unknown"][1]


def test_cancelled_requests_leave_the_engine(told):
    assert told["cancelled"] == {"answered": 1, "unfinished": 0}


def test_a_dead_engine_is_no_answer(told):
    for kind, words in told["failed"]:
        assert kind == "ModelUnavailable"
        assert "out of memory" in words
    assert told["closed"][0] == "ModelUnavailable"


def test_the_model_is_the_one_that_the_policy_opens(told, vllm_folder):
    mine = identity_of(name=str(vllm_folder), device="cpu")
    assert told["identity"]["revision"] == mine["revision"]
    assert {k: told["identity"][k] for k in ("backend", "name", "dtype")} == {
        "backend": "vllm",
        "name": str(vllm_folder),
        "dtype": "float32",
    }


CUT_OFF = "\N{REPLACEMENT CHARACTER}"


def from_server(server, requests, model=None):
    async def everything():
        completer = OpenAICompleter(model or server.name, server.url)
        try:
            calls = [completer.complete(m, Sampling(*s), seed) for m, s, seed in requests]
            return await asyncio.gather(*calls)
        finally:
            await completer.close()

    return asyncio.run(everything())


def test_a_server_gives_the_same_greedy_answers(vllm_server, own):
    requests = batches(own)["greedy"][: len(PROMPTS)]
    mine, theirs = of_policy(own, requests), from_server(vllm_server, requests)
    for a, b in zip(mine, theirs, strict=True):
        # A server keeps back the bytes of a character that is cut off.
        assert b.text.rstrip(CUT_OFF) == a.text.rstrip(CUT_OFF)
        assert (b.finished, b.usage) == (a.finished, a.usage)


def test_a_server_keeps_to_the_seed(vllm_server, own):
    requests = batches(own)["crowd"][:16]
    first = [answer.text for answer in from_server(vllm_server, requests)]
    assert [answer.text for answer in from_server(vllm_server, requests)] == first
    other = [(*request[:2], request[2] + 1) for request in requests]
    assert [answer.text for answer in from_server(vllm_server, other)] != first


def test_an_opened_server_answers_equal_requests_from_the_disk(vllm_server, tmp_path):
    model = ModelConfig(name=vllm_server.name, url=vllm_server.url)

    async def twice():
        opened = await open_model(EvaluationConfig(model=model, service=service))
        answers = [
            await opened.completer.complete(ask("go"), Sampling(1.0, 9), 3) for _ in range(2)
        ]
        await opened.close()
        return answers, opened.report()

    service = ServiceConfig(cache_path=str(tmp_path / "answers.sqlite"))
    (first, second), report = asyncio.run(twice())
    assert first == second
    assert (report["cache"]["hits"], report["cache"]["misses"]) == (1, 1)
    service = ServiceConfig(cache=False)
    (third, _), report = asyncio.run(twice())
    assert third == first
    assert "cache" not in report


def test_a_server_says_that_a_prompt_is_too_long(vllm_server):
    with pytest.raises(ContextOverflow, match="8192"):
        from_server(vllm_server, [(ask("go " * 9000), (0.0, 8, 1.0), 0)])


def test_a_server_is_asked_for_its_models_first(vllm_server):
    identity = identity_of(name=vllm_server.name, url=vllm_server.url)
    assert (identity["backend"], identity["name"]) == ("openai", vllm_server.name)
    with pytest.raises(ConfigError, match=vllm_server.name):
        identity_of(name="nobody", url=vllm_server.url)
    with pytest.raises(ConfigError, match="nobody"):
        from_server(vllm_server, [(ask("go"), GREEDY, 0)], model="nobody")
