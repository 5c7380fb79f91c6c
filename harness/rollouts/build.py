"""Makes the agent of a run and its pools of environments."""

from __future__ import annotations

from typing import Any

from harness import config as configs
from harness import prompts
from harness.config import Config
from harness.inference.completers import Completer, Sampling
from harness.prompts.truncation import Preamble, Tokens
from harness.rollouts.agent import Agent
from harness.rollouts.env_pool import EnvPool


def make_prompt_agent(config: Config, tokens: Tokens | None = None) -> Agent:
    """Return an agent without a model, which only writes the prompts of a run."""
    return make_agent(config, None, config.agent.temperature, tokens)


def make_agent(
    config: Config, completer: Completer | None, temperature: float, tokens: Tokens | None
) -> Agent:
    """Return the agent of a run, sampling at `temperature`; `tokens` measures observations."""
    own = config.agent
    sampling = Sampling(temperature, own.answer_tokens, max_thought_tokens=own.max_thought_tokens)
    return Agent(
        completer,
        prompts.load(own.style, config.env.id, own.tool_format, config.env.kwargs),
        sampling,
        own.window,
        own.context,
        preamble=Preamble(config.env.id),
        thoughts=own.thoughts,
        scratchpad=own.scratchpad,
        summary_tokens=own.summary_tokens,
        max_observation=own.max_observation,
        tokens=tokens,
    )


def make_pool(config: Config, split: str, group_size: int, **kwargs: Any) -> EnvPool:
    """Return environments of a split."""
    settings = {**config.env.kwargs, "split": split, **kwargs}
    if config.env.max_turns is not None:
        settings["max_turns"] = config.env.max_turns
    return EnvPool(config.env.id, group_size, config.rollout.max_live, **settings)


def make_eval_pool(config: Config, split: str) -> EnvPool:
    """Return environments of a split with the settings of evaluation, in groups of one."""
    env, own = config.env, config.eval
    limit = env.max_turns if own.max_turns is None else own.max_turns
    env = configs.replace(env, max_turns=limit, kwargs={**env.kwargs, **own.kwargs})
    return make_pool(configs.replace(config, env=env), split, 1)
