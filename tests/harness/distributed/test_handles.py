"""Weights that all processes send together, each for the servers on its own GPU."""

import json

import forked_ranks
import pytest


@pytest.mark.slow
def test_all_processes_send_and_none_waits_for_a_server_that_fails(policy, tmp_path):
    policy.save(tmp_path / "model")
    jobs = [["send_handles", str(tmp_path / "model"), str(tmp_path)]]
    codes, said = forked_ranks.run(2, jobs, tmp_path)
    assert not any(codes), said[-3000:]
    told = json.loads((tmp_path / "told.json").read_text())
    assert told == [
        [[True, True], [True, True], [1, 1]],
        [[True, False], [True, False], [1, 1]],  # it fails in the middle
        [[True, False], [True, False], [2, 1]],  # it has ended
        [[True, False], [True, False], [2, 1]],
    ]
