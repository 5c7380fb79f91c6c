"""Lets SkyRL train on any environment: `register` gives it a name, `rows` a dataset.

    register("ALFWorld", split="train")  # the environment `alfworld`, in the process of the workers

A row's `seed`, and `task_id` if it has one, decide the episode, so the trajectories of a row start
in one state. A failure on the way, and an episode that was not rated, is an exception: it never
becomes a reward of 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agentgyms.adapters.episodes import ChatEpisode
from agentgyms.adapters.messages import INSTRUCTIONS, chat_message
from agentgyms.core import imports as packages
from agentgyms.core.errors import BadOption
from agentgyms.registration import full_id, make_text_env, short_name

try:
    import skyrl_gym
    from skyrl_gym.envs.base_text_env import BaseTextEnv, BaseTextEnvStepOutput
except ModuleNotFoundError as e:
    raise ModuleNotFoundError(packages.missing("skyrl_gym", "skyrl"), name=e.name) from e


class TextEnvironment(BaseTextEnv):  # type: ignore[misc]
    """An environment with the methods that SkyRL calls; `AgentGymsError` if it cannot be made.

    `extras` has the row's other columns, and SkyRL's `max_turns`, after which the episode is over.
    `env_config` is not used. Raises `BadOption` if the row has no seed: its trajectories would
    start apart.
    """

    def __init__(
        self,
        env_id: str,
        kwargs: Mapping[str, Any],
        env_config: Any = None,
        extras: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__()
        row = extras or {}
        if row.get("seed") is None:
            raise BadOption("a row of the dataset has no `seed`: agentgyms.adapters.skyrl.rows has")
        self._seed, self._task_id = int(row["seed"]), row.get("task_id")
        self.max_turns = row.get("max_turns")
        self._episode = ChatEpisode(make_text_env(env_id, **kwargs), sees=False)

    def init(self, prompt: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], dict[str, Any]]:
        """Start the episode and return the row's prompt with the text that the model reads first.

        Raises `UnknownTask` if the split has no such task, `BadOption` if it shows pictures.
        """
        self._episode.reset(self._seed, self._task_id)
        self.turns = 0
        return [*prompt, chat_message(self._episode.text)], {}

    def step(self, action: str) -> BaseTextEnvStepOutput:
        """Take a turn by a reply of the model; `EnvUnavailable` if it was not rated."""
        self._episode.say(action)
        self.turns += 1
        info = self._episode.info
        keys = ("task_id", "state_key", "action_key", "feedback", "success")
        return BaseTextEnvStepOutput(
            observations=[chat_message(self._episode.text)],
            reward=self._episode.reward,
            done=self._episode.over or self.turns == self.max_turns,
            metadata={key: info[key] for key in keys},
        )

    def get_metrics(self) -> dict[str, float]:
        """Return the episode's return, success and turns, and its score if it has one."""
        return self._episode.figures

    def close(self) -> None:
        """Close the environment."""
        self._episode.close()


def register(env_id: str, name: str | None = None, **kwargs: Any) -> str:
    """Register an environment with SkyRL and return its name there.

    `name` None takes that of the id in lower case, such as `alfworld`. `kwargs` are arguments of
    `gymnasium.make`, such as `split` and `url`. Raises `BadOption` if there is no such environment.
    """
    known = full_id(env_id)
    name = name or short_name(known).lower()
    entry = f"{__name__}:{TextEnvironment.__name__}"
    skyrl_gym.register(id=name, entry_point=entry, kwargs={"env_id": known, "kwargs": kwargs})
    return name


def rows(
    name: str, number: int, *, first: int = 0, instructions: str = INSTRUCTIONS
) -> list[dict[str, Any]]:
    """Return `number` rows of SkyRL's dataset for `name`, with the seeds from `first` on."""
    prompt = [{"role": "system", "content": instructions}]
    return [
        {"prompt": prompt, "env_class": name, "seed": seed} for seed in range(first, first + number)
    ]
