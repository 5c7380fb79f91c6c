"""Lets Tinker's cookbook train on any environment: message environments, their groups, a dataset.

    TextDatasetBuilder(env_id="ALFWorld", kwargs={"split": "train"}, model_name="Qwen/Qwen3-8B")

A group plays one seed, so its trajectories start in one state. A failure on the way, and an
episode that was not rated, is an exception: it never becomes a reward of 0.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from agentgyms.adapters.episodes import ChatEpisode
from agentgyms.adapters.messages import INSTRUCTIONS
from agentgyms.core import imports
from agentgyms.registration import full_id, make_text_env, short_name

try:
    import chz
    from tinker_cookbook.model_info import get_recommended_renderer_name
    from tinker_cookbook.renderers import Renderer, get_renderer
    from tinker_cookbook.renderers.base import Message, get_text_content
    from tinker_cookbook.rl.message_env import EnvFromMessageEnv, MessageEnv, MessageStepResult
    from tinker_cookbook.rl.types import EnvGroupBuilder, RLDataset, RLDatasetBuilder
    from tinker_cookbook.tokenizer_utils import get_tokenizer
except ModuleNotFoundError as e:
    raise ModuleNotFoundError(imports.missing("tinker_cookbook", "tinker"), name=e.name) from e


class TextEnvironment(MessageEnv):  # type: ignore[misc]
    """An environment as the model's user, for one episode; `task_id` None lets the seed choose.

    Raises `AgentGymsError` if the environment cannot be made.
    """

    def __init__(
        self,
        env_id: str,
        kwargs: Mapping[str, Any],
        seed: int,
        task_id: str | None = None,
        instructions: str = INSTRUCTIONS,
    ) -> None:
        self._episode = ChatEpisode(make_text_env(env_id, **kwargs), sees=False)
        self._seed, self._task_id = seed, task_id
        self._messages: list[Message] = [{"role": "system", "content": instructions}]

    async def initial_observation(self) -> list[Message]:
        """Start the episode and return the conversation so far.

        Raises `UnknownTask` if the split has no such task, `BadOption` if it shows pictures.
        """
        await asyncio.to_thread(self._episode.reset, self._seed, self._task_id)
        self._messages.append({"role": "user", "content": self._episode.text})
        return list(self._messages)

    async def step(self, message: Message) -> MessageStepResult:
        """Take a turn by an answer; the model's thoughts are no part of the action.

        Raises `EnvUnavailable` if the turn was not rated.
        """
        await asyncio.to_thread(self._episode.say, get_text_content(message))
        self._messages += [message, {"role": "user", "content": self._episode.text}]
        return MessageStepResult(
            reward=self._episode.reward,
            episode_done=self._episode.over,
            next_messages=list(self._messages),
            metrics=self._episode.figures if self._episode.over else {},
            logs={key: self._episode.info[key] for key in ("task_id", "state_key", "feedback")},
        )

    def close(self) -> None:
        """Close the environment."""
        self._episode.close()


@dataclass
class TextGroupBuilder(EnvGroupBuilder):  # type: ignore[misc]
    """A group of episodes with one seed, which start in one state.

    `make_renderer` returns the model's renderer and must pickle; `settings` are arguments of the
    cookbook's `EnvFromMessageEnv`, such as `max_trajectory_tokens`.
    """

    make_renderer: Callable[[], Renderer]
    env_id: str
    seed: int
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    group_size: int = 8
    instructions: str = INSTRUCTIONS
    settings: Mapping[str, Any] = field(default_factory=dict)
    _made: list[TextEnvironment] = field(default_factory=list, init=False, repr=False)

    async def make_envs(self) -> Sequence[EnvFromMessageEnv]:
        """Make the environments, which `cleanup` closes."""
        for _ in range(self.group_size):
            self._made.append(
                await asyncio.to_thread(
                    TextEnvironment,
                    self.env_id,
                    self.kwargs,
                    self.seed,
                    instructions=self.instructions,
                )
            )
        renderer = self.make_renderer()
        return [EnvFromMessageEnv(renderer, env, **self.settings) for env in self._made]

    async def cleanup(self) -> None:
        """Close the environments."""
        while self._made:
            await asyncio.to_thread(self._made.pop().close)

    def logging_tags(self) -> list[str]:
        """Return the environment's name, under which the cookbook logs figures."""
        return [short_name(self.env_id)]


@chz.chz
class TextDatasetBuilder(RLDatasetBuilder):  # type: ignore[misc]
    """Makes the dataset of a training run: groups of consecutive seeds, the first one `seed`.

    Attributes:
        env_id: A registered id, also a short one such as `ALFWorld`.
        model_name: Name of the model, whose tokenizer is taken.
        renderer_name: The cookbook's name of a renderer; None takes that which it recommends.
        kwargs: Arguments of `gymnasium.make`, such as `split` and `url`.
        batch_size: Groups of a batch.
        group_size: Episodes of a group.
        settings: Arguments of the cookbook's `EnvFromMessageEnv`, such as `max_trajectory_tokens`.
    """

    env_id: str
    model_name: str
    renderer_name: str | None = None
    kwargs: dict[str, Any] = chz.field(default_factory=dict)
    num_batches: int = 100
    batch_size: int = 16
    group_size: int = 8
    seed: int = 0
    instructions: str = INSTRUCTIONS
    settings: dict[str, Any] = chz.field(default_factory=dict)

    async def __call__(self) -> tuple[RLDataset, RLDataset | None]:
        """Return the training dataset, and None for tests; `BadOption` if `env_id` is unknown."""
        return _Seeds(self, full_id(self.env_id)), None


class _Seeds(RLDataset):  # type: ignore[misc]
    """Batches of groups, of which each has the next seed."""

    def __init__(self, settings: TextDatasetBuilder, env_id: str) -> None:
        self._of, self._env_id = settings, env_id

    def get_batch(self, index: int) -> Sequence[TextGroupBuilder]:
        first = self._of.seed + index * self._of.batch_size
        make_renderer = partial(_renderer, self._of.model_name, self._of.renderer_name)
        return [
            TextGroupBuilder(
                make_renderer,
                self._env_id,
                seed,
                self._of.kwargs,
                self._of.group_size,
                self._of.instructions,
                self._of.settings,
            )
            for seed in range(first, first + self._of.batch_size)
        ]

    def __len__(self) -> int:
        return self._of.num_batches


def _renderer(model_name: str, renderer_name: str | None) -> Renderer:
    name = renderer_name or get_recommended_renderer_name(model_name)
    return get_renderer(name, get_tokenizer(model_name))
