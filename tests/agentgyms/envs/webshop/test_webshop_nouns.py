"""What titles are made of: words, and the nouns among them."""

import sys

import pytest
from gymnasium.error import DependencyNotInstalled

from agentgyms.core.errors import BadOption, DataMissing
from agentgyms.envs.webshop.goals.nouns import open_extractor, words_of

CORD = "Saireed UL Listed 2 Prong Power Cord for JBL Bar 3.1 Bar 2.1 Channel 4K Ultra HD Soundbar"
CABLE = (
    "BRST AC Power Cord Outlet Socket Cable Plug Lead for Panasonic SC-HT830V DVD/VCR Combo Home "
    "Theater System"
)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", []),
        ("Oak T-Shirt", ["Oak", "T", "-", "Shirt"]),
        ("Men's Slip-on (Wide)", ["Men", "'s", "Slip", "-", "on", "(", "Wide", ")"]),
        ("4K 512GB 16x24 3.5oz", ["4", "K", "512", "GB", "16x24", "3.5", "oz"]),
        ("D.O.N. and St. Ives, Inc.", ["D.O.N.", "and", "St.", "Ives", ",", "Inc."]),
        ("women,3.4 red,blue a/b", ["women,3.4", "red", ",", "blue", "a", "/", "b"]),
        ("2-Pack 2022-23 don't", ["2", "-", "Pack", "2022", "-", "23", "do", "n't"]),
        ('13" TV™ $5+', ["13", '"', "TV", "™", "$", "5", "+"]),
    ],
)
def test_words_of_titles(text, words):
    assert words_of(text) == words


def test_words_are_those_of_spacy():
    spacy = pytest.importorskip("spacy", reason="spaCy is not installed")
    pipeline = spacy.blank("en")
    for text in (CORD, CABLE, 'Kids\' 2-in-1 "Owl" Lamp (5W, 220V), 10% off - St. Anne Co.'):
        assert words_of(text) == [word.text for word in pipeline(text)]


def test_nouns_are_capitalised_words_and_known_ones():
    nouns = open_extractor().nouns
    assert nouns("Oak Desk Lamp with 2 Shades") == ["oak", "desk", "lamp", "shades"]
    assert nouns("a soft cotton towel for drying wet hair") == ["cotton", "towel", "hair"]
    assert nouns("Freshly Roasted Coffee, Ground") == ["coffee", "ground"]
    assert nouns("Women's dining table, table") == ["women", "dining", "table", "table"]
    assert nouns("2 x 3.5 & - !") == []


def score(goal, bought):
    nouns = open_extractor().nouns
    wanted = nouns(goal)
    return len(set(nouns(bought)) & set(wanted)) / len(wanted)


@pytest.mark.parametrize(
    ("goal", "bought", "expected"),
    [
        (
            "Mens D.O.N. Issue 2 Gca Basketball Sneakers Shoes Casual - Off White",
            "PEAK High Top Mens Basketball Shoes Lou Williams Streetball Master Breathable Non "
            "Slip Outdoor Sneakers",
            0.333,
        ),
        (f"{CORD} Home Theater System Subwoofer", CABLE, 0.3),
        (CORD, CABLE, 0.15),
        (
            "Rusticware 921ORB Kitchen and Bath Cabinet Knob",
            "Minkissy 2pcs Stainless Steel Eyebrow Tweezers Blackhead Acne Remover Portable Makeup "
            "Tweezers (Silver)",
            0.0,
        ),
    ],
)
def test_title_scores_that_the_original_tests_with_its_model(goal, bought, expected):
    assert score(goal, bought) == pytest.approx(expected, abs=0.01)


def test_names_of_extractors():
    assert open_extractor().name == open_extractor("builtin").name == "builtin-1"
    for name in ("spacy", "spacy:", "nltk", "", None):
        with pytest.raises(BadOption, match="expected 'builtin', or 'spacy:' and a model"):
            open_extractor(name)


def test_without_spacy_it_says_so(monkeypatch):
    monkeypatch.setitem(sys.modules, "spacy", None)
    with pytest.raises(DependencyNotInstalled, match="pip install spacy"):
        open_extractor("spacy:en_core_web_sm")


def test_without_the_model_it_says_so():
    pytest.importorskip("spacy", reason="spaCy is not installed")
    with pytest.raises(DataMissing, match="python -m spacy download no_such_model"):
        open_extractor("spacy:no_such_model")


def test_a_model_of_spacy_tags_the_words(tmp_path):
    spacy = pytest.importorskip("spacy", reason="spaCy is not installed")
    pipeline = spacy.blank("en")
    ruler = pipeline.add_pipe("attribute_ruler")
    ruler.add([[{"LOWER": {"IN": ["lamp", "desk"]}}]], {"POS": "NOUN"})
    ruler.add([[{"ORTH": "Aldo"}]], {"POS": "PROPN"})
    ruler.add([[{"LOWER": "red"}]], {"POS": "ADJ"})
    pipeline.meta["name"] = "ruled"
    pipeline.to_disk(tmp_path / "model")
    extractor = open_extractor(f"spacy:{tmp_path / 'model'}")
    assert extractor.nouns("Aldo Red Desk-Lamp, aldo lamp") == ["aldo", "desk", "lamp", "lamp"]
    assert extractor.name.startswith("spacy:en_ruled-0.0.0, spacy-")
