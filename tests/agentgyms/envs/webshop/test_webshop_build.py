"""The build: official files to a catalogue; interruptions, damage, archives, commands."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from click.testing import CliRunner
from file_server import serve

from agentgyms.cli.main import main
from agentgyms.core.errors import DataCorrupt, DataMissing, EnvUnavailable
from agentgyms.data import datasets
from agentgyms.data.folders import resumable_folder
from agentgyms.envs.webshop.build import build as build_module
from agentgyms.envs.webshop.build import json_stream
from agentgyms.envs.webshop.build.json_stream import list_items, object_items
from agentgyms.envs.webshop.catalogue.catalogue import Catalogue
from agentgyms.envs.webshop.goals.goal_list import GoalList

ABOUT = {
    "B0TESTLAMP": {
        "attributes": ["dimmable", "solid wood"],
        "instruction": "Find me dimmable desk lamps",
        "instruction_attributes": ["dimmable"],
    },
    "B0TESTROPE": {},
}
PEOPLE = {
    "B0TESTROPE": [
        {
            "instruction": "i need a long rope.",
            "instruction_attributes": ["long"],
            "instruction_options": ["red | blue"],
        },
        {"instruction": "any rope", "instruction_attributes": [], "instruction_options": []},
    ]
}
LAMP = {
    "asin": "B0TESTLAMP",
    "name": "Walnut Lamp",
    "full_description": "Größer, ½ price & <cheap>",
    "small_description": ["Warm light", "Solid"],
    "pricing": "$1,034.50",
    "images": ["https://example.org/lamp.jpg", "x"],
    "category": "garden",
    "query": " Desk Lamps ",
    "product_category": "Home › Lamps",
    "customization_options": {
        "Color": [{"value": " Oak/Walnut "}, {"value": "漆黒", "image": None}],
        "Style": None,
    },
    "average_rating": 4.5,
}
ROPE = {
    **LAMP,
    "asin": "B0TESTROPE",
    "name": "Rope",
    "small_description": "Of hemp",
    "pricing": "$5.99 - $12.99 or $20",
    "images": [],
    "customization_options": "",
}


def plain(number):
    return {**ROPE, "asin": f"B0TEST{number:04}", "name": f"Rope No. {number}", "pricing": ""}


ITEMS = [LAMP, ROPE, *(plain(number) for number in range(48))]


@pytest.fixture
def home(tmp_path, monkeypatch):
    """An empty data home."""
    monkeypatch.setenv("AGENTGYMS_DATA", str(tmp_path / "home"))
    monkeypatch.delenv("AGENTGYMS_WEBSHOP_DATA_URL", raising=False)
    return tmp_path / "home"


def official(folder, items=ITEMS, about=ABOUT, people=PEOPLE):
    """Write items as the official files of the small catalogue."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "items_shuffle_1000.json").write_text(json.dumps(items, ensure_ascii=False))
    (folder / "items_ins_v2_1000.json").write_text(json.dumps(about))
    if people is not None:
        (folder / "items_human_ins.json").write_text(json.dumps(people))
    return folder


def take(path):
    return datasets.import_data("webshop", path, progress=False)


def contents(folder):
    """Everything in a folder, by name, but times."""
    return {
        file.relative_to(folder).as_posix(): file.read_bytes()
        for file in sorted(folder.rglob("*"))
        if file.is_file()
    }


def zipped(folder):
    path = folder.with_suffix(".zip")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in folder.iterdir():
            archive.write(file, f"data/{file.name}")
    return path


def tarred(folder):
    path = folder.with_suffix(".tar.gz")
    with tarfile.open(path, "w:gz") as archive:
        archive.add(folder, "data")
    return path


SOURCES = {
    "folder": lambda folder: folder,
    "above": lambda folder: folder.parent,
    "zip": zipped,
    "tar": tarred,
    "file": lambda folder: folder / "items_shuffle_1000.json",
}


