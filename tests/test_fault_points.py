"""The enumeration of fault points: it sees every way of writing, and finds what is unsafe."""

import ctypes
import os
import shutil
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.fault_points import Point, enumerate_faults, points, run_with_fault

OLD, NEW = "the old text", "the new text, which is longer"


def replace(folder):
    """Replaces a file safely."""
    with (folder / "text.new").open("w") as file:
        file.write(NEW)
        file.flush()
        os.fsync(file.fileno())
    (folder / "text.new").rename(folder / "text")


def test_the_points_are_the_calls_that_change_files_below_the_folder(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "text").write_text(OLD)

    def act():
        os.write(2, b"")
        (tmp_path / "elsewhere").write_text("not counted")
        (folder / "text").read_text()
        replace(folder)

    assert points(act, folder) == [
        Point("openat", "text.new"),
        Point("write", "text.new"),
        Point("fsync", "text.new"),
        Point("rename", "text"),
    ]
    assert (folder / "text").read_text() == NEW


def write_by_the_c_library(folder):
    libc = ctypes.CDLL(None)
    libc.fopen.restype = ctypes.c_void_p
    libc.fclose.argtypes = [ctypes.c_void_p]
    libc.fputs.argtypes = [ctypes.c_char_p, ctypes.c_void_p]
    file = libc.fopen(bytes(folder / "text"), b"w")
    libc.fputs(b"text", file)
    libc.fclose(file)


def write_in_a_thread(folder):
    thread = threading.Thread(target=lambda: (folder / "text").write_text(NEW))
    thread.start()
    thread.join()


def write_in_a_process(folder):
    subprocess.run([sys.executable, "-c", "open('text', 'w').write('text')"], cwd=folder)


def write_relative_to_a_descriptor(folder):
    handle = os.open(folder, os.O_RDONLY)
    os.close(os.open("text", os.O_CREAT | os.O_WRONLY, dir_fd=handle))
    os.rename("text", "other", src_dir_fd=handle, dst_dir_fd=handle)


def write_a_database(folder):
    with sqlite3.connect(folder / "text") as database:
        database.execute("create table a (b)")
    database.close()


@pytest.mark.parametrize(
    ("act", "calls"),
    [
        (write_by_the_c_library, ["openat", "write"]),
        (write_in_a_thread, ["openat", "write"]),
        (write_in_a_process, ["openat", "write"]),
        (write_relative_to_a_descriptor, ["openat", "renameat"]),
        (write_a_database, ["openat", "openat", "pwrite64"]),
    ],
)
def test_no_way_of_writing_goes_unseen(tmp_path, act, calls):
    found = [point.call for point in points(lambda: act(tmp_path), tmp_path)]
    assert found[: len(calls)] == calls


def test_nothing_is_lost_where_code_is_safe(tmp_path):
    outcomes = set()

    def prepare():
        shutil.rmtree(tmp_path)
        tmp_path.mkdir()
        (tmp_path / "text").write_text(OLD)

    def check(run):
        outcomes.add(run.outcome)
        assert (tmp_path / "text").read_text() == OLD
        if run.outcome == "raised":
            assert "OSError" in run.error

    tried = enumerate_faults(lambda: replace(tmp_path), tmp_path, prepare=prepare, check=check)
    assert tried == 4 + 1 + 4 + 3  # kill, torn, EIO; a rename needs no space
    assert outcomes == {"raised", "killed"}


@pytest.mark.parametrize(
    ("fault", "number", "left"),
    [("kill", 1, ""), ("torn", 0, NEW[: len(NEW) // 2]), ("EIO", 0, OLD), ("full", 1, "")],
)
def test_faults_leave_what_a_crash_or_a_full_disk_leaves(tmp_path, fault, number, left):
    (tmp_path / "text").write_text(OLD)
    act = lambda: (tmp_path / "text").write_text(NEW)
    run = run_with_fault(act, tmp_path, fault, number)
    assert run.hit is not None
    assert (tmp_path / "text").read_text() == left


def test_a_loss_is_found_and_names_its_point(tmp_path):
    def check(run):
        assert (tmp_path / "text").read_text() in (OLD, NEW)

    with pytest.raises(AssertionError) as caught:
        enumerate_faults(
            lambda: (tmp_path / "text").write_text(NEW),
            tmp_path,
            prepare=lambda: (tmp_path / "text").write_text(OLD),
            check=check,
        )
    assert "after kill at point 1, Point(call='write', file='text')" in caught.value.__notes__[0]


def test_half_a_write_at_the_end_of_a_file(tmp_path):
    path = tmp_path / "lines"
    path.write_text("first\n")

    def act():
        with path.open("a") as file:
            file.write("second\n")

    run_with_fault(act, tmp_path, "torn", 0)
    assert path.read_text() == "first\nsec"


def test_a_child_that_does_not_end_is_stopped(tmp_path):
    with pytest.raises(TimeoutError, match="does not end"):
        run_with_fault(threading.Event().wait, tmp_path, "kill", 0, limit_s=0.2)


def test_a_failure_without_a_fault_is_no_success(tmp_path):
    with pytest.raises(AssertionError, match="without a fault it failed"):
        enumerate_faults(
            Path(tmp_path, "missing").read_text, tmp_path, prepare=bool, check=lambda run: None
        )
