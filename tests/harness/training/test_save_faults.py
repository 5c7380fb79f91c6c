"""Every write, fsync and rename of a checkpoint's save and of the cache of answers fails once."""

import shutil
import sys

import pytest
import torch
from fault_points import enumerate_faults, points

from agentgyms.models.answer_store import AnswerStore
from harness import config as configs
from harness.runs import checkpoints
from harness.training import saving
from harness.training.learner import Learner

EVERY = [
    pytest.param(13, id="some"),
    pytest.param(1, marks=pytest.mark.slow, id="all"),
]


@pytest.fixture
def one_thread():
    """A forked child cannot use the threads of its parent."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("every", EVERY)
def test_a_save_that_fails_anywhere_leaves_a_checkpoint(policy, tmp_path, one_thread, every):
    """The old checkpoint or the new one is whole, and taking it up ends the saving."""
    optimizer = Learner(policy, None, configs.OptimizerConfig(), "clipped", {}, 1.0).optimizer
    begun, run = tmp_path / "begun", tmp_path / "run"
    saving.begin(begun, 1, policy, optimizer, keep=1, validation={"success": 0.1}).finish()

    def save():
        saving.begin(run, 2, policy, optimizer, keep=1, validation={"success": 0.9}).finish()

    def prepare():
        shutil.rmtree(run, ignore_errors=True)
        shutil.copytree(begun, run, symlinks=True)

    def check(done):
        assert done.outcome != "raised" or "TrainingError" in done.error, done.trace
        newest = checkpoints.newest(run)
        assert newest.step in (1, 2)
        assert done.outcome != "done" or newest.step == 2
        assert checkpoints.finish_save(run, keep=1).step == newest.step
        names = sorted(path.name for path in (run / "checkpoints").iterdir())
        if newest.step == 2:
            assert names == ["best", "step-000002"]
        else:
            assert set(names) <= {"best", "step-000001", ".step-000002.partial"}
        assert saving.begin(run, 3, policy, optimizer, keep=1).finish().step == 3

    prepare()
    calls = {point.call for point in points(save, run)}
    assert {"write", "fsync", "rename", "unlink"} <= calls
    tried = enumerate_faults(save, run, prepare=prepare, check=check, every=every)
    sys.stdout.write(f"{tried} faults\n")
    assert tried > 100 // every


@pytest.mark.parametrize("every", EVERY)
def test_a_cache_that_fails_anywhere_gives_whole_answers_or_none(tmp_path, every):
    """Answers that were kept before stay, and a new one is there as a whole or not at all."""
    folder, begun = tmp_path / "cache", tmp_path / "begun"
    path = folder / "answers.sqlite"
    before = {f"old {i}": {"text": f"{i} " * 400} for i in range(8)}
    new = {f"new {i}": {"text": f"{i} " * 400} for i in range(4)}

    def put(file, answers):
        store = AnswerStore(file)
        for key, answer in answers.items():
            assert store.put(key, answer) == answer, "the caller gets its answer in any case"
        store.close()

    put(begun / "answers.sqlite", before)

    def prepare():
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(begun, folder)

    def check(done):
        assert done.outcome != "raised", done.trace
        store = AnswerStore(path)
        assert {key: store.get(key) for key in before} == before
        for key, answer in new.items():
            assert store.get(key) in (None, answer)
            assert store.put(key, answer) == answer
            assert store.get(key) == answer
        assert store.damaged == 0
        store.close()
        assert not list(folder.glob("*.damaged-*"))

    tried = enumerate_faults(
        lambda: put(path, new), folder, prepare=prepare, check=check, every=every
    )
    sys.stdout.write(f"{tried} faults\n")
    assert tried > 20 // every
