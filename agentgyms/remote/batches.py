"""One call to each server for many sessions, and what becomes of the answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from typing import Any, NamedTuple

from agentgyms.remote.endpoint import Endpoint
from agentgyms.remote.lease import Lease


class Ask(NamedTuple):
    """What one session is asked.

    Attributes:
        fields: Makes the request.
        read: Reads the answer.
    """

    fields: Callable[[Lease], dict[str, Any]]
    read: Callable[[Lease, Any], Any]


def in_batches(
    pool: Executor, operation: str, leases: Mapping[int, Lease], asks: Mapping[int, Ask]
) -> dict[int, Any]:
    """Ask sessions, one call per server.

    Args:
        pool: Where calls to several servers wait at once.
        operation: What is asked, as the batch route names it.
        leases: The session of each member.
        asks: What each member is asked, in order; sessions without are left alone.

    Returns:
        For each member what was read of its answer, or the exception that stands for its error.
    """
    groups: dict[Endpoint, list[int]] = {}
    for i in asks:
        groups.setdefault(leases[i].endpoint, []).append(i)
    results: dict[int, Any] = {}

    def ask(endpoint: Endpoint) -> None:
        group = groups[endpoint]
        items = [{"session_id": leases[i].session_id, **asks[i].fields(leases[i])} for i in group]
        try:
            answers = endpoint.batch(operation, items)
        except Exception as e:  # the members on other servers have moved on all the same
            answers = [e] * len(items)
        for i, answer in zip(group, answers, strict=True):
            results[i] = _read(asks[i], leases[i], answer)

    list(pool.map(ask, groups) if len(groups) > 1 else map(ask, groups))
    return {i: results[i] for i in asks}


def _read(ask: Ask, lease: Lease, answer: Any) -> Any:
    if isinstance(answer, Exception):
        return answer
    try:
        return ask.read(lease, answer)
    except Exception as e:
        return e


def take_all(results: Mapping[int, Any], take: Callable[[int, Any], None]) -> None:
    """Take what every member answered.

    The first failure is raised only at the end, so that every other member knows where its
    session stands.
    """
    failures: list[Exception] = []
    for i, result in results.items():
        if isinstance(result, Exception):
            failures.append(result)
        else:
            take(i, result)
    if failures:
        raise failures[0]
