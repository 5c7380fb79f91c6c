"""Containers that several files of tests play in."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from containers import (
    GATES,
    OTHERS,
    SERVICES,
    USUAL,
    Running,
    Usual,
    default_ports,
    processor_seconds,
    project,
)


@pytest.fixture(scope="session")
def usual(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Usual]:
    """The compose file after a plain `up`, at its own ports where they are free."""
    ports = default_ports(USUAL)
    settings = ports | {"SERVER_LOG_LEVEL": "debug"}
    with project(tmp_path_factory.mktemp("compose"), settings) as made:
        made.up()
        started = made.started()
        cost = {name: sum(map(processor_seconds, own)) for name, own in started.items()}
        yield Usual(made, ports, started, cost)


@pytest.fixture(scope="session")
def services(usual: Usual) -> dict[str, Running]:
    """All services by name, but for the engine of AppWorld."""
    names = [name for name in SERVICES if name not in (*GATES, *OTHERS)]
    usual.project.up([name for name in names if name not in USUAL])
    return {name: usual.project.running(name)[0] for name in names}
