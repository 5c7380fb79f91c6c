"""Plays episodes in the actors of a Ray cluster of two nodes, one of which is killed under load.

Run as a script in a Python with Ray; standard output is JSON, what each check found by its name.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import threading
import time

from agentgyms.recording.recording_format import turn_line
from harness.rollouts.collect import collect
from harness.rollouts.env_pool import EnvPool
from harness.rollouts.groups import CollectOptions
from harness.rollouts.views import Decision
from harness.types.rollout import Completion
from harness.types.task_draws import TaskSampler

ALFWORLD = "agentgyms/ALFWorld-v0"
ACTORS = "ray://2?cpus=0.5"
WALK = ["look", "go to shelf 1", "inventory", "jump", "go to cabinet 1", "open cabinet 1", "look"]


class Wanderer:
    """Does what the expert would, or anything, as the seed says; calls `befall` at one turn."""

    def __init__(self, moment=0, befall=None):
        self.moment, self.befall, self.taken = moment, befall, 0

    async def act(self, view, seed):
        self.taken += 1
        if self.taken == self.moment:
            self.befall()
        admissible = view.info["admissible_actions"]
        expert = json.loads(view.info["oracle"])["best"]
        action = expert if seed % 100 < 15 else admissible[seed % len(admissible)]
        return Decision(action, Completion(action))


def play(actor, **place):
    """Return how each episode of 8 groups of 4 ended, and its recording."""
    pool = EnvPool(ALFWORLD, 4, 32, record=True, oracle=True, max_turns=12, **place)
    draws = TaskSampler(pool.tasks(), seed=5).draw(0, 8)
    options = CollectOptions(retries=0)
    rollouts = asyncio.run(collect(pool, draws, actor, seed=7, options=options))
    pool.close()
    return [
        [r.group, r.member, r.error, r.success, r.score, r.recording.header["seed"]]
        + [json.loads(turn_line(turn)) for turn in r.recording.turns]
        for r in rollouts
    ]


def walk(envs, seed, num_steps=20):
    """Return all that a vector of environments says on a walk with automatic resets, as text."""
    said = [in_order(envs.reset(seed=seed))]
    for step in range(num_steps):
        actions = [WALK[(step + i) % len(WALK)] for i in range(envs.num_envs)]
        said.append(in_order(envs.step(actions)))
    envs.close()
    return said


def in_order(returned):
    """Return a text of what a reset or step returned; infos come in any order."""
    *values, infos = returned
    return repr([values, sorted(infos.items())])


class TwoNodes:
    """A cluster whose head runs no actor, and two nodes of two CPUs."""

    def __init__(self):
        import ray
        from ray.cluster_utils import Cluster

        head = {"num_cpus": 0, "include_dashboard": False}
        self.cluster = Cluster(initialize_head=True, head_node_args=head)
        self.nodes = [self.cluster.add_node(num_cpus=2, wait=False) for _ in range(2)]
        self.cluster.wait_for_nodes(timeout=300)
        ray.init(address=self.cluster.address, logging_level="ERROR", log_to_driver=False)

    def actors(self):
        """Return the node, the process and the number of starts of each actor that runs."""
        from ray._private.state import actors

        running = [one for one in actors().values() if one["State"] == "ALIVE"]
        return [(one["Address"]["NodeID"], one["Pid"], one["NumRestarts"]) for one in running]

    def kill_node(self):
        """End a node and its actors at once, as a loss of power does."""
        victim = self.actors()[0][0]
        node = next(node for node in self.nodes if node.node_id == victim)
        self.cluster.remove_node(node, allow_graceful=False)
        for place, pid, _ in self.actors():
            if place == victim:
                os.kill(pid, signal.SIGKILL)

    def signal(self, number):
        """Send a signal to all actors."""
        for _, pid, _ in self.actors():
            os.kill(pid, number)

    def close(self):
        import ray

        ray.shutdown()
        for thread in threading.enumerate():
            if thread.name == "ray actor":  # it looks for the actors that were killed
                thread.join()
        assert not ray.is_initialized(), "a thread has connected anew"
        self.cluster.shutdown()


def under_load(cluster):
    actor = Wanderer(150, cluster.kill_node)
    episodes = play(actor, url=ACTORS)
    while not any(starts for *_, starts in cluster.actors()):
        time.sleep(0.1)
    places = cluster.actors()
    return {
        "episodes": episodes,
        "taken": actor.taken,
        "nodes": len({node for node, *_ in places}),
        "actors": len(places),
    }


def as_a_vector(cluster):
    """The vector's calls go to two actors, each step in one message to each."""
    import gymnasium as gym

    from agentgyms.remote.ray_actors import RayTransport

    sizes = counted(RayTransport)
    said = walk(gym.make_vec(ALFWORLD, 16, url=ACTORS, max_turns=8), seed=3)
    return {"said": said, "messages": len(sizes)}


def counted(transport):
    """Return a list to which the number of requests of every further message is added."""
    sizes, exchange = [], transport._exchange

    def counting(self, requests, timeout_s):
        sizes.append(len(requests))
        return exchange(self, requests, timeout_s)

    transport._exchange = counting
    return sizes


def many_in_a_message(cluster):
    """While the actors are stopped, 40 environments in threads take a step each."""
    import gymnasium as gym

    from agentgyms.remote import ray_actors

    envs = [gym.make(ALFWORLD, url=ACTORS) for _ in range(40)]
    for env in envs:
        env.reset(seed=1)
    transports = ray_actors.transports(ACTORS, ALFWORLD).values()
    sizes = counted(ray_actors.RayTransport)
    cluster.signal(signal.SIGSTOP)
    threads = [threading.Thread(target=env.step, args=("look",)) for env in envs]
    for thread in threads:
        thread.start()
    while sum(sizes) + sum(len(transport._waiting) for transport in transports) < len(envs):
        time.sleep(0.01)
    cluster.signal(signal.SIGCONT)
    for thread in threads:
        thread.join()
    for env in envs:
        env.close()
    return max(sizes)


def another_state(cluster):
    """What is said where playing an episode again leads elsewhere: here its record is changed."""
    from agentgyms.core.errors import SessionLost
    from agentgyms.remote import RemoteEnv

    env = RemoteEnv(ALFWORLD, url=ACTORS)
    _, info = env.reset(seed=1)
    here, there = [one for one in info["admissible_actions"] if one.startswith("go to")][:2]
    env.step(here)
    env._episode.actions[0] = there
    cluster.signal(signal.SIGKILL)
    try:
        env.step("look")
    except SessionLost as e:
        return str(e)


if __name__ == "__main__":
    answer = os.dup(1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # Ray writes to the standard output too
    cluster = TwoNodes()
    checks = (under_load, as_a_vector, many_in_a_message, another_state)
    found = {check.__name__: check(cluster) for check in checks}
    cluster.close()
    with os.fdopen(answer, "w") as out:
        json.dump(found, out)
