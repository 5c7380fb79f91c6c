"""Reading game files: what is understood, and what is refused with which words."""

import json

import pytest

from agentgyms.core.errors import DataCorrupt, DataMissing
from agentgyms.envs.alfworld.builder import build_game
from agentgyms.envs.alfworld.generated import generator
from agentgyms.envs.alfworld.generated.writer import game_fields, pddl_problem, resource
from agentgyms.envs.alfworld.official import gamefile
from agentgyms.envs.alfworld.official.gamefile import (
    domain_digest,
    grammar_digest,
    parse_game,
    read_game,
)
from agentgyms.envs.alfworld.problem import Goal, parse_goal, parse_problem

TASK = "small-train-clean-0001"

OFFICIAL_GOALS = {
    """(and (exists (?r - receptacle) (exists (?o - object) (and (inReceptacle ?o ?r)
        (objectType ?o WatchType) (receptacleType ?r SafeType)))))""": Goal(
        "pick", "watch", "safe"
    ),
    """(and (exists (?r - receptacle) (exists (?o - object) (and (heatable ?o)
        (objectType ?o EggType) (receptacleType ?r GarbageCanType) (isHot ?o)
        (inReceptacle ?o ?r)))))""": Goal("heat", "egg", "garbagecan"),
    """(and (exists (?r - receptacle) (exists (?o1 - object) (and (objectType ?o1 PenType)
        (receptacleType ?r DeskType) (inReceptacle ?o1 ?r) (exists (?o2 - object) (and
        (not (= ?o1 ?o2)) (objectType ?o2 PenType) (receptacleType ?r DeskType)
        (inReceptacle ?o2 ?r)))))))""": Goal("pick2", "pen", "desk"),
    """(and (exists (?ot - object ?r - receptacle ?a - agent ?l - location) (and
        (objectType ?ot DeskLampType) (toggleable ?ot) (isToggled ?ot) (receptacleAtLocation ?r ?l)
        (atLocation ?a ?l) (inReceptacle ?ot ?r))) (exists (?o - object ?a - agent) (and
        (objectType ?o BowlType) (holds ?a ?o))))""": Goal("look", "bowl", "desklamp"),
}


@pytest.fixture
def fields():
    return game_fields(generator.generate(TASK), TASK)


def content(fields, **changes):
    return json.dumps(fields | changes).encode()


@pytest.mark.parametrize("text", OFFICIAL_GOALS)
def test_goals_as_the_official_games_write_them(text):
    assert parse_goal(text.lower()) == OFFICIAL_GOALS[text]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "no expression"),
        (f"mug {min(OFFICIAL_GOALS).lower()}", "over mug, is of no known kind"),
        ("(and (exists (?o - object) (and (holds ?a ?o))))", "holds, is of no known kind"),
        ("(or (inreceptacle ?o ?r))", "or"),
        ("(not (inreceptacle ?o ?r))", "not"),
        ("(and (inreceptacle ?o ?r) (objecttype ?o mug) (receptacletype ?r safetype))", "one type"),
        (
            "(exists (?o ?p ?r) (and (not (= ?o ?p)) (objecttype ?o mugtype)"
            "(objecttype ?p pentype)"
            "(inreceptacle ?o ?r) (inreceptacle ?p ?r) (receptacletype ?r safetype)))",
            "one type",
        ),
    ],
)
def test_other_goals_are_refused(text, reason):
    with pytest.raises(ValueError, match=reason):
        parse_goal(text)


@pytest.mark.parametrize("size", ["small", "large"])
def test_a_written_game_is_the_generated_one(size):
    for family in ("pick", "look", "clean", "heat", "cool", "pick2"):
        task_id = f"{size}-valid_unseen-{family}-0007"
        problem = generator.generate(task_id)
        again = parse_game(json.dumps(game_fields(problem, task_id)).encode())
        here, there = build_game(problem, task_id), build_game(again, task_id)
        for name in here.__slots__:
            if name != "walkthrough":
                assert getattr(here, name) == getattr(there, name), name


@pytest.mark.parametrize("wrong", [3.5, "look", {"a": 1}])
def test_a_walkthrough_that_is_no_list_is_refused(wrong):
    fields = game_fields(generator.generate(TASK), TASK) | {"walkthrough": wrong}
    with pytest.raises(ValueError, match="walkthrough is no list"):
        parse_game(json.dumps(fields).encode())


OF_ONE = [
    "cleanable",
    "coolable",
    "heatable",
    "isclean",
    "iscool",
    "ishot",
    "isreceptacleobject",
    "issliced",
    "istoggled",
    "openable",
    "opened",
    "pickupable",
    "sliceable",
    "toggleable",
]
OF_TWO = [
    "atlocation",
    "cancontain",
    "inreceptacle",
    "inreceptacleobject",
    "objectatlocation",
    "objecttype",
    "receptacleatlocation",
    "receptacletype",
]


