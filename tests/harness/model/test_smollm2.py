"""The real SmolLM2-135M and all-MiniLM-L6-v2, out of their packages."""

import contextlib
import copy
import json
import os
import subprocess
import urllib.request
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner

from harness.annotators.semantic import open_scorer
from harness.cli.main import main
from harness.model import self_test
from harness.model.policy import Policy
from harness.model.weights import converted
from harness.model.weights.converted.gguf_writer import Original

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


@contextlib.contextmanager
def llama_cpp(file):
    """Yield the address of llama.cpp's server for a file."""
    program = Path(__file__).parents[1] / "llama_cpp_server.py"
    words = [os.environ["AGENTGYMS_ADAPTERS_PYTHON"], str(program), str(file)]
    with subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        yield process.stdout.readline().strip()  # it ends with its standard input


def asked(address, chat):
    """Return a server's most probable answer, as ids and log-probabilities."""
    wanted = {"messages": chat, "max_tokens": 24, "temperature": 0, "logprobs": True}
    request = urllib.request.Request(
        f"{address}/v1/chat/completions",
        json.dumps({**wanted, "top_logprobs": 1}).encode(),
        {"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request) as reply:
        tokens = json.load(reply)["choices"][0]["logprobs"]["content"]
    return [one["id"] for one in tokens], torch.tensor([one["logprob"] for one in tokens])


@torch.no_grad()
def answered(model, tokenizer, chat):
    """Return the most probable answer of a model here, as ids and log-probabilities."""
    ids = tokenizer.apply_chat_template(chat, add_generation_prompt=True, return_dict=False)
    found = model.generate(torch.tensor([ids]), do_sample=False, max_new_tokens=24)[0, len(ids) :]
    logits = model(torch.tensor([[*ids, *found]])).logits[0, len(ids) - 1 : -1]
    return found.tolist(), torch.log_softmax(logits, -1).gather(1, found[:, None])[:, 0]


@pytest.mark.adapters
def test_llama_cpp_answers_as_the_trained_model_does(policy, tmp_path):
    torch.manual_seed(0)
    model, tokenizer = copy.deepcopy(policy.model).float(), policy.tokenizer
    with torch.no_grad():
        for weight in model.parameters():  # as if trained: about as far as some steps at 1e-4
            weight.add_(0.01 * weight.std() * torch.randn_like(weight))
    model.save_pretrained(tmp_path / "trained")
    file = tmp_path / "trained.gguf"
    original = Original(converted.check_source(NAME, "policy.model"))
    original.write_trained(tmp_path / "trained", file, tokenizer=tokenizer)
    questions = ("Name three colours.", "You are in a kitchen. Go to the fridge.", "Write a haiku.")
    with llama_cpp(file) as address:
        for question in questions:
            chat = [{"role": "user", "content": question}]
            found, logprobs = asked(address, chat)
            wanted, own = answered(model, tokenizer, chat)
            assert found == wanted
            torch.testing.assert_close(logprobs, own, rtol=0, atol=0.02)
        words = ["eval", "--env", "Corridor", "--url", f"{address}/v1", "--model", "trained"]
        words += ["--tasks", "1", "--set", "sampling.max_tokens=8", "--set", "env.max_turns=2"]
        words += ["--set", f"run.output={tmp_path}"]
        done = CliRunner().invoke(main, words)
        assert done.exit_code == 0, done.output
        assert "1 of 1 finished" in done.output
