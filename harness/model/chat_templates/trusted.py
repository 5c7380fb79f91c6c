"""Chat templates of this project's own tiny models: the only ones that need no child process."""

from __future__ import annotations

from typing import Final

_TOOLS: Final = (
    "{% for tool in tools or () %}{{ tool.function.name }}"
    "({{ tool.function.parameters.properties | join(', ') }}) {% endfor %}"
    "{% if tools %}<tool_call>{% endif %}"
)
"""Beginning of a chat template: names of the tools and their arguments, then the sign of hermes."""

_MARK: Final = "{{ '<|im_end|>' if message['role'] == 'assistant' else '<|im_start|>' }}"

TINY: Final = _TOOLS + (
    "{% for message in messages %}{{ message['content'] }}" + _MARK + "{% endfor %}"
)
"""Chat template of the tiny text model: texts, each with its mark behind it."""

TINY_VL: Final = _TOOLS + (
    "{% for message in messages %}"
    "{% if message['content'] is string %}{{ message['content'] }}{% else %}"
    "{% for part in message['content'] %}"
    "{{ '<|vision_start|><|image_pad|><|vision_end|>' if part['type'] == 'image' "
    "else part['text'] }}"
    "{% endfor %}{% endif %}" + _MARK + "{% endfor %}"
)
"""Chat template of the tiny vision-language model."""

TEXTS: Final = frozenset({TINY, TINY_VL})
"""Whole texts: a template that differs in one character is a stranger's."""
