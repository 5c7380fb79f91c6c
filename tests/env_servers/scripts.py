"""Episodes played here once, which tell what is to be done and seen behind servers in trouble."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import gymnasium as gym
from server_faults import TOKEN

from agentgyms.remote import RemoteEnv, RemoteVectorEnv

TYPED: Final = {
    "WebShop": ("search[red shoes]", "search[lamp for a desk]"),
    "SearchQA": ("search[the oldest bridge]", "search[a river in the north]", "search[painter]"),
    "SOTOPIA": ("I would like to share it.", "Shall we meet halfway?", "(nods)", "It is late."),
    "AppWorld": ("print(1 + 1)", "x = 3\nprint(x)", "print(apis.supervisor.show_profile())"),
}
"""What is typed where the list of actions names none."""

KEYS: Final = ("state_key", "observation_key", "turn", "task_id", "score")
Trouble = Callable[[], None]


class Script:
    """Episodes of an environment, played here.

    Args:
        env_id: Of the environment.
        members: How many episodes; the seed of each is its number.
        turns: At most so many turns each.
        **kwargs: Of the environment.
    """

    def __init__(self, env_id: str, members: int, turns: int, **kwargs: Any) -> None:
        self.env_id, self.members, self.kwargs = env_id, members, kwargs
        self.actions: list[list[str]] = []
        self.seen: list[list[tuple[Any, ...]]] = []
        env = gym.make(env_id, **kwargs).unwrapped
        for seed in range(members):
            self._play(env, seed, turns)
        env.close()
        self.turns = sum(map(len, self.actions))

    def _play(self, env: Any, seed: int, turns: int) -> None:
        rng, actions, over = random.Random(seed), [], False
        observation, info = env.reset(seed=seed)
        seen = [_told(observation, info)]
        while not over and len(actions) < turns:
            action = rng.choice(info["admissible_actions"] or ["<text>"])
            if "<" in action:
                [texts] = [texts for name, texts in TYPED.items() if name in self.env_id]
                action = rng.choice(texts)
            observation, reward, terminated, truncated, info = env.step(action)
            actions.append(action)
            seen.append(_told(observation, info, reward, terminated, truncated))
            over = terminated or truncated
        self.actions.append(actions)
        self.seen.append(seen)

    def play_as_a_vector(self, befall: Trouble, turns: tuple[int, ...], **kwargs: Any) -> None:
        """Play all as one vector and compare; trouble comes before some turns.

        What follows a member's end is another episode, of which nothing is known here.
        """
        vector = RemoteVectorEnv(self.env_id, self.members, token=TOKEN, **self.kwargs, **kwargs)
        seen, infos = vector.reset(seed=0)
        for i in range(self.members):
            assert _told(seen[i], _of(infos, i)) == self.seen[i][0]
        for turn in range(1, 1 + max(map(len, self.actions))):
            if turn in turns:
                befall()
            going_on = [turn <= len(actions) for actions in self.actions]
            taken = [
                a[turn - 1] if go else "" for a, go in zip(self.actions, going_on, strict=True)
            ]
            seen, reward, terminated, truncated, infos = vector.step(taken)
            for i in range(self.members):
                if going_on[i]:
                    ends = bool(terminated[i]), bool(truncated[i])
                    reached = _told(seen[i], _of(infos, i), float(reward[i]), *ends)
                    assert reached == self.seen[i][turn], f"member {i}, turn {turn}"
        vector.close()

    def play_in_threads(self, befall: Trouble, turns: tuple[int, ...], **kwargs: Any) -> None:
        """Play each in a thread of its own; trouble comes after so many turns of all."""
        taken, counting = [0], threading.Lock()
        opened = threading.Barrier(self.members, timeout=60)

        def play(i: int) -> None:
            env = RemoteEnv(self.env_id, token=TOKEN, **self.kwargs, **kwargs)
            seen = [_told(*env.reset(seed=i))]
            opened.wait()
            for action in self.actions[i]:
                observation, reward, terminated, truncated, info = env.step(action)
                seen.append(_told(observation, info, reward, terminated, truncated))
                with counting:
                    taken[0] += 1
                    if taken[0] in turns:
                        befall()
            assert seen == self.seen[i], f"member {i}"
            env.close()

        with ThreadPoolExecutor(self.members) as pool:
            list(pool.map(play, range(self.members)))


def _told(observation: Any, info: dict[str, Any], *rest: Any) -> tuple[Any, ...]:
    return (observation, *(info[key] for key in KEYS), *rest)


def _of(infos: dict[str, Any], i: int) -> dict[str, Any]:
    return {key: infos[key][i] for key in KEYS}
