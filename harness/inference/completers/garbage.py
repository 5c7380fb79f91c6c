"""Spares Python's garbage collector the modules and models that stay."""

from __future__ import annotations

import gc
from functools import cache


@cache
def freeze() -> None:
    """Let the collector scan no more what is there now, torch and transformers above all.

    Once for a process: young garbage that is frozen and thawed is old, and scanned too seldom.
    """
    gc.collect()
    gc.freeze()


def collect() -> None:
    """Free all garbage, frozen one too."""
    freeze.cache_clear()
    gc.unfreeze()
    gc.collect()
