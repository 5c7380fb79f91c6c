"""A text model beside a policy that sees: it reads observations where that sees pictures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from harness.config import TINY_MODELS, TinyConfig
from harness.model import tiny
from harness.model.policy import Policy
from harness.types.errors import ConfigError
from harness.types.messages import Image
from harness.types.rollout import Rollout, Turn

_SEED = 7
"""Seed of a tiny reader's weights."""


def load(name: str, policy: Policy) -> Policy:
    """Return a text model, all of it trained, on the policy's device and with its tokens.

    `name` is a folder, a hub name, or `"tiny"` for a new random one. Raises `ConfigError` if it
    cannot be loaded, sees images itself, or has other tokens than the policy.
    """
    if name in TINY_MODELS[:1]:
        made = tiny.make_model(TinyConfig(), policy.tokenizer, _SEED)
        reader = Policy(made, policy.tokenizer, str(policy.device), precision=policy.precision)
    else:
        reader = Policy.load(name, str(policy.device), precision=policy.precision)
    if reader.vision is not None:
        raise ConfigError(f"process_reward.model {name!r} sees images: expected a text model")
    check_tokens(f"process_reward.model {name!r}", reader.tokenizer, policy.tokenizer)
    if policy.checkpoints_activations:
        reader.checkpoint_activations()
    reader.layout = policy.layout
    reader.set_padding_free(None)
    return reader


def check_tokens(model: str, tokenizer: Any, policys: Any) -> None:
    """Raise `ConfigError` if the model's vocabulary differs from the policy's."""
    if tokenizer.get_vocab() != policys.get_vocab():
        raise ConfigError(
            f"{model} has other tokens than the policy, whose responses it scores: expected a "
            "model with the same tokenizer"
        )


def readable(rollouts: Sequence[Rollout], policy: Policy) -> list[Rollout]:
    """Return rollouts in whose prompts each picture is the text of the observation it came with.

    The rollouts are not changed; a text policy's are returned as they are. Raises `ConfigError` if
    a prompt shows a picture that is no turn's observation.
    """
    if policy.vision is None:
        return list(rollouts)
    found: list[Rollout] = []
    for rollout in rollouts:
        texts = {
            turn.image: policy.encode(policy.chat_encoder.escape_special_tokens(turn.observation))
            for turn in rollout.turns
            if turn.image
        }
        turns = [_read(turn, texts, policy) for turn in rollout.turns]
        found.append(replace(rollout, turns=turns))
    return found


def _read(turn: Turn, texts: Mapping[Image, tuple[int, ...]], policy: Policy) -> Turn:
    """Return a turn whose prompt has the texts in place of the tokens of its images."""
    assert policy.vision is not None
    images, mark = iter(turn.completion.images), policy.vision.image_token_id
    tokens: list[int] = []
    left = 0  # further tokens of the image that has been read
    for token in turn.completion.prompt_ids:
        image = next(images, None) if token == mark and not left else None
        if image is not None:
            left = policy.vision.num_tokens(image)
            if image not in texts:
                raise ConfigError(
                    "a prompt shows a picture that no observation has: process_reward.model reads "
                    "observations, so take a style that shows those alone"
                )
            tokens += texts[image]
        if left:
            left -= 1
        else:
            tokens.append(token)
    completion = replace(turn.completion, prompt_ids=tuple(tokens), images=())
    return replace(turn, completion=completion)
