"""Runs, checkpoints and models from others are read; nothing that is in them runs."""

import ast
import contextlib
import hashlib
import io
import json
import os
import pickle
import re
import shutil
import sys
from pathlib import Path

import pytest
import torch
from small_training import last_checkpoint, run, small

from harness.annotators import semantic
from harness.model import loading
from harness.runs import checkpoints
from harness.training import setup
from harness.types.errors import CheckpointError, ConfigError

ROOT = Path(__file__).parents[3]
PACKAGES = ("agentgyms", "env_servers", "harness")
LOADERS = {
    "pickle": {"load", "loads", "Unpickler"},
    "marshal": {"load", "loads"},
    "shelve": {"open"},
    "dill": {"load", "loads"},
    "cloudpickle": {"load", "loads"},
    "joblib": {"load"},
    "yaml": {"load", "full_load", "unsafe_load"},
}
"""Functions that run what a file tells them to."""


class Code:
    """What makes a folder when it is unpickled."""

    def __init__(self, folder):
        self.folder = str(folder)

    def __reduce__(self):
        return os.mkdir, (self.folder,)


def saved_by_torch(value, **kwargs):
    buffer = io.BytesIO()
    torch.save(value, buffer, **kwargs)
    return buffer.getvalue()


def pickles(folder):
    """Return files that make a folder when they are unpickled, in every form that torch reads."""
    state = {"optimizer": Code(folder), "random": [], "annotators": {}}
    return {
        "plain": pickle.dumps(Code(folder), protocol=2),
        "zip": saved_by_torch(state),
        "before zip": saved_by_torch(state, _use_new_zipfile_serialization=False),
    }


@pytest.fixture
def trap(tmp_path):
    return tmp_path / "this code ran"


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    return run(small(tmp_path_factory.mktemp("trained"), "trained", "run.steps=1"))


def test_the_pickles_would_run(trap):
    for name, content in pickles(trap).items():
        load = pickle.loads if name == "plain" else load_in_full
        load(content)
        assert trap.is_dir(), name
        trap.rmdir()


def load_in_full(content):
    return torch.load(io.BytesIO(content), weights_only=False)


def replace_file(checkpoint, name, content):
    """Put other content into a checkpoint's file, and its digest into the description."""
    (checkpoint / name).write_bytes(content)
    description = checkpoint / "checkpoint.json"
    described = json.loads(description.read_text())
    described["files"][name] = len(content), hashlib.sha256(content).hexdigest()
    description.write_text(json.dumps(described))
    assert not checkpoints.damage_of(checkpoint)


@pytest.mark.parametrize("form", ["plain", "zip", "before zip"])
def test_a_checkpoint_is_read_without_running_code(trained, tmp_path, trap, form):
    names = [path.name for path in last_checkpoint(trained).folder.iterdir() if path.is_file()]
    refused = set()
    for name in sorted(set(names) - {"checkpoint.json"}):
        copy = tmp_path / f"with another {name}"
        shutil.copytree(trained.folder.path, copy, symlinks=True)
        replace_file(checkpoints.find_all(copy)[-1].folder, name, pickles(trap)[form])
        try:
            setup.resume(copy)
        except (CheckpointError, ConfigError):
            refused.add(name)
        assert not trap.exists(), name
    assert {"model.safetensors", "trainer.pt", "config.json"} <= refused


@pytest.mark.parametrize("form", ["plain", "zip", "before zip"])
def test_weights_in_a_pickle_are_refused(trained, tmp_path, trap, form):
    model = tmp_path / "model"
    shutil.copytree(last_checkpoint(trained).folder, model)
    (model / "model.safetensors").unlink()
    (model / "pytorch_model.bin").write_bytes(pickles(trap)[form])
    with pytest.raises(ConfigError, match="cannot be loaded"):
        loading.load_parts(str(model))
    assert not trap.exists()


@pytest.fixture
def coded(trained, tmp_path, trap, monkeypatch):
    """A model with code of its own, on a terminal where somebody says yes to everything."""
    model = tmp_path / "coded"
    shutil.copytree(last_checkpoint(trained).folder, model)
    code = f"import os\nos.mkdir({str(trap)!r})\nConfig = Model = Tokenizer = Processor = None\n"
    (model / "code.py").write_text(code)
    kinds = ("Config", "Model", "ModelForCausalLM", "Tokenizer", "ImageProcessor")
    names = {f"Auto{kind}": "code.Config" for kind in kinds}
    names["AutoTokenizer"] = ["code.Tokenizer", None]
    for file in ("config.json", "tokenizer_config.json"):
        values = json.loads((model / file).read_text())
        values |= {"auto_map": names, "model_type": "of_its_own", "tokenizer_class": "OfItsOwn"}
        (model / file).write_text(json.dumps(values))
    modules = str(tmp_path / "modules")
    monkeypatch.setattr("transformers.dynamic_module_utils.HF_MODULES_CACHE", modules)
    monkeypatch.setattr("sys.path", list(sys.path))
    monkeypatch.setattr("builtins.input", lambda *_: "yes")
    return str(model)


def test_a_models_own_code_does_not_run(coded, trap, tmp_path):
    from transformers import AutoConfig

    with pytest.raises(ConfigError, match="cannot be loaded"):
        loading.load_parts(coded)
    with pytest.raises(ConfigError, match="cannot be loaded"):
        semantic.open_scorer(f"embedding:{coded}")
    assert not trap.exists()
    with contextlib.suppress(Exception):  # the code is no whole model
        AutoConfig.from_pretrained(coded)
    assert trap.exists(), "transformers asks, and this model's code would run"


def called(tree):
    """Yield the calls of a module as `(function, arguments by name)`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield ast.unparse(node.func), {k.arg: ast.unparse(k.value) for k in node.keywords}


def test_no_module_reads_what_could_be_code():
    wrong, of_torch = [], 0
    for path in (file for package in PACKAGES for file in (ROOT / package).rglob("*.py")):
        source = path.read_text(encoding="utf-8")
        if not re.search(r"load|Unpickler|shelve|trust_remote_code", source):
            continue
        for name, arguments in called(ast.parse(source)):
            module, _, function = name.rpartition(".")
            if function in LOADERS.get(module, ()) or arguments.get("trust_remote_code") == "True":
                wrong.append((path.name, name))
            if name == "torch.load":
                of_torch += 1
                if arguments.get("weights_only") != "True":
                    wrong.append((path.name, name))
            if name in ("np.load", "numpy.load") and arguments.get("allow_pickle") != "False":
                wrong.append((path.name, name))
    assert wrong == []
    assert of_torch
