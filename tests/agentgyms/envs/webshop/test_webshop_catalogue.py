"""Catalogues: products by position, by asin and by search, in memory and in mapped files."""

import json
import math
import os
import shutil
import threading
from pathlib import Path

import numpy as np
import pytest

from agentgyms.core.errors import DataCorrupt
from agentgyms.data import datasets
from agentgyms.envs.webshop.catalogue.catalogue import Catalogue
from agentgyms.envs.webshop.catalogue.goal_columns import MAX_COMBINATIONS, ColumnsBuilder
from agentgyms.envs.webshop.catalogue.product_rows import decode, encode
from agentgyms.envs.webshop.goals.goal_list import GoalList
from agentgyms.envs.webshop.product import HumanInstruction, Product
from agentgyms.envs.webshop.search.text_index import IndexBuilder

LAMP = Product(
    asin="B0TESTLAMP",
    title="Walnut Lamp “Größe” \u2028 <b>",
    description="漆黒 🙂 \n \" ' \\",
    bullet_points=("Warm", ""),
    category="garden",
    query="lamps",
    product_category="Home › Lamps",
    attributes=("dimmable", "solid wood"),
    options={"size": ("s", "m", "l"), "color": ("oak", "red | blue")},
    pricing=(5.99, 12.99),
    image="https://example.org/lamp.jpg",
    instruction="Find me lamps",
    instruction_attributes=("dimmable", "solid wood"),
    human=(
        HumanInstruction("any lamp", (), ()),
        HumanInstruction("an oak lamp", ("solid wood",), ("oak",)),
    ),
)
ROPE = Product(
    asin="A9",
    title="Rope",
    description="",
    bullet_points=(),
    category="fashion",
    query="ropes",
    product_category="",
    attributes=("DUMMY_ATTR",),
    options={},
    pricing=(3.0,),
)
BARE = Product("B0", "Thread", "", (), "garden", "ropes", "", (), {"size": ()}, (100.0,))


@pytest.fixture
def stored(tmp_path, monkeypatch):
    """A folder with a catalogue of 300 products, built from official files."""
    monkeypatch.setenv("AGENTGYMS_DATA", str(tmp_path / "home"))
    items = [
        {
            "asin": f"B{number:05}",
            "name": f"Rope of colour {number}",
            "full_description": "x" * 300,
            "small_description": ["Hemp"],
            "pricing": f"${number}.50",
            "images": [],
            "category": "fashion",
            "query": "Ropes",
            "product_category": "Home › Ropes",
            "customization_options": "",
        }
        for number in range(300)
    ]
    (tmp_path / "items_shuffle_1000.json").write_text(json.dumps(items[::-1]))
    about = {"instruction": "Find me ropes", "instruction_attributes": ["strong"]}
    (tmp_path / "items_ins_v2_1000.json").write_text(json.dumps({"B00007": about}))
    return datasets.import_data("webshop", tmp_path, progress=False)


@pytest.mark.parametrize("product", [LAMP, ROPE, BARE], ids=lambda product: product.asin)
def test_a_product_survives_its_row(product):
    row = encode(product)
    assert row.count(b"\n") == 1
    assert decode(row) == product
    assert list(decode(row).options) == list(product.options)


def test_products_by_position_asin_and_search():
    catalogue = Catalogue.of([LAMP, ROPE, BARE], "three-1")
    assert (len(catalogue), catalogue.version, catalogue.folder) == (3, "three-1", None)
    assert list(catalogue) == [LAMP, ROPE, BARE] == [catalogue[number] for number in range(3)]
    assert [catalogue.position(asin) for asin in ("B0TESTLAMP", "A9", "B0")] == [0, 1, 2]
    assert catalogue.asins([2, 0]) == ["B0", "B0TESTLAMP"]
    assert catalogue.search("a walnut lamp") == [0]
    assert catalogue.search("nothing of the sort") == []


@pytest.mark.parametrize(
    "asin",
    ["", "B", "B0TESTLAM", "B0TESTLAMPS", "b0", "B0\0", "ß", "漆黒漆黒", "\ud800", "Z" * 9999],
)
def test_what_is_no_asin_has_no_position(asin):
    assert Catalogue.of([LAMP, ROPE, BARE], "three-1").position(asin) is None
    assert Catalogue.of([], "none").position(asin) is None


