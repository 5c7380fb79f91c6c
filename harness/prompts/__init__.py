"""Prompt templates: one file per style and environment, rendered with Jinja.

A template has the fields `goal`, `first_observation`, `observation`, `history` (the last K turns,
each with `number`, `observation` before the action, `action`, and `outcome`, the observation after
it), `actions` (admissible now), `choices` (the same without placeholders), `turn` (number of turns
so far) and `max_turns`. `{{ image }}` is the place of the observation's image; a style with it
needs a vision-language model and an environment that shows images. A template that refers to
`tools` gets the environment's, to list them as forms of actions. The first line is a comment
that names the parser: `{# parser: tagged #}`.

In a transcript the first prompt is the template without history. Each later prompt is a follow-up:
the file with `.next` before `.jinja`, without a parser line, or a default one that shows the
observation and the choices. It need not repeat the episode, which is in the chat.

The folder of an environment has its name in lower case, without namespace and version:
`agentgyms/VisualSokoban-v0` looks in `visualsokoban`, then in `default`. WebShopBrowser uses the
folder of WebShop.

The style `tools` asks for calls of the environment's tools. Its templates have four fields more:
`calls`, the admissible actions as calls; in the history of each turn `call`, its action as one, and
`problem`, what was wrong with the answer, which `problem` says of the last one. A first line
`{# parser: tools, words: say #}` makes words without a call one of the tool `say`.

The style `chat` shows what `agentgyms.adapters.messages` shows: for runs behind the gateway.

Templates may include parts and other templates, or import from them. Other texts of prompts are in
`parts`, with the same folders: `examples` and `memory` come before the first prompt, `episode` is
one worked example, `reflect` asks for a reflection on a failed trial.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import jinja2
import jinja2.meta

from agentgyms.core.tools import ANY_ACTION, Tools
from agentgyms.models.types import ServedCall
from harness.prompts import answers, parsing, tool_calls, tool_formats
from harness.prompts.answers import Parsed, outside_thoughts
from harness.prompts.tool_calls import ToolParser
from harness.types.errors import ConfigError
from harness.types.messages import Image, ImagePart, TextPart

_FOLDER = Path(__file__).parent / "templates"
_PARTS = Path(__file__).parent / "parts"
_HEADER = re.compile(r"\{#\s*parser:\s*(\w+)(?:, words: (\w+))?\s*#\}\n")
_FILLER = re.compile(r"\b(?:a|an|and|the|you see|in it|next to it|you)\b|,", re.IGNORECASE)
_TAG: Final = re.compile(r"</?[A-Za-z_]+>")
_IMAGE_MARK: Final = "\x00image\x00"
_FOLLOW_UP: Final = ".next"
_SAME_TEXTS: Final = {"webshopbrowser": "webshop"}
_PLAIN_FOLLOW_UP: Final = """{observation}
{{% if choices %}}

