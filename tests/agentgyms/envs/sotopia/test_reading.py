"""What agents write, read into acts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentgyms.envs.sotopia.action_parsing import LONGEST, ParseFailure, format_action, parse_action
from agentgyms.envs.sotopia.dialogue import NOTHING, Act, Kind

KINDS = st.sampled_from(Kind)


@pytest.mark.parametrize(
    ("text", "act"),
    [
        ("speak: Hello: you?", Act(Kind.SPEAK, "Hello: you?")),
        ('  Speak :  "So"\n\n it goes ', Act(Kind.SPEAK, '"So" it goes')),
        ("act: offer 480", Act(Kind.ACTION, "offer 480")),
        ("ACTION: accept", Act(Kind.ACTION, "accept")),
        ("nonverbal: <nods>", Act(Kind.NONVERBAL, "<nods>")),
        ("non-verbal communication: nods", Act(Kind.NONVERBAL, "nods")),
        ("Leave", Act(Kind.LEAVE)),
        ("leave: bye", Act(Kind.LEAVE)),
        ("none", NOTHING),
        ('{"action_type": "speak", "argument": "a\\n b", "why": 1}', Act(Kind.SPEAK, "a b")),
        ('{"action_type": "nonverbal", "argument": "nods"}', Act(Kind.NONVERBAL, "nods")),
        ('{"action_type": "non-verbal communication", "argument": "a"}', Act(Kind.NONVERBAL, "a")),
        ('{"action_type": "act", "argument": "\\ud800 waves"}', Act(Kind.ACTION, "\ufffd waves")),
        ('{"action_type": "leave", "argument": "bye"}', Act(Kind.LEAVE)),
        ('{"action_type": "none", "argument": null}', NOTHING),
        ('{"action_type": "leave"}', Act(Kind.LEAVE)),
    ],
)  # fmt: skip
def test_every_form_is_read(text, act):
    assert parse_action(text) == act


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "an empty text is no action; write speak: <words>"),
        ("I say\nhello", '"I say hello" is no action'),
        ("leave now", '"leave now" is no action'),
        ("speak", '"speak" is no action'),
        ("act: ", '"act" needs an argument'),
        ("speak: " + "x" * (LONGEST + 1), "4001 characters are too many"),
        ('{"action_type": "sing", "argument": "la"}', 'must be one of "none", "speak", "non-'),
        ('{"action_type": ["speak"], "argument": "la"}', '"action_type" must be one of'),
        ('{"action_type": "speak"}', '"argument" must be a text'),
        ('{"action_type": "action", "argument": 480}', '"argument" must be a text'),
        ('{"action_type": "speak", "argument": ""}', '"speak" needs an argument'),
        ('{"action_type": "speak", "argument": "la"', "the JSON is malformed"),
        ('{"action_type": "speak", "argument": "la"} and more', "the JSON is malformed"),
        ('{"a":' * 20_000, "the JSON is malformed"),
        ('{"a":' + "1" * 5000 + "}", "the JSON is malformed"),
    ],
)  # fmt: skip
def test_what_is_no_action_is_refused_with_the_reason(text, why):
    refused = parse_action(text)
    assert isinstance(refused, ParseFailure)
    assert why in refused.reason
    assert len(refused.reason.splitlines()) == 1


@given(st.text())
def test_whatever_is_said_is_one_line_and_is_read_as_it_was_written(text):
    act = parse_action(f"speak: {text}")
    if isinstance(act, Act):
        assert len(f"[{act.argument}]".splitlines()) == 1
        assert parse_action(format_action(act)) == act
    else:
        assert not text.split()


@given(KINDS, st.text() | st.from_regex(r"\s*\{.*", fullmatch=True))
def test_no_text_raises(kind, text):
    for tried in (text, f"{kind}:{text}", f'{{"action_type": "{kind}", "argument": "{text}"}}'):
        read = parse_action(tried)
        assert isinstance(read, ParseFailure) or isinstance(read.kind, Kind)