@pytest.mark.parametrize("position", [-1, 3, 10**20])
def test_a_position_outside_the_catalogue(position):
    with pytest.raises(IndexError, match=f"no product {position}: expected 0 to 2"):
        Catalogue.of([LAMP, ROPE, BARE], "three-1")[position]


def test_columns_by_hand():
    catalogue = Catalogue.of([LAMP, ROPE, BARE], "three-1")
    columns = catalogue.columns
    nan = math.nan
    assert np.array_equal(catalogue.pricing, [[5.99, 12.99], [3, nan], [100, nan]], equal_nan=True)
    assert columns.num_combinations.tolist() == [6, 1, 0]
    assert catalogue.categories == ("garden", "fashion")
    assert columns.category.tolist() == [0, 1, 0]
    assert columns.attribute_offset.tolist() == [0, 2, 2, 2]
    assert columns.attribute.tolist() == [0, 1]
    assert columns.human_offset.tolist() == [0, 1, 1, 1]
    assert columns.human_number.tolist() == [1]
    assert columns.human_attribute_offset.tolist() == [0, 1]
    assert columns.human_attribute.tolist() == [0]


BARE_FIELDS = ("B0", "Thread", "", (), "garden", "ropes", "", ())


def test_combinations_that_no_integer_holds_are_capped():
    values = tuple(map(str, range(50)))
    builder = ColumnsBuilder()
    builder.add(Product(*BARE_FIELDS, {str(n): values for n in range(20)}, (1.0,)))
    assert builder.finish().num_combinations.tolist() == [MAX_COMBINATIONS]


def test_a_stored_catalogue_equals_one_in_memory(stored):
    catalogue = Catalogue.open(stored)
    in_memory = Catalogue.of(list(catalogue), catalogue.version)
    assert len(catalogue) == 300
    assert catalogue.folder == stored
    for name, column in catalogue.columns._asdict().items():
        assert np.array_equal(column, getattr(in_memory.columns, name), equal_nan=True), name
    for number in range(300):
        assert catalogue.position(f"B{number:05}") == 299 - number
    for query in ("rope", "colour 17", "hemp", "x" * 300, "zzz"):
        assert catalogue.search(query) == in_memory.search(query)
        assert catalogue.index.search(query) == in_memory.index.search(query)


def test_large_arrays_are_mapped_read_only(stored, monkeypatch):
    monkeypatch.setattr("agentgyms.envs.webshop.catalogue.files._MIN_MAPPED_BYTES", 100)
    pricing = Catalogue.open(stored).pricing
    assert isinstance(pricing, np.memmap)
    with pytest.raises(ValueError, match="read-only"):
        pricing[0, 0] = 1


def test_many_threads_read_at_once(stored):
    catalogue = Catalogue.open(stored)
    expected = list(catalogue), catalogue.index.search("rope hemp")
    wrong = []

    def read():
        found = [(list(catalogue), catalogue.index.search("rope hemp")) for _ in range(5)]
        wrong.extend(one for one in found if one != expected)

    threads = [threading.Thread(target=read) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def files(folder):
    return [path for path in sorted(folder.rglob("*")) if path.is_file()]


def test_a_file_that_is_cut_off_or_missing_is_named(stored, tmp_path):
    for number, original in enumerate(files(stored)):
        copy = tmp_path / f"copy-{number}"
        shutil.copytree(stored, copy)
        file = copy / original.relative_to(stored)
        file.write_bytes(file.read_bytes()[:-1])
        with pytest.raises(DataCorrupt, match=r"import"):
            Catalogue.open(copy)
        file.unlink()
        with pytest.raises(DataCorrupt, match=r"import"):
            Catalogue.open(copy)


def rewrite(folder, **fields):
    path = folder / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | fields))


def test_another_format_is_refused(stored):
    rewrite(stored, format=0)
    with pytest.raises(DataCorrupt, match=r"format 0, this version reads 1: import it again"):
        Catalogue.open(stored)


