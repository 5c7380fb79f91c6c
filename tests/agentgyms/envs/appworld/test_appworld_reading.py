"""What of an action is code, and what the agent reads of an output."""

import gc
import sys
import threading
import time
import warnings

import pytest

from agentgyms.core.outcome import MAX_ACTION
from agentgyms.envs.appworld import observations
from agentgyms.envs.appworld.sandbox import code_extraction

CODE = "x = 1\nprint(x)"


@pytest.mark.parametrize(
    "action",
    [
        CODE,
        f"\n  {CODE}\n\n",
        f"```python\n{CODE}\n```",
        f"```py\n{CODE}\n```",
        f"```Python3 \r\n{CODE}\n```",
        f"```\n{CODE}\n```",
        f"```python\n{CODE}",
        f"<code>{CODE}</code>",
        f"<CODE>\n{CODE}\n</CODE>",
        f"<code>{CODE}",
        f"I will print it.\n```python\n{CODE}\n```\nThat was it.",
        f"```python\n{CODE}\n```\nOutput: 1\n```python\nprint(2)\n```",
        f"<code>{CODE}</code> <code>print(2)</code>",
        f"Thought: x\n```python\n{CODE}\n  ```",
        f"```python\n{CODE}```",
        f"```python\n{CODE}``` \nThat was it.",
        f"<think>```python\nprint(2)\n```</think>\n```python\n{CODE}\n```",
        "  x = 1\n  print(x)",
        "```python\n\tx = 1\n\tprint(x)\n```",
        "1. First:\n   ```python\n   x = 1\n   print(x)\n   ```",
        "<code>\n  x = 1\n  print(x)\n</code>",
    ],
)
def test_code_is_found(action):
    assert code_extraction.extract_code(action) == CODE


@pytest.mark.parametrize(
    "code",
    [
        'note = """\n```python\nprint(1)\n```\n"""\nprint(note)',
        'print("<code>1</code>")',
        "# ```python\nprint(1)",
    ],
)
def test_code_may_hold_blocks(code):
    assert code_extraction.extract_code(code) == code
    assert code_extraction.extract_code(f"<code>{code}</code>").startswith(code.split("</code>")[0])


@pytest.mark.parametrize("text", ["Let me think.", "```json\n{}\n```", "x = = 1", "say `print(1)`"])
def test_text_without_a_block_is_taken_as_it_is(text):
    assert code_extraction.extract_code(text) == text


@pytest.mark.parametrize(
    "action", ["", " \n\t ", "```python\n```", "```python", "```\n\n```", "<code> </code>"]
)
def test_no_code(action):
    with pytest.raises(code_extraction.NoCode, match="no code"):
        code_extraction.extract_code(action)


def test_too_much_code():
    assert code_extraction.extract_code("#" * MAX_ACTION)
    with pytest.raises(code_extraction.NoCode, match="longer than 8192 characters"):
        code_extraction.extract_code("#" * (MAX_ACTION + 1))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ('print( "a" )  # say it', "print('a')"),
        ("# first\nx=1\n\n\ny = 2", "x = 1\ny = 2"),
        ("f(a,\n  b=1)", "f(a, b=1)"),
        ("x = = 1", "x = = 1"),
        ("# only this", "# only this"),
    ],
)
def test_the_canonical_form_knows_no_layout(one, other):
    assert code_extraction.canonical(one) == other


# Python 3.12 writes blanks in f-strings by their numbers.
BLANKS = "\xa0\u200b\xad\u200f" if sys.version_info < (3, 12) else ""


@pytest.mark.parametrize(
    "code",
    [
        *(f"print(f\"{{'{blank}'}}\")" for blank in BLANKS),
        f"x = 0x{'f' * 4000}",
        f"x = [{'0x' + 'f' * 4000}, 1e400]",
    ],
    ids=lambda code: ascii(code[:20]),
)
def test_code_that_cannot_be_written_again_is_its_own_canonical_form(code):
    compile(code, "<action>", "exec")
    assert code_extraction.canonical(code) == code


def test_canonical_forms_of_other_code_differ():
    assert code_extraction.canonical("print('a b')") != code_extraction.canonical("print('a  b')")
    assert code_extraction.canonical("x = 1") != code_extraction.canonical("x = 1.0")


@pytest.mark.parametrize("action", [r"print('\d')", r"re.sub('\s+', '', x)", "1 is 1", "(1)(2)"])
def test_doubtful_code_gives_no_warning(action):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(3):
            code_extraction.parse(action)
        warnings.warn("another one", stacklevel=1)
    assert [str(w.message) for w in caught] == ["another one"]


@pytest.mark.parametrize(
    "code",
    [
        *("(" * 4000 + ")" * 4000, "-" * 8000 + "1", "1" + "+1" * 4000, "a" + ".b" * 4000),
        *("not " * 2000 + "1", "lambda:" * 1100 + "1", "1 if 1 else " * 600 + "1", "{" * 8000),
        *("\x00", "\ud800", "x=" * 4000 + "1", "9" * 8000, "[x for x in " * 150 + "y" + "]" * 150),
    ],
    ids=lambda code: ascii(code[:8]),
)
def test_no_code_is_too_strange_for_the_parser(code):
    seen = []
    thread = threading.Thread(target=lambda: seen.append(code_extraction.canonical(code)))
    thread.start()
    thread.join()
    assert seen, "canonical raised"


def test_short_outputs_stay():
    assert observations.shortened("a" * 200, 200) == "a" * 200


@pytest.mark.parametrize(("total", "limit"), [(201, 200), (8193, 8192), (10**6, 8192)])
def test_long_outputs_lose_their_middle(total, limit):
    output = "".join(chr(ord("a") + i % 26) for i in range(total))
    cut = observations.shortened(output, limit)
    assert len(cut) <= limit
    head, mark, tail = cut.partition("\n[... ")
    left_out, _, rest = tail.partition(f" of {total} characters left out here ...]\n")
    assert mark
    assert output.startswith(head)
    assert output.endswith(rest)
    assert len(head) + int(left_out) + len(rest) == total
    assert len(head) > len(rest) > 0


def test_errors_take_one_line():
    assert observations.one_line("Exception: a\n  b") == "Exception: a b"
    assert len(observations.one_line("x" * 5000)) == 400


class Garbage:
    """Is in a cycle; while it is collected, other threads run."""

    def __init__(self):
        self.own = self

    def __del__(self):
        time.sleep(0)


@pytest.fixture
def much_garbage():
    """Collect garbage often, and change threads often."""
    before = gc.get_threshold(), sys.getswitchinterval()
    gc.set_threshold(20, 1, 1)
    sys.setswitchinterval(1e-6)
    yield
    gc.set_threshold(*before[0])
    sys.setswitchinterval(before[1])


def test_threads_that_parse_at_once_do_not_disturb_each_other(much_garbage):
    """CPython 3.11 counts the depth of trees for all threads together."""
    code = "a = {b['x']: b['y'] for b in f.g()}\n" * 5
    wrong = []

    def parse(depth):
        for _ in range(0 if depth else 100):
            Garbage()
            try:
                code_extraction.parse(code)
            except (SystemError, SyntaxError) as e:
                wrong.append(e)
        if depth:
            parse(depth - 1)

    threads = [threading.Thread(target=parse, args=(10 * i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