What works now:
{{% for choice in choices %}}
{choice}
{{% endfor %}}
{{% endif %}}
"""
_ARRIVAL = re.compile(r"^You arrive at [^.]*\. ")


@lru_cache(maxsize=8192)
def brief(text: str) -> str:
    """Return a text without articles, filler words and commas, for models with short contexts."""
    return " ".join(_FILLER.sub(" ", _ARRIVAL.sub("", text)).split())


_JINJA = jinja2.Environment(
    loader=jinja2.FileSystemLoader([_PARTS, _FOLDER]),  # a text may refer to others
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=False,
    autoescape=False,  # noqa: S701 (prompts are plain text)
)
_JINJA.filters["brief"] = brief
_JINJA.filters["joined"] = parsing.join_names
_JINJA.filters["letter"] = answers.letter


@dataclass(frozen=True, slots=True)
class PromptStyle:
    """A prompt template with the parser of its answers."""

    name: str  # environment and style, such as `alfworld/compact`
    # First 12 hex characters of the SHA-256 of its templates and of the parts that they refer to;
    # results contain it.
    version: str
    parser: str
    shows_image: bool  # the prompt has a place for the observation's image
    # The prompt shows the current observation only as the outcome of the last turn.
    observes_in_history: bool
    _template: jinja2.Template
    _follow_up: jinja2.Template
    tools: ToolParser | None = None  # parser of calls, if the answer calls a tool; else None
    spoken: str = ""  # the tool that words without a call are one of
    lists_tools: bool = False  # the prompt lists the environment's tools as forms of actions
    listed: Tools = ANY_ACTION  # these tools

    def parse(
        self,
        text: str,
        choices: Sequence[str] = (),
        # A server's parsed tool calls.
        calls: Sequence[ServedCall] | None = None,
        *,
        ended: bool = False,  # the model ended the text itself, no limit did
    ) -> Parsed:
        """Return the action in a model's text, and whether the text has the required format."""
        if self.tools:
            return self.tools.parse(text, calls=calls)
        return parsing.get(self.parser).parse(text, choices, ended=ended)

    def answer(self, action: str, choices: Sequence[str] = ()) -> str:
        """Return the answer that parses to `action`, as an expert would have written it."""
        return (self.tools or parsing.get(self.parser)).write(action, choices)

    def example(self, action: str) -> str:
        """Return an action as worked examples and histories show it, without a thought."""
        if self.tools:
            return self.tools.tools.shown(action)
        parser = parsing.get(self.parser)
        return action if parser.lettered else outside_thoughts(parser.write(action))

    @property
    def is_brief(self) -> bool:
        """Whether the answer is a command alone."""
        return parsing.get(self.parser).brief

    def render(self, image: Image | None = None, **fields: Any) -> str | list[TextPart | ImagePart]:
        """Return the prompt's content, parts with an image; `ConfigError` if one is missing."""
        return self._content(self._template, image, fields)

    def render_next(
        self, image: Image | None = None, **fields: Any
    ) -> str | list[TextPart | ImagePart]:
        """Return the content of a later prompt of a transcript; see `render`."""
        return self._content(self._follow_up, image, fields)

    def _content(
        self, template: jinja2.Template, image: Image | None, fields: dict[str, Any]
    ) -> str | list[TextPart | ImagePart]:
        text = template.render(image=_IMAGE_MARK, tools=self.listed, **fields)
        if not self.shows_image:
            return text
        if image is None:
            raise ConfigError(
                f"the prompt style {self.name} shows an image, but the environment observes text "
                "alone: use another style"
            )
        parts: list[TextPart | ImagePart] = []
        for i, piece in enumerate(text.split(_IMAGE_MARK)):
            if i:
                parts.append({"type": "image", "image": image})
            if piece:
                parts.append({"type": "text", "text": piece})
        return parts


def load(
    style: str,
    env_id: str,
    tool_format: str = "hermes",
    kwargs: Mapping[str, Any] = MappingProxyType({}),
) -> PromptStyle:
    """Return the style's template for an environment, or its default one.

    `tool_format` and `kwargs`, the environment's arguments, matter to the style `tools` and to
    templates that list tools. Raises `ConfigError` if there is no such style or format, or its file
    has no parser line.
    """
    for folder in _folders(env_id):
        path = _FOLDER / folder / f"{style}.jinja"
        if path.is_file():
            loaded = _compile(path, f"{folder}/{style}")
            if loaded.parser == "tools":
                parser = tool_calls.parser_of(env_id, tool_format, kwargs, loaded.spoken)
                return replace(loaded, tools=parser)
            if loaded.lists_tools:
                return replace(loaded, listed=tool_calls.tools_of(env_id, kwargs))
            return loaded
    known = sorted({path.stem for path in _FOLDER.glob("*/*.jinja") if "." not in path.stem})
    raise ConfigError(f"unknown prompt style {style!r}: expected one of {', '.join(known)}")


def _folders(env_id: str) -> tuple[str, str]:
    own = env_id.partition("/")[2].partition("-")[0].lower()
    return _SAME_TEXTS.get(own, own), "default"


