"""Opening models: hub names, folders, checkpoints, runs, and what is said if one is not there."""

import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec

import pytest
from server_calls import ASK

from agentgyms.core.imports import install
from harness.config import Config, EvaluationConfig, ModelConfig, ServiceConfig, build, to_dict
from harness.evaluation.model_source import digest, find
from harness.evaluation.open_model import backend_of, open_model
from harness.inference.completers import Sampling
from harness.inference.completers.hf import HFCompleter
from harness.types.errors import ConfigError, ModelUnavailable
from tests.harness.any_model import policy_of

DEFAULT = ServiceConfig()


def opened(service=DEFAULT, **model):
    """Return a model, closed again."""

    async def both():
        model = await open_model(wanted)
        await model.close()
        return model

    wanted = build(EvaluationConfig, {"model": model, "service": service})
    return asyncio.run(both())


@pytest.fixture(scope="module")
def folder(policy, tmp_path_factory):
    home = tmp_path_factory.mktemp("models") / "small"
    policy.save(home)
    return home


@pytest.fixture
def run(folder, tmp_path):
    """A training run whose configuration leaves settings out."""
    home = tmp_path / "runs" / "demo"
    values = to_dict(Config())
    values["env"]["id"] = "agentgyms/Corridor-v0"
    values["agent"] = {"style": "act", "window": 5, "max_tokens": 48, "temperature": 0.7}
    del values["checkpoint"]
    for step in (20, 40):
        checkpoint = home / "checkpoints" / f"step-{step:06d}"
        shutil.copytree(folder, checkpoint)
        (checkpoint / "checkpoint.json").write_text(json.dumps({"step": step, "files": {}}))
        (checkpoint / "trainer.pt").write_bytes(b"optimizer" * step)
    (home / "checkpoints" / ".step-000060.partial").mkdir()
    (home / "config.json").write_text(json.dumps(values))
    return home


def test_a_folder_is_opened_and_answers_as_the_policy_does(folder, policy):
    async def answer():
        model = await open_model(EvaluationConfig(model=ModelConfig(name=str(folder))))
        ask = [{"role": "user", "content": "go"}]
        return await model.completer.complete(ask, Sampling(0.0, 9), 0), model

    said, model = asyncio.run(answer())
    ids = policy.encode_chat([{"role": "user", "content": "go"}])
    assert said.prompt_ids == ids
    assert isinstance(model.completer, HFCompleter)
    device = model.completer.policy.device.type
    assert model.identity == {
        "backend": "hf",
        "name": str(folder),
        "revision": digest(folder),
        "device": device,
    }
    assert model.trained is None
    assert json.loads(json.dumps(model.identity)) == model.identity


def test_a_run_stands_for_its_newest_checkpoint(run):
    model = opened(name=str(run))
    assert model.identity["step"] == 40
    assert model.identity["name"] == str(run)
    assert model.trained["agent"] == {
        "style": "act",
        "tool_format": "auto",  # a default, like all that the run does not give
        "context": "window",
        "summary_tokens": 4096,
        "window": 5,
        "thoughts": "keep",
        "scratchpad": 0,
        "max_tokens": 48,
        "max_thought_tokens": None,
        "max_observation": None,
        "max_context": None,
        "temperature": 0.7,
    }
    assert model.trained["env"]["id"] == "agentgyms/Corridor-v0"
    assert model.trained["checkpoint"] == to_dict(Config())["checkpoint"]


def test_a_checkpoint_may_be_picked(run, monkeypatch):
    monkeypatch.chdir(run / "checkpoints")
    for name in (str(run / "checkpoints" / "step-000020"), "step-000020", "./step-000020/"):
        source = find(name)
        assert source.step == 20
        assert source.trained["agent"]["style"] == "act"


def test_a_checkpoint_taken_out_of_its_run_is_a_model(run, tmp_path):
    alone = tmp_path / "alone"
    shutil.move(run / "checkpoints" / "step-000040", alone)
    source = find(str(alone))
    assert (source.step, source.trained) == (40, None)


