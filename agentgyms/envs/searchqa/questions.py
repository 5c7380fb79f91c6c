"""Questions; the generated ones are chains of one to three facts of the closed world."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Final

from agentgyms.core.randomness import Chance
from agentgyms.core.tasks import Task, TaskSet
from agentgyms.envs.searchqa.relations import kinds
from agentgyms.envs.searchqa.world import VERSION, Entity, Fact, World, closed_world

COUNTS: Final = {"train": 3000, "valid": 300, "test": 300, "sample": 12}
"""Number of generated questions of each split, a third in each family."""

HOPS: Final = (1, 2, 3)
_SPLIT_GROUPS: Final = (("valid",), ("test",), ("train", "sample"))
"""Groups of splits; within a group, chains may share facts except their last ones."""
GENERATED_VERSION: Final = f"closed-world-{VERSION}"


@dataclass(frozen=True, slots=True)
class Question:
    """One question; `support` has its needed documents' ids by hop, empty if they are unknown."""

    question_id: str
    family: str
    text: str
    golden: tuple[str, ...]
    support: tuple[str, ...] = ()
    titles: tuple[str, ...] = ()


class QuestionSet:
    """The questions of one split; environments share it."""

    def __init__(self, split: str, questions: Iterable[Question], version: str) -> None:
        """Raise `ValueError` if two questions share an id."""
        listed = tuple(questions)
        self.by_id = {question.question_id: question for question in listed}
        if len(self.by_id) != len(listed):
            raise ValueError(f"two questions of split {split!r} share an id")
        self.tasks = TaskSet(split, [Task(q.question_id, q.family) for q in listed])
        self.version = version


@cache
def generated_set(split: str) -> QuestionSet:
    """Return the generated questions of a split; cached."""
    return QuestionSet(split, generated_questions()[split], GENERATED_VERSION)


@cache
def generated_questions() -> dict[str, tuple[Question, ...]]:
    """Return the questions of every split, the same ones on every machine.

    No two chains end in the same fact; `valid` and `test` share no fact with another split.
    """
    chains = _ChainSampler(closed_world())
    splits: dict[str, list[Question]] = {split: [] for split in COUNTS}
    numbers: Counter[tuple[int, str]] = Counter()
    for group in _SPLIT_GROUPS:
        chains.start_group()
        for hops in HOPS:
            chance = Chance("closed-world", VERSION, group, f"{hops}-hop")
            # Early samples have more unused facts than late ones; each split gets some of both.
            places = [split for split in group for _ in range(COUNTS[split] // len(HOPS))]
            for split in chance.sample(places, len(places)):
                question_id = f"{hops}-hop/{split}-{numbers[hops, split]:05d}"
                splits[split].append(_question(question_id, chains.draw(hops, chance), chance))
                numbers[hops, split] += 1
    return {split: tuple(questions) for split, questions in splits.items()}


_Chain = list[tuple[Entity, Fact]]
_FactKey = frozenset[str]


class _ChainSampler:
    """Samples chains of facts with different last facts."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._entities = tuple(world.entities.values())
        self._contents = {d.doc_id: d.contents for d in world.documents}
        self._last_facts: set[_FactKey] = set()
        self._used: set[_FactKey] = set()
        self._forbidden: frozenset[_FactKey] = frozenset()

    def start_group(self) -> None:
        """Start a group of splits that shares no fact with earlier groups."""
        self._forbidden = frozenset(self._used)

    def draw(self, hops: int, chance: Chance) -> _Chain:
        """Return a chain whose answer is not in its first name or an earlier paragraph."""
        while True:
            chain = self._random_chain(chance.pick(self._entities), hops, chance)
            if chain is None:
                continue
            facts = [_key(entity, fact) for entity, fact in chain]
            answer = chain[-1][1].text
            earlier_texts = [
                chain[0][0].name,
                *(self._contents[e.entity_id] for e, _ in chain[:-1]),
            ]
            new = facts[-1] not in self._last_facts and not self._forbidden.intersection(facts)
            if new and not any(answer in text for text in earlier_texts):
                self._last_facts.add(facts[-1])
                self._used.update(facts)
                return chain

    def _random_chain(self, start: Entity, hops: int, chance: Chance) -> _Chain | None:
        """Return a random chain of facts from `start`; None at a dead end or a repeated entity."""
        chain: _Chain = []
        here, visited = start, {start.entity_id}
        for left in range(hops, 0, -1):
            facts = [f for f in here.facts.values() if f.entity_id or left == 1]
            if not facts:
                return None
            fact = chance.pick(facts)
            chain.append((here, fact))
            if fact.entity_id in visited:
                return None
            if left > 1:
                here = self._world.entities[fact.entity_id]
                visited.add(here.entity_id)
        return chain


def _question(question_id: str, chain: _Chain, chance: Chance) -> Question:
    start, (last_entity, last) = chain[0][0], chain[-1]
    named = kinds()[start.kind].reference.format(x=start.name)
    for entity, fact in chain[:-1]:
        named = chance.pick(kinds()[entity.kind].relations[fact.relation].phrases).format(x=named)
    forms = kinds()[last_entity.kind].relations[last.relation].questions
    return Question(
        question_id=question_id,
        family=f"{len(chain)}-hop",
        text=chance.pick(forms).format(x=named),
        golden=last.golden,
        support=tuple(entity.entity_id for entity, _ in chain),
        titles=tuple(entity.name for entity, _ in chain),
    )


def _key(entity: Entity, fact: Fact) -> _FactKey:
    """Return the identity of a fact; a mutual fact is the same from both entities."""
    mutual = kinds()[entity.kind].relations[fact.relation].mutual
    return frozenset((entity.entity_id, fact.entity_id if mutual else "", fact.relation))