# --- what is built ------------------------------------------------------------------------------


def test_products_are_cleaned_as_the_original_cleans_them(tmp_path, home):
    catalogue = Catalogue.open(take(official(tmp_path / "official")))
    lamp, rope, first = catalogue[0], catalogue[1], catalogue[2]
    assert lamp.asin == "B0TESTLAMP"
    assert (lamp.title, lamp.description) == ("Walnut Lamp", "Größer, ½ price & <cheap>")
    assert lamp.bullet_points == ("Warm light", "Solid")
    assert (lamp.query, lamp.category) == ("desk lamps", "garden")
    assert lamp.options == {"color": ("oak | walnut", "漆黒")}
    assert (lamp.pricing, lamp.price_text) == ((1034.5,), "$1034.5")
    assert lamp.image == "https://example.org/lamp.jpg"
    assert lamp.attributes == ("dimmable", "solid wood")
    assert lamp.instruction == "Find me dimmable desk lamps"
    assert lamp.instruction_attributes == ("dimmable",)
    assert (rope.pricing, rope.price_text) == ((5.99, 12.99), "$5.99 to $12.99")
    assert rope.bullet_points == ("Of hemp",)
    assert (rope.attributes, rope.image, rope.instruction) == (("DUMMY_ATTR",), "", "")
    assert [row.options for row in rope.human] == [("red | blue",), ()]
    assert (first.pricing, first.attributes) == ((100.0,), ("DUMMY_ATTR",))


@pytest.mark.parametrize("kind", SOURCES)
def test_every_kind_of_source_gives_the_same_files(kind, tmp_path, home):
    expected = contents(take(official(tmp_path / "first")))
    source = SOURCES[kind](official(tmp_path / "deep" / "official"))
    found = take(source)
    assert found == datasets.find("webshop") == home / "webshop"
    assert contents(found) == expected
    assert [path.name for path in home.iterdir()] == ["webshop"]


def test_the_manifest_tells_products_and_goals(tmp_path, home):
    take(official(tmp_path / "official"))
    status = datasets.verify("webshop", progress=False)
    assert {name: part.num_items for name, part in status.parts.items()} == {
        "products": 50,
        "synthetic": 2,
        "human": 1,
    }
    assert status.differences == ()
    listed = CliRunner().invoke(main, ["data", "list"]).output
    assert "products 50, synthetic 2, human 1 in" in listed


def test_the_version_follows_the_products(tmp_path, home):
    first = Catalogue.open(take(official(tmp_path / "a"))).version
    same = Catalogue.open(take(official(tmp_path / "b"))).version
    other = [{**LAMP, "pricing": "$3"}, *ITEMS[1:]]
    assert first == same != Catalogue.open(take(official(tmp_path / "c", other))).version


def test_the_stored_goals_are_those_made_in_memory(tmp_path, home):
    catalogue = Catalogue.open(take(official(tmp_path / "official")))
    in_memory = Catalogue.of(list(catalogue), catalogue.version)
    for kind in ("synthetic", "human"):
        stored, made = GoalList.of(catalogue, kind), GoalList.of(in_memory, kind)
        assert list(map(stored.__getitem__, range(len(stored)))) == [
            made[index] for index in range(len(made))
        ]


def test_items_that_the_original_passes_over(tmp_path, home):
    items = [
        LAMP,
        {**ROPE, "asin": "nan"},
        {**ROPE, "asin": "B0TESTTOOLONG"},
        {**ROPE, "asin": "B0TESTLAMP", "name": "again"},
        ROPE,
    ]
    catalogue = Catalogue.open(take(official(tmp_path / "official", items)))
    assert [product.title for product in catalogue] == ["Walnut Lamp", "Rope"]


