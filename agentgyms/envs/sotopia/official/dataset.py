"""SOTOPIA's profiles as a data set: its files, and the digests of the published release."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from agentgyms.data.datasets import DataSet
from agentgyms.data.manifests import Part, digest_file
from agentgyms.envs.sotopia.official.encounters import official
from agentgyms.envs.sotopia.official.files import read_tables, write_tables

NOTICE: Final = (
    "Characters, scenarios and relationships of SOTOPIA by Xuhui Zhou, Hao Zhu, Leena Mathur, "
    "Ruohong Zhang, Haofei Yu, Zhengyang Qi, Louis-Philippe Morency, Yonatan Bisk, Daniel Fried, "
    "Graham Neubig and Maarten Sap (ICLR 2024, arXiv:2310.11667), CC-BY-SA-4.0: "
    "https://creativecommons.org/licenses/by-sa/4.0/. Only the names of fields were made uniform."
)


def build(source: Path, target: Path, progress: bool) -> dict[str, Any]:  # noqa: ARG001
    """Write the profiles of a folder or archive to a folder, in one format; return the manifest.

    `files` has the accepted formats. Raises `DataMissing` or `DataCorrupt` at a missing or invalid
    file. There is no progress bar: the import is quick.
    """
    tables = read_tables(source)
    parts = official(tables, source).parts
    write_tables(tables, target)
    files = {
        file: (path.stat().st_size, digest_file(path))
        for file in tables
        for path in [target / file]
    }
    return {"notice": NOTICE, "splits": parts, "files": files}


DATA_SET: Final = DataSet(
    name="sotopia",
    title="the 40 characters and 90 scenarios of SOTOPIA in 450 combinations",
    licence="CC-BY-SA-4.0",
    url="",
    by_hand=(
        "get the folder `profiles` of github.com/sotopia-lab/sotopia-space, which has "
        "agent_profiles.jsonl, environment_profiles.jsonl, relationship_profiles.jsonl and "
        "env_agent_combo_storages.jsonl"
    ),
    build=build,
    parts={
        "all": Part(900, "af295018419a287a"),
        "hard": Part(140, "b5ec1920dc145f38"),
    },
    extras=frozenset({"pi", "other"}),
)
"""The published benchmark; scenarios of SOTOPIA-pi and of users may be added to it."""
