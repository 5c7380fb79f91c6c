"""Archives and files that are made to harm: a clear error, soon, and nothing is changed."""

import io
import json
import os
import random
import tarfile
import zipfile
from contextlib import suppress

import pytest

from agentgyms.core.errors import DataCorrupt
from agentgyms.data import archives, datasets
from agentgyms.data.archives import copy_files, read_files
from agentgyms.data.manifests import read_manifest
from agentgyms.data.users_files import parse_json
from agentgyms.envs.alfworld.generated import generator
from agentgyms.envs.alfworld.generated.writer import game_fields
from agentgyms.envs.alfworld.official.dataset import DATA_SET
from agentgyms.envs.alfworld.problem import parse_goal

GAME = "train/pick_and_place_simple-Mug-None-Shelf-1/trial_T/game.tw-pddl"
DEEP = "[" * 200_000 + "]" * 200_000


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("AGENTGYMS_DATA", str(tmp_path / "home"))
    return tmp_path / "home"


def take(path):
    return datasets.import_data("alfworld", path, allow_other=True, progress=False)


def zipped(path, name, content, method=zipfile.ZIP_DEFLATED):
    with zipfile.ZipFile(path, "w", method) as archive:
        archive.writestr(name, content)
    return path


def tarred(path, name, content, mode="w:gz", **options):
    with tarfile.open(path, mode, **options) as archive:
        member = tarfile.TarInfo(name)
        member.size = len(content)
        archive.addfile(member, io.BytesIO(content))
    return path


def one_game(**changes):
    task = "small-train-pick-0000"
    fields = game_fields(generator.generate(task), task) | changes
    return json.dumps(fields)


@pytest.mark.parametrize("pack", [zipped, tarred])
def test_a_small_archive_that_unpacks_to_much(pack, tmp_path, home, monkeypatch):
    path = pack(tmp_path / "archive", GAME, bytes(10 << 20))
    assert path.stat().st_size * 500 < 10 << 20
    monkeypatch.setattr(archives, "_ALWAYS_UNPACKED", 1 << 20)
    with pytest.raises(DataCorrupt, match="unpacks to more than 200 times its size"):
        take(path)
    with pytest.raises(DataCorrupt, match="unpacks to more than 200 times its size"):
        copy_files(path, lambda name: name, tmp_path / "target")
    assert sum(p.stat().st_size for p in tmp_path.rglob("target/*/*/*")) < 1 << 21
    assert list(home.iterdir()) == []


def test_what_is_passed_over_in_a_tar_counts(tmp_path, monkeypatch):
    path = tarred(tmp_path / "archive.tar.gz", "other", bytes(10 << 20))
    monkeypatch.setattr(archives, "_ALWAYS_UNPACKED", 1 << 20)
    with pytest.raises(DataCorrupt, match="unpacks to more than 200 times its size"):
        list(read_files(path, lambda name: None))


def test_a_file_that_is_too_long_for_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(archives, "_MAX_IN_MEMORY", 1 << 20)
    (tmp_path / "long").write_bytes(bytes((1 << 20) + 1))
    with pytest.raises(DataCorrupt, match="long in .* has more than 1 MiB"):
        list(read_files(tmp_path, lambda name: name))


@pytest.mark.parametrize("text", [DEEP, '{"a":' * 200_000 + "1" + "}" * 200_000])
def test_json_that_is_nested_too_deep(text, tmp_path, home):
    with pytest.raises(ValueError, match="nested too deep"):
        parse_json(text)
    with pytest.raises(DataCorrupt, match=r"game.tw-pddl in .* is damaged: .*nested too deep"):
        take(zipped(tmp_path / "games.zip", GAME, text))
    assert list(home.iterdir()) == []


@pytest.mark.parametrize("depth", [900, 990, 100_000])
def test_a_field_that_is_nested_deep(depth, tmp_path, home):
    text = one_game()[:-1] + ', "other": ' + "[" * depth + "]" * depth + "}"
    try:
        DATA_SET.describe(GAME, text.encode())
    except ValueError as e:
        assert "nested too deep" in str(e)  # noqa: PT017


def test_a_manifest_that_is_nested_too_deep(tmp_path):
    (tmp_path / "manifest.json").write_text(DEEP)
    with pytest.raises(DataCorrupt, match="nested too deep"):
        read_manifest(tmp_path)


@pytest.mark.parametrize(
    "goal",
    ["(and " * 10_000 + ")" * 10_000, "(not (= " * 10_000 + "))" * 10_000, "(" * 200 + ")" * 200],
)
def test_a_goal_that_is_nested_too_deep(goal, tmp_path, home):
    with pytest.raises(ValueError, match="nested deeper than 100 expressions"):
        parse_goal(goal)
    problem = f"(define (:init) (:goal {goal}))"
    with pytest.raises(DataCorrupt, match="its goal is nested deeper"):
        take(zipped(tmp_path / "games.zip", GAME, one_game(pddl_problem=problem)))


@pytest.mark.parametrize("letter", ["\udc80", chr(0xD800), "\n", "\x1b"])
def test_a_name_that_no_file_has(letter, tmp_path, home):
    name = GAME.replace("Mug", letter)
    path = tmp_path / "games.tar"
    tarred(path, name, one_game().encode(), "w", format=tarfile.GNU_FORMAT, errors="surrogatepass")
    with pytest.raises(DataCorrupt, match="is no name for a file"):
        take(path)
    assert list(home.iterdir()) == []


def test_a_name_with_a_zero(tmp_path):
    path = zipped(tmp_path / "zip", "a-b", b"")
    with pytest.raises(DataCorrupt, match="is no name for a file"):
        list(read_files(path, lambda name: name.replace("-", "\0")))


def test_what_is_no_regular_file_is_not_read(tmp_path, home):
    os.mkfifo(tmp_path / "pipe")
    for path in ("/dev/zero", "/dev/null", tmp_path / "pipe"):
        with pytest.raises(DataCorrupt, match="neither a file nor a folder|neither a folder nor"):
            take(path)
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "folder" / "game.tw-pddl")
    (tmp_path / "folder" / "zero").symlink_to("/dev/zero")
    assert list(read_files(tmp_path / "folder", lambda name: name)) == []


@pytest.mark.parametrize("seed", range(4))
def test_archives_with_changed_bytes(seed, tmp_path):
    chance = random.Random(seed)
    for number in range(60):
        method = (zipfile.ZIP_STORED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)[number % 3]
        kind = ("w", "w:bz2", "w:xz")[number % 3]
        if seed % 2:
            path = tarred(tmp_path / "archive", "a/b.txt", b"abc " * 99, kind)
        else:
            path = zipped(tmp_path / "archive", "a/b.txt", b"abc " * 99, method)
        raw = bytearray(path.read_bytes())
        for _ in range(chance.choice([1, 2, 5, 20])):
            raw[chance.randrange(len(raw))] = chance.randrange(256)
        path.write_bytes(raw)
        with suppress(DataCorrupt):
            list(read_files(path, lambda name: name))
