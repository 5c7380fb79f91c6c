"""BM25 in memory: how documents are ranked, and that bm25s gives the same scores."""

import math
import random
import re

import numpy as np
import pytest

from agentgyms.core.errors import DataCorrupt
from agentgyms.envs.searchqa.corpus import Document
from agentgyms.envs.searchqa.retriever import BM25, K1, B, BM25Retriever
from agentgyms.envs.searchqa.sources import closed_world_retriever
from agentgyms.envs.searchqa.world import closed_world

LAST_BITS = 0 if np.lib.NumpyVersion(np.__version__) >= "2.0.0" else 8
"""By how much scores may differ: numpy 1 rounds otherwise."""


def words(text):
    return re.findall(r"\w+", text.lower())


def ids(hits):
    return [hit.document.doc_id for hit in hits]


def test_bm25_ranks_by_score_then_by_place_in_the_corpus():
    texts = ["red fox", "blue fox", "red red dog", "blue fox", "green cat", "red fox"]
    bm25 = BM25Retriever([Document(str(i), text) for i, text in enumerate(texts)])
    assert ids(bm25.search("fox", 10)) == ["0", "1", "3", "5"]
    assert ids(bm25.search("Fox!", 2)) == ["0", "1"]
    assert ids(bm25.search("red FOX", 10))[:2] == ["0", "5"]
    assert ids(bm25.search("cat unknown", 3)) == ["4"]
    assert ids(bm25.search("unknown", 3)) == ids(bm25.search("?!", 3)) == []
    scores = [hit.score for hit in bm25.search("red fox blue", 10)]
    assert scores == sorted(scores, reverse=True)
    assert min(scores) > 0
    assert len(bm25) == 6


def test_scripts_without_blanks_are_found_by_their_pairs():
    texts = [
        "北京是中国的首都。",
        "東京は日本の首都です",
        "กรุงเทพเป็นเมืองหลวง",
        "the capital, 首 都",
        "サッカー",
    ]
    bm25 = BM25Retriever([Document(str(i), text) for i, text in enumerate(texts)])
    assert ids(bm25.search("中国首都", 1)) == ["0"]
    assert ids(bm25.search("日本", 3)) == ["1"]
    assert ids(bm25.search("เมือง", 3)) == ["2"]
    assert ids(bm25.search("CAPITAL", 3)) == ids(bm25.search("首", 3)) == ["3"]
    assert ids(bm25.search("サッカー", 3)) == ["4"]


def test_documents_without_a_word_are_never_found():
    bm25 = BM25Retriever([Document("1", "?!"), Document("2", "ok")])
    assert ids(bm25.search("ok ?!", 3)) == ["2"]
    with pytest.raises(DataCorrupt, match="no word to search for in 1 documents"):
        BM25Retriever([Document("1", "?!")])


def test_bm25_scores_by_hand():
    """Lucene's: idf = ln(1 + (N - n + 0.5) / (n + 0.5)), tf / (tf + k1 (1 - b + b len / mean))."""
    texts = ["apple banana", "apple apple cherry date", "egg fig"]
    bm25 = BM25Retriever([Document(str(i), text) for i, text in enumerate(texts)])
    idf = math.log(1 + (3 - 2 + 0.5) / (2 + 0.5))
    mean = 8 / 3
    expected = [idf * tf / (tf + 0.9 * (0.6 + 0.4 * n / mean)) for tf, n in ((2, 4), (1, 2))]
    hits = bm25.search("apple", 3)
    assert ids(hits) == ["1", "0"]
    assert [hit.score for hit in hits] == pytest.approx(expected, abs=1e-4)


def test_bm25_answers_again_from_a_cache():
    bm25 = closed_world_retriever()
    first = bm25.search("The bridge of something", 3)
    assert bm25.search("the  BRIDGE, of something", 3) is first
    assert len(bm25.search("the bridge of something", 2)) == 2


def test_scores_are_those_of_bm25s_to_the_last_bit():
    bm25s = pytest.importorskip("bm25s")
    documents = [words(document.contents) for document in closed_world().documents]
    ours, theirs = BM25(documents), bm25s.BM25(method="lucene", k1=K1, b=B)
    theirs.index(documents, show_progress=False)
    rng = random.Random(0)
    for _ in range(200):
        query = rng.choices(rng.choice(documents), k=rng.randint(1, 9))
        found, expected = ours.scores(query), theirs.get_scores(query)
        np.testing.assert_array_max_ulp(found, expected, maxulp=LAST_BITS)
