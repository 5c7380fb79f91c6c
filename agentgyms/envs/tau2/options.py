"""Checks the arguments of the Tau2 environment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from agentgyms.core.errors import BadOption
from agentgyms.core.tasks import check_split
from agentgyms.data import datasets
from agentgyms.envs.tau2.official.files import DOMAINS, SPLITS
from agentgyms.envs.tau2.shop import tasks

SCRIPTED: Final = "scripted"
"""The customer that is a program."""

_MODEL: Final = '"name@http://host:8000/v1", or a mapping with name and url'
_SOURCES: Final = ("generated", "official")


def check_domain(domain: Any, source: Any) -> bool:
    """Return whether a domain is one of the benchmark's; a source that is given must be its own."""
    if domain not in ("shop", *DOMAINS):
        known = ", ".join(repr(one) for one in ("shop", *DOMAINS))
        raise BadOption(f"domain must be one of {known}, got {domain!r:.60}")
    own = _SOURCES[domain != "shop"]
    if source not in (None, own):
        raise BadOption(f"the source of the domain {domain!r} is {own!r}, got {source!r:.60}")
    return own == "official"


def check_split_of(domain: str, split: str) -> None:
    """Raise `UnknownSplit` if a domain has no such split."""
    known = tuple(tasks.COUNTS) if domain == "shop" else SPLITS
    check_split(split, known, f"Tau2Env with domain={domain!r}")


def check_path(domain: str, data_path: Any) -> str | None:
    """Return the path as a string; the generated domain reads no files."""
    path = datasets.check_path(data_path)
    if path is not None and domain == "shop":
        raise BadOption("data_path is for the benchmark's domains: leave it out")
    return path


def check_customer(domain: str, customer: Any) -> None:
    """Raise `BadOption` unless the customer is the scripted one, or a model where one can be."""
    is_word = isinstance(customer, str) and "@" not in customer
    if is_word and customer != SCRIPTED:
        raise BadOption(f"customer must be 'scripted', or a model: {_MODEL}; got {customer[:24]!r}")
    if domain == "shop" and customer != SCRIPTED:
        raise BadOption(
            "the customer of the domain 'shop' is a program: a model needs one of the domains "
            f"{', '.join(DOMAINS)}"
        )


def check_families(domain: str, families: Any) -> tuple[str, ...]:
    """Return the families, sorted; those of the benchmark's tasks are their domain alone."""
    known = tasks.FAMILIES if domain == "shop" else (domain,)
    if families is None:
        return known
    listed = isinstance(families, Sequence) and not isinstance(families, str)
    if not listed or not families or any(family not in known for family in families):
        expected = ", ".join(known)
        raise BadOption(f"families must be a list of some of {expected}, got {families!r:.80}")
    return tuple(sorted(set(families)))
