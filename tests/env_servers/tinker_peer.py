"""Plays groups of episodes with Tinker's cookbook: its dataset, its rollouts, a renderer of it.

Run as a script in a Python with tinker_cookbook and this project's harness. Standard input is JSON:
arguments of the dataset's builder, the number of the batch, and the replies; standard output has
for each group its seed and its trajectories.
"""

import asyncio
import json
import pickle
import sys

from tinker_cookbook import tokenizer_utils
from tinker_cookbook.completers import TokenCompleter, TokensWithLogprobs
from tinker_cookbook.rl.rollouts import do_group_rollout

from agentgyms.adapters.tinker import TextDatasetBuilder
from harness.model.tiny import make_tokenizer

TOKENIZER = make_tokenizer(["You stand in the corridor. System: User: Assistant: open door"], 400)
tokenizer_utils.register_tokenizer("tiny", lambda: TOKENIZER)


class Script(TokenCompleter):
    """Says the replies of the episode whose first message it reads, one after another."""

    def __init__(self, replies):
        self.replies, self.read = replies, []

    async def __call__(self, model_input, stop, *, max_tokens=None):
        text = TOKENIZER.decode(model_input.to_ints())
        self.read.append(text)
        said = self.replies[text.count("\n\nAssistant:") - 1]
        tokens = TOKENIZER.encode(f" {said}{stop[0]}", add_special_tokens=False)
        return TokensWithLogprobs(tokens, [0.0] * len(tokens))


async def play(asked):
    settings = {"model_name": "tiny", "renderer_name": "role_colon", **asked["settings"]}
    dataset, _ = await TextDatasetBuilder(**settings)()
    groups = []
    for builder in dataset.get_batch(asked["batch"]):
        script = Script(asked["replies"])
        group = await do_group_rollout(pickle.loads(pickle.dumps(builder)), script)
        groups.append(
            {
                "seed": builder.seed,
                "tags": builder.logging_tags(),
                "read": script.read,
                "returns": group.get_total_rewards(),
                "trajectories": [
                    [[t.reward, t.episode_done, t.metrics, t.logs] for t in one.transitions]
                    for one in group.trajectories_G
                ],
            }
        )
    return {"length": len(dataset), "groups": groups}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(asyncio.run(play(json.load(sys.stdin)))))
