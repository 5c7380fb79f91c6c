"""Checkpoints that several processes write: their files, and what is left when one of them ends."""

import json
import sys
from pathlib import Path

import forked_ranks
import forked_saves
import pytest
import torch
from safetensors.torch import load_file
from tiny_families import make_policy, make_seeing

from harness.config import TinyConfig
from harness.distributed import shared_writing
from harness.distributed.process_group import SINGLE_PROCESS
from harness.model import tiny
from harness.model.policy import Policy

ROOT = Path(__file__).parents[3]


@pytest.fixture
def model(policy, tmp_path):
    """The folder of a model of two layers."""
    size = TinyConfig(layers=2, hidden=16, heads=2, feed_forward=16)
    own = Policy(tiny.make_model(size, policy.tokenizer, 0), policy.tokenizer, "cpu")
    own.save(tmp_path / "model")
    return str(tmp_path / "model")


@pytest.mark.slow
def test_a_process_that_ends_or_fails_while_both_save_leaves_a_whole_checkpoint(model, tmp_path):
    found = forked_saves.run(model, tmp_path / "saves", every=4)
    lost = forked_saves.OTHER
    ends = {"kill": ([0, 0], [-9, lost], [lost, -9]), "fail": ([0, 0], [3, 4])}
    for act, codes, newest, taken, names, left in found:
        told = (act, codes, newest, taken, names, left)
        assert newest in (1, 2), told
        assert [taken] == names == [f"step-{newest:06d}"], told
        assert codes != [0, 0] or newest == 2, told
        assert codes in ends[act], told
        assert act == "kill" or newest == 2 or not left, told  # a failed save leaves no folder
    for act, expected in ends.items():
        assert all(codes in [one[1] for one in found if one[0] == act] for codes in expected)
    assert {newest for _, _, newest, *_ in found} == {1, 2}
    assert len(found) > 30


@pytest.mark.slow
def test_parts_hold_what_one_file_holds_and_one_process_reads_them(policy, tmp_path):
    """The files' names and shapes are those of transformers, in whatever parts they are."""
    made = {family: make_policy(family) for family in ("qwen2", "qwen3_moe")}
    made["qwen3_vl"] = make_seeing("qwen3_vl")
    made["tied"] = make_policy("qwen3", tie_word_embeddings=True)
    jobs = []
    for name, own in made.items():
        own.save(tmp_path / name)
        jobs.append(["save_parts", str(tmp_path / name), str(tmp_path / f"{name}-parts"), 4000])
    jobs.append(["save_parts", str(tmp_path / "qwen2"), str(tmp_path / "few"), 2**31])
    codes, said = forked_ranks.run(2, jobs, tmp_path)
    assert not any(codes), said
    for name in [*made, "few"]:
        folder = tmp_path / ("few" if name == "few" else f"{name}-parts")
        origin = load_file(tmp_path / ("qwen2" if name == "few" else name) / "model.safetensors")
        files = sorted(folder.glob("*.safetensors"))
        found = {key: one for file in files for key, one in load_file(file).items()}
        assert found.keys() == origin.keys()
        assert all(torch.equal(found[key], weight) for key, weight in origin.items())
        assert len(files) == 2 if name == "few" else len(files) > 2
        again = Policy.load(str(folder), "cpu")
        own = dict(made["qwen2" if name == "few" else name].model.named_parameters())
        for key, weight in again.model.named_parameters():
            assert torch.equal(weight, own[key])


def test_files_are_of_about_equal_size_and_groups_stay_together():
    sizes = [9, 1, 1, 1, 5, 4, 3, 2]
    tensors = {f"t{i}": torch.zeros(size) for i, size in enumerate(sizes)}
    groups = [["t0"], ["t1", "t2", "t3"], *([f"t{i}"] for i in range(4, 8))]
    files = shared_writing._files(tensors, groups, 2)
    assert sorted(name for names in files for name in names) == sorted(tensors)
    assert any({"t1", "t2", "t3"} <= set(names) for names in files)
    assert [sum(sizes[int(name[1:])] for name in names) for names in files] == [14, 12]
    assert shared_writing._files({"a": tensors["t0"]}, [["a"]], 4) == [["a"]]


def test_one_process_writes_all_files(tmp_path):
    written = {}
    tensors = {"a": torch.ones(2), "b": torch.zeros(3)}
    shared_writing.write(
        tensors,
        [["a"], ["b"]],
        SINGLE_PROCESS,
        lambda number, count, own: written.update({number: (count, set(own))}),
    )
    assert written == {0: (1, {"a", "b"})}


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_no_process_holds_more_the_more_there_are(tmp_path, monkeypatch):
    """To load, take a step, save and resume: each of four holds no more than one alone."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks" / "studies"))
    from host_memory import PHASES, make_models

    weights = 4e-6 * make_models(tmp_path, layers=8, hidden=384, vocabulary=2000)
    found = {}
    for size in (1, 4):
        told = tmp_path / f"told-{size}.json"
        codes, said = forked_ranks.run(size, [["host_memory", str(tmp_path), str(told)]], tmp_path)
        assert not any(codes), said[-3000:]
        found[size] = json.loads(told.read_text())
    for phase in PHASES:
        assert found[1][phase] > weights, found
        assert found[4][phase] < found[1][phase] + 0.5 * weights, found
    assert found[4]["load"] < weights, found