@dataclass(frozen=True, slots=True)
class Part:
    """A template for a text that is not the prompt of a turn."""

    name: str  # environment and part, such as `default/reflect`
    # First 12 hex characters of the SHA-256 of its template and of those that it extends; results
    # contain it.
    version: str
    _template: jinja2.Template

    def render(self, **fields: Any) -> str:
        """Return the text."""
        return self._template.render(**fields)


@lru_cache
def load_part(name: str, env_id: str) -> Part:
    """Return an environment's template of a part, or the default one."""
    for folder in _folders(env_id):
        path = _PARTS / folder / f"{name}.jinja"
        if path.is_file():
            template = _JINJA.get_template(f"{folder}/{name}.jinja")
            version = _digest(path.read_text(encoding="utf-8"))
            return Part(f"{folder}/{name}", version, template)
    known = sorted(path.stem for path in (_PARTS / "default").glob("*.jinja"))
    raise ConfigError(f"unknown part of a prompt {name!r}: expected one of {', '.join(known)}")


def is_tag(text: str) -> bool:
    """Return whether a text is a tag that prompts name or that answers have, such as `<action>`."""
    return bool(_TAG.fullmatch(text)) and text.replace("</", "<") in _tags()


@lru_cache
def _tags() -> frozenset[str]:
    """Return the opening tags in all templates and parts, and in calls of tools."""
    files = [*_FOLDER.glob("*/*.jinja"), *_PARTS.glob("*/*.jinja")]
    texts = [path.read_text(encoding="utf-8") for path in sorted(files)]
    signs = [sign for one in tool_formats.FORMATS.entries().values() for sign in one.signs]
    named = _TAG.findall("".join([*texts, *signs, *tool_formats.TAGS]))
    return frozenset(tag.replace("</", "<") for tag in named)


def _digest(source: str) -> str:
    """Return the first 12 hex characters of the SHA-256 of a source with the parts it uses."""
    return hashlib.sha256(_with_parts(source).encode()).hexdigest()[:12]


def _with_parts(source: str) -> str:
    """Return a source and the sources of the texts that it extends, includes or imports from."""
    referred = jinja2.meta.find_referenced_templates(_JINJA.parse(source))
    parts = [_referred_source(name) for name in referred if name]
    return source + "".join(map(_with_parts, parts))


def _referred_source(name: str) -> str:
    """Return the source of a part, or of a template if no part has the name."""
    part = _PARTS / name
    return (part if part.is_file() else _FOLDER / name).read_text(encoding="utf-8")


@lru_cache
def _compile(path: Path, name: str) -> PromptStyle:
    source = path.read_text(encoding="utf-8")
    header = _HEADER.match(source)
    if header is None:
        raise ConfigError(f"{path} must begin with a line such as {{# parser: plain #}}")
    parser, spoken = header.groups(default="")
    lettered = parsing.get(parser).lettered
    body = source[header.end() :]
    follow_up_path = path.with_suffix(f"{_FOLLOW_UP}.jinja")
    follow_up = (
        follow_up_path.read_text(encoding="utf-8")
        if follow_up_path.is_file()
        else _plain_follow_up(lettered, _shows_image(body))
    )
    version = _digest(source + follow_up)
    shows_image = _shows_image(body) or _shows_image(follow_up)
    in_history = not {"observation", "image"} & _fields_of(body)
    lists_tools = "tools" in _fields_of(body)
    texts = _JINJA.from_string(body), _JINJA.from_string(follow_up)
    return PromptStyle(
        name,
        version,
        parser,
        shows_image,
        in_history,
        *texts,
        spoken=spoken,
        lists_tools=lists_tools,
    )


def _fields_of(source: str) -> set[str]:
    return jinja2.meta.find_undeclared_variables(_JINJA.parse(_with_parts(source)))


def _shows_image(source: str) -> bool:
    return "image" in _fields_of(source)


def _plain_follow_up(lettered: bool, shows_image: bool) -> str:
    choice = "{{ loop.index0 | letter }} {{ choice }}" if lettered else "- {{ choice }}"
    observation = ("{{ image }}" if shows_image else "") + "{{ observation }}"
    return _PLAIN_FOLLOW_UP.format(observation=observation, choice=choice)
