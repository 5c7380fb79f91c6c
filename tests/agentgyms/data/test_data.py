"""Data sets: imports, fetches, manifests, damage."""

import io
import json
import lzma
import tarfile
import zipfile
from pathlib import Path

import pytest
from click.testing import CliRunner
from file_server import serve

from agentgyms.cli import doctor
from agentgyms.cli.main import main
from agentgyms.core.errors import BadOption, DataCorrupt, DataMissing
from agentgyms.data import datasets
from agentgyms.data.datasets import differences
from agentgyms.data.manifests import Item, Part, read_manifest, summarize
from agentgyms.envs.alfworld.env import ALFWorldEnv
from agentgyms.envs.alfworld.generated import generator
from agentgyms.envs.alfworld.generated.writer import game_fields
from agentgyms.envs.alfworld.official.dataset import DATA_SET


@pytest.fixture
def server():
    with serve() as handler:
        yield handler


@pytest.fixture
def home(tmp_path, monkeypatch):
    """An empty data home."""
    monkeypatch.setenv("AGENTGYMS_DATA", str(tmp_path / "home"))
    monkeypatch.delenv("AGENTGYMS_ALFWORLD_DATA_URL", raising=False)
    return tmp_path / "home"


# --- imports ------------------------------------------------------------------------------------

NAMES = {
    f"{split}/pick_and_place_simple-Mug-None-Shelf-{i}/trial_T{i}/game.tw-pddl": task
    for i, (split, task) in enumerate(
        [
            ("train", "small-train-pick-0000"),
            ("train", "small-train-pick-0001"),
            ("valid_seen", "small-valid_seen-pick-0000"),
            ("valid_unseen", "small-valid_unseen-pick-0000"),
        ]
    )
}


@pytest.fixture(scope="module")
def games() -> dict[str, bytes]:
    """Game files by name, as the official archive has them."""
    return {
        f"json_2.1.1/{name}": json.dumps(game_fields(generator.generate(task), task)).encode()
        for name, task in NAMES.items()
    } | {"json_2.1.1/valid_train/t/t/game.tw-pddl": b"unused", "json_2.1.1/notes.txt": b"x"}


def zipped(files, path: Path) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


def tarred(files, path: Path) -> Path:
    with tarfile.open(path, "w:" + path.suffix.removeprefix(".")) as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return path


def folder(files, path: Path) -> Path:
    for name, content in files.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(content)
    return path


SOURCES = {
    "zip": lambda files, path: zipped(files, path / "games.zip"),
    "tar.xz": lambda files, path: tarred(files, path / "games.tar.xz"),
    "tar.gz": lambda files, path: tarred(files, path / "games.tar.gz"),
    "above": lambda files, path: folder(files, path / "games"),
    "inside": lambda files, path: folder(files, path / "games") / "json_2.1.1",
}


def take(path, **kwargs):
    return datasets.import_data("alfworld", path, allow_other=True, progress=False, **kwargs)


@pytest.mark.parametrize("kind", SOURCES)
def test_every_kind_of_source_gives_the_same_data_set(kind, games, tmp_path, home):
    found = take(SOURCES[kind](games, tmp_path))
    assert found == datasets.find("alfworld") == home / "alfworld"
    files = {p.relative_to(found).as_posix() for p in found.rglob("*") if p.is_file()}
    assert files == {*NAMES, "manifest.json"}
    (status,) = [s for s in datasets.status() if s.name == "alfworld"]
    assert {split: part.num_items for split, part in status.parts.items()} == {
        "train": 2,
        "valid_seen": 1,
        "valid_unseen": 1,
    }
    items = [DATA_SET.describe(name, games[f"json_2.1.1/{name}"]) for name in NAMES]
    assert status.parts == summarize(items)
    assert "train has 2 items" in status.differences[0]
    assert "the release has 3553" in status.differences[0]
    assert datasets.verify("alfworld", progress=False) == status
    assert [path.name for path in home.iterdir()] == ["alfworld"]


