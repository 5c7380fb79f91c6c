"""The page of evaluations without a browser: what is inside it, and what is left out of it."""

import re
from dataclasses import replace

import pytest
import recorded_evaluations
from made_rollouts import HOSTILE
from recorded_evaluations import edited, hostile, long_episode, packed, summary

from agentgyms.core import serialization
from harness.evaluation import episodes
from harness.evaluation.pairing import pair
from harness.reporting.evaluation_page import packed_episodes, page
from harness.reporting.tables.settings_table import settings_of


def test_the_page_holds_every_episode_of_the_recordings(react):
    html = page.render([react])
    recordings = react.recordings()
    rows, inside = summary(html)["episodes"], packed(html, "episode")
    assert len(inside) == len(rows) == len(recordings) == 10
    for row, episode, recording in zip(rows, inside, recordings, strict=True):
        record = episodes.episode_record(recording)
        assert row[2:7] == [record.seed, record.trial, record.success, record.score, record.turns]
        assert [turn["action"] for turn in episode["turns"]] == recording.actions
        for turn, kept in zip(episode["turns"], recording.turns[1:], strict=True):
            assert turn["observation"] == serialization.encode_observation(kept.observation)
            for name in ("prompt", "answer", "valid", "finished", "left_out"):
                assert turn[name] == kept.agent[name]
    assert packed(html, "preamble") == [recorded_evaluations.PREAMBLE]


def test_reflections_and_their_preambles_are_there(reflexion):
    html = page.render([reflexion])
    inside = packed(html, "episode")
    preambles = packed(html, "preamble")
    assert len(preambles) > 1
    for episode, recording in zip(inside, reflexion.recordings(), strict=True):
        about = recording.header["provenance"][episodes.EPISODE_KEY]
        assert episode["reflection"] == about["reflection"]
        assert preambles[episode["preamble"]] == about["preamble"]
    assert any(episode["reflection"] for episode in inside)


def test_families_stand_in_the_papers_order(react):
    families = dict.fromkeys(("own", "pick2", "look"), react.figures["families"]["pick"])
    other = replace(
        react, result={**react.result, "figures": {**react.figures, "families": families}}
    )
    expected = ["pick", "look", "clean", "heat", "cool", "pick2", "own"]
    assert summary(page.render([other, react]))["families"] == expected


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("/data/of me/runs/guess", "guess"),
        ("runs/guess/checkpoints/step-000040", "guess"),
        ("Qwen/Qwen3-4B", "Qwen3-4B"),
        ("smollm2-135m", "smollm2-135m"),
    ],
)
def test_the_title_is_the_models_name_and_not_its_path(react, name, shown):
    result = {**react.result, "model": {**react.result["model"], "name": name}}
    assert f"<title>{shown} on ALFWorld " in page.render([replace(react, result=result)])


def test_equal_evaluations_give_equal_pages(react):
    assert page.render([react]) == page.render([react])


def test_no_text_can_leave_its_place(react, tmp_path):
    made = hostile(react, tmp_path / "hostile")
    html = page.render([made, replace(made, label=HOSTILE[1])])
    scripts = 2 + len(packed(html, "episode")) + len(packed(html, "preamble"))
    assert html.count("<script") == html.count("</script") == scripts
    assert "<img" not in html
    assert "\u2028" not in html
    embedded_episodes = packed(html, "episode")
    answers = {turn["answer"] for episode in embedded_episodes for turn in episode["turns"]}
    assert set(HOSTILE) <= answers  # to the letter, lone surrogates too


def test_the_page_asks_nothing_of_a_network(react):
    html = page.render([react])
    assert "default-src 'none'" in html
    assert set(re.findall(r"https?://[^\s\"'<>)]+", html)) == {"http://www.w3.org/2000/svg"}
    assert "@import" not in html
    assert "src=" not in html


