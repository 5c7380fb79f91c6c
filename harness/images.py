"""Images that prompts show: each kept once, however many turns and group members see it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final
from weakref import WeakValueDictionary

import numpy as np

from agentgyms.core import Observation
from agentgyms.images import Image as Pixels
from agentgyms.images import digest as digest_of
from agentgyms.images import is_image
from agentgyms.observations import text_of
from harness.errors import ConfigError


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Image:
    """An image that is never changed; equal digests are equal images.

    Attributes:
        digest: Of shape and pixels.
        pixels: Red, green and blue, read-only. Shape [height, width, 3].
    """

    digest: str
    pixels: Pixels = field(compare=False, repr=False)


SAID: Final = Image("said", np.zeros((0, 0, 3), np.uint8))
"""Stands for an image token that the model wrote itself: an ordinary token, no image."""

_SHARED: Final[WeakValueDictionary[str, Image]] = WeakValueDictionary()


def share(pixels: Any) -> Image:
    """Return the image of an array, the same object for equal arrays as long as anyone holds it.

    Raises:
        ConfigError: The array is not uint8 of shape [height, width, 3].
    """
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


def look(observation: Observation) -> tuple[str, Image | None]:
    """Return the text of an observation, and its image if it has one."""
    image = None if isinstance(observation, str) else observation.get("image")
    return text_of(observation), None if image is None else share(image)
