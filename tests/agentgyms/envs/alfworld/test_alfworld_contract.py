"""The public contract tests, over generated tasks of both sizes."""

import gymnasium as gym
import pytest

import agentgyms
from agentgyms import testing

ENV_ID = "agentgyms/ALFWorld-v0"


@pytest.fixture(params=["small", "large"])
def make(request):
    return lambda: gym.make(ENV_ID, rooms=request.param, max_turns=20)


def test_environment(make):
    testing.check_env(make)
    testing.check_leaks(make)


def test_determinism(make):
    testing.check_determinism(make)


def test_snapshots(make):
    testing.check_snapshot(make)


def test_group():
    testing.check_group(lambda: agentgyms.make_group(ENV_ID, 8, rooms="large"))


def test_sixty_four_environments_at_once():
    testing.check_vector(ENV_ID, num_envs=64, rooms="small", split="valid_seen")