@pytest.mark.parametrize("field", ["version", "categories"])
def test_a_manifest_without_a_field(stored, field):
    manifest = json.loads((stored / "manifest.json").read_text())
    del manifest[field]
    (stored / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(DataCorrupt, match="import"):
        Catalogue.open(stored)


@pytest.mark.parametrize(
    "name", ["asin", "asin_order", "product_offset", "pricing", "human_offset"]
)
def test_arrays_of_the_wrong_length_or_kind(stored, name):
    file = stored / f"{name}.npy"
    for array in (np.load(file)[:-1], np.array(["x", None], object)):
        np.save(file, array, allow_pickle=True)
        manifest = json.loads((stored / "manifest.json").read_text())
        manifest["files"][file.name][0] = file.stat().st_size
        rewrite(stored, files=manifest["files"])
        with pytest.raises(DataCorrupt, match="import"):
            Catalogue.open(stored)


def test_a_damaged_row(stored):
    raw = bytearray((stored / "products.jsonl").read_bytes())
    raw[0] ^= 1
    (stored / "products.jsonl").write_bytes(raw)
    with pytest.raises(DataCorrupt, match=r"products.jsonl, bytes 0 to \d+: damaged .*import"):
        Catalogue.open(stored)[0]


def test_headers_of_arrays_that_end_in_no_bracket(stored):
    for name in ("category.npy", "index/rank.npy", "goals-synthetic/order.npy"):
        whole = (stored / name).read_bytes()
        (stored / name).write_bytes(whole.replace(b"}", b" ", 1))
        with pytest.raises(DataCorrupt, match="import"):
            GoalList.of(Catalogue.open(stored))
        (stored / name).write_bytes(whole)


def test_an_order_of_asins_that_leads_nowhere(stored):
    np.save(stored / "asin_order.npy", np.load(stored / "asin_order.npy") + 300)
    with pytest.raises(DataCorrupt, match="asin_order.npy .*import"):
        Catalogue.open(stored).position("B00007")


def test_goals_of_products_that_are_not_there(stored):
    file = stored / "goals-synthetic" / "position.npy"
    for position in (-1, len(Catalogue.open(stored))):
        array = np.load(file)
        array[-1] = position
        np.save(file, array)
        with pytest.raises(DataCorrupt, match="products that the catalogue lacks"):
            GoalList.of(Catalogue.open(stored))


def test_the_index_of_another_catalogue(stored):
    rank = np.load(stored / "index" / "rank.npy")
    builder = IndexBuilder(stored / "index")
    for number in range(len(rank) + 1):
        builder.add(f"rope {number}")
    builder.finish([str(number) for number in range(len(rank) + 1)])
    files = json.loads((stored / "manifest.json").read_text())["files"]
    for name in files:
        files[name][0] = (stored / name).stat().st_size
    rewrite(stored, files=files)
    with pytest.raises(DataCorrupt, match="index .* documents, expected"):
        Catalogue.open(stored)


# --- the official products ----------------------------------------------------------------------


@pytest.mark.data
def test_official_products_equal_those_that_the_original_loads(tmp_path, monkeypatch):
    source, cases = os.environ.get("AGENTGYMS_TEST_DATA"), os.environ.get("AGENTGYMS_TEST_CASES")
    if not source or not Path(source, "webshop", "items_shuffle_1000.json").is_file():
        pytest.skip("AGENTGYMS_TEST_DATA names no folder with webshop/items_shuffle_1000.json")
    if not cases or not Path(cases, "webshop", "reward_cases.json").is_file():
        pytest.skip("AGENTGYMS_TEST_CASES names no folder with webshop/reward_cases.json")
    monkeypatch.setenv("AGENTGYMS_DATA", str(tmp_path / "home"))
    folder = datasets.import_data("webshop", Path(source, "webshop"), progress=False)
    catalogue = Catalogue.open(folder)
    assert len(catalogue) == 1000
    parts = datasets.verify("webshop", progress=False).parts
    assert (parts["synthetic"].num_items, parts["human"].num_items) == (6910, 13)
    recorded = json.loads(Path(cases, "webshop", "reward_cases.json").read_text(encoding="utf-8"))
    assert len(recorded["products"]) > 200
    for asin, expected in recorded["products"].items():
        position = catalogue.position(asin)
        assert position is not None
        assert fields_of(catalogue[position]) == expected
        assert list(catalogue[position].options) == list(expected["options"])


def fields_of(product):
    """A product with the keys of the original."""
    return {
        "asin": product.asin,
        "name": product.title,
        "query": product.query,
        "category": product.category,
        "product_category": product.product_category,
        "Title": product.title,
        "Description": product.description,
        "BulletPoints": list(product.bullet_points),
        "Attributes": list(product.attributes),
        "options": {name: list(values) for name, values in product.options.items()},
        "Price": product.price_text,
        "pricing": list(product.pricing),
    }
