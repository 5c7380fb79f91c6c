"""The search: words, stems, the index in memory and on disk, and Lucene's ranking."""

import json
import math
import os
import random
import threading
from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentgyms.core.errors import BadOption, DataCorrupt, DataMissing
from agentgyms.envs.webshop.product import Product
from agentgyms.envs.webshop.search import postings, text_index
from agentgyms.envs.webshop.search.analyzer import STOP_WORDS, analyze
from agentgyms.envs.webshop.search.bm25 import LENGTHS, length_byte
from agentgyms.envs.webshop.search.index_merge import Merger
from agentgyms.envs.webshop.search.porter import stem
from agentgyms.envs.webshop.search.postings import Postings
from agentgyms.envs.webshop.search.text_index import IndexBuilder, TextIndex, document_text
from agentgyms.envs.webshop.search.tokenizer import LONGEST_TOKEN, tokens
from agentgyms.envs.webshop.storage.array_files import TABLE

WORDS = [
    "lamp", "lamps", "oak", "desk", "red", "blue", "running", "runner", "12v", "usb_c", "a.b",
    "don't", "café", "漆", "the", "of",
]  # fmt: skip
ENDINGS = [
    "ational", "tional", "enci", "anci", "izer", "bli", "alli", "entli", "eli", "ousli", "ization",
    "ation", "ator", "alism", "iveness", "fulness", "ousness", "aliti", "iviti", "biliti", "logi",
    "icate", "ative", "alize", "iciti", "ical", "ful", "ness", "al", "ance", "ence", "er", "ic",
    "able", "ible", "ant", "ement", "ment", "ent", "ion", "ou", "ism", "ate", "iti", "ous", "ive",
    "ize", "s", "es", "ies", "sses", "ed", "eed", "ing", "y", "e", "ll", "lle", "at", "bl", "iz",
]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        (" ,.-!? \n\t()[]<>/ ", []),
        ("two words", ["two", "words"]),
        ("o'clock rock’n’roll", ["o'clock", "rock’n’roll"]),  # WB6, WB7: quotes between letters
        ("'quoted' dogs' .net end.", ["quoted", "dogs", "net", "end"]),
        ("www.shop.org a:b a：b a·b", ["www.shop.org", "a:b", "a：b", "a·b"]),
        ("a,b a;b a-b a/b", ["a", "b", "a", "b", "a", "b", "a", "b"]),
        ("1.5 1,000 1;2 1'2", ["1.5", "1,000", "1;2", "1'2"]),  # WB11, WB12: between digits
        ("1:2 1.a a.1 1. .1", ["1", "2", "1", "a", "a", "1", "1", "1"]),
        ("3d mp3 5ghz7", ["3d", "mp3", "5ghz7"]),  # WB9, WB10
        ("a_b _a_ 1_2 __ カ_a", ["a_b", "_a_", "1_2", "カ_a"]),  # WB13a, WB13b
        ("e\u0301te\u0301 so\u00adft", ["e\u0301te\u0301", "so\u00adft"]),  # WB4
        ("_\u0e31", ["\u0e31"]),
        ("א'ב ג\"ד ה' \"ו", ["א'ב", 'ג"ד', "ה'", "ו"]),  # WB7a to WB7c
        ("桌灯 つくえ", ["桌", "灯", "つ", "く", "え"]),
        ("デスク カタア漢", ["デスク", "カタア", "漢"]),
        ("책상 램프", ["책상", "램프"]),
        ("โคมไฟ ไฟ", ["โคมไฟ", "ไฟ"]),
        ("１２３ａ", ["１２３ａ"]),
        ("™ 5® ★ →", ["™", "5", "®", "★"]),
        ("😀😀", ["😀", "😀"]),
        ("👍🏽 🏽", ["👍🏽", "🏽"]),
        ("👩\u200d💻 x\u200dy", ["👩\u200d💻", "x\u200dy"]),
        ("❤️ ❤", ["❤️", "❤"]),
        ("🇫🇷🇩🇪🇺", ["🇫🇷", "🇩🇪"]),  # WB15: in pairs; one alone is nothing
        ("#️⃣ *⃣ 1️⃣2 # *", ["#️⃣", "*⃣", "1️⃣2"]),
        ("🏴\U000e0067\U000e0062\U000e007f", ["🏴\U000e0067\U000e0062\U000e007f"]),
        ("Ⓜabc Ⓜ\u200d🚀", ["Ⓜabc", "Ⓜ\u200d🚀"]),  # a letter and an emoji at once
        ("a\ud800b \0c", ["a", "b", "c"]),
        ("☀x", ["☀", "x"]),
    ],
)
def test_texts_as_tokens(text, expected):
    assert tokens(text) == expected


