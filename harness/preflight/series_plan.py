"""The plan of several runs, one after another: the first one's, and the disk of all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from harness.config import Config
from harness.preflight.missing import no_room
from harness.preflight.planning import Plan, gigabytes, plan


def plan_all(
    kinds: Sequence[Sequence[Config]], gpus: int | None = None, gpu_memory: int | None = None
) -> Plan:
    """Return the plan of the first of several unresolved runs, with the disk of all of them.

    The runs of a kind differ in the seed alone and have one plan. `missing` has each line once.
    """
    plans = [plan(runs[0], gpus, gpu_memory, tries=True) for runs in kinds]
    output = kinds[0][0].run.output
    lacking = {line: None for one in plans for line in one.missing}
    for one in plans:  # the line on all runs stands for those on each
        for line in no_room(output, one.checkpoint * (one.kept + 1)):
            lacking.pop(line, None)
    kept = sum(
        one.checkpoint * one.kept * len(runs) for runs, one in zip(kinds, plans, strict=True)
    )
    disk = kept + max(one.checkpoint for one in plans)  # one at a time is written beside
    total = f"{gigabytes(disk)} for those of all {sum(map(len, kinds))} runs"
    sections = {**plans[0].sections, "disk": [*plans[0].sections.get("disk", ()), total]}
    return replace(plans[0], sections=sections, missing=[*lacking, *no_room(output, disk)])
