"""The parser of commands, which asks back where a command may mean several things."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from agentgyms.envs.scienceworld.own.commands.actions import Action, Assignments
from agentgyms.envs.scienceworld.own.commands.definitions import Command, Pattern
from agentgyms.envs.scienceworld.own.commands.referents import (
    BLANKS,
    Names,
    collect_accessible_objects,
    joined,
    names_of,
    tokenize,
)
from agentgyms.envs.scienceworld.own.maps import MutableMap
from agentgyms.envs.scienceworld.own.objects.agent import Agent
from agentgyms.envs.scienceworld.own.objects.base import EnvObject

NO_MATCH = "No known action matches that input."

Objects = tuple[EnvObject, ...]


class InputMatch(NamedTuple):
    """A command with the objects that an input may mean."""

    command: Command
    assignments: Assignments

    def clarification(self, agent_container: EnvObject | None) -> str:
        """Return the command in words that tell where its objects are."""
        parts = []
        for part in self.command.pattern:
            if isinstance(part, str):
                parts.append(_located(self.assignments[part], agent_container))
            else:
                parts.append(part[0])
        return " ".join(parts)


class InputParser:
    """Finds the action that an input means.

    `ambiguous` has the meanings of the last input, if it has several; else it is None.
    """

    __slots__ = ("_commands", "ambiguous")

    def __init__(self, commands: tuple[Command, ...]) -> None:
        self._commands = commands
        self.ambiguous: tuple[InputMatch, ...] | None = None

    def parse(
        self, text: str, here: EnvObject, universe: EnvObject, agent: Agent
    ) -> tuple[Action | None, str]:
        """Return the action that an input means; else None, and what the agent is told."""
        words = " ".join(tokenize(text.lower()))
        found: MutableMap[str, list[InputMatch]] = MutableMap()
        near, far = _Heard(here, agent, None), _Heard(here, agent, universe)
        for command in self._commands:
            heard = far if command.everywhere else near
            meant = _meanings(words, command.pattern, heard)
            if meant:
                found[command.name] = [
                    InputMatch(command, _assigned(command.pattern, objs, agent)) for objs in meant
                ]
        matches = [match for of_command in found.values() for match in of_command]
        if len(matches) > 1:
            self.ambiguous = tuple(matches)
            return None, _question(found.keys(), matches, agent.container())
        if not matches:
            return None, NO_MATCH
        command, assignments = matches[0]
        return command.typecast(assignments), ""

    def resolve_ambiguity(self, text: str) -> Action | None:
        """Return the action that a number chooses, if any; the question is closed anyway."""
        matches, self.ambiguous = self.ambiguous or (), None
        number = _java_int(text)
        if number is None or not 0 <= number < len(matches):
            return None
        command, assignments = matches[number]
        return command.typecast(assignments)


class _Heard:
    """The words that mean the objects around the agent, found when they are asked for."""

    __slots__ = ("_agent", "_here", "_named", "_universe")

    def __init__(self, here: EnvObject, agent: Agent, universe: EnvObject | None) -> None:
        """Look at nothing yet; with a universe, at all that is in it."""
        self._here, self._agent, self._universe = here, agent, universe
        self._named: list[tuple[EnvObject, Names]] | None = None

    def named(self) -> list[tuple[EnvObject, Names]]:
        if self._named is None:
            if self._universe is not None:
                objs = collect_accessible_objects(self._universe, include_hidden=True)
            else:
                objs = joined(
                    collect_accessible_objects(self._here, include_hidden=True),
                    collect_accessible_objects(self._agent, include_hidden=True),
                )
            self._named = list(zip(objs, names_of(objs, self._here), strict=True))
        return self._named

    def beginnings(self, text: str) -> list[tuple[str, EnvObject]]:
        """Return the objects whose words a text begins with, each with the rest of the text.

        A word may end within a word of the text, as in the engine.
        """
        beginnings = {text[:size] for size in range(len(text) + 1)}
        return [
            (text[len(word) :].strip(BLANKS), obj)
            for obj, names in self.named()
            if not names.known.isdisjoint(beginnings)
            for word in names.heard
            if word in beginnings
        ]

    def meant(self, text: str) -> list[EnvObject]:
        return [obj for obj, names in self.named() if text in names.known]


def _meanings(words: str, pattern: Pattern, heard: _Heard) -> list[Objects]:
    """Return the objects that an input may mean, if it is a command of the pattern."""
    return list(dict.fromkeys(_fits(words, pattern, heard)))


def _fits(text: str, pattern: Pattern, heard: _Heard) -> Iterator[Objects]:
    if not pattern:
        if not text:
            yield ()
        return
    part, rest = pattern[0], pattern[1:]
    if isinstance(part, str):
        if not rest:
            yield from ((obj,) for obj in heard.meant(text))
            return
        for left, obj in heard.beginnings(text):
            for more in _fits(left, rest, heard):
                yield (obj, *more)
        return
    for word in part:
        if text.startswith(word):
            yield from _fits(text[len(word) :].strip(BLANKS), rest, heard)


def _assigned(pattern: Pattern, objs: Objects, agent: Agent) -> Assignments:
    places = [part for part in pattern if isinstance(part, str)]
    return {**dict(zip(places, objs, strict=True)), "agent": agent}


def _question(names: list[str], matches: list[InputMatch], container: EnvObject | None) -> str:
    told = ""
    if len(names) > 1:
        told = (
            "Ambiguous request: Multiple different possible actions were matched to this input ("
            f"{', '.join(names)}). It's possible the action space needs to be refined to remove "
            "possible duplicate/ambiguous patterns."
        )
    told += (
        "Ambiguous request: Please enter the number for the action you intended (or blank to "
        "cancel):\n"
    )
    return told + "".join(
        f"{at}:\t{match.clarification(container)}\n" for at, match in enumerate(matches)
    )


def _located(obj: EnvObject, agent_container: EnvObject | None) -> str:
    """Return the name of an object, and what it is in up to the place of the agent."""
    places, container = [], obj.container()
    while container is not None:
        places.append(f"in {container.name}")
        if container is agent_container:
            break
        container = container.container()
    told = obj.descript_name()
    return f"{told} ({', '.join(places)})" if places else told


def _java_int(text: str) -> int | None:
    """Return the number that `Integer.parseInt` reads, or None."""
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not digits.isdecimal():
        return None
    number = int(digits)
    number = -number if text.startswith("-") else number
    return number if -(1 << 31) <= number < 1 << 31 else None