def test_longest_token():
    assert tokens("a" * LONGEST_TOKEN) == ["a" * LONGEST_TOKEN]
    assert [len(part) for part in tokens("é" * (2 * LONGEST_TOKEN + 1))] == [255, 255, 1]
    assert [len(part) for part in tokens("𝒂" * 256)] == [127, 127, 2]  # two UTF-16 units each


@pytest.mark.parametrize("part", ["_", "_\u0e31", "\u200d", "😀\u200d", "a_", "1.", "#\u0301", "🇫"])
def test_long_texts_take_time_in_proportion(part):
    assert len("".join(tokens(part * 20_000))) <= 20_000 * len(part)


@given(st.text())
def test_tokens_stand_in_their_text_in_order(text):
    at = 0
    for token in tokens(text):
        at = text.index(token, at) + len(token)
        assert token
        assert " " not in token


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The cat's toys, and the DOGS’ toys", ["cat", "toi", "dog", "toi"]),
        ("Women's WOMEN'S women＇s", ["women", "women", "women"]),
        ("İ ΣΑΣ Straße", ["i", "σασ", "straße"]),  # one character to one, as Java
        ("of the with no", []),
        ("running runs usb usb-c is us", ["run", "run", "usb", "usb", "c", "us"]),
    ],
)
def test_texts_as_terms(text, expected):
    assert analyze(text) == expected


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("caresses", "caress"), ("ponies", "poni"), ("ties", "ti"), ("cats", "cat"),
        ("agreed", "agre"), ("feed", "feed"), ("plastered", "plaster"), ("sing", "sing"),
        ("conflated", "conflat"), ("hopping", "hop"), ("falling", "fall"), ("filing", "file"),
        ("happy", "happi"), ("sky", "sky"), ("relational", "relat"), ("digitizer", "digit"),
        ("possibly", "possibl"), ("analogy", "analog"), ("apology", "apolog"), ("hopeful", "hope"),
        ("adoption", "adopt"), ("replacement", "replac"), ("controlled", "control"),
        ("rate", "rate"), ("cease", "ceas"), ("as", "as"), ("toys", "toi"), ("syzygy", "syzygi"),
        ("12s", "12"), ("ärgerlich", "ärgerlich"), ("", ""), ("s", "s"),
    ],
)  # fmt: skip
def test_stems(word, expected):
    assert stem(word) == expected


def test_stems_are_those_of_the_author_of_the_algorithm():
    porter = pytest.importorskip("nltk.stem.porter", reason="nltk is not installed")
    reference = porter.PorterStemmer(porter.PorterStemmer.MARTIN_EXTENSIONS)
    rng = random.Random(3)
    for _ in range(8000):
        letters = rng.choices("aeiouybcdfglmnrstwxz", k=rng.randint(0, 5))
        word = "".join(letters + rng.choices(ENDINGS, k=rng.randint(0, 3)))
        assert stem(word) == reference.stem(word), word


