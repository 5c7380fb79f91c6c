"""Actions as they are read, and the states that they lead to."""

import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentgyms.core import keys
from agentgyms.core.outcome import MAX_ACTION, Feedback
from agentgyms.envs.webshop.rules import actions
from agentgyms.envs.webshop.rules.session import ShopSession

LAMP, OAK = "click[b0test0001]", "click[b0test0002]"


@pytest.mark.parametrize(
    ("action", "default", "compat"),
    [
        ("search[red] please", "search[red]", "search[red]"),
        ("search[a] click[b]", None, None),
        ("I think search[a]", None, None),
        ("click[a [b]]", "click[a [b]]", None),
        ("search[[]]", "search[[]]", None),
        ("search[ ]", None, "search[ ]"),
        ("click[]", None, None),
        ("search", None, None),
        ("", None, None),
        ("]search[", None, None),
        ("search]x[", None, None),
        ("search[x", None, None),
        ("search[x]\nclick[y]", None, "search[x]"),
        ("search[É/<b>'--\x00\ud800]", "search[é/<b>'--\x00\ud800]", "search[é/<b>'--\x00\ud800]"),
        ("search[" + "x" * MAX_ACTION + "]", None, None),
        ("search" + "[" * 8000, None, None),
    ],
)  # fmt: skip
def test_parsing_of_actions(action, default, compat):
    for parsed, wanted in (
        (actions.parse(action), default),
        (actions.parse_original(action), compat),
    ):
        assert (None if isinstance(parsed, str) else parsed.key) == wanted


@given(st.text(st.sampled_from("searchclik[]\n x"), max_size=40))
def test_the_original_parses_as_its_pattern_does(text):
    found = re.match(r"(.+)\[(.+)\]", text)
    name, argument = found.groups() if found else (text, None)
    wanted = None
    if argument is not None and name in ("search", "click"):
        wanted = (name, argument.lower())
    parsed = actions.parse_original(text)
    assert (None if isinstance(parsed, str) else tuple(parsed)) == wanted


WORDS = st.sampled_from(
    ["search[candle]", "search[lamp]", "search[<r>]", "search[zzz]", "click[next >]", "junk",
     "click[< prev]", "click[back to search]", "click[buy now]", LAMP, OAK, "click[features]",
     "click[walnut]", "click[oak [light]]", "click[black]", "click[shade: black]", "click[grey]",
     "search[item_page search_results]", "click[b0testc001]"]
)  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(acts=st.lists(WORDS | st.text(max_size=30), max_size=20), compat=st.booleans())
def test_any_actions_keep_to_the_rules(small_shop, acts, compat):
    goal = small_shop.goals.find("B0TEST0001/0")
    session = ShopSession(small_shop, goal, compat=compat)
    for action in acts:
        legal = set(session.admissible())
        before = session.state
        result = session.act(action)
        assert bool(result.reason) == (result.feedback is not Feedback.OK)
        if result.reason:
            assert session.state == before
        elif result.action_key.startswith("click["):
            assert result.action_key in legal
        again = ShopSession(small_shop, goal, compat=compat)
        again.load(json.loads(json.dumps(session.save())))
        assert (again.state, again.view) == (session.state, session.view)
        assert (again.searches, again.pages) == (session.searches, session.pages)


def test_every_listed_action_can_be_taken(visit):
    for compat in (False, True):
        for acts in ((), ("search[candle]", "click[next >]"), ("search[oak]", OAK)):
            for action in visit(*acts, compat=compat).admissible():
                result = visit(*acts, compat=compat).act(action)
                assert result.feedback is Feedback.OK, (acts, action)


def test_the_key_of_a_state_does_not_know_the_order_of_choices(visit):
    acts = ("search[walnut]", LAMP)
    one = visit(*acts, "click[small]", "click[walnut]").state
    other = visit(*acts, "click[walnut]", "click[small]").state
    parts = [state.key_parts(with_visited=False) for state in (one, other)]
    assert keys.state_key(*parts[0]) == keys.state_key(*parts[1])


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("page", "cellar"),
        ("page", []),
        ("page", "index"),
        ("page", "sub"),
        ("page", "search"),
        ("keywords", []),
        ("keywords", "walnut"),
        ("keywords", [3]),
        ("number", 0),
        ("number", 7),
        ("number", -1),
        ("number", True),
        ("asin", ""),
        ("asin", "B0NOWHERE1"),
        ("asin", None),
        ("options", [["size", "huge"]]),
        ("options", [["weight", "small"]]),
        ("options", [["size", "small"], ["size", "large"]]),
        ("options", [["size"]]),
        ("options", {"size": "small"}),
        ("sub_page", "Features"),
        ("visited", []),
        ("visited", ["B0NOWHERE1"]),
        ("draw", 1.5),
    ],
)
def test_damaged_states_are_refused(visit, field, value):
    session = visit("search[walnut]", LAMP, "click[small]")
    saved = session.save()
    visit().load(saved)
    saved["state"][field] = value
    with pytest.raises((TypeError, ValueError, LookupError)):
        visit().load(saved)
    del saved["state"][field]
    with pytest.raises(LookupError):
        visit().load(saved)


@pytest.mark.parametrize(
    ("name", "value"),
    [("searches", 0), ("searches", 9), ("pages", 0), ("pages", "3"), ("notice", 1)],
)
def test_damaged_counts_are_refused(visit, name, value):
    saved = visit("search[walnut]", LAMP).save() | {name: value}
    with pytest.raises((TypeError, ValueError)):
        visit().load(saved)
