"""Imports that fail or are killed at any system call: the old data set or the new one, whole."""

import shutil
import threading
from pathlib import Path

import pytest

from agentgyms.core.errors import DataCorrupt, DataMissing
from agentgyms.data import datasets, folders
from agentgyms.data.datasets import DataSet
from agentgyms.data.manifests import Item, Part, digest_file
from tests.fault_points import FAULTS, enumerate_faults, points, run_with_fault

OLD = {"a.txt": b"old", "deep/b.txt": b"old as well", "gone.txt": b"old alone"}
NEW = {"a.txt": b"new", "deep/b.txt": b"new as well", "deep/er/c.txt": b"new alone"}


def build(source: Path, target: Path, progress: bool):
    """Builds as environments do: into a folder that may be half built already."""
    if not source.is_dir():
        raise DataMissing(f"there is no folder {source}")
    target.mkdir(exist_ok=True)
    journal = target / "journal"
    done = journal.read_text().split() if journal.exists() else []
    files = {p.relative_to(source).as_posix(): p for p in source.rglob("*") if p.is_file()}
    for name, file in sorted(files.items()):
        if name not in done:
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, target / name)
            with journal.open("a") as lines:
                lines.write(f" {name}")
    journal.unlink()
    return {
        "splits": {"all": Part(len(files), "")},
        "files": {n: (p.stat().st_size, digest_file(p)) for n, p in files.items()},
    }


KINDS = {
    "copied": {
        "keep": lambda name: name,
        "describe": lambda name, content: Item("all", name, content.decode()),
    },
    "built": {"build": build},
}


def write(folder, files):
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


def read(folder):
    files = [p for p in folder.rglob("*") if p.is_file() and p.name != "manifest.json"]
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in files}


class Imports:
    """An old data set, and imports of a new one in its place."""

    def __init__(self, tmp_path, monkeypatch, kind):
        self.home, self.kept = tmp_path / "home", tmp_path / "kept"
        self.old, self.new = write(tmp_path / "old", OLD), write(tmp_path / "new", NEW)
        monkeypatch.setenv("AGENTGYMS_DATA", str(self.home))
        known = DataSet("small", "a small one", "MIT", "", **KINDS[kind])
        monkeypatch.setattr(datasets, "data_set", lambda name: known)
        self.take(self.old)
        shutil.copytree(self.home, self.kept)

    def take(self, source):
        datasets.import_data("small", source, progress=False)

    def prepare(self):
        shutil.rmtree(self.home)
        shutil.copytree(self.kept, self.home)

    def check(self, run):
        """One of the two is here, whole; the next import replaces it and leaves nothing else."""
        assert run.outcome in ("killed", "raised", "done")
        self.check_whole()
        self.take(self.new)
        self.check_whole()
        assert read(self.home / "small") == NEW
        assert [path.name for path in self.home.iterdir()] == ["small"]

    def check_whole(self):
        assert read(datasets.find("small")) in (OLD, NEW)
        datasets.verify("small", progress=False)

    def check_without_exchange(self, run):
        """As `check`; but the next import, even a failing one, first brings the old one back."""
        with pytest.raises(DataMissing):
            self.take(self.home / "nowhere")
        self.check(run)


@pytest.fixture(params=KINDS)
def imports(request, tmp_path, monkeypatch):
    return Imports(tmp_path, monkeypatch, request.param)


def enumerate_imports(imports, check, every, faults=FAULTS):
    return enumerate_faults(
        lambda: imports.take(imports.new),
        imports.home,
        prepare=imports.prepare,
        check=check,
        faults=faults,
        every=every,
    )


def test_nothing_is_lost_wherever_an_import_ends(imports):
    assert enumerate_imports(imports, imports.check, every=7) >= 8


@pytest.mark.slow
def test_nothing_is_lost_at_any_point(imports):
    """86 runs where files are copied, more where they are built."""
    everywhere = (*FAULTS, "ENOSPC")
    assert enumerate_imports(imports, imports.check, 1, everywhere) > 80


@pytest.mark.slow
def test_nothing_is_lost_at_any_point_where_folders_cannot_be_exchanged(imports, monkeypatch):
    monkeypatch.setattr(folders, "exchange", lambda one, other: False)
    check = imports.check_without_exchange
    assert enumerate_imports(imports, check, 1, ("kill", "EIO")) > 40


def test_nothing_is_lost_while_folders_that_cannot_be_exchanged_are_moved(imports, monkeypatch):
    monkeypatch.setattr(folders, "exchange", lambda one, other: False)
    found = points(lambda: imports.take(imports.new), imports.home)
    first = next(i for i, point in enumerate(found) if point.call.startswith("rename"))
    last = max(i for i, point in enumerate(found) if point.call.startswith("rename"))
    assert last - first >= 3
    for number in range(first, last + 1):
        imports.prepare()
        run = run_with_fault(lambda: imports.take(imports.new), imports.home, "kill", number)
        assert run.outcome == "killed"
        imports.check_without_exchange(run)


def test_readers_always_find_a_whole_data_set(imports):
    stop, torn = threading.Event(), []

    def watch():
        while not stop.is_set():
            try:
                read_by_names(datasets.find("small"))
            except (DataMissing, DataCorrupt) as e:
                torn.append(e)

    def read_by_names(folder):
        assert (folder / "a.txt").read_bytes() in (OLD["a.txt"], NEW["a.txt"])

    watcher = threading.Thread(target=watch)
    watcher.start()
    for source in [imports.new, imports.old] * 25:
        imports.take(source)
    stop.set()
    watcher.join()
    assert torn == []


def test_two_folders_are_exchanged_in_one_step(tmp_path):
    one, other = write(tmp_path / "one", OLD), write(tmp_path / "other", NEW)
    assert folders.exchange(one, other)
    assert (read(one), read(other)) == (NEW, OLD)
    with pytest.raises(FileNotFoundError):
        folders.exchange(one, tmp_path / "nowhere")
