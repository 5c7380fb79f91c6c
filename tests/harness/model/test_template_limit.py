"""Strangers' chat templates: each ends in one error, and the next chat is written."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from agentgyms.processes import workers
from harness.model import tiny
from harness.model.chat_templates import process, trusted
from harness.model.chat_templates.rendering import ChatRefused, ChatTemplate, check_arguments
from harness.model.tokenizer import ChatTokenizer
from harness.types.errors import ConfigError

CHAT = [{"role": "user", "content": "Hello"}]
WRITTEN = "Hello<|im_start|>"
STRANGERS = trusted.TINY + "{# one comment more #}"
LOOPS = "{% for i in range(99999) %}" * 4
DOUBLING = (
    "{% set n = namespace(s=['x'] * 999) %}"
    "{% for i in range(99) %}{% set n.s = n.s + n.s %}{% endfor %}"
)
TIME = {
    "loops that say nothing": LOOPS + "{% endfor %}" * 4,
    "macros that branch": "{% macro m(n) %}{% if n %}{{ m(n - 1) }}{{ m(n - 1) }}{% endif %}"
    "{% endmacro %}{{ m(60) }}",
    "one call": "{{ 9 ** (9 ** 9) }}",
    "one call for a chat": "{% set n = messages | length + 8 %}{{ n ** (n ** n) }}",
}
MEMORY = {
    "a text": "{{ 'a' * 10 ** 10 }}",
    "a text for a chat": "{% set n = messages | length %}{{ 'a' * (n * 10 ** 10) }}",
    "a width": "{{ '%9999999999d' % 1 }}",
    "a format": "{{ '{:999999999}'.format(1) }}",
    "a filter": "{{ 'x' | center(10 ** 10) }}",
    "doubled lists": DOUBLING,
    "doubled texts": DOUBLING.replace("['x'] * 999", "'x' * 999"),
}
NESTED = "{% set n = namespace(s=[]) %}{% for i in range(9999) %}{% set n.s = [n.s] %}{% endfor %}"
DEPTH = {
    "a list": NESTED + "{{ n.s }}",
    "a list as the reason": NESTED + "{{ raise_exception(n.s) }}",
    "a macro": "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
    "parentheses": "{{ " + "(" * 9999 + "1" + ")" * 9999 + " }}",
    "negations": "{{ " + "not " * 9999 + "1 }}",
    "filters": "{{ 1" + "| list" * 9999 + " }}",
    "blocks": "{% if messages %}" * 999 + "{% endif %}" * 999,
}
TEXT = {
    "loops": LOOPS + "x" + "{% endfor %}" * 4,
    "long parts": "{% set a = 'a' * 99999 %}{% for i in range(9999) %}{{ a }}{% endfor %}",
    "one part": "{{ 'a' * 9999999 }}",
}
OTHERS = {
    "include": "{% include 'x' %}",
    "include of a text": "{% include messages[0].content ignore missing %}",
    "import": "{% import 'x' as y %}",
    "extends": "{% extends 'x' %}",
}
NO_JINJA = {
    "a sign": "{{ 1 ? 2 }}",
    "a block without end": "{% if messages %}",
    "an unknown filter": "{{ 1 | shout }}",
    "many loops": "{% for m in messages %}" * 30 + "{% endfor %}" * 30,
}
REFUSED = {
    "a range": "{{ range(10 ** 9) | list }}",
    "an undefined name": "{{ nobody.name }}",
    "Python's classes": "{{ ''.__class__.__mro__ }}",
    "a namespace's": "{{ namespace(__class__=1) }}",
    "a namespace's method": "{{ namespace().__init__.__globals__ }}",
    "dict's": "{{ dict.__call__.__globals__ }}",
    "half a character": "{{ '\ud83d' }}",
    "a call of no function": "{{ messages() }}",
    "a change of the chat": "{{ messages.append(1) }}",
    "a division": "{{ 1 / (messages | length - 1) }}",
}
KINDS = [
    ("time", TIME, "takes longer than 5 s: it may loop without end"),
    ("memory", MEMORY, "takes too much memory, or is nested too deep"),
    ("depth", DEPTH, "calls or nests itself too deep"),
    ("text", TEXT, "writes far more than the chat says"),
    ("others", OTHERS, "refers to other templates"),
    ("no jinja", NO_JINJA, "is no Jinja template: "),
    ("refused", REFUSED, "refuses a chat: "),
]
ON_LINUX = pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")
HOSTILE = [
    pytest.param(template, error, id=f"{kind}, {name}", marks=[ON_LINUX] * (kind == "memory"))
    for kind, templates, error in KINDS
    for name, template in templates.items()
]
RENDER = """
import sys
from harness.model.chat_templates.rendering import ChatTemplate
class Tokenizer:
    chat_template, special_tokens_map = "{{ messages[0].content }}", {}
    def get_chat_template(self, tools):
        return self.chat_template
