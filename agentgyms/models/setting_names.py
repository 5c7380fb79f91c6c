"""Names of settings, as users know them, in error messages about servers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class SettingNames:
    """Names and advice in error messages.

    Attributes:
        model: Prefix of `name`, `url`, `key_variable` and `extra`.
        service: Prefix of `timeout_s`, `retries`, `requests_per_minute`, `tokens_per_minute` and
            `stream`.
        sampling: Prefix of `temperature`, `top_p` and `max_tokens`.
        seed: Name of the setting that seeds come from.
        later: Advice for when the server is available again.
        resume: Advice for when the account is in order again.
        without_images: Advice, besides another model, if the model does not support images.
    """

    model: str = "the model's "
    service: str = "the model's "
    sampling: str = "the model's "
    seed: str = "the seed of the episode"
    later: str = "try again later"
    resume: str = "try again"
    without_images: str = "send no images"


SETTING_NAMES: Final = SettingNames()
"""For a model that one argument names: `agentgyms.models.model_config.read_model`."""
