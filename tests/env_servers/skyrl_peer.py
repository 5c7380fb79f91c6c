"""Plays episodes as SkyRL's generator does, with the environments that skyrl_gym makes.

Run as a script in a Python with skyrl_gym. Standard input is JSON: a list of episodes, each with
`env_id`, `kwargs`, `seed`, `replies` and SkyRL's `max_turns`; standard output has for each what the
methods returned.
"""

import json
import sys

import skyrl_gym
from skyrl_gym.metrics import aggregate_for_environment

from agentgyms.adapters import skyrl


def play(number, asked):
    name = skyrl.register(asked["env_id"], f"peer-{number}", **asked["kwargs"])
    row = skyrl.rows(name, 1, first=asked["seed"])[0]
    prompt, env_class = row.pop("prompt"), row.pop("env_class")
    extras = {**row, "max_turns": asked["max_turns"]}
    env = skyrl_gym.make(env_class, env_config={}, extras=extras)
    chat, _ = env.init(prompt)
    steps = []
    for reply in asked["replies"]:
        steps.append(env.step(reply))
        if steps[-1]["done"]:
            break
    metrics = env.get_metrics()
    env.close()
    averaged = aggregate_for_environment(name, [metrics, metrics])
    return {"chat": chat, "steps": steps, "metrics": metrics, "averaged": averaged}


if __name__ == "__main__":
    sys.stdout.write(json.dumps([play(i, one) for i, one in enumerate(json.load(sys.stdin))]))
