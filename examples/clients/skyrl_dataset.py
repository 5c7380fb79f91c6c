"""Writes a dataset of SkyRL for household tasks, and plays one of its rows as SkyRL does.

pip install -e '.[skyrl]' datasets
python examples/clients/skyrl_dataset.py
"""

import skyrl_gym
from datasets import Dataset

from agentgyms.adapters.skyrl import register, rows

name = register("ALFWorld", split="train")  # "alfworld"
Dataset.from_list(rows(name, 512)).to_parquet("train.parquet")

row = Dataset.from_parquet("train.parquet")[7]
prompt, env_class = row.pop("prompt"), row.pop("env_class")
env = skyrl_gym.make(env_class, env_config={}, extras={**row, "max_turns": 3})
chat, _ = env.init(prompt)
print(chat[-1]["content"])
done = False
while not done:
    turn = env.step("I look around. <action>look</action>")  # a model's reply
    done = turn["done"]
    print(turn["observations"][0]["content"])
print(env.get_metrics())
