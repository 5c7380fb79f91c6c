"""One call to each server for many sessions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from typing import Any, NamedTuple

from agentgyms.remote.endpoint import Endpoint
from agentgyms.remote.lease import Lease


class BatchItem(NamedTuple):
    """The call of one session in a batch: it makes the request's fields and reads the reply."""

    fields: Callable[[Lease], dict[str, Any]]
    read: Callable[[Lease, Any], Any]


def call_in_batches(
    pool: Executor, operation: str, leases: Mapping[int, Lease], items: Mapping[int, BatchItem]
) -> dict[int, Any]:
    """Call the operation (`step`, ...) of many sessions, with one request per server.

    Leases, calls and results are by member; members without a call are left out. A result is the
    content of the reply or the exception that its error stands for.
    """
    groups: dict[Endpoint, list[int]] = {}
    for i in items:
        groups.setdefault(leases[i].endpoint, []).append(i)
    results: dict[int, Any] = {}

    def call(endpoint: Endpoint) -> None:
        group = groups[endpoint]
        requests = [
            {"session_id": leases[i].session_id, **items[i].fields(leases[i])} for i in group
        ]
        try:
            replies = endpoint.batch(operation, requests)
        except Exception as e:  # the calls to other servers may have succeeded
            replies = [e] * len(requests)
        for i, reply in zip(group, replies, strict=True):
            results[i] = _read(items[i], leases[i], reply)

    list(pool.map(call, groups) if len(groups) > 1 else map(call, groups))
    return {i: results[i] for i in items}


def _read(item: BatchItem, lease: Lease, reply: Any) -> Any:
    if isinstance(reply, Exception):
        return reply
    try:
        return item.read(lease, reply)
    except Exception as e:
        return e


def take_all(results: Mapping[int, Any], take: Callable[[int, Any], None]) -> None:
    """Pass each result to `take`, then raise the first error: the states of all others are kept."""
    failures: list[Exception] = []
    for i, result in results.items():
        if isinstance(result, Exception):
            failures.append(result)
        else:
            take(i, result)
    if failures:
        raise failures[0]
