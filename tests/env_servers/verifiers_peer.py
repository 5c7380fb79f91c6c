"""Plays tasks with verifiers: its taskset, its environment, its interception of the model.

Run as a script in a Python with verifiers. Standard input is JSON: `url` of a server of chat
completions, and `runs`, a list of taskset settings with the `task` to play; standard output has
each episode and its trace.
"""

import asyncio
import json
import os
import sys

import verifiers.v1 as vf

os.environ["PEER_KEY"] = "none"


async def play(url, settings, task_id):
    config = vf.resolve_env_config({"taskset": {"id": "agentgyms-tasks", **settings}})
    env = vf.load_environment(config)
    tasks = [task for task in env.taskset if task.data.id == task_id]
    client = vf.EvalClientConfig(base_url=url, api_key_var="PEER_KEY")
    context = vf.ModelContext(model="scripted", client=client, sampling=vf.SamplingConfig())
    async with env.serving():
        episode = await env.run_episode(tasks[0], context)
    (trace,) = episode.traces
    return {
        "ok": episode.ok,
        "num_tasks": len(list(env.taskset)),
        "reward": trace.reward,
        "rewards": {name: reward.score for name, reward in trace.rewards.items()},
        "metrics": trace.metrics,
        "errors": [str(error) for error in (*episode.errors, *trace.errors)],
        "messages": [
            message.model_dump(mode="json")
            for branch in trace.branches[-1:]
            for message in branch.messages
        ],
    }


async def main(asked):
    return [await play(asked["url"], run["settings"], run["task"]) for run in asked["runs"]]


if __name__ == "__main__":
    sys.stdout.write(json.dumps(asyncio.run(main(json.load(sys.stdin)))))
