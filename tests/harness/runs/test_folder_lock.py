"""Locks on folders: one process at a time, and a clear error for any other."""

import errno
import fcntl
import json
import os
import socket
import time

import pytest
from lock_holder import locked

from harness.runs import folder_lock
from harness.runs.folder_lock import LOCK, FolderLock
from harness.types.errors import FolderInUse


def test_the_error_names_the_holder(tmp_path):
    with locked(tmp_path) as pid:
        record = json.loads((tmp_path / LOCK).read_text())
        assert (record["pid"], record["host"]) == (pid, socket.gethostname())
        said = f"in use by process {pid} on {socket.gethostname()}, since {record['started']}: wait"
        with pytest.raises(FolderInUse, match=said), FolderLock(tmp_path):
            pass
    with FolderLock(tmp_path) as lock:
        lock.check()
    assert (tmp_path / LOCK).read_text() == ""


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "[" * 100_000])
def test_a_holder_that_is_not_named_holds_all_the_same(tmp_path, text):
    with locked(tmp_path):
        (tmp_path / LOCK).write_text(text)
        with pytest.raises(FolderInUse, match="in use by another process"):
            FolderLock(tmp_path).acquire()


def test_a_killed_holder_holds_nothing(tmp_path):
    with locked(tmp_path) as pid:
        os.kill(pid, 9)
    assert (tmp_path / LOCK).read_text()
    with FolderLock(tmp_path) as lock:
        lock.check()


def test_a_program_that_a_killed_holder_was_starting_is_waited_for(tmp_path, monkeypatch):
    with locked(tmp_path) as killed:
        os.kill(killed, 9)
    record = (tmp_path / LOCK).read_text()
    with locked(tmp_path) as starting:  # has the lock, as a copy of the holder has until it runs
        (tmp_path / LOCK).write_text(record)

        def end(_, sleep=time.sleep):
            os.kill(starting, 9)
            sleep(0.1)

        monkeypatch.setattr(folder_lock.time, "sleep", end)
        with FolderLock(tmp_path) as lock:
            lock.check()
    with locked(tmp_path):
        (tmp_path / LOCK).write_text(record)
        monkeypatch.setattr(folder_lock.time, "sleep", lambda _: None)
        with pytest.raises(FolderInUse, match=f"in use by process {killed}"):
            FolderLock(tmp_path).acquire()


def test_a_later_lock_of_the_same_process_takes_over(tmp_path):
    first, second = FolderLock(tmp_path), FolderLock(tmp_path)
    first.acquire()
    second.acquire()
    second.check()
    with pytest.raises(FolderInUse, match="another one of this process"):
        first.check()
    first.release()
    second.check()
    second.release()


def test_a_deleted_file_locks_nobody_out(tmp_path):
    with FolderLock(tmp_path) as lock:
        (tmp_path / LOCK).unlink()
        lock.check()
        with locked(tmp_path) as pid, pytest.raises(FolderInUse, match=f"over by process {pid}"):
            lock.check()
        with pytest.raises(FolderInUse, match="over by another process"):
            lock.check()


def test_a_forked_child_does_not_keep_the_lock(tmp_path):
    """A child that outlives its parent would."""
    lock = FolderLock(tmp_path)
    lock.acquire()
    here, there = os.pipe()
    child = os.fork()
    if not child:
        os.close(there)
        os.read(here, 1)
        os._exit(0)
    os.close(here)
    try:
        lock.check()
        os.ftruncate(lock._handle, 0)
        os.close(lock._handle)  # as the kernel does when the parent is killed
        lock._handle = None
        with locked(tmp_path):
            pass
    finally:
        os.close(there)
        os.waitpid(child, 0)


@pytest.mark.parametrize("code", [errno.ENOLCK, errno.EOPNOTSUPP])
def test_without_locks_the_later_one_is_the_holder(tmp_path, monkeypatch, caplog, code):
    def refuse(*_):
        raise OSError(code, os.strerror(code))

    lock = FolderLock(tmp_path)
    with locked(tmp_path) as pid:
        monkeypatch.setattr(fcntl, "flock", refuse)
        lock.acquire()
        lock.check()
        assert "file system without locks" in caplog.text
        assert json.loads((tmp_path / LOCK).read_text())["pid"] == os.getpid() != pid
    lock.check()
    lock.release()
    assert (tmp_path / LOCK).read_text() == ""