def test_half_of_a_surrogate_pair_does_not_get_into_the_files(tmp_path, home):
    folder = official(tmp_path / "official", [LAMP])
    text = (folder / "items_shuffle_1000.json").read_text()
    (folder / "items_shuffle_1000.json").write_text(text.replace("Walnut Lamp", r"Lamp \ud83d!"))
    assert Catalogue.open(take(folder))[0].title == "Lamp \ufffd!"


def test_what_the_original_does_not_look_at_may_be_anything(tmp_path, home):
    lamp = {
        **LAMP,
        "images": ["https://example.org/lamp.jpg", None],
        "customization_options": {"Color": "", "Size": {}, "Style": []},
    }
    rope = {**ROPE, "images": [None]}
    people = {"B0TESTROPE": [{"instruction_attributes": []}, *PEOPLE["B0TESTROPE"]]}
    folder = official(tmp_path / "official", [lamp, rope], people=people)
    first, second = Catalogue.open(take(folder))
    assert first.image == "https://example.org/lamp.jpg"
    assert first.options == {"color": (), "size": (), "style": ()}
    assert second.image == ""
    assert [row.text for row in second.human] == ["", "i need a long rope.", "any rope"]


def test_combinations_are_counted_over_the_characters_that_are_stored(tmp_path, home):
    folder = official(tmp_path / "official", [])
    options = {
        half: [{"value": half + "1"}, {"value": half + "2"}] for half in ("\ud800", "\ud801")
    }
    lamp = {**LAMP, "customization_options": options}
    (folder / "items_shuffle_1000.json").write_text(json.dumps([lamp, ROPE]))
    catalogue = Catalogue.open(take(folder))
    num_values = [len(values) for values in catalogue[0].options.values()]
    assert num_values == [2]
    assert catalogue.columns.num_combinations[0] == 2


def test_the_whole_catalogue_goes_before_smaller_ones_unless_one_is_named(tmp_path, home):
    folder = official(tmp_path / "official")
    (folder / "items_shuffle.json").write_text(json.dumps([LAMP]))
    (folder / "items_ins_v2.json").write_text(json.dumps(ABOUT))
    assert len(Catalogue.open(take(folder))) == 1
    assert len(Catalogue.open(take(folder / "items_shuffle_1000.json"))) == 50
    (folder / "items_ins_v2_1000.json").unlink()
    assert len(Catalogue.open(take(folder / "items_shuffle_1000.json"))) == 50


# --- interruptions ------------------------------------------------------------------------------


def test_an_interrupted_build_leaves_nothing_and_begins_anew(tmp_path, home, monkeypatch):
    folder = official(tmp_path / "official")
    expected = contents(take(folder))
    (home / "webshop").rename(tmp_path / "away")
    made, real = [], build_module.product_of

    def interrupted(item, *args):
        if len(made) == 34:
            raise KeyboardInterrupt
        made.append(item["asin"])
        return real(item, *args)

    with monkeypatch.context() as patch:
        patch.setattr(build_module, "product_of", interrupted)
        with pytest.raises(KeyboardInterrupt):
            take(folder)
    assert len(made) == 34
    assert not (home / "webshop").exists()
    assert not [path for path in home.rglob("*") if path.is_file()]
    assert contents(take(folder)) == expected
    assert [path.name for path in home.iterdir()] == ["webshop"]


KILLED = """
import os, signal, sys
from agentgyms.data import datasets
from agentgyms.envs.webshop.build import build
real, made = build.product_of, []
def product_of(*args):
    made.append(1)
    if len(made) == 25:
        os.kill(os.getpid(), signal.SIGKILL)
    return real(*args)
build.product_of = product_of
datasets.import_data("webshop", sys.argv[1], progress=False)
"""


def test_a_killed_build_begins_anew(tmp_path, home):
    folder = official(tmp_path / "official")
    expected = contents(take(folder))
    (home / "webshop").rename(tmp_path / "away")
    root = str(Path(datasets.__file__).parents[2])
    run = subprocess.run(
        [sys.executable, "-c", KILLED, folder], env={**os.environ, "PYTHONPATH": root}
    )
    assert run.returncode == -signal.SIGKILL
    left = home / ".webshop-unfinished" / "new"
    assert left.is_dir()
    (left / "products.jsonl").write_bytes(b"half a li")
    assert not (home / "webshop").exists()
    assert contents(take(folder)) == expected
    assert [path.name for path in home.iterdir()] == ["webshop"]


