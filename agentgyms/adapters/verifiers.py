"""Adapts any environment to verifiers: a taskset, an environment and a harness.

verifiers finds a taskset by the name of its module, `agentgyms_tasks`, which hands these classes
on.

The agent is one `player`, the environment its user: user messages have the observation and the
admissible actions, every reply is an action. The reward is the return; success, score and turns are
metrics. An error fails the episode and never becomes a reward of 0.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterator
from typing import Any

import gymnasium as gym

from agentgyms.adapters.messages import INSTRUCTIONS, parse_action, user_messages
from agentgyms.core import imports
from agentgyms.core.errors import BadOption, EnvUnavailable
from agentgyms.core.outcome import Observation

try:
    import httpx
    import verifiers.v1 as vf
    from verifiers.v1.dialects.chat import message_to_wire
except ModuleNotFoundError as e:
    raise ModuleNotFoundError(imports.missing("verifiers", "verifiers"), name=e.name) from e


class TextTasksetConfig(vf.TasksetConfig):  # type: ignore[misc]
    """The taskset's configuration; with one `seed`, a task's rollouts start in the same state."""

    env_id: str = ""  # verifiers first creates a configuration without values
    kwargs: dict[str, Any] = {}  # noqa: RUF012 (pydantic copies it)
    seed: int = 0
    instructions: str = INSTRUCTIONS

    def make(self) -> gym.Env[Observation, str]:
        """Return a new environment; `BadOption` if `env_id` is not set."""
        if not self.env_id:
            raise BadOption("the taskset has no env_id: set one, such as agentgyms/ALFWorld-v0")
        return gym.make(self.env_id, **self.kwargs)


class TextTask(vf.Task[vf.TaskData]):  # type: ignore[misc]
    """A task, identified by its id; the environment starts the conversation."""


class TextTaskset(vf.Taskset[TextTask, TextTasksetConfig]):  # type: ignore[misc]
    """All tasks of an environment's split, in its order."""

    def load(self) -> Iterator[TextTask]:
        """Yield the tasks."""
        env = self.config.make()
        try:
            for task_id in env.unwrapped.tasks:
                messages = vf.TaskData(
                    id=task_id, name=task_id, system_prompt=self.config.instructions
                )
                yield TextTask(messages, self.config.task)
        finally:
            env.close()


class TextEnvironmentConfig(vf.EnvConfig):  # type: ignore[misc]
    """The player's configuration: by default a subprocess, since it needs no sandbox."""

    player: vf.AgentConfig = vf.AgentConfig(runtime=vf.SubprocessConfig())


class TextEnvironment(vf.Env[TextEnvironmentConfig]):  # type: ignore[misc]
    """Plays an episode of the task: the environment is the player's user."""

    async def run(self, task: TextTask, agents: vf.Agents) -> None:
        """Play the episode and record its return; `EnvUnavailable` if it was not rated."""
        config, total = self.taskset.config, 0.0
        env = await asyncio.to_thread(config.make)
        try:
            # every rollout of a task gets the same seed, so the same initial state
            begin = {"seed": config.seed, "options": {"task_id": task.data.id}}
            observation, info = await asyncio.to_thread(env.reset, **begin)
            over = False
            async with agents.player.interaction(task) as interaction:
                while not over:
                    segment = await interaction.turn(user_messages(observation, info))
                    if segment.terminated:
                        break
                    turn = await asyncio.to_thread(env.step, parse_action(segment.last_reply))
                    observation, reward, terminated, truncated, info = turn
                    total += float(reward)
                    over = terminated or truncated
        finally:
            await asyncio.to_thread(env.close)
        if not interaction.trace.ok:
            return
        if math.isnan(total):
            raise EnvUnavailable(f"the episode was not rated: {info['feedback_text']}")
        interaction.trace.record_reward("episode_return", total)
        figures = {"success": info["success"], "score": info["score"], "turns": info["turn"]}
        interaction.trace.record_metrics({k: float(v) for k, v in figures.items()})


class ChatHarness(vf.Harness[vf.HarnessConfig]):  # type: ignore[misc]
    """Requests the next message of the conversation, without tools or a process."""

    APPENDS_SYSTEM_PROMPT = SUPPORTS_RESUME = True
    EXECUTES_CODE = NEEDS_CONTAINER = False

    async def launch(
        self,
        ctx: Any,
        trace: Any,
        runtime: Any,
        endpoint: str,
        secret: str,
        mcp_urls: Any,
        data: Any,
    ) -> vf.ProgramResult:
        """Request one answer to the conversation so far."""
        system, prompt = self.resolve_prompt(data)
        messages = [{"role": "system", "content": system}] if system else []
        body = {"model": ctx.model, "messages": messages + [message_to_wire(m) for m in prompt]}
        async with httpx.AsyncClient(timeout=None, trust_env=False) as client:  # noqa: S113
            reply = await client.post(
                f"{endpoint}/chat/completions",
                json=body,
                headers={"Authorization": f"Bearer {secret}"},
            )
        error = "" if reply.is_success else f"{reply.status_code}: {reply.text}"
        return vf.ProgramResult(int(not reply.is_success), "", error)