def test_a_page_that_would_be_too_large_loses_prompts_first(react, tmp_path):
    one = edited(react, tmp_path / "long", long_episode)
    whole = len(page.render([one]))
    html = page.render([one], limit=whole - 1000)
    data = summary(html)
    assert data["left_out"] == {"prompts": True, "shortened": []}
    assert len(html) < whole
    assert packed(html, "preamble") == []
    for episode, recording in zip(packed(html, "episode"), one.recordings(), strict=True):
        assert [turn["prompt"] for turn in episode["turns"]] == [""] * len(recording.actions)
        assert [t["observation"] for t in episode["turns"]] == [
            turn.observation for turn in recording.turns[1:]
        ]


def test_then_turns_of_the_longest_episodes(react, tmp_path):
    one = edited(react, tmp_path / "long", long_episode)
    limit = 300_000
    html = page.render([one], limit=limit)
    assert len(html.encode()) <= limit
    assert summary(html)["left_out"] == {"prompts": True, "shortened": [2]}
    cut, recording = packed(html, "episode")[2], one.recordings()[2]
    first, last = cut["skipped"]
    kept = [turn["turn"] for turn in cut["turns"]]
    assert kept == [*range(1, first), *range(last + 1, len(recording.actions) + 1)]
    assert 0 < len(kept) < len(recording.actions)


def test_the_least_page_keeps_the_outcomes(react, tmp_path):
    one = edited(react, tmp_path / "long", long_episode)
    html = page.render([one], limit=0)
    assert len(html) < 130_000
    assert len(summary(html)["episodes"]) == 10
    assert all(episode["turns"] == [] for episode in packed(html, "episode"))


def test_thousands_of_episodes_stay_below_the_limit(react):
    packing = packed_episodes.Packing()
    recordings = react.recordings()
    for number in range(1000):
        packing.add(recordings[number % len(recordings)])
    fitted = packing.fit(500_000)
    assert sum(map(len, fitted.episodes)) <= 500_000
    assert fitted.shortened


def test_settings_are_named_and_unknown_ones_kept(react):
    settings = dict(settings_of({**react.result, "model": {"name": "m", "quantised": True}}))
    assert settings["Environment"] == recorded_evaluations.ALFWORLD
    assert settings["Model"] == "m"
    assert settings["model: quantised"] == "yes"
    assert settings["Seeds"] == "0, 1"
    assert settings["Prompt versions"] == "alfworld/think 0a1b2c3d4e5f"
    assert "Judge" not in settings


def test_a_page_needs_an_evaluation(tmp_path):
    with pytest.raises(ValueError, match="at least one"):
        page.write(tmp_path / "page.html", [])


def test_pairs_are_those_of_the_paired_test(react, reflexion):
    (embedded_episodes,) = summary(page.render([react, reflexion]))["pairs"]
    found = pair(react.result, reflexion.result)
    assert embedded_episodes["units"] == 10
    assert embedded_episodes["wins"] == found.wins
    assert embedded_episodes["losses"] == found.losses
    assert embedded_episodes["success"]["mean"] == found.success.mean
    assert embedded_episodes["success"]["interval"] == list(found.success.interval)


def test_evaluations_that_cannot_be_paired_say_why(react):
    other = {**react.result, "environment": {**react.result["environment"], "split": "train"}}
    (embedded_episodes,) = summary(page.render([react, replace(react, result=other)]))["pairs"]
    assert "different splits" in embedded_episodes["why"]


def test_a_training_run_has_figures_and_outcomes_but_no_episodes(react):
    result = {key: value for key, value in react.result.items() if key != "recordings"}
    unknown = dict.fromkeys(("failed_share", "unfinished_share", "cut_share", "tokens"))
    run = replace(react, result={**result, "figures": {**result["figures"], **unknown}})
    html = page.render([run, react])
    rows = summary(html)["episodes"]
    assert len(rows) == 20
    assert [row[:7] for row in rows[:10]] == [[0, *row[1:7]] for row in rows[10:]]
    assert [row[-1] for row in rows] == [*[None] * 10, *range(10)]
    assert len(packed(html, "episode")) == 10
