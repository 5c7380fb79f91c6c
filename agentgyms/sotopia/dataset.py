"""SOTOPIA's own profiles as a data set: which files they are, and how the release is recognised."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from agentgyms.data import DataSet
from agentgyms.download import digest_file
from agentgyms.manifests import Part
from agentgyms.sotopia.official import official
from agentgyms.sotopia.official_files import read_tables, write_tables

NOTICE: Final = (
    "Characters, scenarios and relationships of SOTOPIA by Xuhui Zhou, Hao Zhu, Leena Mathur, "
    "Ruohong Zhang, Haofei Yu, Zhengyang Qi, Louis-Philippe Morency, Yonatan Bisk, Daniel Fried, "
    "Graham Neubig and Maarten Sap (ICLR 2024, arXiv:2310.11667), CC-BY-SA-4.0: "
    "https://creativecommons.org/licenses/by-sa/4.0/. Only the names of fields were made uniform."
)


def build(source: Path, target: Path, progress: bool) -> dict[str, Any]:  # noqa: ARG001
    """Write the profiles of a folder or archive to a folder, in one form.

    Args:
        source: With the files, see `agentgyms.sotopia.official_files`.
        target: Where they go.
        progress: Not used: it takes no time.

    Returns:
        The manifest: splits, files, and whose work they are.

    Raises:
        DataMissing: A file is not there.
        DataCorrupt: A file or a row is not what it must be.
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
"""The benchmark as it is published; scenarios of SOTOPIA-pi and of users may lie beside it."""
