"""Messages of a chat, with text and images; equal images are one object in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NotRequired, TypedDict
from weakref import WeakValueDictionary

import numpy as np

from agentgyms.core.env import Observation
from agentgyms.core.images import Image as Pixels
from agentgyms.core.images import digest as digest_of
from agentgyms.core.images import is_image
from agentgyms.core.outcome import text_of
from agentgyms.models.types import ServedCall
from harness.types.errors import ConfigError


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Image:
    """An immutable image; equal digests are equal images."""

    digest: str
    # Red, green and blue, read-only. Shape [height, width, 3].
    pixels: Pixels = field(compare=False, repr=False)


GENERATED_IMAGE_TOKEN: Final = Image("said", np.zeros((0, 0, 3), np.uint8))
"""Placeholder for an image token that the model generated: an ordinary token, no image."""

_IMAGE: Final = "[image]"

_SHARED: Final[WeakValueDictionary[str, Image]] = WeakValueDictionary()


def shared_image(pixels: Any) -> Image:
    """Return the image of an array: the same object for equal arrays, while it is in use."""
    if not is_image(pixels):
        kind = f"{getattr(pixels, 'dtype', type(pixels).__name__)} {getattr(pixels, 'shape', '')}"
        raise ConfigError(
            f"the environment's image is {kind.strip()}: expected an array of uint8 of shape "
            "[height, width, 3]"
        )
    digest = digest_of(pixels)
    found = _SHARED.get(digest)
    if found is None:
        own = pixels.copy()  # the environment may draw its next image into the same array
        own.setflags(write=False)
        found = _SHARED[digest] = Image(digest, own)
    return found


def text_and_image(observation: Observation) -> tuple[str, Image | None]:
    """Return the text of an observation, and its image if it has one."""
    image = None if isinstance(observation, str) else observation.get("image")
    return text_of(observation), None if image is None else shared_image(image)


class TextPart(TypedDict):
    """A text in a message."""

    type: Literal["text"]
    text: str


class ImagePart(TypedDict):
    """An image in a message."""

    type: Literal["image"]
    image: Image


Content = str | list[TextPart | ImagePart]
"""The content of a message: its text, or its parts."""


class Message(TypedDict):
    """One message of a chat: role `system`, `user`, `assistant` or `tool`, and its content.

    An assistant's generated `token_ids` stay unchanged in every longer chat that contains the
    message. Its tool `calls` are those that a server parsed; a tool's message then has the
    `call_id` of its call. With `without_thoughts` the content lacks the answer's thoughts, and only
    the `token_ids` behind them belong to the chat. The first message may have the `tools` of the
    chat, in OpenAI's form. If it is `as_rendered`, the chat is read as its template writes it,
    earlier answers as texts.
    """

    role: str
    content: Content
    token_ids: NotRequired[tuple[int, ...]]
    without_thoughts: NotRequired[bool]
    tools: NotRequired[list[dict[str, Any]]]
    calls: NotRequired[tuple[ServedCall, ...]]
    call_id: NotRequired[str]
    as_rendered: NotRequired[bool]


def content_text(content: Content) -> str:
    """Return the text of a message's content, with `[image]` for an image."""
    if isinstance(content, str):
        return content
    return "".join(part["text"] if part["type"] == "text" else _IMAGE for part in content)


def tools_of(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """Return the tools that a chat offers; [] for none."""
    return messages[0].get("tools", []) if messages else []


def texts_of(messages: Sequence[Message]) -> list[str]:
    """Return the texts of a chat in order."""
    texts: list[str] = []
    for message in messages:
        content = message["content"]
        if isinstance(content, str):
            texts.append(content)
        else:
            texts += [part["text"] for part in content if part["type"] == "text"]
    return texts


def images_of(messages: Sequence[Message]) -> tuple[Image, ...]:
    """Return the images of a chat in order."""
    return tuple(
        part["image"]
        for message in messages
        if not isinstance(message["content"], str)
        for part in message["content"]
        if part["type"] == "image"
    )
