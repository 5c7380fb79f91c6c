"""Plays the benchmark's domains, with a model of a test's server as the customer."""


def play(env, task_id, *actions):
    """Return the last step of a task that begins with these actions."""
    env.reset(seed=0, options={"task_id": task_id})
    for action in actions:
        step = env.step(action)
    return step


def model(server, **more):
    """Return the argument `customer` for the model of a server."""
    asked = {"name": server.model, "url": server.url, "timeout_s": 60.0, "retries": 0}
    return {**asked, "cache": False, **more}
