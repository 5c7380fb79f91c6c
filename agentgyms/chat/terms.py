"""What settings are called where people set them: errors about servers speak of those."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Terms:
    """The words of errors.

    Attributes:
        model: Goes before `name`, `url`, `key_variable` and `extra`.
        service: Goes before `timeout_s`, `retries`, `requests_per_minute`, `tokens_per_minute` and
            `stream`.
        sampling: Goes before `temperature`, `top_p` and `max_tokens`.
        seed: The setting that seeds come from.
        later: What to do when the server is ready again.
        resume: What to do once the account is.
        blind: What to do, besides naming another model, if this one does not see images.
    """

    model: str = "the model's "
    service: str = "the model's "
    sampling: str = "the model's "
    seed: str = "the seed of the episode"
    later: str = "try again later"
    resume: str = "try again"
    blind: str = "send no images"


TERMS: Final = Terms()
"""Of a model that is named by one argument: `agentgyms.chat.asking.read_model`."""
