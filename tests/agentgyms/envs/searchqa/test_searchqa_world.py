"""The closed world: every question has one answer, and nothing but searching finds it."""

import itertools
import re
import subprocess
import sys
from collections import Counter, defaultdict
from functools import cache

import pytest

from agentgyms.core import keys
from agentgyms.envs.searchqa import scoring
from agentgyms.envs.searchqa.questions import COUNTS, generated_questions
from agentgyms.envs.searchqa.relations import kinds
from agentgyms.envs.searchqa.world import closed_world

DIGEST = "ef803dab9be8bd7f98d9686c87f405be"
"""Of all paragraphs and questions, version 2; it changes with `VERSION` alone."""

SPLITS = generated_questions()
EVERY = [q for questions in SPLITS.values() for q in questions]
CONTENTS = {d.doc_id: d.contents for d in closed_world().documents}


def test_the_world_is_the_same_everywhere():
    rows = [[d.doc_id, d.contents] for d in closed_world().documents]
    rows += [[q.question_id, q.text, list(q.golden), list(q.support)] for q in EVERY]
    assert keys.state_key(rows) == DIGEST
    code = (
        "from agentgyms.envs.searchqa.questions import generated_questions as g;"
        "print(g()['test'][7].text, g()['test'][7].golden)"
    )
    printed = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONHASHSEED": "7", "PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert printed.strip() == f"{SPLITS['test'][7].text} {SPLITS['test'][7].golden}"


def test_it_is_made_once_for_a_process():
    assert generated_questions() is generated_questions()
    assert closed_world() is closed_world()


