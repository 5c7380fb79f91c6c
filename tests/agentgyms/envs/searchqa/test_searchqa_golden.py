"""Ways to write an answer: what counts as right in the closed world, and what does not."""

import pytest

from agentgyms.envs.searchqa import scoring, spellings
from agentgyms.envs.searchqa.env import SearchQAEnv
from agentgyms.envs.searchqa.questions import generated_questions
from agentgyms.envs.searchqa.world import closed_world

RIGHT = {
    ("date", (24, 6, 1767)): [
        "24 June 1767",
        "24th June 1767",
        "June 24, 1767",
        "june 24th 1767",
        "the 24th of June, 1767",
        "24 of June 1767",
        "1767-06-24",
    ],
    ("date", (1, 3, 1900)): ["1st March 1900", "March 1st, 1900"],
    ("date", (12, 3, 1900)): ["12th March 1900"],
    ("date", (22, 3, 1900)): ["22nd March 1900"],
    ("date", (23, 3, 1900)): ["23rd of March 1900"],
    ("length", 512): ["512 kilometres", "512 kilometers", "512 km", "512km long", "512"],
    ("height", 3104): ["3104 metres", "3,104 meters", "3104 m high", "3104m", "3104"],
    ("depth", 97): ["97 metres", "97 meters deep", "97 m", "97"],
    ("river", "Leina"): ["Leina", "the Leina", "River Leina", "the Leina river"],
    ("lake", "Lake Kida"): ["Lake Kida", "the lake Kida", "Kida", "Kida lake"],
    ("mountain", "Mount Gora"): ["Mount Gora", "Mt. Gora", "Gora"],
    ("island", "Sony"): ["Sony", "Sony island", "the island of Sony"],
    ("town", "Upper Bram"): ["Upper Bram", "the town of Upper Bram"],
    ("press", "Rask and Zor"): ["Rask and Zor", "Rask & Zor"],
    ("person", "Elvio Rask"): ["Elvio Rask"],
}
WRONG = {
    ("date", (24, 6, 1767)): ["24 June", "June 1767", "24 July 1767", "1767", "4 June 1767"],
    ("date", (1, 3, 1900)): ["11 March 1900", "1900-01-03"],
    ("length", 512): ["512 metres", "51 km", "5120", "512 miles"],
    ("height", 3104): ["3104 km", "3104 feet", "3104 deep"],
    ("river", "Leina"): ["Lake Leina", "Lein"],
    ("town", "Upper Bram"): ["Bram"],
    ("person", "Elvio Rask"): ["Rask", "Elvio"],
}


def forms(kind, value):
    if kind == "date":
        return spellings.dates(*value)
    return (
        spellings.names(kind, value) if isinstance(value, str) else spellings.measures(kind, value)
    )


@pytest.mark.parametrize("case", RIGHT, ids=str)
def test_what_is_right(case):
    for answer in RIGHT[case]:
        assert scoring.exact_match(answer, forms(*case)), answer


def test_the_first_form_is_how_the_paragraph_has_it():
    contents = {d.doc_id: d.contents for d in closed_world().documents}
    for entity in closed_world().entities.values():
        assert entity.golden[0] == entity.name
        for fact in entity.facts.values():
            assert fact.golden[0] == fact.text
            assert fact.text in contents[entity.entity_id]


@pytest.mark.parametrize("case", WRONG, ids=str)
def test_what_is_wrong(case):
    for answer in WRONG[case]:
        assert not scoring.exact_match(answer, forms(*case)), answer


@pytest.mark.parametrize(
    ("relation", "written"),
    [
        ("height", lambda text: text.replace("metres", "meters")),
        ("length", lambda text: text.replace("kilometres", "kilometers")),
        ("birthday", lambda text: "the " + text.replace(" ", "th of ", 1)),
        ("river", lambda text: f"the {text} River"),
        ("island", lambda text: f"The island of {text}."),
    ],
)
def test_episodes_take_these_forms(relation, written):
    entities = closed_world().entities.values()
    texts = {e.facts[relation].text for e in entities if relation in e.facts}
    texts -= {text for text in texts if relation == "birthday" and text[:2] < "24"}
    env = SearchQAEnv(split="train")
    question = next(q for q in generated_questions()["train"] if q.golden[0] in texts)
    env.reset(options={"task_id": question.question_id})
    answer = written(question.golden[0])
    assert answer != question.golden[0]
    assert env.step(f"answer[{answer}]")[1] == 1
