"""What the executor answers, in the engine's words."""

import random
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest
from kettle import BRIEF

from agentgyms.core.errors import BadOption, WorkerLost
from agentgyms.envs.appworld.sandbox import executors
from agentgyms.envs.appworld.sandbox.executors import WorkerDied, executor
from agentgyms.envs.appworld.world import ApiResponse

FAILED = "Execution failed. Traceback:\n"
ONE_LINE_TOO_MUCH = (
    "Exception: The arguments of this episode's calls have more than 5000 bytes together."
)
on_linux = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
AT = '  File "<python-input>", line '


class World:
    """Answers calls, and remembers them."""

    def __init__(self):
        self.calls = []

    def __call__(self, app, api, arguments):
        self.calls.append((app, api, arguments))
        if api == "fail":
            return ApiResponse(error='Response status code is 409:\n{"message":"dry"}', status=409)
        if api == "odd":
            return ApiResponse(error="an argument is missing", kind="TypeError", status=0)
        return ApiResponse(value={"given": arguments})


@pytest.fixture
def world():
    return World()


@pytest.fixture
def run_shared(shared):
    return lambda code: shared.run(code, World(), timeout_s=5, max_calls=20)


@pytest.fixture
def run(process, world):
    def run_one(code, timeout_s=5.0, max_calls=20):
        return process.run(code, world, timeout_s=timeout_s, max_calls=max_calls)

    return run_one


@pytest.mark.parametrize(
    ("code", "output"),
    [
        ("print('hello')", "hello\n"),
        ("print({'a': 1})", '{"a": 1}\n'),
        (
            "print([{'name': 'n' * 95}])",
            '[\n {\n  "name": "' + "n" * 95 + '"\n }\n]\n',
        ),
        ("print((1, 2), 3)", "(1, 2) 3\n"),
        ("1 + 1", "Execution successful."),
        ("print('   ')", "Execution successful."),
        ("", "No code available to execute."),
        (" \n ", "No code available to execute."),
        ("import sys; sys.stderr.write('x')", "Execution successful."),
        ("import sys; sys.exit(3)", "Execution successful."),
        ("print(apis.kettle.boil(cups=2))", '{"given": {"cups": 2}}\n'),
        ("print(datetime.datetime.now(), DateTime.now())", "2024-02-29 08:30:15 " * 2),
        ("import time; print(time.time(), time.ctime())", "1709195415.0 Thu Feb 29 08:30:15 2024"),
        (
            "print(datetime.date.today(), repr(Date.today()))",
            "2024-02-29 datetime.date(2024, 2, 29)\n",
        ),
        ("print(isinstance(DateTime.now(), Date), type(DateTime(2024, 1, 1).date()))", "True <cl"),
        ("print(DateTime.now() - datetime.timedelta(days=1))", "2024-02-28 08:30:15\n"),
        ("print(deepcopy(DateTime.now()) == DateTime(2024, 2, 29, 8, 30, 15))", "True\n"),
        ("print(DateTime.strptime('1.2.2024', '%d.%m.%Y'))", "2024-02-01 00:00:00\n"),
        ("print(random.random())", f"{random.Random(100).random()}\n"),
        ("print(print)", "<function print at 0x7f0000000000>\n"),
        ("print(sorted({'b', 'a'}), hash('a') == hash('a'))", "['a', 'b'] True\n"),
        ("async def f():\n    return 3\nprint(await f())", "3\n"),
        ("print(list(apis), 'boil' in apis.kettle)", "['kettle', 'supervisor'] True\n"),
        ("print(dir(apis.kettle))", '["boil", "fail", "odd"]\n'),
    ],
)
def test_what_is_printed(run_shared, code, output):
    result = run_shared(code)
    assert result.output.startswith(output.rstrip()), result.output
    assert (result.error_kind, result.error, result.status) == ("", "", None)


