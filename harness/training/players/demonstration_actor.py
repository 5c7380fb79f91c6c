"""The environment's expert plays in the place of the agent."""

from __future__ import annotations

from dataclasses import replace

from harness.config import Config
from harness.model.policy import Policy
from harness.rollouts.build import make_prompt_agent
from harness.rollouts.demonstrations import Demonstrator
from harness.rollouts.views import Decision, EpisodeView
from harness.types.errors import ContextOverflow
from harness.types.rollout import Completion


class DemonstrationActor:
    """The environment's expert as an actor; its completions have the policy's tokens.

    Random actions are drawn with probability `noise` in [0, 1) from the same episode. They and
    actions not known to be optimal count as malformed, so that they are not imitated. All
    log-probabilities are 0. Raises `ConfigError` if `noise` is out of range.
    """

    def __init__(self, config: Config, policy: Policy, kind: str, noise: float) -> None:
        self._agent = make_prompt_agent(config, policy.chat_tokenizer)
        self._policy = policy
        self._demonstrator = Demonstrator(self._agent, kind, noise)
        # By the id of an episode's view; the view is kept, for a new one could get its id. An actor
        # plays one step, so that they do not pile up.
        self._episodes: dict[int, tuple[EpisodeView, Demonstrator]] = {}

    async def act(self, view: EpisodeView, seed: int) -> Decision:
        """Return the expert's action; raise `ContextOverflow` if the prompt and it are too long."""
        if id(view) not in self._episodes:
            self._episodes[id(view)] = (view, self._demonstrator.begin())
        _, demonstrator = self._episodes[id(view)]
        decision = await demonstrator.act(view, seed)
        is_demonstration = bool(demonstrator.demonstrations)
        demonstrator.demonstrations.clear()
        demonstrator.texts.clear()
        policy, messages = self._policy, self._agent.messages(view)
        prompt = policy.encode_chat(messages)
        answer = decision.completion.text
        response = policy.chat_tokenizer.encode_response(answer, messages)
        if len(prompt) + len(response) > policy.max_length:
            raise ContextOverflow(
                f"a prompt of {len(prompt)} tokens and {len(response)} of the expert's answer "
                f"exceed the model's {policy.max_length}"
            )
        completion = Completion(
            answer,
            prompt,
            response,
            (0.0,) * len(response),
            images=policy.chat_encoder.images(messages),
        )
        return replace(decision, completion=completion, valid=decision.valid and is_demonstration)
