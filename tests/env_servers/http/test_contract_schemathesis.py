"""What schemathesis makes of the description: requests right and wrong, and replies held to it."""

from __future__ import annotations

from typing import Any, Final

import pytest
from server_faults import CORRIDOR, TOKEN

from agentgyms.serving import guesses
from agentgyms.serving.server import Server
from env_servers import create_app

schemathesis = pytest.importorskip("schemathesis")
engine: Any = pytest.importorskip("schemathesis.engine")
from schemathesis.config import SchemathesisConfig  # noqa: E402

OF_STATE: Final = ["404", "409", "410"]  # what a session answers that is not there, or elsewhere
SETTINGS: Final = {
    "headers": {"Authorization": f"Bearer {TOKEN}"},
    "checks": {
        # Which arguments there are, and which values go together, is the environment's to say.
        "positive_data_acceptance": {"expected-statuses": ["2xx", "3xx", "400", "422", *OF_STATE]},
        "negative_data_rejection": {"expected-statuses": ["400", "401", "413", "422", *OF_STATE]},
    },
    "operations": [
        # A wrong item of a batch is answered by an error of its own, a wrong token by the form.
        {"include-tag": "batch", "checks": {"negative_data_rejection": {"enabled": False}}},
        {"include-tag": "page", "checks": {"negative_data_rejection": {"enabled": False}}},
    ],
}


def _settings(max_examples: int, *phases: str, **checks: Any) -> Any:
    known = ("examples", "coverage", "fuzzing", "stateful")
    return SchemathesisConfig.from_dict(
        {
            **SETTINGS,
            "checks": SETTINGS["checks"] | checks,
            "phases": {phase: {"enabled": phase in phases} for phase in known},
            "generation": {"max-examples": max_examples, "database": "none", "deterministic": True},
        }
    )


def _tried(schema: Any) -> tuple[set[str], set[tuple[str, int]]]:
    """Return what is wrong, and with which statuses each operation answered."""
    wrong, answered = set(), set()
    for event in engine.from_schema(schema).execute():
        kind = type(event).__name__
        if kind in ("NonFatalError", "FatalError"):
            wrong.add(f"{kind}: {getattr(event, 'info', event)!s:.500}")
        if kind != "ScenarioFinished":
            continue
        cases = event.recorder.cases
        for name, interaction in event.recorder.interactions.items():
            assert interaction.response is not None, "no reply"
            answered.add((cases[name].value.operation.label, interaction.response.status_code))
        for name, checks in event.recorder.checks.items():
            for check in checks:
                if check.failure_info is not None:
                    failure = check.failure_info.failure
                    label = cases[name].value.operation.label
                    wrong.add(f"{label}: {check.name}: {failure.title}: {failure.message:.300}")
    return wrong, answered


def _operations(schema: Any) -> set[str]:
    return {found.ok().label for found in schema.get_all_operations()}


def _succeeded(answered: set[tuple[str, int]]) -> set[str]:
    return {label for label, status in answered if status < 400}


def test_examples_in_process():
    """The documented examples, sent to the application."""
    app = create_app(CORRIDOR, token=TOKEN, max_sessions=1000)
    # Schemathesis has no way to take the token from a request to an application in process.
    config = _settings(1, "examples", ignored_auth={"enabled": False})
    schema = schemathesis.openapi.from_wsgi("/openapi.json", app, config=config)
    wrong, answered = _tried(schema)
    assert wrong == set()
    assert ("POST /v1/sessions", 201) in answered
    assert ("GET /v1/tasks", 200) in answered


@pytest.mark.slow
def test_everything_on_a_socket(monkeypatch):
    """Boundary values, random values and sequences, with all checks, through waitress.

    Wrong tokens wait hardly at all; tests/env_servers/serving/test_guesses.py is about their waits.
    """
    monkeypatch.setattr(guesses, "LONGEST_S", 0.01)
    with Server(create_app(CORRIDOR, token=TOKEN, max_sessions=10_000)) as server:
        config = _settings(8, "examples", "coverage", "fuzzing", "stateful")
        schema = schemathesis.openapi.from_url(f"{server.url}/openapi.json", config=config)
        wrong, answered = _tried(schema)
        assert wrong == set()
        assert _operations(schema) == _succeeded(answered), "an operation never succeeded"
        assert {401, 404, 405, 409, 410, 415, 422} <= {status for _, status in answered}
