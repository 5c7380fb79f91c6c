"""Plays an episode in TorchRL, which keeps its texts beside the tensors.

pip install -e '.[torchrl]'
python examples/clients/torchrl_rollout.py
"""

import gymnasium as gym
from tensordict import NonTensorData
from torchrl.envs import GymWrapper

import agentgyms.adapters.torchrl  # noqa: F401 (teaches TorchRL the space of texts)


def policy(td):  # TorchRL passes a tensordict to a policy whose argument has this name
    """Walk to the door and open it."""
    action = "open door" if "at the door" in td["observation"] else "right"
    return td.set("action", NonTensorData(action))


env = GymWrapper(gym.make("agentgyms/Corridor-v0"))
start = env.reset(seed=0, options={"task_id": "train/free-000"})
episode = env.rollout(20, policy, auto_reset=False, tensordict=start)
for turn in episode:
    print(f"{turn['action']}: {turn['next', 'observation']} ({turn['next', 'reward'].item()})")
env.close()
