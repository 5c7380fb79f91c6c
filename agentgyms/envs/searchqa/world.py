"""The closed world: invented entities, their relations, and one paragraph about each."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from typing import Final

from agentgyms.core.randomness import Chance
from agentgyms.envs.searchqa import spellings
from agentgyms.envs.searchqa.corpus import Document
from agentgyms.envs.searchqa.names import NameGenerator
from agentgyms.envs.searchqa.relations import Kind, Relation, kinds

VERSION: Final = "2"

_BIRTHS: Final = (1580, 1950)
_TRIES: Final = 30


@dataclass(frozen=True, slots=True)
class Fact:
    """A fact about an entity; `entity_id` is "" if the value has no paragraph of its own."""

    relation: str
    text: str
    golden: tuple[str, ...]
    entity_id: str = ""


@dataclass(slots=True)
class Entity:
    """An entity, with one fact for each relation, and the year of its birth or foundation."""

    entity_id: str
    kind: str
    name: str
    year: int = 0
    facts: dict[str, Fact] = field(default_factory=dict)

    @property
    def golden(self) -> tuple[str, ...]:
        """Accepted spellings of the name."""
        return spellings.names(self.kind, self.name)


@dataclass(frozen=True, slots=True)
class World:
    """All entities by id, and one paragraph for each, in random order."""

    entities: dict[str, Entity]
    documents: tuple[Document, ...]


@cache
def closed_world() -> World:
    """Return the world, the same on every machine; cached."""
    builder = _Builder(Chance("closed-world", VERSION))
    entities = builder.build()
    chance = Chance("closed-world", VERSION, "paragraphs")
    documents = [Document(e.entity_id, _paragraph(e, chance)) for e in entities.values()]
    return World(entities, tuple(chance.sample(documents, len(documents))))


class _Builder:
    def __init__(self, chance: Chance) -> None:
        self._chance = chance
        self._names = NameGenerator(chance)
        self._of_kind: dict[str, list[Entity]] = {}

    def build(self) -> dict[str, Entity]:
        for kind in kinds().values():
            self._of_kind[kind.name] = [
                Entity(f"{kind.name}-{i:04d}", kind.name, self._names.of(kind.name))
                for i in range(kind.count)
            ]
        for kind_name in ("person", "school", "press", "company", "work", "building"):
            for entity in self._of_kind[kind_name]:
                self._set_year(entity)
        for kind in kinds().values():
            for entity in self._of_kind[kind.name]:
                self._add_facts(entity, kind)
        return {e.entity_id: e for entities in self._of_kind.values() for e in entities}

    def _set_year(self, entity: Entity) -> None:
        """Set a person's year of birth, or another entity's maker and year of foundation."""
        if entity.kind == "person":
            entity.year = self._chance.between(*_BIRTHS)
            return
        relation = {"work": "author", "building": "architect"}.get(entity.kind, "founder")
        maker = self._chance.pick(self._of_kind["person"])
        entity.year = maker.year + self._chance.between(24, 58)
        self._link(entity, relation, maker)

    def _add_facts(self, entity: Entity, kind: Kind) -> None:
        for relation in kind.relations.values():
            if relation.name in entity.facts:
                continue
            if relation.value:
                other = self._pick_partner(entity, relation)
                if other is not None:
                    self._link(entity, relation.name, other)
                if other is not None and relation.mutual:
                    self._link(other, relation.name, entity)
            else:
                forms = self._literal(entity, relation.name)
                entity.facts[relation.name] = Fact(relation.name, forms[0], forms)

    def _pick_partner(self, entity: Entity, relation: Relation) -> Entity | None:
        """Return a random valid value for a relation of `entity`; None if no try succeeds."""
        linked = {fact.entity_id for fact in entity.facts.values()} | {entity.entity_id}
        for _ in range(_TRIES):
            other = self._chance.pick(self._of_kind[relation.value])
            taken = relation.mutual and relation.name in other.facts
            if (
                other.entity_id not in linked
                and not taken
                and _years_fit(entity, relation.name, other)
            ):
                return other
        return None

    @staticmethod
    def _link(entity: Entity, relation: str, other: Entity) -> None:
        entity.facts[relation] = Fact(relation, other.name, other.golden, other.entity_id)

    def _literal(self, entity: Entity, relation: str) -> tuple[str, ...]:
        between = self._chance.between
        if relation in ("birthday", "opening"):
            return spellings.dates(between(1, 28), between(1, 12), entity.year)
        if relation in ("foundation", "year"):
            return (str(entity.year),)
        if relation == "charter":
            return (str(between(870, 1560)),)
        if relation == "island":
            return spellings.names(relation, self._names.word("place"))
        low, high = {"length": (41, 980), "height": (1104, 4890), "depth": (21, 640)}[relation]
        return spellings.measures(relation, between(low, high))


def _years_fit(entity: Entity, relation: str, other: Entity) -> bool:
    """Return whether the years of two entities allow the relation."""
    if relation == "teacher":
        return 18 <= entity.year - other.year <= 60
    if relation == "school":
        return other.year <= entity.year + 18
    return relation != "publisher" or other.year <= entity.year


def _paragraph(entity: Entity, chance: Chance) -> str:
    """Return the contents of an entity's document: its facts in random order and wording."""
    kind = kinds()[entity.kind]

    def sentence(forms: Iterable[str], value: str = "") -> str:
        text = chance.pick(tuple(forms)).format(
            x=entity.name,
            y=value,
            trait=chance.pick(kind.traits),
            s=chance.pick(kind.short).format(last=entity.name.rpartition(" ")[2]),
        )
        return text[0].upper() + text[1:]

    sentences = [sentence(kind.relations[f.relation].facts, f.text) for f in entity.facts.values()]
    sentences += [sentence([aside]) for aside in chance.sample(kind.asides, 2)]
    body = [sentence(kind.introductions), *chance.sample(sentences, len(sentences))]
    return f'"{entity.name}"\n{" ".join(body)}'
