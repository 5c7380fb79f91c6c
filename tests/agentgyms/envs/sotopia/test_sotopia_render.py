"""What each viewer reads, on an encounter that is small enough to write out."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentgyms.envs.sotopia import render
from agentgyms.envs.sotopia.dialogue import NOTHING, Act, Kind
from agentgyms.envs.sotopia.markup import visible_text
from agentgyms.envs.sotopia.profiles import Encounter, Person, Relationship, Scenario

ANN = Person(
    "a", "Ann", "Lee", 30, "Night Baker", "Woman", "She/her", "Ann bakes.", "Ann is calm.",
    "Ann cannot swim.",
)  # fmt: skip
BO = Person(
    "b", "Bo", "Ray", 41, "Cook", "Nonbinary", "They/them", "Bo cooks.", "Bo is loud.",
    "Bo cannot bake.",
)  # fmt: skip
SCENARIO = Scenario(
    "s", "lamp", "made",
    'A lamp & a chair are for sale.<p viewer="environment"> It is broken.</p>',
    (
        "Sell it. (<extra_info>It cost 5.</extra_info>)",
        "Buy it.\n <strategy_hint>Ask.</strategy_hint>",
    ),
    Relationship.STRANGER,
)  # fmt: skip
MEETING = Encounter("c/0", SCENARIO, (ANN, BO), seat=0)
SELF = (
    "is a 41-year-old nonbinary cook. They/them pronouns. Bo cooks. Personality and values "
    "description: Bo is loud. Bo's secrets: Bo cannot bake."
)


def of(relationship):
    return replace(MEETING, scenario=replace(SCENARIO, relationship=relationship))


def background(encounter, viewer):
    lines = render.context(encounter, viewer).split("\n")
    return next(line for line in lines if line.startswith("Bo Ray's background: "))[21:]


def test_the_first_observation():
    assert render.first_observation(MEETING, 0) == (
        "\n"
        "Here is the context of this interaction:\n"
        "Scenario: A lamp & a chair are for sale.\n"
        "Participants: Ann Lee and Bo Ray\n"
        "Ann Lee's background: Ann Lee is a 30-year-old female night baker. She/her pronouns. Ann "
        "bakes. Personality and values description: Ann is calm. Ann's secrets: Ann cannot swim.\n"
        "Bo Ray's background: Unknown\n"
        "Ann Lee's goal: Sell it. (It cost 5.)\n"
        "Bo Ray's goal: Unknown"
        "\n"
        "Conversation Starts:\n"
    )


@pytest.mark.parametrize(
    ("relationship", "seen"),
    [
        (Relationship.STRANGER, "Unknown"),
        (Relationship.KNOW_BY_NAME, "Bo Ray "),
        (
            Relationship.ACQUAINTANCE,
            "Bo Ray is a 41-year-old nonbinary cook. They/them pronouns. Bo cooks. ",
        ),
        (Relationship.FRIEND, f"Bo Ray {SELF[: SELF.index('Bo' + chr(39))]}"),
        (Relationship.ROMANTIC, f"Bo Ray {SELF[: SELF.index('Bo' + chr(39))]}"),
        (Relationship.FAMILY, f"Bo Ray {SELF[: SELF.index('Bo' + chr(39))]}"),
    ],
)
def test_the_relationship_decides_what_the_other_one_sees(relationship, seen):
    assert background(of(relationship), 0) == seen
    assert background(of(relationship), 1) == f"Bo Ray {SELF}"
    assert background(of(relationship), None) == f"Bo Ray {SELF}"


def test_the_environment_sees_everything():
    context = render.context(MEETING, None)
    assert "are for sale. It is broken.\n" in context
    assert "Ann Lee's goal: Sell it. (It cost 5.)\n" in context
    assert context.endswith("Bo Ray's goal: Buy it.\nAsk.")


def test_goals_are_their_owners():
    assert render.goal(MEETING, 1) == "Buy it.\n Ask."
    assert "Buy it" not in render.context(MEETING, 0)
    assert "Sell it" not in render.context(MEETING, 1)


def test_a_person_without_gender_or_occupation():
    plain = replace(ANN, gender="", occupation="")
    assert "Ann Lee is a 30-year-old  . " in render.context(replace(MEETING, people=(plain, BO)), 0)


ASKED = ((0, Act(Kind.SPEAK, "Is it <b>old</b> & good?")),)
BOTH = ((0, Act(Kind.NONVERBAL, "nods")), (1, Act(Kind.LEAVE)))
IDLE = ((1, NOTHING),)


def test_lines():
    assert (
        render.turn_text(MEETING, 3, ASKED) == 'Turn #3: Ann Lee said: "Is it <b>old</b> & good?"\n'
    )
    assert render.turn_text(MEETING, 0, BOTH) == (
        "Turn #0: Ann Lee [non-verbal communication] nods;Bo Ray left the conversation\n"
    )
    assert render.turn_text(MEETING, 1, IDLE) == "Turn #1: \n"
    assert render.turn_text(MEETING, 2, ((0, Act(Kind.ACTION, "sits")),)) == (
        "Turn #2: Ann Lee [action] sits\n"
    )


def test_a_history_is_all_that_was_read():
    assert render.history(MEETING, [], 1) == render.first_observation(MEETING, 1)
    assert render.history(MEETING, [ASKED, IDLE], 1) == (
        render.first_observation(MEETING, 1)
        + '\nTurn #0: Ann Lee said: "Is it <b>old</b> & good?"\n\nTurn #1: \n'
    )


def test_the_judge_reads_turns_from_one_and_nothing_of_those_who_do_nothing():
    """But whatever is said: the package drops a message with the words "did nothing" in it."""
    told = ((0, Act(Kind.SPEAK, "You did nothing!")),)
    assert render.judge_history(MEETING, [ASKED, IDLE, told, BOTH]) == (
        render.context(MEETING, None) + "\nTurn #1"
        '\nAnn Lee said: "Is it <b>old</b> & good?"'
        "\nTurn #2"
        "\nTurn #3"
        '\nAnn Lee said: "You did nothing!"'
        "\nTurn #4"
        "\nAnn Lee [non-verbal communication] nods"
        "\nBo Ray left the conversation"
    )


@pytest.mark.parametrize(
    ("text", "first", "second", "environment"),
    [
        ("", "", "", ""),
        ("5 > 3 é", "5 > 3 é", "5 > 3 é", "5 > 3 é"),
        ("a <b>b</b> c", "a  c", "a  c", "a b c"),
        ("<b>b</b>", "", "", ""),
        ("a &amp; b", "a & b", "a & b", "a & b"),
        ("&amp; & b", "&amp; & b", "&amp; & b", "&amp; & b"),
        ("<p viewer='agent_0'>x</p><p viewer='agent_1'>y</p>z", "xz", "yz", "xyz"),
        ("<p viewer='agent_1'>y</p>", "y", "y", "y"),  # one element is the root, which all see
        ("<p viewer='agent_1'>M&M</p>z", "z", "M&Mz", "M&Mz"),
        ("a<!-- b --> c", "a c", "a c", "a c"),
        ("<b>1</b>2<b>3</b>4<!-- 5 -->6", "246", "246", "12346"),
        # As libxml2 recovers them:
        ("a < b", "a  b", "a  b", "a  b"),
        ("a <3 & b", "a 3  b", "a 3  b", "a 3  b"),
        ("a & b <3 & c", "a & b 3  c", "a & b 3  c", "a & b 3  c"),
        ("a <extra_info>b", "a b", "a b", "a b"),
        ("a <extra_info>b</extra> c", "a b c", "a b c", "a b c"),
        ("a </extra_info> b", "a ", "a ", "a "),
        ("a <b c=d>e</b> f", "a d>e", "a d>e", "a d>e"),
        ("a <b", "a ", "a ", "a "),
        ("a <!-- b <p viewer='agent_1'>c</p>", "a ", "a ", "a "),
        ("a <?b c", "a ", "a ", "a "),
        ("a <![CDATA[b", "a ", "a ", "a "),
        ("a\r\nb\x01c<", "a\nbc", "a\nbc", "a\nbc"),
        ("a<p>b</p>c<p>d</p>e & <p>f</p>g<", "abcde & fg", "abcde & fg", "abcde & fg"),
    ],
)
def test_markup(text, first, second, environment):
    assert [visible_text(text, 0), visible_text(text, 1), visible_text(text, None)] == [
        first,
        second,
        environment,
    ]


@pytest.mark.parametrize(
    ("end", "shown"), [("", "a b"), ("</extra_info>" * 50_000 + "c", "a bc"), (" & <", "a b & ")]
)
def test_tags_may_lie_in_thousands_of_others(end, shown):
    text = "a " + "<extra_info>" * 50_000 + "b" + end
    assert [visible_text(text, viewer) for viewer in (0, 1, None)] == [shown] * 3


PIECES = ["<p viewer='agent_0'>", "</p>", "<extra_info>", "<b ", "<", ">", "/", "&", "&amp;", "]]>"]


@given(st.lists(st.sampled_from(PIECES) | st.text(max_size=3), max_size=12).map("".join))
def test_no_markup_raises_and_nothing_is_shown_that_is_not_there(text):
    for viewer in (0, 1, None):
        left = iter(text.replace("\r\n", "\n").replace("\r", "\n"))
        assert "&" in text or all(c in left for c in visible_text(text, viewer))
