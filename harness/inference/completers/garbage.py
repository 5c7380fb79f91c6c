"""Spares Python's garbage collector the modules and models that stay."""

from __future__ import annotations

import gc
from functools import cache


@cache
def freeze() -> None:
    """Let the collector scan no more what is there now, torch and transformers above all.

    It does so once for a process. Objects that are frozen young and thawed later count as old. They
    would be scanned so seldom that the memory of a run that answers for days grows.
    """
    gc.collect()
    gc.freeze()


def collect() -> None:
    """Free all garbage, frozen one too."""
    freeze.cache_clear()
    gc.unfreeze()
    gc.collect()