@pytest.mark.parametrize(
    ("code", "lines"),
    [
        ("x = 1\nx / 0", ["2, in <module>", "    x / 0", "    ~~^~~", "ZeroDivisionError: "]),
        (
            "apis.kettle.fail()",
            ["1, in <module>", "    apis.kettle.fail()", "Exception: Response status code is 409:"],
        ),
        ("apis.kettle.odd()", ["1, in <module>", "    apis.kettle.odd()", "TypeError: an argum"]),
        ("int('x')", ["1, in <module>", "    int('x')", "ValueError: invalid literal"]),
        (
            "import json\njson.loads('{')",
            ["2, in <module>", "    json.loads('{')", "json.decoder.JSONDecodeError: Expecting"],
        ),
        (
            "input('?')",
            ["1, in <module>", "    input('?')", f"{AT}34, in input", "    raise Exception("],
        ),
        ("raise SystemExit(3)", ["1, in <module>", "    raise SystemExit(3)", "Exception: 3"]),
        ("raise KeyboardInterrupt", ["1, in <module>", "    raise Key", "KeyboardInterrupt"]),
        (
            "apis.kettle.boil({1})",
            ["1, in <module>", "    apis.kettle.boil({1})", "TypeError: _wrap_api_request."],
        ),
        (
            "apis.kettle.boil(cups={1})",
            ["1, in <module>", "    apis.kettle.boil(cups={1})", "TypeError: Object of type set"],
        ),
    ],
)
def test_exceptions_show_the_agents_frames_only(run_shared, code, lines):
    result = run_shared(f"{code}\n")
    shown = [line for line in result.output.split("\n") if "~^" not in line and "^^" not in line]
    assert result.output.startswith(FAILED + AT)
    expected = [FAILED.rstrip(), AT + lines[0], *(line for line in lines[1:] if "~^" not in line)]
    for line, start in zip(shown, expected, strict=False):
        assert line.startswith(start), result.output
    assert 'File "<python-input>"' in result.output
    assert "/child/" not in result.output


@pytest.mark.parametrize(
    ("code", "output"),
    [
        ("print(x", "Syntax error in line:\nprint(x\nMessage: '(' was never closed"),
        ("return 3", "Traceback (most recent call last):\nSyntaxError: 'return' outside function"),
    ],
)
def test_syntax_and_the_engines_odd_corners(run, code, output):
    assert run(code).output == FAILED + output


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("raise ExceptionGroup('g', [ValueError('aa'), TypeError('bb')])",
         ["| ExceptionGroup: g (2 sub-exceptions)", "| ValueError: aa", "| TypeError: bb"]),
        ("raise ExceptionGroup('o', [ExceptionGroup('i', [KeyError('kk')])])",
         ["ExceptionGroup: o", "ExceptionGroup: i", "KeyError: 'kk'"]),
        ("def f():\n    raise KeyError('in f')\ntry:\n    f()\nexcept KeyError as e:\n    "
         "raise ExceptionGroup('g', [e])", ["line 2, in f", "KeyError: 'in f'"]),
        ("raise RuntimeError('after') from ValueError('never raised')",
         ["ValueError: never raised\n\nThe above exception was the direct cause", "RuntimeError"]),
        ("try:\n    raise ExceptionGroup('g', [ValueError('aa')])\nexcept ExceptionGroup as e:\n"
         "    raise RuntimeError('wrap') from e",
         ["| ValueError: aa", "direct cause", "RuntimeError: "]),
        ("e = ValueError('x')\ne.add_note('see\\n  docs')\nraise e",
         ["ValueError: x\nsee\n  docs"]),
        ("import json\ntry:\n    json.loads('{')\nexcept ValueError as e:\n"
         "    e.add_note('  indented')\n    raise", ["Expecting property", "\n  indented"]),
        ("raise ValueError('one\\u2028line')", ["ValueError: one\u2028line"]),
    ],
)  # fmt: skip
def test_nothing_that_an_exception_says_is_lost(run, code, told):
    output = run(code).output
    assert output.startswith(FAILED)
    assert [text for text in told if text not in output] == []
    assert "/child/" not in output
    assert "/json/" not in output


def test_names_of_apps_and_apis_that_do_not_exist(run):
    assert run("apis.pot.boil()").error == "Exception: No app named 'pot' found."
    assert run("apis.kettle.brew()").error == (
        "Exception: No API named 'brew' found in the kettle app."
    )
    seen = run("try:\n    apis.pot\nexcept Exception as e:\n    print(e, type(e).__name__)")
    assert seen.output == "422: No app named 'pot' found. HTTPException\n"


def test_errors_in_one_line_with_kind_and_status(run):
    failed = run("apis.kettle.fail()")
    assert (failed.error_kind, failed.status) == ("Exception", 409)
    assert failed.error == 'Exception: Response status code is 409: {"message":"dry"}'
    parse = run("x = = 1")
    assert (parse.error_kind, parse.error) == ("SyntaxError", "SyntaxError: invalid syntax")
    long = run("raise ValueError('x' * 1000)")
    assert len(long.error) == 500
    assert run("class Mute(Exception): pass\nraise Mute").error == "Mute"