def test_the_digest_is_of_the_model_alone(run, folder):
    first, second = (run / "checkpoints" / f"step-0000{n}" for n in (20, 40))
    assert digest(first) == digest(second) == digest(folder)
    assert len(digest(folder)) == 12
    weights = second / "model.safetensors"
    content = weights.read_bytes()
    weights.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    assert digest(second) != digest(first)
    weights.write_bytes(content)
    assert digest(second) == digest(first)
    (second / "chat_template.jinja").write_text("{{ messages }}")
    assert digest(second) != digest(first)


def test_a_run_without_a_checkpoint_is_refused(run):
    shutil.rmtree(run / "checkpoints")
    (run / "checkpoints").mkdir()
    with pytest.raises(ConfigError, match="no complete checkpoint yet"):
        opened(name=str(run))


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ({"name": "./nowhere/at/all"}, "there is no folder './nowhere/at/all'"),
        ({"name": ""}, "model.name is missing"),
        ({"name": "m", "backend": "openai"}, "model.url is missing"),
        (
            {"name": "m", "backend": "gpt"},
            "model.backend must be one of None, 'openai', 'vllm', 'hf', 'expert', 'random', got",
        ),
        ({"name": "m", "url": "no address"}, "model.url"),
    ],
)
def test_what_cannot_be_opened_is_said(model, words):
    with pytest.raises(ConfigError, match=words):
        opened(**model)


def test_a_folder_that_holds_no_model_is_refused(tmp_path, folder):
    with pytest.raises(ConfigError, match="holds neither a model"):
        opened(name=str(tmp_path))
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(ConfigError, match="damaged"):
        opened(name=str(tmp_path))
    shutil.copy(folder / "config.json", tmp_path)
    with pytest.raises(ConfigError, match="cannot be loaded") as caught:
        opened(name=str(tmp_path))
    assert "hf download" not in str(caught.value)
    with pytest.raises(ConfigError, match="is for hub names"):
        opened(name=str(folder), revision="main")


def test_a_device_that_is_not_there_is_said(folder):
    with pytest.raises(ConfigError, match="cannot be loaded: .*nonsense"):
        opened(name=str(folder), device="nonsense")


@pytest.mark.skipif(find_spec("vllm") is not None, reason="vLLM is installed")
def test_vllm_that_is_not_installed_is_said(folder):
    with pytest.raises(ConfigError, match=re.escape(install("vllm"))):
        opened(name=str(folder), backend="vllm")
    with pytest.raises(ConfigError, match="leave model.device out"):
        opened(name=str(folder), backend="vllm", device="cpu")


def test_expert_and_random_are_no_language_models():
    for name in ("expert", "random"):
        assert backend_of(ModelConfig(name=name)) == name
        for model in (opened(name=name), opened(backend=name)):
            assert model.completer is None
            assert model.identity["backend"] == model.identity["name"] == name
    assert opened(backend="expert", expert="shortest").identity["expert"] == "shortest"


def test_the_backend_follows_from_what_is_given():
    assert backend_of(ModelConfig(name="m")) == "hf"
    assert backend_of(ModelConfig(name="m", url="http://127.0.0.1:1")) == "openai"
    assert backend_of(ModelConfig(name="m", url="http://127.0.0.1:1", backend="hf")) == "hf"


def test_a_server_that_is_not_there_is_unavailable():
    quick = ServiceConfig(timeout_s=1.0, retries=0)
    with pytest.raises(ModelUnavailable, match="127.0.0.1:9"):
        opened(quick, name="m", url="http://127.0.0.1:9")


