"""Semantic scorers, with tiny models made on the spot and loaded like big ones."""

import numpy as np
import pytest
from tiny_scorers import TEXTS, bert, saved
from transformers import BertModel, Qwen2Config, Qwen2ForSequenceClassification

from harness.annotators import semantic
from harness.credit import TurnTable
from harness.credit.estimators import scpo
from harness.credit.estimators.graphs.salt import salt
from harness.credit.similarity import Cached, Exact
from harness.types.errors import ConfigError


@pytest.fixture(scope="module")
def judges(tmp_path_factory):
    root = tmp_path_factory.mktemp("judges")
    return {n: saved(root / f"{n}", bert, num_labels=n) for n in (1, 2, 3)}


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    return saved(tmp_path_factory.mktemp("encoder"), bert, kind=BertModel)


@pytest.mark.parametrize("outputs", [1, 2])
def test_a_cross_encoder_scores_pairs_whatever_batch_they_are_in(judges, outputs):
    scorer = semantic.CrossEncoder(judges[outputs], "cpu")
    matrix = scorer(TEXTS, TEXTS[:3])
    assert matrix.shape == (4, 3)
    assert ((matrix > 0) & (matrix < 1)).all()
    assert matrix.std() > 1e-3
    alone = [[scorer.pairs([a], [b])[0] for b in TEXTS[:3]] for a in TEXTS]
    np.testing.assert_allclose(matrix, alone, atol=1e-5)  # padding changes nothing
    assert scorer.pairs([], []).shape == (0,)


def test_texts_are_cut_to_what_the_model_takes(tmp_path):
    judge = saved(tmp_path, bert, num_labels=1, max_position_embeddings=24)
    scores = semantic.CrossEncoder(judge, "cpu").pairs([" ".join(TEXTS)] * 2, TEXTS[:2])
    assert ((scores > 0) & (scores < 1)).all()


def test_one_logit_goes_through_the_logistic_function(judges):
    scorer = semantic.CrossEncoder(judges[1], "cpu")
    inputs = scorer._tokenizer([TEXTS[0]], [TEXTS[1]], return_tensors="pt")
    logit = scorer._model(**inputs).logits.item()
    assert scorer.pairs(TEXTS[:1], TEXTS[1:2])[0] == pytest.approx(1 / (1 + np.exp(-logit)))


def test_a_decoder_may_judge_too_and_long_texts_are_cut(tmp_path):
    def qwen(tokenizer):
        return Qwen2ForSequenceClassification(
            Qwen2Config(
                vocab_size=len(tokenizer),
                hidden_size=16,
                num_hidden_layers=1,
                num_attention_heads=2,
                num_key_value_heads=2,
                intermediate_size=32,
                num_labels=1,
                pad_token_id=tokenizer.pad_token_id,
            )
        )

    scorer = semantic.CrossEncoder(saved(tmp_path, qwen), "cpu", max_length=32)
    scores = scorer.pairs([TEXTS[0], TEXTS[0] * 50], [TEXTS[1]] * 2)
    assert ((scores > 0) & (scores < 1)).all()


def test_more_than_a_batch_keeps_its_order(judges, monkeypatch):
    monkeypatch.setattr(semantic, "BATCH", 3)
    monkeypatch.setattr(semantic, "SHOWN_FROM", 2)
    scorer = semantic.CrossEncoder(judges[1], "cpu")
    left = [f"{text} {i}" for i in range(4) for text in TEXTS]
    together = scorer.pairs(left, left[::-1])
    one = [scorer.pairs([a], [b])[0] for a, b in zip(left, left[::-1], strict=True)]
    np.testing.assert_allclose(together, one, atol=1e-5)


def test_embeddings_are_cosines_and_remembered(encoder):
    scorer = semantic.Embedding(encoder, "cpu", size=3)
    matrix = scorer(TEXTS, TEXTS)
    np.testing.assert_allclose(np.diag(matrix), 1, atol=1e-6)
    np.testing.assert_allclose(matrix, matrix.T, atol=1e-6)
    np.testing.assert_allclose(scorer.pairs(TEXTS, TEXTS[::-1]), np.diag(matrix[:, ::-1]))
    alone = semantic.Embedding(encoder, "cpu")
    np.testing.assert_allclose([alone.pairs(TEXTS[:1], [t])[0] for t in TEXTS], matrix[0])
    assert len(scorer._known) == 3
    assert scorer([], TEXTS).shape == (0, 4)
    assert scorer.pairs([], []).shape == (0,)


def test_names_become_scorers_wherever_they_stand(judges, encoder):
    given = {
        "alpha": 0.5,
        "scorer": f"cross-encoder:{judges[1]}",
        "base": {"name": "salt", "match": f"embedding:{encoder}", "base": "gigpo"},
    }
    got = semantic.resolve(given, "cpu")
    assert isinstance(got["scorer"], Cached)
    assert isinstance(got["base"]["match"], semantic.Embedding)
    assert (got["alpha"], got["base"]["base"], given["scorer"][:5]) == (0.5, "gigpo", "cross")
    assert semantic.resolve({"match": "exact", "scorer": "lexical"}) == {
        "match": "exact",
        "scorer": "lexical",
    }
    assert isinstance(semantic.open_scorer("exact"), Exact)
    twice = semantic.resolve(
        {"scorer": f"embedding:{encoder}", "base": {"scorer": f"embedding:{encoder}"}}, "cpu"
    )
    assert twice["scorer"] is twice["base"]["scorer"]


def test_the_estimators_use_them(judges, encoder):
    table = TurnTable.from_columns(
        rollout=[0, 0, 0, 1, 1, 1],
        reward=[0, 0, 1, 0, 0, 0],
        state_key=["a", "b", "c", "a", "b", "c"],
        text=[TEXTS[0], TEXTS[1], TEXTS[3], TEXTS[0], TEXTS[0], TEXTS[2]],
    )
    cached = semantic.open_scorer(f"cross-encoder:{judges[1]}", "cpu")
    few = scpo.scpo(table, scorer=cached, theta=0.0)
    asked = cached.num_scored
    assert 0 < asked < 3 * 2 + 3 * 3
    np.testing.assert_array_equal(few, scpo.scpo(table, scorer=cached, theta=0.0))
    assert cached.num_scored == asked  # the next step scores nothing anew
    embedding = semantic.open_scorer(f"embedding:{encoder}", "cpu")
    shared = salt(table, match=embedding, threshold=0.999)
    np.testing.assert_allclose(shared[[0, 3]], 0, atol=1e-9)  # both rollouts begin alike
    assert abs(shared[1]) > 0.1


def test_what_cannot_be_opened_is_named(judges, encoder, tmp_path):
    for unknown in ("bm25", "cross-encoder:", "exact:model", ""):
        with pytest.raises(ConfigError, match="unknown scorer"):
            semantic.open_scorer(unknown)
    for kind in ("cross-encoder", "embedding"):
        with pytest.raises(ConfigError, match="give a folder that holds it.*exact or lexical"):
            semantic.open_scorer(f"{kind}:{tmp_path}")
    for other in (judges[3], encoder):
        with pytest.raises(ConfigError, match="does not score pairs of texts"):
            semantic.open_scorer(f"cross-encoder:{other}")