def test_variables_and_functions_stay_with_their_source(run):
    run("def half(n):\n    return n / zero\n")
    run("zero = 0\nprint('more')")
    output = run("half(4)").output
    assert f"{AT}1, in <module>\n    half(4)\n" in output
    assert f"{AT}2, in half\n    return n / zero\n" in output


def test_statements_run_until_one_cannot_be_compiled(run, world):
    assert run("apis.kettle.boil()\nreturn 3").error_kind == "SyntaxError"
    assert world.calls == [("kettle", "boil", {})]


def test_what_was_printed_before_an_exception_is_lost(run):
    assert "before" not in run("print('before')\n1/0").output.split("\n")


def test_recursion_is_folded(run):
    output = run("def down(n):\n    return down(n + 1)\ndown(0)").output
    assert output.count("return down(n + 1)") == 3
    assert "more times]" in output
    assert output.endswith("RecursionError: maximum recursion depth exceeded")


def test_time_runs_out(run):
    result = run("while True:\n    x = 1", timeout_s=0.3)
    assert result.timed_out
    assert result.error == "Exception: Execution timed out after 0.3 seconds."
    assert result.output.startswith(f"{FAILED}{AT}")
    assert run("print('goes on')").output == "goes on\n"


def test_time_that_calls_take_counts(process):
    pause = threading.Event()

    def slow(app, api, arguments):
        pause.wait(0.6)
        return ApiResponse(value="late")

    result = process.run("print(apis.kettle.boil())", slow, timeout_s=0.3, max_calls=5)
    assert result.timed_out
    # The answer to the call that was cut off is not taken for that to the next one.
    after = process.run(
        "print(apis.kettle.boil())", lambda *_: ApiResponse(value="new"), timeout_s=5, max_calls=5
    )
    assert after.output == "new\n"


def test_calls_run_out_turn_by_turn(run, world):
    code = "for _ in range(9):\n    apis.kettle.boil()"
    assert run(code, max_calls=3).error == (
        "Exception: Number of requests exceeded the limit of 3. This potentially means that you "
        "have an infinite loop in your code."
    )
    assert len(world.calls) == 3
    assert run("apis.kettle.boil()", max_calls=3).error == ""


def test_huge_output_is_kept_at_both_ends(run):
    result = run("print('a' + 'x' * 3_000_000 + 'b')")
    assert result.num_characters == 3_000_003
    assert len(result.output) < 70_000
    assert result.output.startswith("axxx")
    assert result.output.endswith("xxxb\n")
    assert "characters are not kept]" in result.output
    failed = run("raise ValueError('y' * 3_000_000)")
    assert len(failed.output) < 70_000
    assert failed.output.endswith("yyy")


def test_halves_of_characters_do_not_get_out(run):
    assert run("print(chr(0xD800))").output == "?\n"
    assert run("raise ValueError(chr(0xDC00))").error == "ValueError: ?"


LATER = """
import posix as os, signal
said = []
def later(*_):
    {what}
start = signal.setitimer
signal.setitimer = lambda *_: None  # so that the end of the turn does not stop it
signal.signal(signal.SIGALRM, later)
start(signal.ITIMER_REAL, 0.02)
"""


def test_what_comes_after_a_turn_cannot_call(run, world):
    call = "try: apis.kettle.boil()\n    except Exception as e: said.append(str(e))"
    run(LATER.format(what=call))
    threading.Event().wait(0.2)
    assert "only be called while the code of a turn runs" in run("print(said)").output
    assert world.calls == []


@pytest.mark.parametrize(
    "line",
    [
        "not json",
        "[1]",
        '{"done": 3, "turn": 1}',
        '{"done": {}, "turn": 1}',
        '{"call": ["kettle", "boil", {}], "at": [1, 7]}',
        '{"call": ["kettle", "boil"], "at": [1, 1]}',
        '{"call": [1, 2, 3], "at": [1, 1]}',
        '{"n": ' + "9" * 5000 + "}",
        "[" * 100_000,
    ],
)
def test_what_is_not_the_protocol_ends_the_process(process, world, line):
    code = (
        "import posix\nfor fd in range(3, 64):\n"
        f"    try: posix.write(fd, {line!r}.encode() + b'\\n')\n    except OSError: pass"
    )
    with pytest.raises(WorkerDied, match="was ended: it sent") as died:
        process.run(code, world, timeout_s=5, max_calls=5)
    assert (died.value.signal, died.value.timed_out) == (None, False)
    assert world.calls == []
    assert not process.alive


