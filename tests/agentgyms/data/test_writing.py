"""Files on a full disk, links, pipes: the old content or the new one, and whole lines."""

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from small_disks import PAGE, small_disk

from agentgyms.data import writing

LARGE = "x" * (4 * PAGE)


@pytest.mark.parametrize("write", [writing.write, writing.write_named])
def test_a_full_disk_keeps_the_old_file_and_nothing_else(tmp_path, write):
    with small_disk(tmp_path / "disk", 3) as disk:
        write(disk / "file", "old")
        with pytest.raises(OSError, match="No space left|File too large"):
            write(disk / "file", LARGE)
        assert {path.name: path.read_text() for path in disk.iterdir()} == {"file": "old"}
        write(disk / "file", "new")
        assert (disk / "file").read_text() == "new"


def test_an_interruption_keeps_the_old_file(tmp_path):
    file = tmp_path / "file"
    file.write_text("old")

    def write_half():
        with writing.replacing(file) as new:
            new.write(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_half()
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"file": "old"}


def test_a_file_that_a_user_names_may_be_a_link_and_keeps_its_mode(tmp_path):
    (tmp_path / "file").touch(0o640)
    (tmp_path / "link").symlink_to("file")
    writing.write_named(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_text() == "new"
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o640


def test_a_file_of_our_own_replaces_a_link_and_a_left_part_of_a_stranger_is_not_followed(tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("mine")
    (tmp_path / "table.md").symlink_to(victim)
    (tmp_path / "table.md.partial").symlink_to(victim)
    writing.write(tmp_path / "table.md", "table")
    assert victim.read_text() == "mine"
    assert not (tmp_path / "table.md").is_symlink()
    assert (tmp_path / "table.md").read_text() == "table"


def test_devices_and_pipes_are_written_to_as_they_are(tmp_path):
    writing.write_named(Path(os.devnull), "gone")
    assert Path(os.devnull).is_char_device()
    pipe, read = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()))
    reader.start()
    writing.write_named(pipe, "text")
    reader.join()
    assert (read, pipe.is_fifo()) == (["text"], True)


def test_the_standard_output_may_be_named(tmp_path):
    code = "from agentgyms.data import writing; from pathlib import Path; import sys\n"
    code += "writing.write_named(Path('/dev/stdout'), 'text')"
    with (tmp_path / "out").open("w") as out:
        subprocess.run([sys.executable, "-c", code], stdout=out, check=True)
    assert (tmp_path / "out").read_text() == "text"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_text_that_a_full_disk_cuts_off_is_taken_away_again(tmp_path):
    with small_disk(tmp_path / "disk", 2) as disk, writing.AppendedFile(disk / "file") as file:
        assert file.append(b"one\n") == 0
        with pytest.raises(OSError, match="No space left|File too large") as raised:
            file.append(LARGE.encode())
        assert raised.value.filename == str(disk / "file")
        assert file.append(b"two\n", wait=True) == 4
        assert (disk / "file").read_bytes() == b"one\ntwo\n"


def test_a_deleted_file_takes_no_more_lines(tmp_path):
    with writing.AppendedFile(tmp_path / "file") as file:
        (tmp_path / "file").unlink()
        with pytest.raises(FileNotFoundError):
            file.append(b"lost\n")
        (tmp_path / "file").touch()
        with pytest.raises(FileNotFoundError, match="another file"):
            file.append(b"lost\n")


def is_json(line):
    try:
        return bool(json.loads(line))
    except ValueError:
        return False


@pytest.mark.parametrize("longest", [2, 1 << 16, 200_000])
@pytest.mark.parametrize(
    ("tail", "kept"),
    [
        ("", ""),
        ("[1]", "[1]\n"),
        ("[1", ""),
        ("head\n", ""),
        ("head\n[1", ""),
        ("head\n[1]", "head\n[1]\n"),
    ],
)
def test_the_end_of_an_interrupted_file_is_mended(tmp_path, longest, tail, kept):
    whole = f"[{'2' * longest}]\n"
    (tmp_path / "file").write_text(whole + tail)
    with writing.AppendedFile(tmp_path / "file") as file:
        taken = file.mend(lambda line: is_json(line.decode()), lambda line: line == b"head\n")
        assert taken == max(0, len(tail) - len(kept))
        file.append(b"[3]\n")
    assert (tmp_path / "file").read_text() == f"{whole}{kept}[3]\n"
    assert tail != "head\n[1]" or kept == "head\n[1]\n"


def test_several_processes_append_whole_lines_to_one_file(tmp_path):
    code = (
        "import sys; from pathlib import Path; from agentgyms.data.writing import AppendedFile\n"
        "with AppendedFile(Path(sys.argv[1])) as file:\n"
        "    for n in range(50): file.append(sys.argv[2].encode() * 9000 + b'\\n')"
    )
    started = [
        subprocess.Popen([sys.executable, "-c", code, str(tmp_path / "file"), name])
        for name in "ab"
    ]
    assert [process.wait() for process in started] == [0, 0]
    lines = (tmp_path / "file").read_text().splitlines()
    assert sorted(lines) == ["a" * 9000] * 50 + ["b" * 9000] * 50