@pytest.mark.parametrize("name", [*OF_ONE, *OF_TWO])
def test_a_fact_has_as_many_arguments_as_the_domain_says(name):
    ending = (
        ") (:goal (and (inreceptacle ?o ?r) (objecttype ?o mugtype) (receptacletype ?r bedtype))"
    )
    one, two = (f"(:init ({name} {arguments}) {ending})" for arguments in ("x", "x y"))
    right, wrong, fact = (two, one, ("x", "y")) if name in OF_TWO else (one, two, ("x",))
    facts, goal = parse_problem(right)
    assert facts == {name: (fact,)}
    assert goal == Goal("pick", "mug", "bed")
    with pytest.raises(ValueError, match=f"fact \\({name} x.* is not one of this domain"):
        parse_problem(wrong)


def test_comments_case_and_layout_do_not_matter():
    text = pddl_problem(generator.generate(TASK), TASK)
    noisy = text.upper().replace("\n", " ; (openable nothing)\n")
    assert parse_problem(noisy) == parse_problem(text)


def test_own_rules_and_wording_are_recognised():
    assert domain_digest(resource("household.pddl")) in gamefile._DOMAINS
    _, grammar = gamefile._split_task(resource("household.twl2"))
    assert grammar_digest(grammar) in gamefile._GRAMMARS


def test_a_changed_rule_is_another_generation(fields):
    rules = fields["pddl_domain"].replace("(not (holdsAny ?a))", "")
    with pytest.raises(ValueError, match=r"rules .* unknown generation"):
        parse_game(content(fields, pddl_domain=rules))


def test_a_changed_wording_is_another_generation(fields):
    wording = fields["grammar"].replace("You open the", "You have opened the")
    with pytest.raises(ValueError, match="unknown generation"):
        parse_game(content(fields, grammar=wording))


def test_the_generation_before_is_named(fields):
    wording = fields["grammar"].replace("move {o} to {r}", "put {o} in/on {r}")
    with pytest.raises(ValueError, match=r"before alfworld 0\.4.*agentgyms data fetch alfworld"):
        parse_game(content(fields, grammar=wording))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda text: text[:-40], "parentheses"),
        (lambda text: text.replace("(:init", "(:start"), "lacks"),
        (lambda text: text.replace("(openable", "(openabel", 1), "openabel"),
        (lambda text: text.replace("(atlocation agent1 loc_bar_00)", ""), "0 agents"),
        (
            lambda text: text.replace("(atlocation", "(not (atlocation", 1).replace(
                "loc_bar_00)\n", "loc_bar_00))\n", 1
            ),
            "other than plain facts",
        ),
        (lambda text: text.replace("(receptacleatlocation", "(openable", 1), r"\(openable .* .*\)"),
        (lambda text: text.replace("_bar_", "_rod_"), "KIND_bar_"),
    ],
)
def test_a_damaged_problem_is_refused(tmp_path, fields, change, reason):
    text = change(fields["pddl_problem"])
    assert text != fields["pddl_problem"]
    path = tmp_path / "game.tw-pddl"
    path.write_bytes(content(fields, pddl_problem=text))
    with pytest.raises(DataCorrupt, match=reason) as e:
        read_game(path, "x")
    assert str(path) in str(e.value)
    assert "agentgyms data import" in str(e.value)


@pytest.mark.parametrize(
    "damage",
    [
        lambda raw: raw[: len(raw) // 2],
        lambda raw: b"",
        lambda raw: b"[]",
        lambda raw: raw.replace(b'"grammar"', b'"gramar"'),
        lambda raw: raw.replace(b"Your task is to", b"Your job is to"),
        lambda raw: b"\xff\xfe" + raw,
    ],
)
def test_a_damaged_file_is_refused(tmp_path, fields, damage):
    path = tmp_path / "game.tw-pddl"
    path.write_bytes(damage(content(fields)))
    with pytest.raises(DataCorrupt, match="cannot be played"):
        read_game(path, "x")


def test_a_missing_file_is_missing(tmp_path):
    with pytest.raises(DataMissing, match="does not exist any more"):
        read_game(tmp_path / "game.tw-pddl", "x")


def test_a_lamp_that_can_be_carried_is_refused(fields):
    text = fields["pddl_problem"].replace(
        "(cleanable ", "(toggleable butterknife_bar_01) (cleanable ", 1
    )
    thing = next(line.split()[1] for line in text.splitlines() if "(pickupable" in line)
    text = text.replace("butterknife_bar_01", thing.rstrip(")"))
    with pytest.raises(ValueError, match="lamp that can be carried"):
        build_game(parse_game(content(fields, pddl_problem=text)), "x")
