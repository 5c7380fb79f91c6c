"""MaxRL, AEM and ProxMO against references written row by row, and by hand."""

import functools
import itertools
import math
import re

import numpy as np
import pytest
from small_tables import (
    by_key,
    check_against,
    episode_advantages,
    is_last,
    returns_of,
    small_tables,
)

from harness.credit import TurnTable
from harness.credit.estimators.grpo import grpo
from harness.credit.estimators.maxrl import maxrl
from harness.credit.estimators.proxmo import proxmo, tf_idf
from harness.credit.estimators.signals.aem import aem


def maxrl_reference(rows):
    returns, out = returns_of(rows), [0.0] * len(rows)
    for members in by_key(rows, "group").values():
        group = {rows[i]["rollout"] for i in members}
        mean = sum(returns[r] for r in group) / len(group)
        for i in members:
            out[i] = (returns[rows[i]["rollout"]] - mean) / mean if mean > 0 else 0.0
    return out


def aem_reference(rows, lam=1.0, least_range=0.1):
    out = episode_advantages(rows)
    for members in by_key(rows, "group").values():
        entropy = [rows[i]["entropy"] for i in members]
        low, high = min(entropy), max(entropy)
        if high - low < least_range or high == low:
            continue
        certainty = [math.exp(-lam * (x - low) / (high - low)) for x in entropy]
        for i, c in zip(members, certainty, strict=True):
            out[i] *= c * len(members) / sum(certainty)
    return out


def proxmo_reference(
    rows, steepness=4.0, strength=0.1, temperature=0.1, norm="std", gamma=0.95, invalid_penalty=0.1
):
    to_go = [0.0] * len(rows)
    for i in reversed(range(len(rows))):
        to_go[i] = rows[i]["reward"] + (0 if is_last(rows, i) else gamma * to_go[i + 1])
    paid = [x - (0 if r["valid"] else invalid_penalty) for x, r in zip(to_go, rows, strict=True)]
    out = episode_advantages(rows, norm)
    for members in by_key(rows, "group").values():
        turns = [rows[i] for i in members]
        won = {r["rollout"]: r["success"] for r in turns}
        p = sum(won.values()) / len(won)
        texts = texts_of(turns)
        known = {text: vector(text, texts) for text in set(texts)}
        like = {(a, b): cosine(known[a], known[b]) for a in known for b in known}
        for i, row, own in zip(members, turns, texts, strict=True):
            x = (1 - p) ** steepness if row["success"] else -(p**steepness)
            out[i] *= 1 + strength * (1 / (1 + math.exp(-x)) - 0.5)
            weights = [math.exp(like[own, other] / temperature) for other in texts]
            mean = sum(w * paid[j] for w, j in zip(weights, members, strict=True)) / sum(weights)
            out[i] += paid[i] - mean
    return out


def texts_of(turns):
    """Return what was seen in each turn's state: the least text that a turn into it showed."""
    seen = {}
    for before, after in itertools.pairwise(turns):
        if before["rollout"] == after["rollout"]:
            text, key = before["text"].split(" || ")[1], after["state_key"]
            seen[key] = min(seen.get(key, text), text)
    return [seen.get(turn["state_key"], turn["state_key"]) for turn in turns]


@functools.cache
def words(text):
    return re.findall(r"\b\w\w+\b", text.lower())


def vector(text, texts):
    found = words(text)
    entries = {}
    for word in set(found):
        documents = sum(word in words(other) for other in texts)
        entries[word] = found.count(word) * (1 + math.log((1 + len(texts)) / (1 + documents)))
    length = math.sqrt(sum(x * x for x in entries.values())) or 1.0
    return {word: x / length for word, x in entries.items()}


def cosine(a, b):
    return sum(x * b.get(word, 0.0) for word, x in a.items())


def test_maxrl_is_the_reference():
    check_against(maxrl_reference, "maxrl")


@pytest.mark.parametrize("settings", [{}, {"lam": 3.0, "least_range": 1.0}])
def test_aem_is_the_reference(settings):
    check_against(aem_reference, "aem", **settings)


@pytest.mark.parametrize(
    "settings", [{}, {"steepness": 1.0, "strength": 0.866, "temperature": 0.5, "norm": "mean"}]
)
def test_proxmo_is_the_reference(settings):
    check_against(proxmo_reference, "proxmo", **settings)


def outcomes(*won, **columns):
    return TurnTable.from_columns(rollout=range(len(won)), reward=won, success=won, **columns)


def test_maxrl_by_hand():
    assert maxrl(outcomes(1, 0, 0, 0)).tolist() == [3, -1, -1, -1]
    assert maxrl(outcomes(1, 1, 1, 0)).tolist() == pytest.approx([1 / 3, 1 / 3, 1 / 3, -1])
    assert maxrl(outcomes(0, 0)).tolist() == [0, 0]
    assert maxrl(outcomes(1, 1)).tolist() == [0, 0]


def test_aem_by_hand():
    table = outcomes(1, 0, entropy=[0.5, 1.5])
    total = 1 + math.exp(-1)
    np.testing.assert_allclose(aem(table), grpo(table) * [2 / total, 2 * math.exp(-1) / total])
    np.testing.assert_array_equal(aem(table, least_range=1.1), grpo(table))
    np.testing.assert_allclose(aem(table, lam=0.0), grpo(table))


def test_aem_keeps_the_mean_weight_of_a_group_at_one():
    for _, table in small_tables()[:50]:
        ones = TurnTable.from_columns(
            rollout=table.rollout, group=table.group, reward=table.reward, entropy=table.entropy
        )
        base = grpo(ones)
        ratio = np.divide(aem(ones), base, out=np.ones_like(base), where=base != 0)
        for group in np.unique(ones.group):
            if base[ones.group == group].all():
                assert ratio[ones.group == group].mean() == pytest.approx(1.0)


def test_proxmo_by_hand():
    """Equal states at a small temperature: the mean of their returns, as GiGPO centres them."""
    table = outcomes(1, 0, 0, 0, state_key=["hall"] * 4)
    step = [0.75, -0.25, -0.25, -0.25]
    np.testing.assert_allclose(proxmo(table, strength=0.0, norm="mean"), np.multiply(step, 2))
    hard = 1 / (1 + math.exp(-(0.75**4))) - 0.5
    easy = 1 / (1 + math.exp(0.25**4)) - 0.5
    expected = np.multiply(step, [1 + hard, 1 + easy, 1 + easy, 1 + easy])
    np.testing.assert_allclose(proxmo(table, strength=1.0, norm="mean", step_weight=0.0), expected)
    far = outcomes(1, 0, state_key=["red room", "blue sea"])
    np.testing.assert_allclose(proxmo(far, temperature=1e-3) - proxmo(far, step_weight=0.0), 0)


def test_words_that_few_texts_have_weigh_more():
    vectors = tf_idf(["red mug", "blue mug", "A"], np.array([1.0, 2.0, 1.0]))
    red, blue, nothing = vectors @ vectors.T
    assert [red[0], blue[1]] == pytest.approx([1, 1])
    assert 0 < red[1] < 0.5
    assert nothing.tolist() == [0, 0, 0]