def test_two_imports_at_once(tmp_path, home):
    home.mkdir()
    official(tmp_path / "official")
    with (
        resumable_folder(home / ".webshop-unfinished"),
        pytest.raises(EnvUnavailable, match="another process works in"),
    ):
        take(tmp_path / "official")
    assert len(Catalogue.open(take(tmp_path / "official"))) == 50


# --- damage -------------------------------------------------------------------------------------


def changed(**fields):
    return [LAMP, {**ROPE, **fields}]


def without(field):
    return [LAMP, {name: value for name, value in ROPE.items() if name != field}]


BAD_ITEMS = {
    "no object": ([LAMP, 17], "item 2 is '17': expected an object"),
    "no asin": (without("asin"), "item 2 has no field 'asin'"),
    "asin": (changed(asin=4), "item 2, field 'asin' is '4': expected a string"),
    "bytes in asin": (changed(asin="B\0"), "unprintable"),
    "no name": (without("name"), r"item 2 \(B0TESTROPE\) has no field 'name'"),
    "name": (changed(name=None), r"item 2 \(B0TESTROPE\), field 'name' is null"),
    "description": (changed(full_description=[]), "field 'full_description' is a list"),
    "bullets": (changed(small_description={}), "field 'small_description' is an object"),
    "a bullet": (changed(small_description=["a", 1]), "expected a list of strings"),
    "price": (changed(pricing="$1.2.3"), r"field 'pricing': found '\$1.2.3'"),
    "price without dollars": (changed(pricing="12"), "expected prices such as"),
    "price as a number": (changed(pricing=12.5), "expected prices such as"),
    "images": (changed(images="x"), "field 'images' is a string"),
    "options": (changed(customization_options=[1]), "'customization_options' is a list"),
    "values": (changed(customization_options={"Color": "red"}), r"\['Color'\] is a string"),
    "a value": (changed(customization_options={"C": [{"v": 1}]}), "objects with a text 'value'"),
    "nothing": ([], "holds no product"),
}


@pytest.mark.parametrize("case", BAD_ITEMS)
def test_a_bad_item_is_named_and_nothing_is_left(case, tmp_path, home):
    items, message = BAD_ITEMS[case]
    with pytest.raises(DataCorrupt, match=message):
        take(official(tmp_path / "official", items))
    assert list(home.iterdir()) == []


BAD_ABOUT = {
    "attributes": ({"B0TESTROPE": []}, None, "its attributes are a list"),
    "an attribute": ({"B0TESTROPE": {"attributes": [1]}}, None, "'attributes' is a list"),
    "instruction": ({"B0TESTROPE": {"instruction": 3}}, None, "'instruction' is '3'"),
    "people": ({}, {"B0TESTROPE": {}}, "human instructions are not a list"),
    "a person": ({}, {"B0TESTROPE": [{}]}, "has no field 'instruction'"),
    "a list": ([], None, r"items_ins_v2_1000.json, byte 0: found '\['"),
}


@pytest.mark.parametrize("case", BAD_ABOUT)
def test_bad_attributes_and_instructions_are_named(case, tmp_path, home):
    about, people, message = BAD_ABOUT[case]
    with pytest.raises(DataCorrupt, match=message):
        take(official(tmp_path / "official", about=about, people=people))
    assert list(home.iterdir()) == []


