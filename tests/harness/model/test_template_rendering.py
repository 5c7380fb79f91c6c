"""Chats as the child writes them are, to the character, those that transformers writes."""

from datetime import datetime
from pathlib import Path

import jinja2
import pytest
from transformers.utils import chat_template_utils

from harness.model import tiny
from harness.model.chat_templates import clock, trusted
from harness.model.chat_templates.rendering import ChatRefused, ChatTemplate

FOLDER = Path(__file__).parents[2] / "golden" / "chat_templates"
PUBLISHED = {path.stem: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.jinja")}
EACH = "{% for message in messages %}"
WRITTEN = {
    "ChatML": EACH + "{{ '<|im_start|>' + message['role'] + '\n' + message['content'] }}"
    "{{ '<|im_end|>\n' }}{% endfor %}{% if add_generation_prompt %}<|im_start|>{% endif %}",
    "blanks and lines": "\n\n  {% for message in messages %}\n   {{ message.content }}  \n\n"
    "\t{% endfor %}\n {# a comment #}\n  {%+ if tools %}  t{% endif +%}\n end\n\n",
    "generation": EACH + "{% if message.role == 'assistant' %}{% generation %}"
    "{% set own = message.content %}{{ own }}{% endgeneration %}{{ own }}"
    "{%- generation -%}  b  {%- endgeneration -%}{% else %}{{ message.content }}{% endif %}"
    "{% endfor %}",
    "loop controls": EACH + "{% if message.role == 'system' %}{% continue %}{% endif %}"
    "{% if loop.index > 3 %}{% break %}{% endif %}{{ loop.index0 }}{{ message.content }}"
    "{% endfor %}",
    "a namespace": "{% set ns = namespace(found=false, self=1) %}" + EACH + "{% if not ns.found %}"
    "{% set ns.found = message.role %}{% endif %}{% endfor %}{{ ns.found }}{{ ns.self }}",
    "JSON": "{{ messages | tojson }}{{ tools | tojson(indent=2) }}{{ '<é&>' | tojson }}"
    "{{ {'b': 1, 'a': [1.5, none, true]} | tojson(sort_keys=true, separators=(',', ':')) }}"
    "{{ 'é' | tojson(ensure_ascii=true) }}",
    "dict": "{{ dict(a=1, **{'b': 2}) }}{{ dict.fromkeys('ab', 3) }}{{ dict(messages[0]) }}",
    "macros and calls": "{% macro say(who, loud=false) %}<{{ who }}{{ caller() if caller }}>"
    "{% endmacro %}{{ say('a') }}{% call say('b') %}{{ messages | length }}{% endcall %}",
    "filters": "{{ messages | map(attribute='role') | unique | join(',') }}"
    "{{ messages | selectattr('role', 'equalto', 'user') | list | length }}"
    "{{ messages[0].content | trim | upper | replace('A', 'b') | truncate(9) | indent(2) }}"
    "{{ messages | groupby('role') }}{{ (tools or []) | first | default('none', true) }}"
    "{% filter lower %}ABC{% endfilter %}{{ 7 // 2 }}{{ 2 ** 5 }}{{ 1.0 }}{{ '%05d' % 42 }}",
    "tests": "{{ tools is none }}{{ documents is defined }}{{ nobody is defined }}{{ nobody }}"
    "{{ messages is sequence }}{{ messages[0].content is string }}{{ messages[0] is mapping }}"
    "{{ 'x' in messages[0].content }}{{ messages[-1].role == 'user' and 'u' or 'a' }}",
    "special tokens": "{{ bos_token }}{{ eos_token }}{{ unk_token }}{{ pad_token }}",
    "arguments": "{% if enable_thinking is defined and not enable_thinking %}<no>{% endif %}"
    "{{ level }}{{ names | join }}",
    "parts": EACH + "{% if message.content is string %}{{ message.content }}{% else %}"
    "{% for part in message.content %}{% if part.type == 'image' or 'image' in part %}<image>"
    "{% else %}{{ part['text'] }}{% endif %}{% endfor %}{% endif %}{% endfor %}",
    "refuses systems": EACH + "{% if message.role == 'system' %}"
    "{{ raise_exception('no system: ' ~ message.content) }}{% endif %}{% endfor %}",
    "blocks": "{% block a %}{{ messages[0].role }}{% endblock %}{{ self.a() }}"
    "{% set long %}\n x {{ messages | count }}\n{% endset %}{{ long }}{% raw %}{{ }}{% endraw %}",
    "needs turns": EACH + "{% if (message.role == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('roles must alternate') }}{% endif %}{{ message.content }}{% endfor %}",
}
TRUSTED = {"tiny": trusted.TINY, "tiny vision": trusted.TINY_VL}
TEMPLATES = PUBLISHED | WRITTEN | TRUSTED
LOOK = {
    "type": "function",
    "function": {
        "name": "look",
        "description": "Look <around> & say 'é'.",
        "parameters": {
            "type": "object",
            "properties": {"place": {"type": "string", "enum": ["a", "b"]}},
            "required": ["place"],
        },
    },
}
USER = {"role": "user", "content": " you see a\tmug & <b>, é 🙂\n"}
PARTS = [{"type": "image"}, {"type": "text", "text": "a mug"}]
CHATS = {
    "a question": [USER],
    "turns": [USER, {"role": "assistant", "content": "<think>x</think>\n\nlook"}, USER] * 3,
    "a system": [{"role": "system", "content": "You play."}, USER],
    "an answer": [USER, {"role": "assistant", "content": "look"}],
    "results": [
        USER,
        {"role": "assistant", "content": ""},
        {"role": "tool", "content": "{}"},
        USER,
    ],
    "parts": [{"role": "user", "content": PARTS}],
}
ARGUMENTS = {"arguments": {"enable_thinking": False, "level": 3, "names": ["a", "b"]}}


@pytest.fixture(scope="module")
def tokenizer():
    made = tiny.make_tokenizer(["go to drawer 1"] * 20, 400)
    made.bos_token = "<|im_start|>"
    return made


class Day(datetime):
    """The date that templates are told here."""

    @classmethod
    def now(cls, tz=None):
        return cls.fromisoformat(clock.DATE)


@pytest.mark.parametrize("name", sorted(TEMPLATES))
def test_chats_are_written_as_transformers_writes_them(tokenizer, monkeypatch, name):
    monkeypatch.setattr(chat_template_utils, "datetime", Day)
    monkeypatch.setattr(tokenizer, "chat_template", TEMPLATES[name])
    template, arguments = ChatTemplate(tokenizer), ARGUMENTS.get(name, {})
    template.arguments = arguments
    written = set()
    for chat in CHATS.values():
        for tools in (None, [LOOK]):
            first = {**chat[0], "tools": tools} if tools else chat[0]
            for prompt in (True, False):
                asked = {"tokenize": False, "tools": tools, "add_generation_prompt": prompt}
                try:
                    theirs = tokenizer.apply_chat_template(chat, **asked, **arguments)
                except (jinja2.TemplateError, TypeError, ValueError):
                    with pytest.raises(ChatRefused):
                        template.render([first, *chat[1:]], add_generation_prompt=prompt)
                    continue
                assert template.render([first, *chat[1:]], add_generation_prompt=prompt) == theirs
                written.add(theirs)
    assert written


@pytest.mark.parametrize("chosen", ["default", "tool_use"])
def test_of_several_templates_the_one_for_tools_is_taken(tokenizer, monkeypatch, chosen):
    several = {"default": "default", "tool_use": "tool_use"}
    monkeypatch.setattr(tokenizer, "chat_template", several)
    chat = [{**USER, "tools": [LOOK]}] if chosen == "tool_use" else [USER]
    assert ChatTemplate(tokenizer).render(chat) == chosen


def test_a_chat_without_messages_is_refused(tokenizer):
    with pytest.raises(ChatRefused, match="refuses a chat: it has no messages"):
        ChatTemplate(tokenizer).render([])