def test_lengths_in_one_byte():
    assert LENGTHS[:43].tolist() == [*range(40), 40, 42, 44]  # exact below 40, then 4 bits
    assert (np.diff(LENGTHS) > 0).all()
    assert LENGTHS[length_byte(np.array([0, 39, 41, 55, 1000]))].tolist() == [0, 39, 40, 54, 984]


def build(texts, ids=None, folder=None, **kwargs):
    builder = IndexBuilder(folder, **kwargs)
    for text in texts:
        builder.add(text)
    return builder.finish(ids or [f"id{number:04}" for number in range(len(texts))])


def test_bm25_by_hand():
    index = build(["red lamp", "red red desk lamp oak", "blue chair"])
    # 3 documents of 9 terms: the mean length is 3. idf = ln(1 + (3 - df + .5) / (df + .5))
    red, desk = math.log(1 + 1.5 / 2.5), math.log(1 + 2.5 / 1.5)
    first = red * 1 / (1 + 0.9 * (0.6 + 0.4 * 2 / 3))
    second = red * 2 / (2 + 0.9 * (0.6 + 0.4 * 5 / 3))
    third = desk * 1 / (1 + 0.9 * (0.6 + 0.4 * 5 / 3))
    found = index.search("red")
    assert [position for position, _ in found] == [1, 0]
    assert [score for _, score in found] == pytest.approx([second, first], rel=1e-6)
    assert index.search("reds, the desk desk!") == [
        (1, pytest.approx(second + 2 * third, rel=1e-6)),
        (0, pytest.approx(first, rel=1e-6)),
    ]


def test_equal_scores_come_in_the_order_of_ids():
    index = build(["red lamp"] * 4 + ["red"], ["B2", "A9", "B1", "b0", "Z"])
    assert [position for position, _ in index.search("red")] == [4, 1, 2, 0, 3]
    assert [position for position, _ in index.search("red", k=2)] == [4, 1]


def naive(texts, ids, query, k):
    """BM25 as the papers write it, in double precision, over dictionaries."""
    documents = [Counter(analyze(text)) for text in texts]
    filled = [document for document in documents if document]
    mean = sum(sum(document.values()) for document in filled) / max(len(filled), 1)
    scores = Counter()
    for term, times in Counter(analyze(query)).items():
        df = sum(term in document for document in documents)
        idf = math.log(1 + (len(filled) - df + 0.5) / (df + 0.5))
        for position, document in enumerate(documents):
            if term in document:
                length = max(stored for stored in LENGTHS if stored <= sum(document.values()))
                norm = 0.9 * (0.6 + 0.4 * length / mean)
                scores[position] += times * idf * document[term] / (document[term] + norm)
    best = sorted(scores, key=lambda at: (-round(scores[at], 5), ids[at]))[:k]
    return [(position, scores[position]) for position in best]


TEXT = st.lists(st.sampled_from(WORDS), max_size=60).map(" ".join)


@given(st.lists(TEXT, min_size=1, max_size=12), TEXT, st.integers(1, 12), st.integers(1, 40))
def test_search_is_bm25(texts, query, k, run_tokens):
    ids = [f"{number * 7 % 13:02}" for number in range(len(texts))]
    found = build(texts, ids, run_tokens=run_tokens).search(query, k)
    expected = naive(texts, ids, query, k)
    assert [score for _, score in found] == pytest.approx([s for _, s in expected], rel=1e-5)
    near = {round(a - b, 4) for (_, a), (_, b) in pairwise(expected)}
    if 0 not in near:
        assert [position for position, _ in found] == [position for position, _ in expected]


@given(st.lists(st.text(), min_size=1, max_size=5), st.text())
def test_search_takes_any_text(texts, query):
    index = build(texts)
    found = index.search(query)
    assert all(0 <= position < len(texts) and score > 0 for position, score in found)
    assert {position for position, _ in index.search(texts[0])} >= {0} & {
        position for position, text in enumerate(texts) if analyze(text)
    }


