"""JSON read out of what models say: acts and ratings."""

import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from talking import SCORES, rated, saying

from agentgyms.envs.sotopia.action_parsing import ParseFailure
from agentgyms.envs.sotopia.dialogue import Act, Kind
from agentgyms.envs.sotopia.llm.json_extraction import json_objects, strip_thoughts
from agentgyms.envs.sotopia.llm.participants import parse_answer
from agentgyms.envs.sotopia.llm.rating_parsing import parse_ratings
from agentgyms.envs.sotopia.partner_judge import RANGES, Rating

NAMES = ["Ada Kern", "Bo Lind"]
HI = Act(Kind.SPEAK, "Hi")
PLAIN = saying("speak", "Hi")


@pytest.mark.parametrize(
    ("text", "spoken_text"),
    [
        ("<think>{}</think> yes", "yes"),
        ("<thinking>so</thinking>yes", "yes"),
        ("thought</think>\n\nyes", "yes"),
        ("yes <think>or is it", "yes"),
        ("<think>never ends", ""),
        (" yes ", "yes"),
    ],
)
def test_thoughts_are_not_spoken(text, spoken_text):
    assert strip_thoughts(text) == spoken_text


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("{'a': 'it\\'s \"so\"', }", {"a": 'it\'s "so"'}),
        ('{"a": [1, 2, ], "b": +3,}', {"a": [1, 2], "b": 3}),
        ("{'a': True, 'b': None, 'c': False}", {"a": True, "b": None, "c": False}),
        ('{"a": "True, +1, }", "b": 1,}', {"a": "True, +1, }", "b": 1}),
        ('{"a": "two\nlines"}', {"a": "two\nlines"}),
        ("{'a': 'back\\\\slash \\n'}", {"a": "back\\slash \n"}),
        ('{so} and {"a": 1} or {"a": 2}', {"a": 1}),
        ('{"a": \N{MINUS SIGN}3, "b": [8/10, -3 / 5]}', {"a": -3, "b": ["8/10", "-3 / 5"]}),
        ('{"a": 1, // it\'s "so"\n "b": 2, # too\n /* "c": 3, */}', {"a": 1, "b": 2}),
        ('{"a": "http://x # y" // why', {"a": "http://x # y"}),
        ('{"a": {"b": [1]}\n```', {"a": {"b": [1]}}),
        ('{"a": "say "no" to me", "b": 1}', {"a": 'say "no" to me', "b": 1}),
        ('{"a": ["so "it is" "], "b": "1/2"', {"a": ['so "it is" '], "b": "1/2"}),
    ],
)
def test_what_is_nearly_json_is_read(text, fields):
    assert next(json_objects(text)) == fields


@pytest.mark.parametrize(
    "text",
    ['{"a": "I "love it', '{"a": "so "it", he said"}', "{", '{"a": "b" "c": 1}'],
)
def test_what_could_mean_two_things_is_not_read(text):
    assert list(json_objects(text)) == []


def test_objects_are_told_in_order_and_not_those_within_others():
    assert list(json_objects('x {"a": {"b": 1}} {} y {"c": "{"} {')) == [
        {"a": {"b": 1}},
        {},
        {"c": "{"},
    ]


@pytest.mark.parametrize(
    "text",
    [
        PLAIN,
        f"```json\n{PLAIN}\n```",
        f"Sure! Here it is:\n```\n{PLAIN}\n```\nI hope {{this}} helps.",
        f"<think>I could leave: {saying('leave')}</think>\n{PLAIN}",
        f"{PLAIN}\n{saying('speak', 'What the other one answers')}",
        "{'action_type': 'speak', 'argument': 'Hi',}",
        json.dumps({"properties": {"action_type": "speak", "argument": "Hi"}}),
        '{"properties": {"action_type": {"enum": []}}} ' + PLAIN,
        "speak: Hi",
        "<think>Well.</think>Speak: Hi",
    ],
)
def test_an_act_is_found_in_an_answer(text):
    assert parse_answer(text) == HI


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "an empty text is no action"),
        ("Hi, I am Ada.", "is no action"),
        ('{"action_type": "speak", "argument": "Hi and', "the JSON is malformed"),
        ('I say {"action_type": "shout", "argument": "Hi"}', '"action_type" must be one of'),
        ("<think>" + PLAIN, "an empty text is no action"),
    ],
)
def test_an_answer_without_an_act_is_refused(text, why):
    assert why in parse_answer(text).reason


