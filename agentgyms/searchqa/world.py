"""The closed world: invented things, what holds among them, and one paragraph about each."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from typing import Final

from agentgyms.chance import Chance
from agentgyms.searchqa import golden
from agentgyms.searchqa.corpus import Document
from agentgyms.searchqa.names import Names
from agentgyms.searchqa.relations import Kind, Relation, kinds

VERSION: Final = "2"

_BIRTHS: Final = (1580, 1950)
_TRIES: Final = 30


@dataclass(frozen=True, slots=True)
class Fact:
    """One value of a thing.

    Attributes:
        relation: What links them.
        text: The value as the paragraph has it.
        golden: The ways to write it that count as right; the first is the text.
        entity_id: The thing that the value is, "" if it has no paragraph.
    """

    relation: str
    text: str
    golden: tuple[str, ...]
    entity_id: str = ""


@dataclass(slots=True)
class Entity:
    """One thing.

    Attributes:
        entity_id: Its id, and that of its paragraph.
        kind: A kind of `closed_world.toml`.
        name: Its name, which no other thing has.
        year: When it began; what comes of it is later.
        facts: What holds of it, by relation: one value each.
    """

    entity_id: str
    kind: str
    name: str
    year: int = 0
    facts: dict[str, Fact] = field(default_factory=dict)

    @property
    def golden(self) -> tuple[str, ...]:
        """The ways to write the name that count as right."""
        return golden.names(self.kind, self.name)


@dataclass(frozen=True, slots=True)
class World:
    """Everything there is.

    Attributes:
        entities: All things by id.
        documents: One paragraph for each, in an order that tells nothing.
    """

    entities: dict[str, Entity]
    documents: tuple[Document, ...]


@cache
def closed_world() -> World:
    """Return the world, the same one on every machine; it is made once for a process."""
    builder = _Builder(Chance("closed-world", VERSION))
    entities = builder.build()
    writing = Chance("closed-world", VERSION, "paragraphs")
    documents = [Document(e.entity_id, _paragraph(e, writing)) for e in entities.values()]
    return World(entities, tuple(writing.sample(documents, len(documents))))


class _Builder:
    """Makes the things kind by kind, then what holds among them."""

    def __init__(self, chance: Chance) -> None:
        self._chance = chance
        self._names = Names(chance)
        self._of_kind: dict[str, list[Entity]] = {}

    def build(self) -> dict[str, Entity]:
        for kind in kinds().values():
            self._of_kind[kind.name] = [
                Entity(f"{kind.name}-{i:04d}", kind.name, self._names.of(kind.name))
                for i in range(kind.count)
            ]
        for kind_name in ("person", "school", "press", "company", "work", "building"):
            for entity in self._of_kind[kind_name]:
                self._begin(entity)
        for kind in kinds().values():
            for entity in self._of_kind[kind.name]:
                self._settle(entity, kind)
        return {e.entity_id: e for entities in self._of_kind.values() for e in entities}

    def _begin(self, entity: Entity) -> None:
        """Give a person a birth, and a work of people a maker who is old enough."""
        if entity.kind == "person":
            entity.year = self._chance.between(*_BIRTHS)
            return
        relation = {"work": "author", "building": "architect"}.get(entity.kind, "founder")
        maker = self._chance.pick(self._of_kind["person"])
        entity.year = maker.year + self._chance.between(24, 58)
        self._link(entity, relation, maker)

    def _settle(self, entity: Entity, kind: Kind) -> None:
        for relation in kind.relations.values():
            if relation.name in entity.facts:
                continue
            if relation.value:
                other = self._other(entity, relation)
                if other is not None:
                    self._link(entity, relation.name, other)
                if other is not None and relation.mutual:
                    self._link(other, relation.name, entity)
            else:
                forms = self._literal(entity, relation.name)
                entity.facts[relation.name] = Fact(relation.name, forms[0], forms)

    def _other(self, entity: Entity, relation: Relation) -> Entity | None:
        """Return a thing that `entity` may be linked with; None if chance finds none."""
        linked = {fact.entity_id for fact in entity.facts.values()} | {entity.entity_id}
        for _ in range(_TRIES):
            other = self._chance.pick(self._of_kind[relation.value])
            taken = relation.mutual and relation.name in other.facts
            if other.entity_id not in linked and not taken and _fits(entity, relation.name, other):
                return other
        return None

    @staticmethod
    def _link(entity: Entity, relation: str, other: Entity) -> None:
        entity.facts[relation] = Fact(relation, other.name, other.golden, other.entity_id)

    def _literal(self, entity: Entity, relation: str) -> tuple[str, ...]:
        between = self._chance.between
        if relation in ("birthday", "opening"):
            return golden.dates(between(1, 28), between(1, 12), entity.year)
        if relation in ("foundation", "year"):
            return (str(entity.year),)
        if relation == "charter":
            return (str(between(870, 1560)),)
        if relation == "island":
            return golden.names(relation, self._names.word("place"))
        low, high = {"length": (41, 980), "height": (1104, 4890), "depth": (21, 640)}[relation]
        return golden.measures(relation, between(low, high))


def _fits(entity: Entity, relation: str, other: Entity) -> bool:
    """Return whether the years of two things allow a link between them."""
    if relation == "teacher":
        return 18 <= entity.year - other.year <= 60
    if relation == "school":
        return other.year <= entity.year + 18
    return relation != "publisher" or other.year <= entity.year


def _paragraph(entity: Entity, chance: Chance) -> str:
    """Return the contents of the document about a thing: its facts in random order and words."""
    kind = kinds()[entity.kind]

    def sentence(forms: Iterable[str], value: str = "") -> str:
        text = chance.pick(tuple(forms)).format(
            x=entity.name,
            y=value,
            trait=chance.pick(kind.traits),
            s=chance.pick(kind.short).format(last=entity.name.rpartition(" ")[2]),
        )
        return text[0].upper() + text[1:]

    said = [sentence(kind.relations[f.relation].facts, f.text) for f in entity.facts.values()]
    said += [sentence([aside]) for aside in chance.sample(kind.asides, 2)]
    body = [sentence(kind.introductions), *chance.sample(said, len(said))]
    return f'"{entity.name}"\n{" ".join(body)}'