def test_a_damaged_source_keeps_the_catalogue_that_is_there(tmp_path, home):
    before = contents(take(official(tmp_path / "official")))
    file = tmp_path / "official" / "items_shuffle_1000.json"
    raw = file.read_bytes()
    for length in (0, 1, len(raw) // 2, len(raw) - 1):
        file.write_bytes(raw[:length])
        with pytest.raises(DataCorrupt, match=r"items_shuffle_1000.json, byte \d+: .*get the file"):
            take(tmp_path / "official")
        assert contents(home / "webshop") == before
        assert [path.name for path in home.iterdir()] == ["webshop"]


def test_what_is_missing_is_named(tmp_path, home):
    with pytest.raises(DataMissing, match="there is no file or folder"):
        take(tmp_path / "nothing")
    folder = official(tmp_path / "official")
    (folder / "items_ins_v2_1000.json").unlink()
    with pytest.raises(DataMissing, match=r"no items_ins_v2_1000.json beside .*setup.sh"):
        take(folder)
    with pytest.raises(DataMissing, match="is not a product file"):
        take(folder / "items_human_ins.json")
    (folder / "items_shuffle_1000.json").unlink()
    with pytest.raises(DataMissing, match="holds no products of WebShop"):
        take(folder)
    (tmp_path / "notes.txt").write_text("x")
    with pytest.raises(DataCorrupt, match="neither a folder nor a whole"):
        take(tmp_path / "notes.txt")


def test_messages_name_the_archive_that_was_unpacked(tmp_path, home):
    official(tmp_path / "bad", *BAD_ITEMS["name"][:1])
    for archive in (zipped(tmp_path / "bad"), tarred(tmp_path / "bad")):
        with pytest.raises(DataCorrupt) as damaged:
            take(archive)
        assert str(damaged.value).startswith(f"{archive}/items_shuffle_1000.json, item 2")
    (tmp_path / "other").mkdir()
    other = zipped(tmp_path / "other")
    with pytest.raises(DataMissing) as missing:
        take(other)
    assert str(missing.value).startswith(f"{other} holds no products")


@pytest.mark.parametrize("replaced", [True, False])
def test_a_kill_while_a_catalogue_is_replaced_loses_none(replaced, tmp_path, home):
    folder = official(tmp_path / "official")
    target = take(folder)
    before = contents(target)
    work = home / ".webshop-unfinished"
    work.mkdir()
    if replaced:  # killed while the old one was removed
        shutil.copytree(target, work / "old")
    else:  # killed before the new one was in place
        target.rename(work / "old")
    with pytest.raises(DataMissing, match="there is no file or folder"):
        take(tmp_path / "nothing")
    assert contents(target) == before
    work.mkdir()
    shutil.copytree(target, work / "old")
    assert contents(take(folder)) == before
    assert [path.name for path in home.iterdir()] == ["webshop"]


def test_a_file_that_is_there_twice(tmp_path, home):
    official(tmp_path / "both" / "a")
    official(tmp_path / "both" / "b")
    with pytest.raises(DataCorrupt, match="items_shuffle_1000.json exists twice"):
        take(tmp_path / "both")


def test_fetch_tells_what_to_get_by_hand(home):
    result = CliRunner().invoke(main, ["data", "fetch", "webshop"])
    assert isinstance(result.exception, DataMissing) or result.exit_code
    said = result.output + str(result.exception)
    for words in ("items_shuffle.json", "data import webshop PATH", "AGENTGYMS_WEBSHOP_DATA_URL"):
        assert words in said
    with pytest.raises(DataMissing, match="agentgyms data import webshop PATH"):
        datasets.find("webshop")


def test_fetch_from_an_address_of_ones_own(tmp_path, home, monkeypatch):
    archive = zipped(official(tmp_path / "official"))
    with serve() as server:
        server.files = {"/webshop.zip": archive.read_bytes()}
        monkeypatch.setenv("AGENTGYMS_WEBSHOP_DATA_URL", f"{server.url}/webshop.zip")
        found = datasets.fetch("webshop", progress=False)
    assert len(Catalogue.open(found)) == 50
    assert list((home / "downloads").iterdir()) == []


# --- JSON item by item --------------------------------------------------------------------------

VALUES = [{"a": "ü½漆🙂"}, [], "x" * 50, 12345678901, -1.5e10, True, None, {"b": [{"c": "\\u12"}]}]


@pytest.mark.parametrize("chunk_bytes", [1, 2, 3, 7, 64, 1 << 16])
@pytest.mark.parametrize("ascii_only", [True, False])
def test_items_do_not_depend_on_the_chunks(chunk_bytes, ascii_only, tmp_path):
    raw = json.dumps(VALUES, ensure_ascii=ascii_only, indent=1).encode()
    text = b" \n" + raw + b"\n"
    (tmp_path / "list.json").write_bytes(text)
    reads = list(list_items(tmp_path / "list.json", chunk_bytes=chunk_bytes))
    assert [read.value for read in reads] == VALUES
    for number, read in enumerate(reads):
        assert json.loads(text[: read.end] + b"]") == VALUES[: number + 1]
    keyed = {f"ß{number}": value for number, value in enumerate(VALUES)}
    (tmp_path / "object.json").write_text(json.dumps(keyed, ensure_ascii=ascii_only))
    found = object_items(tmp_path / "object.json", chunk_bytes=chunk_bytes)
    assert {read.key: read.value for read in found} == keyed


@pytest.mark.parametrize("empty", ["[]", " [ ] \n"])
def test_an_empty_list(empty, tmp_path):
    (tmp_path / "list.json").write_text(empty)
    assert list(list_items(tmp_path / "list.json")) == []


BAD_JSON = {
    b"": ("byte 0", "found the end of the file, expected a list of items"),
    b'{"a": 1}': ("byte 0", "expected a list of items"),
    b'["\xc3\xbc", 1': ("byte 8", "found the end of the file, expected ','"),
    b'["\xc3\xbc", {"a": ': ("byte 7", "the file ends within it"),
    b'["\xc3\xbc", "abc': ("byte 7", "the file ends within it"),
    b'["\xc3\xbc", {"a" 1}, 2, 3, 4, 5, 6, 7]': ("byte 12", "not JSON: Expecting ':'"),
    b"[1 2]": ("byte 3", "expected ',' or ']'"),
    b"[1,]": ("byte 3", "not JSON"),
    b"[1] 2": ("byte 4", "expected the end of the file"),
    b'["a\xff"]': ("byte 3", "not UTF-8"),
    b'["\xc3': ("byte 2", "not UTF-8"),
    b"[" * 200_000: ("byte 1", "RecursionError"),
    b"[" + b"9" * 5000 + b"]": ("byte 1", "ValueError"),
}


@pytest.mark.parametrize("raw", BAD_JSON, ids=lambda raw: raw[:20].decode("latin-1"))
@pytest.mark.parametrize("chunk_bytes", [1, 1 << 20])
def test_damage_is_found_at_its_byte(raw, chunk_bytes, tmp_path):
    (tmp_path / "list.json").write_bytes(raw)
    with pytest.raises(DataCorrupt) as e:
        list(list_items(tmp_path / "list.json", chunk_bytes=chunk_bytes))
    for words in BAD_JSON[raw]:
        assert words in str(e.value)


def test_a_missing_quote_does_not_read_the_whole_file(tmp_path, monkeypatch):
    monkeypatch.setattr(json_stream, "MAX_ITEM_CHARS", 1000)
    (tmp_path / "list.json").write_bytes(b'["' + b"a" * 10_000)
    with pytest.raises(DataCorrupt, match="longer than 1000 characters"):
        list(list_items(tmp_path / "list.json", chunk_bytes=100))


def test_a_key_that_is_no_string(tmp_path):
    (tmp_path / "object.json").write_text("{1: 2}")
    with pytest.raises(DataCorrupt, match="found the key 1, expected a string"):
        list(object_items(tmp_path / "object.json"))