template = ChatTemplate(Tokenizer())
def render():
    return template.render([{"role": "user", "content": "Hello"}])
assert render() == "Hello"
from harness.model.chat_templates import process
print(process._renderer._child._process.pid, flush=True)
"""


@pytest.fixture(scope="module")
def tokenizer():
    made = tiny.make_tokenizer(["go to drawer 1"] * 20, 400)
    made.name_or_path = "someone/model"
    return made


@pytest.fixture
def with_template(tokenizer):
    """Return a function that gives the tokenizer a template, and returns that to render."""
    before = tokenizer.chat_template

    def change(template=STRANGERS):
        tokenizer.chat_template = template
        return ChatTemplate(tokenizer)

    yield change
    tokenizer.chat_template = before


@pytest.mark.parametrize(("template", "error"), HOSTILE)
def test_a_hostile_template_ends_in_one_error(with_template, monkeypatch, template, error):
    with monkeypatch.context() as hurried:
        hurried.setattr(process, "CPU_S", 0.3 if template in TIME.values() else 60)
        with pytest.raises(ConfigError) as caught:
            with_template(template).render(CHAT)
    told = str(caught.value)
    assert told.startswith(f"the model's chat template (someone/model) {error}")
    assert len(told) < 500
    assert told.isprintable()
    assert isinstance(caught.value, ChatRefused) == (error == "refuses a chat: ")
    assert with_template().render(CHAT) == WRITTEN, "the next chat is written"


@pytest.mark.parametrize("wrong", [5, ["text"], b"text", {"default": None}])
def test_a_template_is_text(with_template, wrong):
    with pytest.raises(ConfigError, match="expected text: mend its chat template"):
        with_template(wrong)


def test_a_template_of_any_length_is_not_read(with_template):
    with pytest.raises(ConfigError, match=r"has 2,000,000 characters, more than 1,048,576: mend"):
        with_template("x" * 2_000_000)


def test_several_templates_without_one_for_the_chat(with_template):
    template = with_template({"tool_use": "x", "rag": "y"})
    with pytest.raises(ChatRefused, match="refuses a chat: This model has multiple"):
        template.render(CHAT)


@pytest.mark.parametrize(
    "template", ["{{ raise_exception(said) }}", "{{ nobody[said].name }}", "{{ 1 | int + said }}"]
)
def test_what_a_template_says_steers_no_terminal(with_template, template):
    said = "\x1b[2J\x1b]0;title\x07\r\n\u202e\x9b31m" * 99
    rendered = with_template("{% set said = messages[0].content %}" + template)
    with pytest.raises(ChatRefused) as caught:
        rendered.render([{"role": "user", "content": said}])
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 500


def test_names_of_a_template_are_listed_in_one_short_line():
    template = "".join(f"{{{{ name_{i} }}}}" for i in range(999))
    with pytest.raises(ConfigError, match="no argument 'nam': expected name_0, name_1") as caught:
        check_arguments(template, {"nam": 1}, ())
    assert len(str(caught.value)) < 1500


def test_a_limit_is_no_refusal_of_a_chat(tokenizer, monkeypatch):
    """What asks whether a template takes a chat does not try the next one after a limit."""
    monkeypatch.setattr(tokenizer, "chat_template", TEXT["one part"])
    chats = ChatTokenizer(tokenizer, type("Settings", (), {"eos_token_id": None}))
    with pytest.raises(ConfigError, match="writes far more"):
        chats.check_ends()


def test_a_long_chat_is_written_and_tokens_stay_here(with_template):
    content = "mug \N{GRINNING FACE} " * 200_000
    template = with_template("{{ messages | tojson }}")
    message = {"role": "user", "content": content, "token_ids": (1, 2), "without_thoughts": True}
    assert template.render([message]) == f'[{{"role": "user", "content": "{content}"}}]'


def test_threads_take_turns(with_template):
    template, written = with_template(), {}

    def render(number):
        for turn in range(20):
            content = f"{number} {turn} " * 999
            chat = [{"role": "user", "content": content}]
            written[number, turn] = template.render(chat) == f"{content}<|im_start|>"

    threads = [threading.Thread(target=render, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(written) == 160
    assert all(written.values())


def test_a_turn_starts_no_process(with_template):
    template = with_template()
    template.render(CHAT)
    starts = workers.counts()["chat-templates"].starts
    for _ in range(20):
        template.render(CHAT)
        with_template("{{ nobody.name }}")
        with_template()
    assert workers.counts()["chat-templates"].starts == starts


@pytest.mark.parametrize("template", sorted(trusted.TEXTS))
def test_only_the_whole_text_of_a_trusted_template_needs_no_child(
    with_template, monkeypatch, template
):
    process._renderer.close()
    monkeypatch.setattr(process, "_PROGRAM", Path(os.devnull))
    assert with_template(template).render(CHAT) == WRITTEN
    for other in (template + "{##}", template[1:]):
        with pytest.raises(ConfigError, match="cannot be rendered, the process"):
            with_template(other)


@pytest.mark.parametrize(
    "message", [{"content": "\ud83d"}, {"content": "Hello", "tools": [{"type": "function"}]}]
)
def test_a_trusted_template_refuses_as_a_strangers_does(with_template, message):
    errors = set()
    for template in (trusted.TINY, STRANGERS):
        with pytest.raises(ChatRefused) as caught:
            with_template(template).render([{"role": "user", **message}])
        errors.add(str(caught.value))
    assert len(errors) == 1


def test_a_child_that_was_killed_is_replaced(with_template):
    template = with_template()
    for number in (signal.SIGKILL, signal.SIGSEGV):
        template.render(CHAT)
        os.kill(process._renderer._child._process.pid, number)
        assert template.render(CHAT) == WRITTEN


def test_a_template_that_crashes_each_child_is_named(with_template, monkeypatch):
    template = with_template()
    monkeypatch.setattr(process, "_PROGRAM", Path(os.devnull))
    process._renderer.close()
    with pytest.raises(ConfigError, match=r"\(someone/model\) cannot be rendered.* lost twice"):
        template.render(CHAT)


@ON_LINUX
def test_no_secret_of_this_process_reaches_the_child(with_template, monkeypatch):
    template = with_template()
    process._renderer.close()
    monkeypatch.setenv("SOME_API_KEY", "secret-9")
    assert template.render(CHAT) == WRITTEN
    given = Path(f"/proc/{process._renderer._child._process.pid}/environ").read_text()
    assert "PYTHONPATH=" in given
    assert "secret-9" not in given


def test_signals_of_the_terminal_leave_it_to_the_parent(with_template):
    template = with_template()
    template.render(CHAT)
    child = process._renderer._child
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        child._process.send_signal(number)
        assert template.render(CHAT) == WRITTEN
    assert process._renderer._child is child


def start(program):
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", program],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def has_ended(pid):
    """Wait until a process has ended, and return whether it has."""
    status = Path(f"/proc/{pid}/status")
    for _ in range(2400):
        try:
            os.kill(pid, 0)
            if "\nState:\tZ" in status.read_text():  # nobody fetches it
                return True
        except ProcessLookupError:
            return True
        except FileNotFoundError:
            pass
        time.sleep(0.05)
    return False


def test_the_child_ends_with_its_parent_that_is_killed():
    parent = start(RENDER + "input()")
    child = int(parent.stdout.readline())
    parent.kill()
    parent.communicate()
    assert has_ended(child)


def test_the_child_ends_with_its_parent_though_a_fork_goes_on():
    forked = "import os, signal\nif os.fork() == 0:\n    print(os.getpid(), flush=True)\n"
    parent = start(f"{RENDER}{forked}    signal.pause()\ninput()")
    child, other = int(parent.stdout.readline()), int(parent.stdout.readline())
    try:
        parent.kill()
        parent.wait()
        assert has_ended(child)
    finally:
        os.kill(other, signal.SIGKILL)
        parent.communicate()


def test_a_fork_has_its_own_child_and_leaves_that_of_its_parent():
    program = """
