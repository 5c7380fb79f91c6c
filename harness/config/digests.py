"""Digests of configurations: equal for equal settings."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Final

from harness.config.section import Section, to_dict

_WITHOUT_EFFECT: Final = ("name", "seed", "output", "threads")


def digest(config: Section) -> str:
    """Return the first 12 hex characters of the configuration's SHA-256."""
    return digest_values(to_dict(config))


def digest_values(values: Mapping[str, Any]) -> str:
    """Return the first 12 hex characters of the SHA-256 of JSON values."""
    text = json.dumps(values, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def without_seed(run: Mapping[str, Any]) -> dict[str, Any]:
    """Return a run's configuration without the keys that change figures only by chance.

    These are seed, name, output folder, number of threads, and the names of swept settings. Runs
    that repeat each other with different seeds have equal results here.
    """
    kept = {k: v for k, v in run["run"].items() if k not in _WITHOUT_EFFECT}
    return {**{key: part for key, part in run.items() if key != "swept"}, "run": kept}