def test_a_server_is_opened_without_torch():
    script = (
        "import asyncio, sys\n"
        "from harness.evaluation.open_model import open_model\n"
        "from harness.types.errors import ModelUnavailable\n"
        "from harness.config import EvaluationConfig, ModelConfig, ServiceConfig\n"
        "model = ModelConfig(name='m', url='http://127.0.0.1:9')\n"
        "config = EvaluationConfig(model=model, service=ServiceConfig(timeout_s=1.0, retries=0))\n"
        "try:\n"
        "    asyncio.run(open_model(config))\n"
        "except ModelUnavailable:\n"
        "    sys.exit(bool({'torch', 'transformers'} & set(sys.modules)))\n"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr


HUB = """
import asyncio, json, sys
from harness.evaluation.open_model import open_model
from harness.types.errors import ConfigError
from harness.config import EvaluationConfig, ModelConfig

def identity(**model):
    config = EvaluationConfig(model=ModelConfig(device="cpu", **model))
    try:
        return asyncio.run(open_model(config)).identity
    except ConfigError as e:
        return str(e)

told = [identity(name="owner/small"), identity(name="owner/small", revision="v1"),
        identity(name="owner/small", revision="v2"), identity(name="owner/other")]
print(json.dumps(told))
"""


@pytest.mark.slow
def test_a_missing_folder_is_said_without_torch(tmp_path):
    code = """
import sys
sys.modules["torch"] = sys.modules["transformers"] = None  # as if they were not installed
from harness.cli.main import main
main(["eval", "--model", "runs/typo"])
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode
    assert "there is no folder 'runs/typo'; give that of a training run" in done.stderr


def test_hub_names_come_from_the_disk_with_their_commit(folder, policy, tmp_path):
    """Two revisions lie in a cache of the hub, as the hub's client leaves them."""
    cache = tmp_path / "hub" / "models--owner--small"
    commits = {"main": "a" * 40, "v1": "b" * 40}
    for name, commit in commits.items():
        shutil.copytree(folder, cache / "snapshots" / commit)
        (cache / "refs").mkdir(parents=True, exist_ok=True)
        (cache / "refs" / name).write_text(commit)
    run = subprocess.run(
        [sys.executable, "-c", HUB],
        env={**os.environ, "HF_HUB_OFFLINE": "1", "HF_HUB_CACHE": str(tmp_path / "hub")},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert run.returncode == 0, run.stderr[-3000:]
    main, first, second, other = json.loads(run.stdout.splitlines()[-1])
    assert (main["revision"], first["revision"]) == (commits["main"], commits["v1"])
    assert main["name"] == "owner/small"
    assert "cannot be loaded" in second
    assert "no such folder is here" in other
    assert "hf download owner/other" in other


SWITCHED = (
    "{% for message in messages %}{{ message['content'] }}<|im_end|>{% endfor %}"
    "{{ '<think>\n' if enable_thinking else '' }}"
)


def test_a_chat_template_gets_its_arguments_and_those_of_a_run(folder, tmp_path):
    home = tmp_path / "runs" / "thinks"
    checkpoint = home / "checkpoints" / "step-000001"
    shutil.copytree(folder, checkpoint)
    (checkpoint / "chat_template.jinja").write_text(SWITCHED)
    (checkpoint / "checkpoint.json").write_text(json.dumps({"step": 1, "files": {}}))
    values = to_dict(Config())
    values["policy"]["chat_template_kwargs"] = {"enable_thinking": True}
    (home / "config.json").write_text(json.dumps(values))
    off = {"enable_thinking": False}
    for extra, prefill in (({}, "<think>\n"), ({"chat_template_kwargs": off}, "")):
        model = opened(name=str(home), extra=extra)
        assert model.completer.policy.chat_encoder.prefill == prefill
        answer = asyncio.run(model.completer.complete(ASK, Sampling(1.0, 4), 1))
        assert answer.text.startswith("<think>\n") is bool(prefill)


@pytest.mark.parametrize("extra", [{"top_k": 3}, {"chat_template_kwargs": "off"}])
def test_fields_of_requests_are_for_servers(folder, extra):
    with pytest.raises(ConfigError, match=r"model\.extra .* takes chat_template_kwargs alone"):
        opened(name=str(folder), extra=extra)


@pytest.mark.parametrize(("kind", "path"), [("bert", "padded batch"), ("mamba", "cached decoding")])
def test_a_model_that_differs_from_itself_does_not_play(kind, path, tmp_path):
    policy_of(kind, state_size=8).save(tmp_path)
    with pytest.raises(ConfigError, match=f"type {kind} .* {path}"):
        asyncio.run(open_model(EvaluationConfig(model=ModelConfig(name=str(tmp_path)))))