FORMS = {
    "the package's": rated(),
    "the newer package's": {"evaluations": rated(keys=("agent_1", "agent_2"))},
    "below properties": {"properties": rated()},
    "by name": rated(keys=NAMES),
    "named parts": {
        f"agent_{seat}": {name: {"reasoning": "r", "score": SCORES[name]} for name in RANGES}
        for seat in (1, 2)
    },
    "scores alone": {f"agent_{seat}": SCORES for seat in (1, 2)},
    "as texts": {f"agent_{seat}": {n: f" {s} " for n, s in SCORES.items()} for seat in (1, 2)},
    "as floats": {f"agent_{seat}": {n: ["", s / 1] for n, s in SCORES.items()} for seat in (1, 2)},
    "of the greatest": {
        f"agent_{seat}": {
            name: f"{score}{middle}{max(map(abs, RANGES[name]))}" for name, score in SCORES.items()
        }
        for seat, middle in ((1, "/"), (2, " out of "))
    },
    "other minus signs": {
        f"agent_{seat}": {n: str(s).replace("-", "\N{MINUS SIGN}") for n, s in SCORES.items()}
        for seat in (1, 2)
    },
    "other spelling": {
        f"agent_{seat}": {n.replace("_", " ").title(): s for n, s in SCORES.items()}
        for seat in (1, 2)
    },
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("around", ["{}", "```json\n{}\n```", "<think>{{}}</think>So: {} ."])
def test_ratings_are_read_in_every_form(form, around):
    first, second = parse_ratings(around.format(json.dumps(FORMS[form])), NAMES)
    assert (first.scores, second.scores) == (SCORES, SCORES)
    assert list(first.scores) == list(RANGES)
    assert first.overall == pytest.approx(20 / 7)


def test_each_seat_has_its_own_scores_and_reasons():
    scores = SCORES | {"goal": 1}
    first, second = parse_ratings(json.dumps(rated(scores, SCORES)), NAMES)
    assert (first.scores["goal"], second.scores["goal"]) == (1, 7)
    assert first.reasons == {name: f"Why {name}." for name in RANGES}


@pytest.mark.parametrize("score", [8.5, 11, -1, True, None, float("nan"), float("inf"), "8.5",
                                   "many", "", [1], {}, 10**400, [["r", 3]], "٨", "8/5", "4/5",
                                   "8/", "8/10/10", "11/10", "\N{MINUS SIGN}1"])  # fmt: skip
def test_a_score_that_is_none_refuses_all(score):
    fields = rated()
    fields["agent_2_evaluation"]["goal"][1] = score
    refused = parse_ratings(json.dumps(fields), NAMES)
    wrong = '"goal" in "agent_2_evaluation" must be an integer from 0 to 10'
    assert refused.reason.startswith(wrong)
    assert len(refused.reason) < 150


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "no whole JSON object"),
        ("8", "no whole JSON object"),
        (json.dumps(rated())[:-2], '"agent_1_evaluation" is missing; "agent_2_evaluation" is'),
        (json.dumps({"agent_1": SCORES}), '"agent_2_evaluation" is missing.'),
        (json.dumps({"agent_1": SCORES, "agent_2": {}}), '"believability" is missing in "agent_2'),
        (json.dumps({"agent_1": SCORES, "agent_2": [1, 2, 3, 4, 5, 6, 7]}), "is missing"),
    ],
)
def test_ratings_that_are_not_whole_are_refused(text, why):
    assert why in parse_ratings(text, NAMES).reason


def test_people_of_one_name_are_not_rated_by_name():
    text = json.dumps({"Ada Kern": SCORES})
    assert isinstance(parse_ratings(text, ["Ada Kern", "Ada Kern"]), ParseFailure)


PIECES = [*'{}[],:"\\ ', "'", "+3", "True", "1e999", "\n", "\ud800", "<think>", "</think>"]
NAMED = ["goal", "agent_1", "agent_2", "properties", "action_type", "argument", "speak"]
WHOLE = [json.dumps(name) for name in NAMED] + [json.dumps(SCORES), PLAIN]
SCRAPS = st.lists(st.sampled_from(PIECES + WHOLE)).map("".join)


@settings(max_examples=100)
@given(st.text() | SCRAPS)
def test_no_text_raises(text):
    act, ratings = parse_answer(text), parse_ratings(text, NAMES)
    assert isinstance(act, Act | ParseFailure)
    for rating in ratings if isinstance(ratings, tuple) else ():
        assert within(rating)


LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3)
PAIRS = st.tuples(st.text(max_size=3), st.integers(-12, 12) | LEAVES)
PEOPLE = st.fixed_dictionaries(dict.fromkeys(RANGES, PAIRS | LEAVES))


@settings(max_examples=60)
@given(PEOPLE, PEOPLE)
def test_what_is_accepted_is_within_ranges_and_says_what_was_told(one, two):
    ratings = parse_ratings(json.dumps({"agent_1": one, "agent_2": two}), NAMES)
    for rating in ratings if isinstance(ratings, tuple) else ():
        assert within(rating)


@given(
    st.fixed_dictionaries({name: st.integers(low, high) for name, (low, high) in RANGES.items()})
)
def test_every_score_within_its_range_is_accepted(scores):
    assert parse_ratings(json.dumps(rated(scores, SCORES)), NAMES)[0].scores == scores


def within(rating: Rating):
    return list(rating.scores) == list(RANGES) and all(
        type(rating.scores[name]) is int and low <= rating.scores[name] <= high
        for name, (low, high) in RANGES.items()
    )


@pytest.mark.parametrize("piece", ["{", '{"', '\\"', "'\\'", '{"a":', "<think>", "</think>", "[{'"])
def test_time_is_linear(piece):
    begun = time.process_time()
    text = piece * (50_000 // len(piece))
    assert isinstance(parse_answer(text), ParseFailure)
    assert isinstance(parse_ratings(text, NAMES), ParseFailure)
    assert time.process_time() - begun < 2.0