import os
if (pid := os.fork()) == 0:
    assert render() == "Hello"
    print(process._renderer._child._process.pid, flush=True)
    sys.exit()
assert os.waitpid(pid, 0)[1] == 0
assert render() == "Hello"
print(process._renderer._child._process.pid, flush=True)
"""
    out, errors = start(RENDER + program).communicate(timeout=120)
    first, of_fork, then = map(int, out.split())
    assert first == then != of_fork
    assert errors == ""
    assert has_ended(first)
    assert has_ended(of_fork)


def test_the_end_of_the_parent_waits_for_no_rendering():
    program = """
import threading
Tokenizer.chat_template = "{% for i in range(9999) %}" * 4 + "{% endfor %}" * 4
threading.Thread(target=render, daemon=True).start()
while not process._renderer._lock.locked():
    pass
"""
    parent = start(RENDER + program)
    out, _ = parent.communicate(timeout=120)
    assert parent.returncode == 0
    assert has_ended(int(out))


def test_programs_that_render_nothing_start_no_child_and_read_no_jinja():
    program = """
import sys
import harness, harness.model.chat_templates.rendering, harness.preflight
from agentgyms.processes import workers
assert workers.counts() == {}
assert "jinja2" not in sys.modules
"""
    assert start(program).communicate(timeout=120) == ("", "")
