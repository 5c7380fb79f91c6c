"""The state of a conversation of an official task, and its JSON."""

from __future__ import annotations

import json
from dataclasses import astuple
from typing import Any, Final, NamedTuple

from agentgyms.envs.tau2.official.database import Database, Tables
from agentgyms.envs.tau2.official.files import Domain, OfficialTask
from agentgyms.envs.tau2.official.tables import TABLES
from agentgyms.models.types import ServedCall
from agentgyms.models.usage import NO_USAGE, Usage

MOST_ERRORS: Final = 10
"""Calls that fail until the benchmark ends an episode."""

MOST_ROUNDS: Final = 100
"""Answers of a model as the customer that are calls until an episode ends: each takes two of the
benchmark's 200 steps."""


class Round(NamedTuple):
    """An answer of a model as the customer that is calls of its tools, and their results.

    Attributes:
        place: How many words were said by the customer and the agent before.
        words: The answer's text, which the agent never sees.
        calls: The calls.
        results: The text of each result.
    """

    place: int
    words: str
    calls: tuple[ServedCall, ...]
    results: tuple[str, ...]


class State(NamedTuple):
    """The state of a conversation.

    Attributes:
        changes: The records that are not as at the beginning.
        facts: For each fact whether the agent has said it.
        made: The calls of the solution that were made, by their places.
        step: How many calls of the solution were made in its order, where the order counts.
        opened: The records that were looked up or changed, as `table:key`.
        told: The pieces that the scripted customer has told.
        transferred: Whether the customer is handed over.
        errors: How many calls failed.
        over: Whether the customer is done.
        said: The words of a model as the customer and of the agent in turn, the customer's first.
        seed: The seed of the model's requests.
        rounds: The calls of a model as the customer.
        unheard: Whether the conversation has become too long for the model.
        usage: The model's tokens, calls and cost; no part of the state's key.
    """

    changes: Tables
    facts: tuple[bool, ...]
    made: frozenset[int]
    opened: frozenset[str]
    told: frozenset[str]
    transferred: bool = False
    errors: int = 0
    over: bool = False
    said: tuple[str, ...] = ()
    seed: int = 0
    step: int = 0
    rounds: tuple[Round, ...] = ()
    unheard: bool = False
    usage: Usage = NO_USAGE

    @property
    def ended(self) -> bool:
        """Whether the episode is over, by the customer or by too many errors or calls."""
        is_stuck = self.errors >= MOST_ERRORS or len(self.rounds) >= MOST_ROUNDS
        return self.over or self.unheard or is_stuck


def write(state: State) -> dict[str, Any]:
    """Return a state as JSON values.

    Records are texts, for results show the order of their fields, which snapshots do not keep.
    """
    return {
        "changes": {
            table: {key: json.dumps(record) for key, record in records.items()}
            for table, records in state.changes.items()
        },
        "facts": list(state.facts),
        "made": sorted(state.made),
        "step": state.step,
        "opened": sorted(state.opened),
        "told": sorted(state.told),
        "transferred": state.transferred,
        "errors": state.errors,
        "over": state.over,
        "said": list(state.said),
        "seed": state.seed,
        "rounds": [
            [one.place, one.words, [astuple(call) for call in one.calls], list(one.results)]
            for one in state.rounds
        ],
        "unheard": state.unheard,
        "spent": state.usage.to_json(),
    }


def read(value: Any, domain: Domain, task: OfficialTask, *, is_model: bool) -> State:
    """Return the state in a value that `write` returned; `is_model`: the customer is one.

    Raises `LookupError`, `TypeError` or `ValueError` if it is no state of this task.
    """
    db = Database(task.base, _changes(domain, task, value["changes"]))
    facts, errors = tuple(value["facts"]), value["errors"]
    flags = [*facts, value["transferred"], value["over"], value["unheard"]]
    if len(facts) != len(task.facts) or any(type(one) is not bool for one in flags):
        raise ValueError("'facts', 'transferred', 'over' or 'unheard' is no truth value")
    if type(errors) is not int or not 0 <= errors <= MOST_ERRORS:
        raise ValueError(f"'errors' must be from 0 to {MOST_ERRORS}, got {errors!r:.40}")
    made, told, opened = (frozenset(value[name]) for name in ("made", "told", "opened"))
    if any(type(one) is not str for one in opened | told):
        raise TypeError("'opened' and 'told' are texts")
    if type(value["step"]) is not int or not 0 <= value["step"] <= len(task.calls):
        raise ValueError("'step' is not of this task")
    if not made <= set(range(len(task.calls))) or not told <= set(task.pieces):
        raise ValueError("'made' or 'told' is not of this task")
    for name in opened:
        table, _, key = name.partition(":")
        if table not in task.base or not db.has(table, key):
            raise ValueError(f"'opened' names what is not there: {name!r:.80}")
    said, seed = _said(value, is_model=is_model)
    return State(
        db.changes,
        facts,
        made,
        opened,
        told,
        transferred=value["transferred"],
        errors=errors,
        over=value["over"],
        said=said,
        seed=seed,
        step=value["step"],
        rounds=_rounds(value["rounds"], said),
        unheard=value["unheard"],
        usage=Usage.from_json(value["spent"]),
    )


def _said(value: Any, *, is_model: bool) -> tuple[tuple[str, ...], int]:
    """Return the conversation with a model and its seed, which a scripted customer has not."""
    said, seed = tuple(value["said"]), value["seed"]
    if any(type(one) is not str for one in said) or type(seed) is not int or seed < 0:
        raise TypeError("'said' are texts, and 'seed' is a whole number of at least 0")
    if is_model != (len(said) % 2 == 1) or (not is_model and (said or seed or value["unheard"])):
        raise ValueError("'said', 'seed' or 'unheard' is of another customer")
    return said, seed


def _rounds(value: Any, said: tuple[str, ...]) -> tuple[Round, ...]:
    """Return the calls of a model as the customer, which are before words of its own."""
    found = []
    for place, words, calls, results in value:
        made = tuple(ServedCall(*call) for call in calls)
        texts = [words, *results, *(part for call in made for part in astuple(call))]
        if any(type(one) is not str for one in texts) or len(made) != len(results):
            raise TypeError("'rounds' are no calls and results")
        if type(place) is not int or place not in range(0, len(said), 2):
            raise ValueError("'rounds' are of another conversation")
        found.append(Round(place, words, made, tuple(results)))
    return tuple(found)


def _changes(domain: Domain, task: OfficialTask, value: Any) -> Tables:
    """Return changed records from a snapshot, whose fields must be those of their tables."""
    found = {table: value[table] for table in task.base}
    if not all(isinstance(one, dict) for one in found.values()):
        raise TypeError("'changes' are no records")
    return {table: _records(domain.name, table, found[table]) for table in found}


def _records(domain: str, table: str, value: Any) -> dict[str, dict[str, Any]]:
    found = {key: json.loads(record) for key, record in value.items()}
    for key, record in found.items():
        # read again, it must be as it was: but for whole numbers where the benchmark has floats
        if TABLES[domain][table](record) != record:
            raise ValueError(f"'changes' has no record of {table}: {key!r:.80}")
    return found
