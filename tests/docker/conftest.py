"""The real container tests run only when they are asked for, with `pytest -m docker`."""

from __future__ import annotations

import pytest


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if "docker" in (config.getoption("markexpr") or ""):
        return
    skip = pytest.mark.skip(reason="builds and runs containers: pytest -m docker")
    for item in items:
        if item.get_closest_marker("docker"):
            item.add_marker(skip)
