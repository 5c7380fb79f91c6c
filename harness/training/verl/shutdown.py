"""Ends a failed run in verl: watches its workers, and reports the reason."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import ray
from ray.exceptions import ObjectStoreFullError, OutOfDiskError, RayActorError, RayError

from harness.training.verl import episodes
from harness.types.errors import TrainingError

_PROBE: Final = bytes(1 << 17)
"""Longer than Ray's inlined values, so that it takes room in the object store."""
_FULL: Final = (
    "Ray's object store is full, and it could not spill to disk: `ray memory` and `df` show what "
    "fills them; free some, or start Ray with a larger --object-store-memory or another "
    "--object-spilling-directory"
)


def watch(replay_buffer: Any, workers: Sequence[Any]) -> None:
    """Make verl's buffer of episodes raise errors for which verl would wait without end.

    While the buffer waits, it checks that the workers live and that their nodes' object stores take
    an object. It replaces methods of `replay_buffer`.
    """
    wait, select = replay_buffer._wait_for_next_poll, replay_buffer._select_prompt_uids
    probes: list[Any] = []

    def watched(*args: Any) -> Any:
        probes[:] = probes or [one.__ray_call__.remote(_probe) for one in workers]
        answered, waiting = ray.wait(probes, num_returns=len(probes), timeout=0)
        ray.get(answered)  # raises the error of a worker that is gone, or whose store is full
        probes[:] = waiting
        return wait(*args)

    def selected(partition: str, *args: Any) -> Any:
        found = select(partition, *args)
        uids, rows = set(found[0]), found[1]
        if not any(key.split("_")[0] in uids for key in rows):
            losses = ray.get([one.__ray_call__.remote(_last_loss) for one in workers])
            what = "the evaluation" if partition == "val" else "the step"
            why = next(filter(None, losses), "the workers' output says why")
            raise TrainingError(f"every episode of {what} was lost: {why}")
        return found

    replay_buffer._wait_for_next_poll, replay_buffer._select_prompt_uids = watched, selected


def reason(error: BaseException) -> str:
    """Return the meaning of an error that ends a run or an episode, in one line."""
    if isinstance(error, (OutOfDiskError, ObjectStoreFullError)):
        return _FULL
    if isinstance(error, TrainingError):
        return str(error)
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if isinstance(error, RayActorError):
        return f"a worker is gone: {' '.join(lines[:2])}"
    if isinstance(error, RayError):
        lines = lines[-1:]  # a traceback comes before
    return " ".join([f"{type(error).__name__}:", *lines[:1]])


def _probe(_: Any) -> None:
    ray.put(_PROBE)


def _last_loss(_: Any) -> str | None:
    error = episodes.last_loss()
    return None if error is None else reason(error)
