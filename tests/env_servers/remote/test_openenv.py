"""OpenEnv 0.10 about its example: its validation passes, and no client that leaves is an error."""

import os
import shutil

import pytest
from adapter_peers import ROOT, peer

MEASURED = {
    "static.manifest",
    "runtime.startup",
    "runtime.reward_well_formed",
    "runtime.observation_schema",
    "runtime.state_contract",
    "runtime.network_policy",
}
"""The checks for which OpenEnv 0.10 has graders."""


@pytest.mark.adapters
@pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root")
def test_the_example_passes_openenvs_validation(tmp_path):
    folder = shutil.copytree(ROOT / "examples/openenv", tmp_path / "openenv")
    report = peer("openenv_validation.py", str(folder))
    found = {one["check_id"]: one for one in report["results"]}
    passed = {name for name, one in found.items() if one["status"] == "pass"}
    assert passed == MEASURED, [found[name] for name in MEASURED - passed]
    others = [one for name, one in found.items() if name not in MEASURED]
    assert {(one["status"], *one["evidence"]) for one in others} == {
        ("skip", "grader not implemented in this build")
    }
    assert report["levels_run"] == [1, 2]
    assert report["verdict"] != "fail"


@pytest.mark.adapters
def test_a_client_that_leaves_openenvs_server_is_no_error():
    assert peer("openenv_disconnects.py", "agentgyms/Corridor-v0") == []