@pytest.mark.parametrize(
    "query",
    [
        "", " ", "\0\0", "\ud800\udfff\ud800", "<b>lamp</b>'; DROP", "a/b\\c [[]] ((", "😀" * 3000,
        "lamp " * 2000, "x" * 10_000, " ".join(f"word{n}" for n in range(5000)), "_" * 10_000,
        "漆" * 10_000, "%s%n{0}", "the of with",
    ],
    ids=lambda query: repr(query[:12]),
)  # fmt: skip
def test_hostile_queries(query):
    index = build(["oak lamp", "word7 漆 desk"])
    assert isinstance(index.search(query), list)


def texts_of_chance(number, words=WORDS):
    rng = random.Random(5)
    return [" ".join(rng.choices(words, k=rng.randint(0, 80))) for _ in range(number)]


def test_rare_terms_decide_without_reading_the_common_ones(monkeypatch):
    rng = random.Random(9)
    words = [*(f"w{n}" for n in range(40)), *["common", "often"] * 30]
    texts = [" ".join(rng.choices(words, k=rng.randint(1, 30))) for _ in range(3000)]
    index = build(texts)
    queries = [" ".join(rng.sample(words, rng.randint(2, 12))) for _ in range(60)]
    everything = [index.search(query, k) for query in queries for k in (1, 5, 50)]
    monkeypatch.setattr(postings, "_MIN_CHECKED", 0)
    looked_up = []
    look_up = Postings._look_up

    def counted(self, terms, *rest):
        looked_up.extend(terms)
        return look_up(self, terms, *rest)

    monkeypatch.setattr(Postings, "_look_up", counted)
    assert [index.search(query, k) for query in queries for k in (1, 5, 50)] == everything
    assert len(looked_up) > 50


def test_the_build_does_not_depend_on_runs_blocks_or_folder(tmp_path, monkeypatch):
    texts = [*texts_of_chance(200), "", "only once here", "oak " * 70_000]
    ids = [f"{number * 37 % 203:03}" for number in range(len(texts))]
    whole = build(texts, ids)
    monkeypatch.setattr(Merger.__init__, "__defaults__", (100,))
    stored = build(texts, ids, tmp_path / "index", run_tokens=500)
    for query in [*WORDS, " ".join(WORDS), "oak oak desk"]:
        assert stored.search(query) == whole.search(query) == build(texts, ids).search(query)
    assert stored.search("oak")[0][0] == len(texts) - 1
    assert len(stored) == len(texts)
    assert (
        sorted(file.suffix for file in (tmp_path / "index").iterdir()) == [".json"] + [".npy"] * 8
    )


def test_files_are_the_same_each_time(tmp_path):
    for name, run_tokens in (("a", 1 << 20), ("b", 50)):
        build(texts_of_chance(40), folder=tmp_path / name, run_tokens=run_tokens)
    for file in (tmp_path / "a").iterdir():
        assert file.read_bytes() == (tmp_path / "b" / file.name).read_bytes(), file.name


@pytest.mark.parametrize("texts", [[], [""], ["", "the"]])
def test_an_index_without_words(tmp_path, texts):
    for index in (build(texts), build(texts, folder=tmp_path / "index")):
        assert index.search("the lamp") == []
        assert len(index) == len(texts)


@pytest.mark.parametrize("name", [*text_index._ARRAYS, TABLE])
@pytest.mark.parametrize("harm", ["cut", "emptied", "gone", "longer", "replaced"])
def test_damaged_files(tmp_path, name, harm):
    build(texts_of_chance(20), folder=tmp_path)
    file = tmp_path / (name if name == TABLE else f"{name}.npy")
    content = file.read_bytes()
    if harm == "gone":
        file.unlink()
    else:
        file.write_bytes(
            {
                "cut": content[:-1] if name != TABLE else content[:-5],
                "emptied": b"",
                "longer": content + b"x",
                "replaced": b"?" * len(content),
            }[harm]
        )
    with pytest.raises(DataMissing if harm == "gone" else DataCorrupt, match="import the data set"):
        TextIndex.open(tmp_path)


