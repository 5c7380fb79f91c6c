"""Makes a dataset for the training loop of Tinker's cookbook, and plays a turn of an episode.

pip install -e '.[tinker]'
python examples/clients/tinker_dataset.py
"""

import asyncio

from agentgyms.adapters.tinker import TextDatasetBuilder, TextEnvironment

dataset_builder = TextDatasetBuilder(  # of tinker_cookbook.rl.train.Config
    env_id="ALFWorld",
    kwargs={"split": "train"},
    model_name="Qwen/Qwen3-8B",
    settings={"max_trajectory_tokens": 32768},
)


async def main():
    """Print the groups of a batch, and what a model reads and gets."""
    dataset, _ = await dataset_builder()
    print(f"{len(dataset)} batches; seeds of the second: {[g.seed for g in dataset.get_batch(1)]}")
    env = TextEnvironment("ALFWorld", {"split": "train"}, seed=16)
    for message in await env.initial_observation():
        print(f"{message['role']}: {message['content']}")
    turn = await env.step({"role": "assistant", "content": "<action>look</action>"})
    print(f"reward {turn.reward}, over: {turn.episode_done}")


asyncio.run(main())