def test_the_digest_ignores_how_the_json_is_written(games):
    name, content = next(iter(games.items()))
    other = json.dumps(json.loads(content), indent=3).encode()
    name = DATA_SET.keep(name)
    assert DATA_SET.describe(name, content) == DATA_SET.describe(name, other)


def test_another_data_set_is_refused_with_counts_and_digests(games, tmp_path, home):
    path = SOURCES["zip"](games, tmp_path)
    with pytest.raises(DataCorrupt) as e:
        datasets.import_data("alfworld", path, progress=False)
    for words in ("train has 2 items", "the release has 3553", "4ec0cbfaaecee1df", "--allow-other"):
        assert words in str(e.value)
    assert list(home.iterdir()) == []


@pytest.mark.parametrize("kind", ["zip", "tar.xz", "tar.gz"])
def test_a_cut_off_archive_changes_nothing(kind, games, tmp_path, home):
    good = take(SOURCES[kind](games, tmp_path))
    before = (good / "manifest.json").read_bytes()
    path = SOURCES[kind](games, tmp_path)
    raw = path.read_bytes()
    for length in (len(raw) * 9 // 10, len(raw) // 2, 40):
        path.write_bytes(raw[:length])
        with pytest.raises(DataCorrupt):
            take(path)
        assert (good / "manifest.json").read_bytes() == before
        assert [path.name for path in home.iterdir()] == ["alfworld"]


def test_a_flipped_byte_in_an_archive_is_noticed(games, tmp_path, home):
    path = SOURCES["zip"](games, tmp_path)
    raw = bytearray(path.read_bytes())
    raw[2000] ^= 0xFF
    path.write_bytes(raw)
    with pytest.raises(DataCorrupt, match=r"damaged.*get it again"):
        take(path)


@pytest.mark.parametrize("kind", ["tar", "tar.xz"])
def test_a_tar_whose_header_is_damaged_or_that_just_stops(kind, games, tmp_path, home):
    plain = bytearray(tarred(games, tmp_path / "games.tar").read_bytes())
    with tarfile.open(tmp_path / "games.tar") as archive:
        offset = archive.getmembers()[2].offset
    flipped = bytearray(plain)
    flipped[offset + 10] ^= 0xFF
    for raw in (flipped, plain[:offset]):
        path = tmp_path / f"bad.{kind}"
        path.write_bytes(lzma.compress(raw) if kind == "tar.xz" else raw)
        with pytest.raises(DataCorrupt, match="before the end of the archive; get it again"):
            take(path)
    assert list(home.iterdir()) == []


@pytest.mark.parametrize(
    ("place", "value", "reason"), [(6, 1, "encrypted"), (8, 99, "compression method")]
)
def test_a_zip_that_cannot_be_unpacked_here(games, tmp_path, home, place, value, reason):
    path = SOURCES["zip"](games, tmp_path)
    raw = bytearray(path.read_bytes())
    for signature, shift in ((b"PK\x03\x04", 0), (b"PK\x01\x02", 2)):
        raw[raw.index(signature) + place + shift] = value
    path.write_bytes(raw)
    with pytest.raises(DataCorrupt, match=rf"game\.tw-pddl in .* cannot be read: .*{reason}"):
        take(path)


@pytest.mark.parametrize("kind", ["zip", "tar.gz", "above"])
def test_a_game_that_is_there_twice_is_refused(kind, games, tmp_path, home):
    twice = games | {f"copy/{name}": content for name, content in games.items()}
    with pytest.raises(DataCorrupt, match=r"holds .*game\.tw-pddl twice"):
        take(SOURCES[kind](twice, tmp_path))


def test_a_damaged_game_is_named(games, tmp_path, home):
    name = next(iter(games))
    with pytest.raises(DataCorrupt, match=r"game\.tw-pddl in .* is damaged: it is no whole JSON"):
        take(zipped(games | {name: games[name][:-9]}, tmp_path / "games.zip"))
    assert list(home.iterdir()) == []


@pytest.mark.parametrize("nothing", [{"json_2.1.1/readme": b"x"}, {}])
def test_a_source_without_games(nothing, tmp_path, home):
    with pytest.raises(DataCorrupt, match="has no file of alfworld"):
        take(zipped(nothing, tmp_path / "games.zip"))


def test_what_is_neither_folder_nor_archive(tmp_path, home):
    (tmp_path / "file").write_bytes(b"x")
    with pytest.raises(DataCorrupt, match="neither a folder nor a whole"):
        take(tmp_path / "file")
    with pytest.raises(DataMissing, match="there is no file or folder"):
        take(tmp_path / "nothing")


def test_links_and_names_that_climb_out_are_never_followed(games, tmp_path, home):
    path = tmp_path / "evil.tar.gz"
    game = "train/../evil/game.tw-pddl"
    with tarfile.open(path, "w:gz") as archive:
        link = tarfile.TarInfo("train/link/trial/game.tw-pddl")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
        member = tarfile.TarInfo(game)
        member.size = 2
        archive.addfile(member, io.BytesIO(b"{}"))
    with pytest.raises(DataCorrupt, match="outside its folder"):
        take(path)
    assert not (tmp_path / "evil").exists()


def test_an_import_replaces_the_data_set(games, tmp_path, home):
    take(SOURCES["zip"](games, tmp_path))
    fewer = {name: content for name, content in games.items() if "/train/" not in name}
    found = take(zipped(fewer, tmp_path / "fewer.zip"))
    assert not (found / "train").exists()
    assert set(datasets.status()[0].parts) == {"valid_seen", "valid_unseen"}


# --- fetching -----------------------------------------------------------------------------------


def test_fetch_downloads_and_imports(games, tmp_path, home, server, monkeypatch):
    server.files = {"/a/games.zip": SOURCES["zip"](games, tmp_path).read_bytes()}
    server.cut, server.cuts = 3000, 1
    monkeypatch.setenv("AGENTGYMS_ALFWORLD_DATA_URL", f"{server.url}/a/games.zip")
    found = datasets.fetch("alfworld", allow_other=True, progress=False)
    assert len(read_manifest(found)["files"]) == len(NAMES)
    assert not list((home / "downloads").iterdir())


def test_a_failed_fetch_keeps_the_data_set(games, tmp_path, home, server, monkeypatch):
    good = take(SOURCES["zip"](games, tmp_path))
    before = {path: path.stat().st_mtime_ns for path in good.rglob("*")}
    monkeypatch.setenv("AGENTGYMS_ALFWORLD_DATA_URL", f"{server.url}/nothing.zip")
    with pytest.raises(DataMissing, match="404"):
        datasets.fetch("alfworld", progress=False)
    server.files = {"/games.zip": b"not a zip"}
    monkeypatch.setenv("AGENTGYMS_ALFWORLD_DATA_URL", f"{server.url}/games.zip")
    with pytest.raises(DataCorrupt):
        datasets.fetch("alfworld", progress=False)
    assert {path: path.stat().st_mtime_ns for path in good.rglob("*")} == before
    assert not list((home / "downloads").iterdir())


def test_the_official_address_is_the_release():
    assert DATA_SET.url.endswith("/releases/download/0.4.0/json_2.1.2_tw-pddl.zip")
    assert {split: part.num_items for split, part in DATA_SET.parts.items()} == {
        "train": 3553,
        "valid_seen": 140,
        "valid_unseen": 134,
    }


# --- what is here -------------------------------------------------------------------------------


def test_changed_and_missing_files_are_found(games, tmp_path, home):
    found = take(SOURCES["zip"](games, tmp_path))
    first, second, *_ = sorted(NAMES)
    (found / first).write_bytes(b"{}")
    (found / second).unlink()
    with pytest.raises(DataCorrupt) as e:
        datasets.verify("alfworld", progress=False)
    assert f"{first} was changed" in str(e.value)
    assert f"{second} is missing" in str(e.value)


@pytest.mark.parametrize(
    "damage",
    [
        b"",
        b"[]",
        b"\xff",
        b'{"splits": {}}',
        b'{"splits": 3, "files": {}}',
        b'{"splits": {"train": ["x", 1]}, "files": {}}',
        b'{"splits": {}, "files": []}',
        b'{"splits": {}, "files": {"a": 3}}',
        b'{"splits": {}, "files": {"a": ["x", "y"]}}',
        b'{"splits": {}, "files": {"a": [1, "y", 2]}}',
    ],
)
def test_a_damaged_manifest_is_told(games, tmp_path, home, damage):
    found = take(SOURCES["zip"](games, tmp_path))
    (found / "manifest.json").write_bytes(damage)
    status = next(status for status in datasets.status() if status.name == "alfworld")
    assert (status.folder, status.parts) == (found, {})
    assert "import the data set again" in status.damage
    for use in (
        lambda: datasets.verify("alfworld", progress=False),
        lambda: ALFWorldEnv(source="official"),
    ):
        with pytest.raises(DataCorrupt, match="import the data set again"):
            use()
    (finding,) = [one for one in doctor.examine() if one.subject == "data: alfworld"]
    assert not finding.ok
    assert "import the data set again" in finding.found
    assert status.damage in CliRunner().invoke(main, ["data", "list"]).output


def test_a_manifest_with_a_file_that_is_no_game(games, tmp_path, home):
    found = take(SOURCES["zip"](games, tmp_path))
    manifest = read_manifest(found) | {"files": {"train/x": [1, "y"]}}
    (found / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(DataCorrupt, match="lists 'train/x': import the games again"):
        ALFWorldEnv(source="official")


def test_the_doctor_survives_a_home_that_is_no_folder(monkeypatch):
    monkeypatch.setenv("AGENTGYMS_DATA", "/dev/null")
    (finding,) = [one for one in doctor.examine() if one.subject == "data"]
    assert (finding.ok, "is no folder" in finding.found) == (False, True)


def test_what_is_not_here_is_missing(home):
    with pytest.raises(DataMissing, match=r"data fetch alfworld.*data import alfworld PATH"):
        datasets.find("alfworld")
    with pytest.raises(DataMissing):
        datasets.verify("alfworld")
    assert [status.folder for status in datasets.status() if status.name == "alfworld"] == [None]
    assert not home.exists()


def test_an_unknown_data_set(home):
    with pytest.raises(BadOption, match="expected one of alfworld"):
        datasets.find("alfred")


def test_home_is_the_users_cache_unless_told_otherwise(monkeypatch):
    monkeypatch.delenv("AGENTGYMS_DATA", raising=False)
    assert datasets.home().name == "agentgyms"
    monkeypatch.setenv("AGENTGYMS_DATA", "~/games")
    assert datasets.home() == Path.home() / "games"


def test_the_order_of_items_does_not_matter_and_their_contents_do():
    items = [Item("a", "x", "1"), Item("a", "y", "2"), Item("b", "x", "3")]
    parts = summarize(items)
    assert summarize(items[::-1]) == parts
    assert {split: part.num_items for split, part in parts.items()} == {"a": 2, "b": 1}
    assert summarize([Item("a", "x", "2"), Item("a", "y", "1"), items[2]])["a"] != parts["a"]


def test_differences_name_missing_and_additional_splits(home):
    found = differences(DATA_SET, {"train": DATA_SET.parts["train"], "extra": Part(3, "d")})
    assert [sentence.split()[0] for sentence in found] == ["extra", "valid_seen", "valid_unseen"]
    assert differences(DATA_SET, DATA_SET.parts) == ()
