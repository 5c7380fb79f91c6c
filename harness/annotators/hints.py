"""Texts that are put into the prompts of turns after these were played, for scoring alone."""

from __future__ import annotations

from dataclasses import replace

from harness.model.packing import Sample, single_turn
from harness.model.policy import Policy
from harness.types.errors import ConfigError
from harness.types.rollout import Completion


class Hints:
    """Puts texts at the end of prompts' last messages, cut so that sequences fit `max_length`."""

    def __init__(self, policy: Policy, max_length: int) -> None:
        self._policy, self._max_length = policy, max_length
        self._ending = _ending(policy)

    def row(self, completion: Completion, text: str) -> Sample:
        """Return the sequence of an answer after its prompt with the text."""
        used = len(completion.prompt_ids) + len(completion.response_ids)
        hint = self._policy.encode(text)[: max(0, self._max_length - used)]
        prompt, size = completion.prompt_ids, len(self._ending)
        if prompt[len(prompt) - size :] != self._ending:
            raise ConfigError(
                "a prompt does not end as the chat template ends a user's message, so no hint can "
                "be put into it: use another policy.model"
            )
        hinted = prompt[: len(prompt) - size] + hint + self._ending
        return single_turn(replace(completion, prompt_ids=hinted), 0.0)


def _ending(policy: Policy) -> tuple[int, ...]:
    """Return the tokens between the end of a user message and the answer."""
    mark = "outcome"
    chat = [{"role": "user", "content": mark}]
    _, found, ending = policy.chat_encoder.render(chat).rpartition(mark)
    if not found:
        raise ConfigError("the chat template does not show a message's text as it is")
    return policy.encode(ending)
