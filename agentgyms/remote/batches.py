"""One call to each server for many sessions, and what becomes of the answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from typing import Any

from agentgyms.errors import SessionLost
from agentgyms.remote.connection import LOST
from agentgyms.remote.endpoint import Endpoint
from agentgyms.remote.lease import Lease


def in_batches(
    pool: Executor,
    operation: str,
    leases: Mapping[int, Lease | None],
    asked: Mapping[int, Callable[[Lease], dict[str, Any]]],
) -> dict[int, Any]:
    """Ask sessions, one call per server.

    Args:
        pool: Where calls to several servers wait at once.
        operation: What is asked, as the batch route names it.
        leases: The session of each member; None if it is lost.
        asked: For each member to ask, in order, what makes its request.

    Returns:
        For each member (session, answer), or the exception that stands for its error.
    """
    results: dict[int, Any] = {}
    groups: dict[Endpoint, dict[int, Lease]] = {}
    for i in asked:
        lease = leases[i]
        if lease is None:
            results[i] = SessionLost("the session was lost before")
        else:
            groups.setdefault(lease.endpoint, {})[i] = lease

    def ask(endpoint: Endpoint) -> None:
        group = groups[endpoint]
        items = [{"session_id": lease.session_id, **asked[i](lease)} for i, lease in group.items()]
        try:
            answers = endpoint.batch(operation, items)
        except LOST as e:
            answers = [e] * len(items)
        for (i, lease), answer in zip(group.items(), answers, strict=True):
            results[i] = answer if isinstance(answer, Exception) else (lease, answer)

    list(pool.map(ask, groups) if len(groups) > 1 else map(ask, groups))
    return {i: results[i] for i in asked}


def take_all(results: Mapping[int, Any], take: Callable[[int, Lease | None, Any], None]) -> None:
    """Take every member's answer; a member whose session is lost makes its call again alone.

    The first failure is raised only at the end, so that every other member knows where its
    session stands. Where one member's patience has ended, the others do not wait in their turn.

    Args:
        results: What `in_batches` returned.
        take: Takes (member, session, answer), or (member, None, None) if the session is lost.
    """
    failures: list[Exception] = []
    for i, result in results.items():
        lost = isinstance(result, LOST)
        if lost and any(isinstance(failure, LOST) for failure in failures):
            continue
        try:
            if isinstance(result, Exception) and not lost:
                raise result
            take(i, *((None, None) if lost else result))
        except Exception as e:
            failures.append(e)
    if failures:
        raise failures[0]
