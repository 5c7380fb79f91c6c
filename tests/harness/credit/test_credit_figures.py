"""Nearness of failed steps to successes, and seconds of credit, on rollouts made by hand."""

import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from harness import credit
from harness.credit import TurnTable
from harness.credit.registry import hyperparameters_of
from harness.credit.similarity import Cached, Lexical, Scorer
from harness.reporting.credit_view import compare, recordings
from harness.types.errors import TableError

sys.path.append(str(Path(__file__).parents[3] / "benchmarks/studies"))
import credit_timing as timing
import scpo_neighbourhood as neighbourhood
from credit_figures import main
from scpo_tsne import _joint, tsne

TEXTS = ["go a || you see x", "take x || you hold x", "go b || you see y", "look || nothing new"]
VECTORS = {
    TEXTS[0]: [1.0, 0.0, 0.0],
    TEXTS[1]: [0.0, 1.0, 0.0],
    TEXTS[2]: [0.8, 0.0, 0.6],
    TEXTS[3]: [0.0, 0.0, 1.0],
}


def encoder(texts_a, texts_b):
    a, b = (np.array([VECTORS[text] for text in texts]) for texts in (texts_a, texts_b))
    return a @ b.T


def table(*rollouts, group=None):
    """Rollouts of `(won, numbers of texts)`."""
    rows = [(r, t, text) for r, (_, texts) in enumerate(rollouts) for t, text in enumerate(texts)]
    last = {r: len(texts) - 1 for r, (_, texts) in enumerate(rollouts)}
    return TurnTable.from_columns(
        rollout=[r for r, _, _ in rows],
        group=[(group or [0] * len(rollouts))[r] for r, _, _ in rows],
        reward=[float(rollouts[r][0]) * (t == last[r]) for r, t, _ in rows],
        text=[TEXTS[text] for _, _, text in rows],
        state_key=[f"{r} {t}" for r, t, _ in rows],
        action_key=[str(text) for _, _, text in rows],
    )


SETTINGS = hyperparameters_of("scpo")


def test_distances_by_hand():
    found = neighbourhood.find(table((1, [0, 1]), (0, [0, 2, 3])), SETTINGS, encoder)
    assert found.success.tolist() == [True, True, False, False, False]
    assert found.credited.tolist() == [False, False, True, False, False]
    assert found.exact.tolist() == [True, True, True, False, False]
    expected = [0, 0, 0, np.linalg.norm([0.2, 0, 0.6]), np.sqrt(2)]
    assert found.distance == pytest.approx(expected)
    assert found.place.shape == (5, 2)
    said = neighbourhood.text(found).splitlines()
    assert said[1].split()[-5:] == ["1", "100", "%", "0.00", "-"]
    assert said[2].split()[-5:] == ["2", "0", "%", "1.02", "1.02"]


def test_the_plane_keeps_distances_where_it_can():
    """Four points of a plane: principal components are a rotation."""
    points = np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8], [0.8, -0.6]])
    placed = neighbourhood._principal(points @ points.T)
    between = [np.linalg.norm(x[:, None] - x[None], axis=-1) for x in (points, placed)]
    assert between[1] == pytest.approx(between[0])


def test_near_points_stay_near_and_equal_arguments_give_equal_places():
    rng = np.random.default_rng(3)
    centres = 6 * np.eye(8)[:4]
    points = np.concatenate([centre + rng.normal(size=(15, 8)) for centre in centres])
    distance = np.linalg.norm(points[:, None] - points[None], axis=-1)
    start = (points - points.mean(axis=0))[:, :2]
    placed = tsne(distance, start)
    between = np.linalg.norm(placed[:, None] - placed[None], axis=-1)
    np.fill_diagonal(between, np.inf)
    cluster = np.arange(60) // 15
    assert (cluster[between.argmin(axis=1)] == cluster).all()
    assert np.array_equal(tsne(distance, start), placed)
    assert not tsne(distance[:4, :4], start[:4]).any()


def test_pairs_probabilities_have_the_perplexity():
    """On a ring all points are alike: a row of joint probabilities is one point's own, over n."""
    angle = 2 * np.pi * np.arange(31) / 31
    points = np.column_stack([np.cos(angle), np.sin(angle)])
    squared = ((points[:, None] - points[None]) ** 2).sum(axis=-1)
    joint = _joint(squared, 7.0)
    assert joint.sum() == pytest.approx(1)
    row = np.delete(31 * joint[0], 0)
    assert np.exp(-(row * np.log(row)).sum()) == pytest.approx(7.0, abs=1e-3)


def test_only_groups_with_both_outcomes_count():
    both = table((1, [0, 1]), (0, [2]), (0, [3]), group=[0, 0, 1])
    assert len(neighbourhood.find(both, SETTINGS, encoder).success) == 3
    for alone in (table((1, [0]), (1, [1])), table((0, [0]), (0, [1]))):
        with pytest.raises(TableError, match="no group has steps of a success and of a failure"):
            neighbourhood.find(alone, SETTINGS, encoder)


class Counting(Scorer):
    def __init__(self):
        self.calls = []

    def pairs(self, texts_a, texts_b):
        self.calls += zip(texts_a, texts_b, strict=True)
        return Lexical().pairs(texts_a, texts_b)


def test_stages_score_each_pair_once_and_give_the_estimators_credit():
    turns = recordings.load_example().turns
    counting = Counting()
    settings = {**SETTINGS, "scorer": Cached(counting)}
    settings["scorer"].pairs([TEXTS[0]], [TEXTS[1]])
    stages = {stage.name: stage for stage in timing.scpo_stages(turns, settings)}
    scored = stages["pairs"].pairs + stages["self-similarity"].pairs
    assert scored == len(counting.calls) - 1 == len(set(counting.calls[1:]))
    assert stages["self-similarity"].pairs > 10
    assert all(stage.seconds >= 0 for stage in stages.values())
    again = Counting()
    credit.get("scpo")(turns, **{**SETTINGS, "scorer": again})
    assert set(again.calls) == set(counting.calls[1:])


def test_the_commands_write_what_they_name(tmp_path):
    picture = tmp_path / "near.svg"
    chosen = ["--example", "--methods", "gigpo,scpo"]
    done = CliRunner().invoke(
        main, [*chosen, "--neighbourhood", str(picture), "--encoder", "lexical", "--timing"]
    )
    assert done.exit_code == 0, done.output
    assert picture.read_text().startswith("<?xml")
    assert "of failures, credited" in done.output
    assert [line.split()[0] for line in done.output.splitlines()[-7:]] == [
        "gigpo", "scpo", "pairs", "self-similarity", "matching", "base", "figures",
    ]  # fmt: skip
    done = CliRunner().invoke(
        main, ["--example", "--methods", "grpo", "--neighbourhood", str(picture)]
    )
    assert done.exit_code == 2
    assert "give --methods scpo" in done.output


def test_of_several_tables_the_median_is_told(monkeypatch):
    turns = recordings.load_example().turns
    clock = iter([0.0, 1.0, 10.0, 16.0, 20.0, 22.0])  # one method on three tables: 1, 6 and 2 s
    monkeypatch.setattr(timing, "perf_counter", lambda: next(clock))
    results = compare.compare(turns, compare.choose(["grpo"]))
    assert timing.text([turns] * 3, results).splitlines()[1].split() == ["grpo", "2.0000"]


def test_methods_that_lack_a_column_are_left_out():
    turns = recordings.load_example().turns
    results = compare.compare(turns, compare.choose(["grpo", "ppo"]))
    assert [line.split()[0] for line in timing.text([turns], results).splitlines()] == [
        "method",
        "grpo",
    ]
