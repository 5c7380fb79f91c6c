"""What a task consists of, and the idioms that solutions share."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from .people import Person
from .records import Records, Row

Option = TypeVar("Option")
Requirement = dict[str, Any]

PAGES = """\
def pages(api, **arguments):
    found, page = [], 0
    while part := api(page_index=page, page_limit=20, **arguments):
        found, page = found + part, page + 1
    return found"""
"""Code that defines `pages`: all items of an API that answers in pages."""

CONTACTS = f"{PAGES}\ncontacts = pages(apis.phone.search_contacts, access_token=phone_token)"
PROJECTS = f"{PAGES}\nprojects = pages(apis.todoist.show_projects, access_token=todoist_token)"
"""Code that reads all contacts, and all projects, of who asks."""


@dataclass(frozen=True)
class Setting:
    """Who asks for a task, and the world it is asked in; `part` numbers the tasks from 0."""

    records: Records
    people: Sequence[Person]
    person: Person
    scenario: str
    part: int

    def choose(self, options: Sequence[Option]) -> Option:
        """Return one of the options: another one for each task of the scenario."""
        order = random.Random(self.scenario).sample(range(len(options)), len(options))
        return options[order[self.part % len(options)]]

    def own(self, model: str, **equal: Any) -> list[Row]:
        """Return the rows of a model that belong to who asks, in order of their ids."""
        return self.records.of(model, user_id=self.person.id, **equal)

    def related(self, relation: str) -> list[Person]:
        """Return the people whom the contacts of who asks name so, such as `roommate`."""
        contacts = self.own("phone.Contact")
        emails = {row["email"] for row in contacts if relation in row["relationships"]}
        return [one for one in self.people if one.email in emails]


@dataclass(frozen=True)
class Task:
    """A task: its text, what is required of the end state, and code blocks that reach it."""

    instruction: str
    requirements: Sequence[Requirement]
    blocks: Sequence[str]
    answer: Any = None

    @property
    def calls(self) -> list[str]:
        """The APIs that the code blocks name, once for each place."""
        return re.findall(r"apis\.\w+\.\w+", "\n".join(self.blocks))


@dataclass(frozen=True)
class Scenario:
    """A family of tasks that differ in who asks and for what."""

    name: str
    split: str
    difficulty: int
    apps: Sequence[str]
    make: Callable[[Setting], Task]


SCENARIOS: list[Scenario] = []


def scenario(
    split: str, difficulty: int, apps: Sequence[str]
) -> Callable[[Callable[[Setting], Task]], Callable[[Setting], Task]]:
    """Return a decorator that registers a function as a scenario named like it."""

    def register(make: Callable[[Setting], Task]) -> Callable[[Setting], Task]:
        name = make.__name__.replace("_", "-")
        SCENARIOS.append(Scenario(name, split, difficulty, apps, make))
        return make

    return register


def answered(question: bool) -> Requirement:
    """Require the right answer (or none, where nothing is asked) and the status `success`."""
    text = (
        "The answer is right and the task is marked as done."
        if question
        else "The task is marked as done, without an answer."
    )
    return {"requirement": text, "kind": "answer"}


def scope(
    added: Sequence[str] = (), updated: Sequence[str] = (), removed: Sequence[str] = ()
) -> Requirement:
    """Require that records are added, updated and removed only in these models."""
    return {
        "requirement": "Nothing changes that has nothing to do with the task.",
        "kind": "scope",
        "added": list(added),
        "updated": list(updated),
        "removed": list(removed),
    }


def rows(text: str, model: str, change: str, expected: Sequence[Row]) -> Requirement:
    """Require that exactly these rows are `added` or `removed`, looking at their fields.

    A field may be one of another record that the row belongs to, such as `playlist.title`.
    """
    fields = sorted(expected[0])
    return {
        "requirement": text,
        "kind": "rows",
        "model": model,
        "change": change,
        "fields": fields,
        "rows": [{name: row[name] for name in fields} for row in expected],
    }


def fields(
    text: str, model: str, field: str, values: dict[int, Any], beside: Sequence[str] = ()
) -> Requirement:
    """Require that a field changes in exactly these records (by id), and to these values.

    Other fields of the model's records must stay, except those `beside`.
    """
    assert values, "a requirement that doing nothing meets says nothing"
    return {
        "requirement": text,
        "kind": "fields",
        "model": model,
        "field": field,
        "values": [[number, value] for number, value in sorted(values.items())],
        "beside": ["updated_at", *beside],
    }


def look_up(app: str, api: str) -> str:
    """Return code that reads the documentation of an API."""
    return f'print(apis.api_docs.show_api_doc(app_name="{app}", api_name="{api}"))'


def log_in(*apps: str) -> str:
    """Return code that logs in to apps; `<app>_token` holds each one's token."""
    lines = [
        "profile = apis.supervisor.show_profile()",
        "accounts = apis.supervisor.show_account_passwords()",
        'passwords = {one["account_name"]: one["password"] for one in accounts}',
    ]
    for app in apps:
        name = "phone_number" if app == "phone" else "email"
        lines.append(
            f"{app}_token = apis.{app}.login("
            f'username=profile["{name}"], password=passwords["{app}"])["access_token"]'
        )
    return "\n".join(lines)


def done(answer: str = "") -> str:
    """Return code that completes the task, with the value of an expression as the answer."""
    return f"apis.supervisor.complete_task({f'answer={answer}' if answer else ''})"
