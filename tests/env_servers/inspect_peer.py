"""Evaluates with inspect_ai: its task by name, its loop over samples and epochs, its logs.

Run as a script in a Python with inspect_ai, which finds the metadata of this distribution.
Standard input is JSON: `folder` for logs, and `runs`, a list of arguments of the task with the
`samples` to play, `epochs` and `says`: the actions of each episode, behind what it shows first.
Standard output has each log, read from its file.
"""

import json
import math
import sys

import gymnasium as gym
import inspect_ai
from inspect_ai.log import read_eval_log
from inspect_ai.model import ModelOutput, ModelUsage, get_model

from agentgyms.adapters.messages import tools_of
from agentgyms.envs.corridor import CorridorEnv


class WithoutScore(CorridorEnv):
    """A corridor whose benchmark has no score."""

    def _outcome(self, *args, **kwargs):
        return super()._outcome(*args, **kwargs)._replace(score=math.nan)


gym.register("tests/WithoutScore-v0", entry_point=WithoutScore)


def model_that(says, env_id, native):
    """Return a model that takes the actions of the episode that its first message shows."""
    tools = tools_of(env_id, {})

    def answer(messages, *_):
        found = [actions for first, actions in says if first in messages[1].text]
        said = sum(message.role == "assistant" for message in messages)
        if not found:
            output = ModelOutput.from_content("model", "I do not know.")
        elif native:
            call = tools.call(found[0][said])
            output = ModelOutput.for_tool_call("model", call.name, dict(call.arguments))
        else:
            said = f"I think.\n<action>{found[0][said]}</action>"
            output = ModelOutput.from_content("model", said)
        output.usage = ModelUsage(input_tokens=9, output_tokens=4, total_tokens=13)
        return output

    return get_model("mockllm/model", memoize=False, custom_outputs=answer)


def plain(figures):
    return {key: None if math.isnan(value) else value for key, value in figures.items()}


def played(sample):
    turns = [event.data for event in sample.events if event.event == "info" and event.source]
    return {
        "id": sample.id,
        "epoch": sample.epoch,
        "error": sample.error and sample.error.message,
        "score": {name: plain(score.value) for name, score in (sample.scores or {}).items()},
        "metadata": {name: score.metadata for name, score in (sample.scores or {}).items()},
        "messages": [message.model_dump(mode="json") for message in sample.messages],
        "turns": turns,
    }


def evaluated(folder, run):
    (log,) = inspect_ai.eval(
        "agentgyms/episodes",
        task_args=run["task"],
        model=model_that(run["says"], run["task"]["env_id"], run["task"]["native"]),
        sample_id=run["samples"],
        epochs=run["epochs"],
        log_dir=folder,
        display="none",
        fail_on_error=False,
    )
    log = read_eval_log(log.location, resolve_attachments=True)
    scores = log.results.scores if log.results else []
    means = {score.name: score.metrics["mean"].value for score in scores}
    return {
        "status": log.status,
        "metadata": log.eval.metadata,
        "means": plain(means),
        "samples": [played(sample) for sample in log.samples],
    }


if __name__ == "__main__":
    asked = json.load(sys.stdin)
    replies, sys.stdout = sys.stdout, sys.stderr  # what libraries print is no answer
    replies.write(json.dumps([evaluated(asked["folder"], run) for run in asked["runs"]]))
