"""Files of SOTOPIA's profiles in each published format, as rows with the database's field names.

Formats are JSON lists, sotopia-space's JSON lines with other field names, and the package's local
store, folders with one profile a file. Further fields are kept.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Final

from agentgyms.core.errors import DataCorrupt, DataMissing
from agentgyms.data.archives import read_files
from agentgyms.data.users_files import decode, lines_in, parse_json

Row = dict[str, Any]
Rows = Mapping[str, Row]


@dataclass(frozen=True, slots=True)
class Table:
    """One kind of profiles; `noun` names a row in errors, `store` is the local store's folder.

    `also` are stems of other file names, which a suffix may follow; `renamed` maps sotopia-space's
    field names to the database's.
    """

    noun: str
    file: str
    also: tuple[str, ...]
    store: str
    renamed: Mapping[str, str]

    def has(self, name: str) -> bool:
        """Return whether a file belongs to this table, by its name."""
        path = PurePosixPath(name)
        if path.suffix not in (".json", ".jsonl"):
            return False
        return path.parent.name == self.store or bool(
            re.fullmatch(f"(?:{'|'.join(self.also)})(?:[_.-].*)?", path.stem)
        )


PEOPLE: Final = Table(
    "person", "agents.json", ("agents", "agent_profiles"), "AgentProfile", {"agent_id": "pk"}
)
SCENARIOS: Final = Table(
    "scenario",
    "environments.json",
    ("environments", "environment_profiles"),
    "EnvironmentProfile",
    {"env_id": "pk"},
)
RELATIONSHIPS: Final = Table(
    "relationship",
    "relationships.json",
    ("relationships", "relationship_profiles"),
    "RelationshipProfile",
    {"relationship_id": "pk", "agent1_id": "agent_1_id", "agent2_id": "agent_2_id"},
)
COMBINATIONS: Final = Table(
    "combination",
    "env_agent_combos.json",
    ("env_agent_combos", "env_agent_combo_storages"),
    "EnvAgentComboStorage",
    {"combo_id": "pk"},
)
TABLES: Final = (PEOPLE, SCENARIOS, RELATIONSHIPS, COMBINATIONS)

_ID: Final = re.compile(r"[\w.:-]+")


def read_tables(source: Path) -> dict[str, Rows]:
    """Return the rows of each table by the name of its file, sorted by id.

    The source is a folder with the files at any depth, or an archive. Raises `DataMissing` if a
    table has no rows, and `DataCorrupt` also if a row has no id, or two rows have the same id.
    """
    found: dict[str, dict[str, Row]] = {table.file: {} for table in TABLES}
    places: dict[tuple[str, str], str] = {}
    for name, content in sorted(read_files(source, lambda name: name if _tables(name) else None)):
        for table in _tables(name):
            for row in _rows(f"{name} in {source}", content, table):
                key = row["pk"]
                if (table.file, key) in places:
                    raise DataCorrupt(
                        f"{source} has the {table.noun} {key} twice, in {places[table.file, key]} "
                        f"and {name}: expected each once"
                    )
                places[table.file, key] = name
                found[table.file][key] = row
    for table in TABLES:
        if not found[table.file]:
            raise DataMissing(
                f"{source} has no {table.noun}: expected {table.file}, {table.also[-1]}.jsonl or "
                f"a folder {table.store}; get the folder `profiles` of "
                "github.com/sotopia-lab/sotopia-space"
            )
    return {file: dict(sorted(rows.items())) for file, rows in found.items()}


def write_tables(tables: Mapping[str, Rows], folder: Path) -> None:
    """Write each table to its file."""
    folder.mkdir(parents=True, exist_ok=True)
    for file, rows in tables.items():
        text = json.dumps(list(rows.values()), ensure_ascii=False, indent=0)
        (folder / file).write_text(text + "\n", encoding="utf-8")


def _tables(name: str) -> list[Table]:
    return [table for table in TABLES if table.has(name)]


def _rows(name: str, content: bytes, table: Table) -> Iterator[Row]:
    for value in _values(name, content):
        if not isinstance(value, dict):
            raise DataCorrupt(f"{name} holds {value!r:.60}: expected a {table.noun}, a JSON object")
        row = {table.renamed.get(field, field): value for field, value in value.items()}
        if not isinstance(row.get("pk"), str) or not _ID.fullmatch(row["pk"]):
            raise DataCorrupt(
                f"{name} has a {table.noun} whose id is {row.get('pk')!r:.60}: expected letters "
                "and digits in 'pk'"
            )
        yield row


def _values(name: str, content: bytes) -> Iterable[Any]:
    """Return the JSON values of a file: a list, a single value, or one value a line."""
    try:
        text = decode(content)
        if not name.partition(" in ")[0].endswith(".jsonl"):
            value = parse_json(text)
            values = value if isinstance(value, list) else [value]
        else:
            values = [parse_json(line) for line in lines_in(text) if line.strip()]
        json.dumps(values, ensure_ascii=False).encode()  # no half of a surrogate pair
        return values
    except (ValueError, RecursionError) as e:
        raise DataCorrupt(f"{name} is damaged: {e}; get it again") from None
