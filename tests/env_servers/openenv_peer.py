"""Plays environments as OpenEnv's own client does, behind OpenEnv's own server.

Run as a script in a Python with OpenEnv. Standard input is JSON: a list of episodes, each with
`env_id`, `kwargs`, `seed` and `actions`; standard output has for each its results and last state.
"""

import json
import socket
import sys
import threading
import time
import urllib.request

import uvicorn
from openenv.cli._validation import validate_running_environment
from openenv.core import GenericEnvClient

from agentgyms.adapters.openenv import openenv_app


def serve(app):
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    server = uvicorn.Server(uvicorn.Config(app, port=port, log_level="error"))
    threading.Thread(target=server.run, daemon=True).start()
    while not server.started:
        time.sleep(0.01)
    return f"http://127.0.0.1:{port}"


def play(episode):
    url = serve(openenv_app(episode["env_id"], **episode["kwargs"]))
    with urllib.request.urlopen(f"{url}/schema") as reply:
        schema = json.load(reply)
    with urllib.request.urlopen(f"{url}/metadata") as reply:
        metadata = json.load(reply)
    with (
        GenericEnvClient(base_url=url).sync() as env,
        GenericEnvClient(base_url=url).sync() as other,  # two at once, which must not meet
    ):
        other.reset(seed=episode["seed"] + 1)
        results = [env.reset(seed=episode["seed"])]
        for action in episode["actions"]:
            other.step({"action": "no such thing"})
            results.append(env.step({"action": action}))
        state = env.state()
        chosen = env.reset(task_id=results[0].observation["info"]["task_id"])
        try:
            env.reset(task_id="no such task")
            refused = ""
        except RuntimeError as e:
            refused = str(e)
    told = [{"observation": r.observation, "reward": r.reward, "done": r.done} for r in results]
    task_id = chosen.observation["info"]["task_id"]
    return {
        "results": told,
        "state": state,
        "schema": schema,
        "metadata": metadata,
        "checked": validate_running_environment(url),
        "task_id": task_id,
        "refused": refused,
    }


if __name__ == "__main__":
    sys.stdout.write(json.dumps([play(episode) for episode in json.load(sys.stdin)]))
