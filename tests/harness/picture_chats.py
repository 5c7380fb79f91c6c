"""Chats with pictures."""

import numpy as np

from harness.types.messages import shared_image


def image(height, width, seed):
    return shared_image(np.random.default_rng(seed).integers(0, 256, (height, width, 3), np.uint8))


def ask(text, *shown):
    parts = [{"type": "image", "image": one} for one in shown]
    return [{"role": "user", "content": [*parts, {"type": "text", "text": text}]}]


CHATS = [
    ask("where is the box", image(96, 96, 0)),
    ask("push", image(64, 80, 1)),
    [{"role": "user", "content": "no image here: up or down"}],
    ask("lamp left lamp right wall floor target", image(70, 131, 2), image(57, 57, 3)),
    ask("where is the box", image(96, 96, 4)),
]
