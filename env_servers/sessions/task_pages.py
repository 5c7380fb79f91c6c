"""Pages of task lists: a part of a split, or what a search finds in it, in bounded time."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from typing import Any, Final

from agentgyms.core.errors import BadRequest
from agentgyms.core.tasks import Task, TaskSet
from agentgyms.remote.protocol import framing, messages
from agentgyms.remote.protocol.messages import MAX_FILTER, MAX_TASKS

_MOST_SEARCHED: Final = 50_000
_LONGEST_NUMBER: Final = 18
_CHUNK: Final = 1_000
_LAST_CHARACTER: Final = chr(0x10FFFF)


def read(query: Mapping[str, list[str]]) -> messages.ListTasks:
    """Return a query as a message; `BadRequest` for an unknown, repeated or bad parameter."""
    fields: dict[str, Any] = {}
    for name, values in query.items():
        if len(values) > 1:
            raise BadRequest(f"{name!r} is given {len(values)} times in the query: expected once")
        fields[name] = _number(values[0]) if name in ("offset", "limit") else values[0]
    request = framing.read(messages.ListTasks, fields, "query")
    if request.limit is not None and not 1 <= request.limit <= MAX_TASKS:
        raise BadRequest(f"'limit' in the query must be from 1 to {MAX_TASKS}, got {request.limit}")
    for name in ("prefix", "contains"):
        if len(getattr(request, name)) > MAX_FILTER:
            raise BadRequest(f"{name!r} in the query must have at most {MAX_FILTER} characters")
    return request


def page(tasks: TaskSet, request: messages.ListTasks) -> messages.Tasks:
    """Return a page of tasks, found among the next 50,000 of the split, and the next offset."""
    first, last = request.offset, len(tasks)
    if request.prefix:
        first = max(first, bisect_left(tasks, request.prefix))
        last = bisect_left(tasks, request.prefix + _LAST_CHARACTER)
    limit = MAX_TASKS if request.limit is None else request.limit
    wanted = request.contains.casefold()
    found: list[list[str]] = []
    goes_on = first
    for index, task in _numbered(tasks, first, min(last, first + _MOST_SEARCHED)):
        goes_on = index + 1
        if wanted in task.task_id.casefold() or wanted in task.family.casefold():
            found.append([task.task_id, task.family])
        if len(found) == limit:
            break
    return messages.Tasks(tasks.split, found, len(tasks), goes_on if goes_on < last else None)


def _numbered(tasks: TaskSet, first: int, last: int) -> Iterator[tuple[int, Task]]:
    for start in range(first, last, _CHUNK):
        yield from enumerate(tasks.part(start, min(start + _CHUNK, last)), start)


def _number(text: str) -> int | str:
    plain = text.isascii() and text.isdigit() and len(text) <= _LONGEST_NUMBER
    return int(text) if plain else text
