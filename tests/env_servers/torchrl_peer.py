"""Has TorchRL check and play environments.

Run as a script in a Python with TorchRL and PyTorch. Standard input is JSON: a list of episodes,
each with `env_id`, `seed` and `actions`; standard output has the `episodes`, for each its texts,
sums of pictures, rewards and ends, the first state included, and what the `example` prints.
"""

import contextlib
import io
import json
import runpy
import sys
from pathlib import Path

import gymnasium as gym
from tensordict import NonTensorData
from torchrl.envs import GymWrapper
from torchrl.envs.utils import check_env_specs

import agentgyms.adapters.torchrl  # noqa: F401

EXAMPLE = Path(__file__).parents[2] / "examples/clients/torchrl_rollout.py"


def by_example():
    with contextlib.redirect_stdout(io.StringIO()) as said:
        runpy.run_path(str(EXAMPLE))
    return said.getvalue()


def played(asked):
    env = GymWrapper(gym.make(asked["env_id"]))
    check_env_specs(env)
    actions = iter(asked["actions"])
    episode = env.rollout(
        len(asked["actions"]),
        lambda td: td.set("action", NonTensorData(next(actions))),
        auto_reset=False,
        tensordict=env.reset(seed=asked["seed"]),
    )
    env.close()
    states = [episode[0], *(one["next"] for one in episode)]
    pictures = [state["image"].sum().item() for state in states if "image" in state.keys()]  # noqa: SIM118
    return {
        "texts": [state["observation" if not pictures else "text"] for state in states],
        "pictures": pictures,
        "rewards": episode["next", "reward"].flatten().tolist(),
        "terminated": episode["next", "terminated"].flatten().tolist(),
    }


if __name__ == "__main__":
    episodes = [played(asked) for asked in json.load(sys.stdin)]
    told = {"episodes": episodes, "example": by_example()}
    sys.stdout.write("\n" + json.dumps(told))  # behind what TorchRL logs there