def test_an_index_of_another_version(tmp_path):
    build(["lamp"], folder=tmp_path)
    table = json.loads((tmp_path / TABLE).read_text())
    (tmp_path / TABLE).write_text(json.dumps(table | {"analyzer": 0}))
    with pytest.raises(DataCorrupt, match="analyzer 0, expected 1"):
        TextIndex.open(tmp_path)


def test_damage_within_a_file_that_a_search_meets(tmp_path):
    build(["oak lamp", "oak desk"], folder=tmp_path)
    document = np.load(tmp_path / "document.npy")
    np.save(tmp_path / "document.npy", np.full_like(document, 2**30))
    index = TextIndex.open(tmp_path)
    with pytest.raises(DataCorrupt, match="the search index is damaged"):
        index.search("oak")


def test_an_index_in_place_of_another(tmp_path, monkeypatch):
    build(["oak lamp"], folder=tmp_path)
    with monkeypatch.context() as broken:
        broken.setattr(text_index, "write_table", lambda *a: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            build(["red desk"], folder=tmp_path)
    with pytest.raises(DataMissing):
        TextIndex.open(tmp_path)
    assert build(["red desk"], folder=tmp_path).search("desk")


def test_an_unfinished_build_is_no_index(tmp_path):
    builder = IndexBuilder(tmp_path, run_tokens=1)
    builder.add("oak lamp")
    with pytest.raises(DataMissing):
        TextIndex.open(tmp_path)
    with pytest.raises(BadOption, match="expected 1 ids, one per document, got 2"):
        builder.finish(["a", "b"])


@pytest.mark.parametrize("k", [0, -1, True, 2.0, None])
def test_wrong_k(k):
    with pytest.raises(BadOption, match="k must be a positive integer"):
        build(["lamp"]).search("lamp", k)


def test_threads_share_an_index(tmp_path):
    texts = texts_of_chance(300)
    index = build(texts, folder=tmp_path)
    expected = [index.search(text) for text in texts[:40]]
    wrong = []

    def search():
        if [index.search(text) for text in texts[:40]] != expected:
            wrong.append(True)

    threads = [threading.Thread(target=search) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_what_a_product_is_searched_by():
    product = Product(
        asin="B0TEST",
        title="Oak Lamp",
        description="Bright.",
        bullet_points=("Warm LIGHT", "never searched"),
        category="garden",
        query="lamps",
        product_category="Home › Lamps",
        attributes=("solid",),
        options={"color": ("red", "blue"), "size": ("s",)},
        pricing=(1.0,),
    )
    assert document_text(product) == "oak lamp bright. warm light color: red, blue, and size: s"
    bare = Product("B0", "A", "", (), "garden", "q", "p", (), {}, (1.0,))
    assert document_text(bare) == "a   "


def test_stop_words_are_lucenes():
    assert len(STOP_WORDS) == 33


@pytest.mark.data
def test_lucenes_rankings(official_products):
    cases = os.environ.get("AGENTGYMS_TEST_CASES")
    file = Path(cases, "webshop", "lucene_rankings_1k.json") if cases else None
    if file is None or not file.is_file():
        pytest.skip("AGENTGYMS_TEST_CASES names no folder with webshop/lucene_rankings_1k.json")
    queries = json.loads(file.read_text(encoding="utf-8"))["queries"]
    ids = [product.asin for product in official_products]
    index = build([document_text(product) for product in official_products], ids)
    assert queries
    for case in queries:
        found = index.search(case["query"])
        assert [ids[at] for at, _ in found] == [asin for asin, _ in case["hits"]], case["query"]
        assert [s for _, s in found] == pytest.approx([s for _, s in case["hits"]], abs=1e-4)
