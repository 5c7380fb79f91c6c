"""Copies and pickles of remote environments have sessions of their own."""

from __future__ import annotations

import copy
import pickle

import gymnasium as gym
import pytest
from gymnasium.error import ClosedEnvironmentError
from server_faults import CORRIDOR, TOKEN

from env_servers import Server, create_app


def test_a_copied_or_pickled_environment_goes_on_in_another_session():
    app = create_app(CORRIDOR, token=TOKEN)
    with Server(app) as server:
        sessions = app.extensions["agentgyms"].sessions
        env = gym.make(CORRIDOR, url=server.url, token=TOKEN, max_turns=9)
        env.reset(seed=3)
        env.step("right")
        copies = [copy.deepcopy(env), pickle.loads(pickle.dumps(env))]
        assert len(sessions) == 3
        expected = [env.step("right"), env.step("left"), env.reset()]
        for twin in copies:
            assert twin.unwrapped.max_turns == 9
            assert [twin.step("right"), twin.step("left"), twin.reset()] == expected
            twin.close()
        assert len(sessions) == 1
        env.close()
        with pytest.raises(ClosedEnvironmentError):
            pickle.dumps(env)


def test_a_pickle_takes_the_token_from_the_variable_where_none_was_given(monkeypatch):
    monkeypatch.setenv("AGENTGYMS_TOKEN", "not-for-files")
    with Server(create_app(CORRIDOR)) as server:
        env = gym.make(CORRIDOR, url=server.url)
        env.reset(seed=3)
        kept = pickle.dumps(env)
        assert b"not-for-files" not in kept
        twin = pickle.loads(kept)
        assert twin.step("right") == env.step("right")
        twin.close()
        env.close()