def test_a_line_without_end_is_not_kept(process, world):
    code = (
        "import posix as os\nfor fd in range(3, 64):\n    try:\n"
        "        while True: os.write(fd, b'x' * 65536)\n    except OSError: pass"
    )
    with pytest.raises(WorkerDied, match="a line of more than 1048576 bytes"):
        process.run(code, world, timeout_s=20, max_calls=5)


DONE = (
    '{"done": {"output": "", "num_characters": 0, "error_kind": "", "error": "", "status": null, '
    '"timed_out": false}, "turn": 1}\n'
)


def forged(times):
    """Return code that claims to be done so many times."""
    return (
        "import posix\nfor fd in range(3, 64):\n"
        f"    try: posix.write(fd, {DONE!r}.encode() * {times})\n    except OSError: pass\n"
    )


def test_speaking_out_of_turn_ends_the_process(run):
    run(forged(2))
    with pytest.raises(WorkerDied, match="it sent a message between two turns"):
        run("print(1)")


@on_linux
def test_a_process_is_stopped_between_turns(process, run):
    run("x = 1")
    assert becomes_stopped(process)
    assert run("print(x)").output == "1\n"
    assert becomes_stopped(process)
    process.close()
    assert not Path(f"/proc/{process.pid}").exists()


@on_linux
def test_code_that_claims_to_be_done_does_not_run_on(process, run, monkeypatch):
    monkeypatch.setattr(executors, "GRACE_S", 0.1)
    run(f"{forged(1)}while True: pass")
    assert becomes_stopped(process)
    with pytest.raises(WorkerDied) as died:
        run("print(1)", timeout_s=0.1)
    assert died.value.timed_out


def becomes_stopped(process, patience_s=30.0):
    """Return whether the kernel has stopped a process."""
    deadline = time.monotonic() + patience_s
    while time.monotonic() < deadline:
        stat = Path(f"/proc/{process.pid}/stat").read_text()
        if stat.rpartition(")")[2].split()[0] == "T":
            return True
        time.sleep(0.01)
    return False


FLOOD = """
import itertools, posix as os, signal
signal.signal(signal.SIGALRM, signal.SIG_IGN)
def is_open(fd):
    try: return bool(os.fstat(fd))
    except OSError: return False
line = next(fd for fd in range(3, 64) if is_open(fd))
ahead = 1000  # calls whose answers are not waited for: one is always there to be read
for first in itertools.count(1, 200):
    calls = (b'{"call":["kettle","boil",{}],"at":[1,%d]}\\n' % (first + n) for n in range(200))
    os.write(line, b"".join(calls))
    while ahead < first:
        ahead += os.read(line, 1 << 16).count(b"\\n")
"""


def test_code_that_never_stops_calling_is_late(process, world, monkeypatch):
    monkeypatch.setattr(executors, "GRACE_S", 0.1)
    with pytest.raises(WorkerDied, match="did not respond in time") as died:
        process.run(FLOOD, world, timeout_s=0.1, max_calls=5)
    assert died.value.timed_out
    assert len(world.calls) == 5


def test_a_slow_world_is_not_the_codes_fault(process, monkeypatch):
    monkeypatch.setattr(executors, "GRACE_S", 0.1)
    pause = threading.Event()

    def slow(*_):
        pause.wait(0.5)
        return ApiResponse(value=None)

    result = process.run("apis.kettle.boil()", slow, timeout_s=0.1, max_calls=5)
    assert result.timed_out
    assert process.alive


@pytest.mark.parametrize("text", ["\U0001f600", "\x00", "\ud800", '"'], ids=ascii)
def test_the_longest_output_fits_into_a_line(run, text):
    assert run(f"print({text!r} * 200_000)").num_characters == 200_001