def test_splits_have_the_promised_sizes_and_families():
    assert {split: len(questions) for split, questions in SPLITS.items()} == COUNTS
    for split, questions in SPLITS.items():
        families = Counter(q.family for q in questions)
        assert families == dict.fromkeys(("1-hop", "2-hop", "3-hop"), COUNTS[split] // 3)
        for question in questions:
            assert re.fullmatch(rf"{question.family}/{split}-\d{{5}}", question.question_id)
            assert len(question.support) == len(question.titles) == int(question.family[0])
    assert len({q.question_id for q in EVERY}) == len(EVERY)


@pytest.mark.slow
def test_no_two_questions_end_in_one_fact():
    assert len({fact_of(*facts()[q.question_id][-1]) for q in EVERY}) == len(EVERY)
    assert len({q.text for q in EVERY}) == len(EVERY)


def test_no_fact_of_a_held_out_chain_is_in_any_chain_of_another_split():
    used = {
        split: {fact_of(*step) for q in questions for step in facts()[q.question_id]}
        for split, questions in SPLITS.items()
    }
    assert not used["valid"] & used["test"]
    for split in ("valid", "test"):
        assert len(used[split]) > 500
        assert not used[split] & (used["train"] | used["sample"])


def test_names_are_unique_and_paragraphs_many():
    world = closed_world()
    assert 2000 <= len(world.documents) <= 5000
    names = [scoring.normalize(e.name) for e in world.entities.values()]
    assert len(set(names)) == len(names)
    golden = [{scoring.normalize(g) for g in e.golden} for e in world.entities.values()]
    assert sum(map(len, golden)) == len(set().union(*golden)), "two things share a way to write"
    assert [d.title for d in world.documents] == [
        world.entities[d.doc_id].name for d in world.documents
    ]


def test_similar_names_exist():
    """Half a name finds something else, so that queries have to be good."""
    words = Counter(w for e in closed_world().entities.values() for w in e.name.split())
    shared = [e for e in closed_world().entities.values() if words[e.name.split()[-1]] > 1]
    assert len(shared) > 2000
    wordings = [re.sub(r"[A-Z]\w+|\d+", "", d.contents) for d in closed_world().documents]
    assert len(set(wordings)) > len(wordings) / 2, "paragraphs look alike"


FAMOUS = """
    Anderson Balzac Beethoven Berlin Bismarck Bolivar Brandenburg Cervantes Chopin Churchill
    Columbus Copernicus Cornwall Danube Darwin Dostoevsky Dresden Edinburgh Einstein Elbrus Everest
    Finland Flaubert Galilei Garibaldi Gibraltar Gutenberg Hamburg Harrogate Heidelberg Helsinki
    Hemingway Humboldt Kafka Kandinsky Kepler Kilimanjaro Krakatoa Ladoga Leonardo Liverpool
    Luxembourg Magellan Manchester Matterhorn Michelangelo Mississippi Montblanc Mozart Munich
    Napoleon Newcastle Newton Nietzsche Nightingale Norwich Nottingham Onega Orinoco Oxford Padstow
    Petrarch Picasso Plymouth Pompeii Portugal Pushkin Rachmaninov Ramsgate Rembrandt Roosevelt
    Rotterdam Salzburg Shakespeare Sheffield Sibelius Stalingrad Stockholm Stradivari Strasbourg
    Stravinsky Tanganyika Tchaikovsky Titicaca Tolstoy Trondheim Turgenev Turkmenistan Vermeer
    Victoria Vivaldi Voltaire Westminster Winnipeg Wittgenstein Zanzibar Zeppelin Zurich
"""


def test_names_are_none_that_people_know():
    world = closed_world().entities.values()
    words = {w.lower() for e in world for w in e.name.split()}
    words |= {f.text.lower() for e in world for f in e.facts.values() if f.relation == "island"}
    assert len(words) > 2000
    assert not words & {w.lower() for w in FAMOUS.split()}


@pytest.mark.data
def test_names_do_not_occur_in_an_encyclopedia(wikipedia):
    text = (wikipedia / "corpus.jsonl").read_text(encoding="utf-8").lower()
    world = closed_world().entities.values()
    assert not [e.name for e in world if e.name.lower() in text]
    parts = {w for e in world if e.kind == "person" for w in e.name.lower().split()}
    assert len(parts) > 500
    assert not parts & set(re.findall(r"\w+", text))


# --- an independent reader: from the text of a question and the paragraphs alone ---


def pattern(template, groups):
    """Return a regular expression that reads what a template wrote."""
    parts = re.split(r"(\{\w+\})", template)
    return "".join(groups.get(p, re.escape(p)) for p in parts)


BOTH_WAYS = {"twin"}
"""Relations that language takes to hold in both directions, whatever the table says."""


@cache
def statements():
    """Return every value of (thing, relation) that the sentences of all paragraphs tell."""
    told = defaultdict(set)
    for doc_id, contents in CONTENTS.items():
        entity = closed_world().entities[doc_id]
        kind = kinds()[entity.kind]
        short = "|".join(re.escape(s.format(last=entity.name.split()[-1])) for s in kind.short)
        groups = {"{x}": re.escape(entity.name), "{s}": f"(?:{short})", "{y}": "(.+)"}
        sentences = re.split(r"(?<=\.) ", contents.partition("\n")[2])
        for relation in kind.relations.values():
            for form, sentence in itertools.product(relation.facts, sentences):
                read = re.fullmatch(pattern(form, groups), sentence, re.IGNORECASE)
                if read:
                    told[doc_id, relation.name].add(read[1])
                if read and relation.name in BOTH_WAYS:
                    told[BY_NAME[read[1]], relation.name].add(entity.name)
    return told


BY_NAME = {e.name: e.entity_id for e in closed_world().entities.values()}
BY_NAME |= {
    kinds()[e.kind].reference.format(x=e.name): e.entity_id
    for e in closed_world().entities.values()
}


def forms(attribute):
    """Return (kind, relation, regular expression) of every question or phrase."""
    return [
        (kind.name, relation.name, re.compile(pattern(form, {"{x}": "(.+)"})))
        for kind in kinds().values()
        for relation in kind.relations.values()
        for form in getattr(relation, attribute)
    ]


QUESTIONS, PHRASES = forms("questions"), forms("phrases")


def chains(text, readings):
    """Return every way to read a question or a phrase: (thing, relation) by step, and the value."""
    found = [((), text)] if readings is PHRASES and text in BY_NAME else []
    for kind, relation, form in readings:
        read = form.fullmatch(text)
        for chain, name in chains(read[1], PHRASES) if read else ():
            doc_id = BY_NAME.get(name, "")
            if doc_id and closed_world().entities[doc_id].kind == kind:
                step = (doc_id, relation)
                found += [((*chain, step), value) for value in statements()[step]]
    return found


@cache
def readings():
    """Return the ways to read each question, by its id."""
    return {q.question_id: chains(q.text, QUESTIONS) for q in EVERY}


@cache
def facts():
    """Return the facts that each question asks for, by its id."""
    return {question_id: read[0][0] for question_id, read in readings().items()}


def fact_of(doc_id, relation):
    """Return what tells a fact from others, from whichever end it is read."""
    others = (
        {BY_NAME[name] for name in statements()[doc_id, relation]} & set(CONTENTS)
        if (relation in BOTH_WAYS)
        else set()
    )
    return relation, frozenset({doc_id} | others)


def test_every_question_has_one_answer_by_what_all_paragraphs_say():
    for question in EVERY:
        read = readings()[question.question_id]
        assert {value for _, value in read} == {question.golden[0]}, question
        assert {tuple(doc_id for doc_id, _ in chain) for chain, _ in read} == {question.support}
        assert len({chain for chain, _ in read}) == 1, question


def test_every_fact_is_told_and_no_paragraph_tells_another():
    given = {
        (entity.entity_id, fact.relation): {fact.text}
        for entity in closed_world().entities.values()
        for fact in entity.facts.values()
    }
    assert statements() == given
    assert len(given) > 10_000


def test_twin_towns_are_twins_of_each_other():
    twins = {
        e.entity_id: e.facts["twin"].entity_id
        for e in closed_world().entities.values()
        if "twin" in e.facts
    }
    assert len(twins) > 300
    assert all(twins[twins[town]] == town != twins[town] for town in twins)


# --- what can be had without searching ---


def test_nothing_before_the_last_paragraph_tells_the_answer():
    for question in EVERY:
        for text in (question.text, *(CONTENTS[d] for d in question.support[:-1])):
            assert not scoring.mentions(text, question.golden[:1]), question
        assert scoring.mentions(CONTENTS[question.support[-1]], question.golden[:1])


def commonest(rows):
    """Return the commonest answer of each group of (group, answer)."""
    counts = {}
    for group, answer in rows:
        counts.setdefault(group, Counter())[answer] += 1
    return {group: counter.most_common(1)[0][0] for group, counter in counts.items()}


def shape(text):
    """Return a question without its names: what is asked for, in words."""
    return " ".join(w for w in text.split() if w.islower() or w in ("Who", "Which", "In", "What"))


def asked(question):
    return facts()[question.question_id][-1][1]


def relations(question):
    return tuple(relation for _, relation in facts()[question.question_id])


def remembered():
    """Return what the expert's actions on train tell: (name, relation) -> name or answer."""
    memory = {}
    for question in SPLITS["train"]:
        said = (*question.titles, question.golden[0])
        for name, relation, value in zip(said, relations(question), said[1:], strict=False):
            memory[name, relation] = value
            if relation in BOTH_WAYS:
                memory[value, relation] = name
    return memory


def guessers():
    """Return policies that learn from train and never search, each as a function of a question.

    Some are told more than an agent is: the relations that the question was made of.
    """
    train = SPLITS["train"]
    groupings = {
        "all": lambda q: "",
        "hops": lambda q: q.family,
        "what is asked": asked,
        "chain of relations": relations,
        "wording": lambda q: shape(q.text),
        "kind of the first thing": lambda q: (q.support[0].split("-")[0], asked(q)),
        "last word": lambda q: q.text.split()[-1],
        "first thing": lambda q: q.support[0],
    }
    fallback = commonest((asked(q), q.golden[0]) for q in train)
    for name, group_of in groupings.items():
        table = commonest((group_of(q), q.golden[0]) for q in train)
        yield name, lambda q, t=table, g=group_of: t.get(g(q), fallback[asked(q)])
    words = {
        q.question_id: set(q.text.split()) for q in (*train, *SPLITS["valid"], *SPLITS["test"])
    }

    def nearest(q):
        mine = words[q.question_id]
        return max(train, key=lambda other: len(mine & words[other.question_id])).golden[0]

    memory = remembered()

    def follow(q):
        """Go from fact to fact as far as the expert was seen to go."""
        name, guess = q.titles[0], fallback[asked(q)]
        for relation in relations(q):
            name = memory.get((name, relation), "")
            guess = name or guess
        return guess

    yield "expert's actions on train", follow
    yield "nearest question of train", nearest
    yield "first name in the question", lambda q: re.search(r"(?: [A-Z]\w+)+|$", q.text)[0]
    yield "last name in the question", lambda q: (re.findall(r"(?: [A-Z]\w+)+", q.text) or [""])[-1]
    yield "last word of the question", lambda q: q.text.rstrip("?").split()[-1]


HELD_OUT = (*SPLITS["valid"], *SPLITS["test"])


def rate(guesses):
    """Return the share of held-out questions for which one of the guessers is right."""
    return sum(
        any(scoring.exact_match(guess(q), q.golden) for guess in guesses) for q in HELD_OUT
    ) / len(HELD_OUT)


def test_guessing_without_searching_stays_below_one_percent():
    rates = {name: rate([guess]) for name, guess in guessers()}
    assert len(rates) == 13
    assert not {name: found for name, found in rates.items() if found >= 0.01}


def test_the_best_of_all_guesses_stays_below_three_percent():
    """Even an oracle that picks, for each question, the best of all guessers' answers."""
    assert rate(dict(guessers()).values()) < 0.03


def test_the_guesser_that_remembers_knows_what_it_has_seen():
    """It is one to be afraid of: on train, whose facts it has all seen, it is always right."""
    guess = dict(guessers())["expert's actions on train"]
    assert all(scoring.exact_match(guess(q), q.golden) for q in SPLITS["train"])