@pytest.mark.parametrize(
    "answer", ["[[]] * 4_000_000", "[''] * 60_000", "[{}] * 60_000", "'x' * (1 << 20)"]
)
def test_arguments_that_are_too_much_do_not_reach_the_world(run, world, answer):
    assert run(f"apis.kettle.boil(answer={answer})").error.startswith("ValueError: a message of")
    assert world.calls == []
    assert run("print('goes on')").output == "goes on\n"


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("b'[' + b'[],' * 60_000 + b'1]'", "more than 50000 values"),
        ("b'[' + b'\"\",' * 60_000 + b'1]'", "more than 50000 values"),
        ("b'\"' + b'\\\\\"' * 500_000", "not JSON"),
        ("b'[' + b'1,' * 600_000", "more than 1048576 bytes"),
    ],
)
def test_lines_that_are_too_much_are_not_parsed(process, world, line, why):
    code = (
        f"import posix as os\nline = {line}\nfor fd in range(3, 64):\n"
        "    try: os.write(fd, line + b'\\n')\n    except OSError: pass"
    )
    with pytest.raises(WorkerDied, match=why):
        process.run(code, world, timeout_s=5, max_calls=5)
    assert world.calls == []


def test_commas_in_texts_are_no_values(run, world):
    assert run("apis.kettle.boil(x='[{,\\\\\"' * 60_000)").error == ""
    assert len(world.calls) == 1


def test_the_arguments_of_an_episode_are_bounded(run, world, monkeypatch):
    monkeypatch.setattr(executors, "MAX_SENT", 5000)
    code = "apis.kettle.boil(x='x' * 2000)"
    assert [run(code).error for _ in range(3)] == ["", "", ONE_LINE_TOO_MUCH]
    assert len(world.calls) == 2


def test_a_call_that_ends_after_the_time_is_the_last_one(process, monkeypatch):
    clock, calls = [0.0], []

    class Clock:
        monotonic = staticmethod(lambda: clock[0])

    def slow(*call):
        calls.append(call)
        clock[0] += 1000
        return ApiResponse(value=None)

    monkeypatch.setattr(executors, "time", Clock)
    code = "for _ in range(3):\n    try: apis.kettle.boil()\n    except Exception as e: print(e)\n"
    result = process.run(code, slow, timeout_s=5, max_calls=5)
    assert result.output == "The time of this code is up.\n" * 2
    assert len(calls) == 1


def test_arguments_that_are_nested_too_deeply_do_not_reach_the_world(run, world):
    code = "d = []\nfor _ in range({}): d = [d]\napis.kettle.boil(d=d)"
    assert run(code.format(500)).error.startswith(
        "ValueError: Arguments must not be nested in more"
    )
    assert world.calls == []
    assert run(code.format(50)).error == ""


def test_chance_is_the_same_in_each_run_of_a_task_and_differs_between_tasks():
    code = (
        "import os, random, secrets, uuid\n"
        "assert os.getpid() == os.getppid() == 1\n"
        "random.seed()\n"
        "print(uuid.uuid4(), uuid.uuid1(), uuid.uuid1(), os.urandom(3), secrets.token_hex(3),"
        " random.random(), random.Random().random(), random.SystemRandom().random())"
    )
    seen = []
    for task_id in ("tea_1", "tea_1", "tea_2"):
        leased = executor("mini")
        leased.begin(replace(BRIEF, task_id=task_id))
        seen.append(leased.run(code, World(), timeout_s=5, max_calls=1).output)
        leased.close()
    assert seen[0] == seen[1]
    assert not set(seen[0].split()[3:]) & set(seen[2].split()[3:])
    assert len(set(seen[0].split())) == len(seen[0].split())


def test_a_world_that_is_lost_loses_the_executor(process):
    def lost(*_):
        raise WorkerLost("the engine's process is gone")

    with pytest.raises(WorkerLost, match="the engine's process is gone"):
        process.run("apis.kettle.boil()", lost, timeout_s=5, max_calls=5)
    assert not process.alive


def test_an_unknown_kind_is_refused():
    with pytest.raises(BadOption, match="expected 'mini' or 'appworld', got 'maxi'"):
        executor("maxi")


def test_gaps_in_the_confinement_are_told_once():
    executors._warn_of_missing_confinement.cache_clear()
    with pytest.warns(executors.ConfinementWarning, match="without Landlock, seccomp on this"):
        executors._warn_of_missing_confinement(("Landlock", "seccomp"))
    executors._warn_of_missing_confinement(
        ("Landlock", "seccomp")
    )  # not again: warnings are errors here
    executors._warn_of_missing_confinement(())
