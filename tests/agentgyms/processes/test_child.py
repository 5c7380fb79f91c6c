"""Child processes that answer JSON lines: answers, deaths, delays."""

import os
import subprocess
import sys
import time

import pytest

from agentgyms.core.errors import WorkerLost
from agentgyms.processes.child import Child

ECHO = """
import json, sys
print(json.dumps({"ready": True}), flush=True)
for line in sys.stdin:
    request = json.loads(line)
    if "exit" in request:
        print("the reason", file=sys.stderr)
        sys.exit(request["exit"])
    if "sleep" in request:
        import time; time.sleep(request["sleep"])
    if "say" in request:
        print(request["say"], flush=True)
    else:
        print(json.dumps({"echo": request}), flush=True)
"""


def child(code: str = ECHO, limit_s: float = 10.0) -> Child:
    return Child([sys.executable, "-c", code], limit_s=limit_s, environment=os.environ)


def test_requests_are_answered_in_order():
    echo = child()
    assert echo.greeting == {"ready": True}
    for text in ("one", "zwölf 🙂", "\ud800\x00", "x" * 200_000):
        assert echo.ask({"text": text}) == {"echo": {"text": text}}
    echo.close()
    assert not echo.alive


def test_a_death_is_told_with_code_and_last_words():
    echo = child()
    with pytest.raises(WorkerLost, match="died with exit code 3, last line of stderr: the reason"):
        echo.ask({"exit": 3})
    assert not echo.alive
    with pytest.raises(WorkerLost, match="has ended"):
        echo.ask({})


def test_a_delay_ends_the_child():
    echo = child(limit_s=0.5)
    before = time.monotonic()
    with pytest.raises(WorkerLost, match=r"did not answer within 0\.5 s and was killed"):
        echo.ask({"sleep": 60})
    assert time.monotonic() - before < 30
    assert not echo.alive


def test_an_answer_that_was_not_waited_for_is_not_taken_for_the_next(monkeypatch):
    echo = child()

    def interrupted(end):
        raise KeyboardInterrupt

    with monkeypatch.context() as at_the_keyboard:
        at_the_keyboard.setattr(echo, "_receive", interrupted)
        with pytest.raises(KeyboardInterrupt):
            echo.ask({"number": 1})
    with pytest.raises(WorkerLost):
        echo.ask({"number": 2})
    assert not echo.alive


@pytest.mark.parametrize("said", ["no json", "[1]", "3"])
def test_an_answer_that_is_no_object_is_a_loss(said):
    echo = child()
    with pytest.raises(WorkerLost):
        echo.ask({"say": said})
    assert not echo.alive


def test_an_error_that_the_child_reports_is_a_loss():
    echo = child()
    with pytest.raises(WorkerLost, match="failed: KeyError"):
        echo.ask({"say": '{"error": "KeyError: 7"}'})
    assert not echo.alive


def test_a_program_that_does_not_exist():
    with pytest.raises(WorkerLost, match="cannot be started"):
        Child(["/no/such/program"], limit_s=1, environment={})


def test_a_program_that_says_nothing():
    with pytest.raises(WorkerLost, match="died with exit code 0"):
        child("pass")


def test_closing_twice_is_closing_once():
    echo = child()
    echo.close()
    echo.close()
    assert not echo.alive


def test_a_delay_in_the_middle_ends_the_child_too():
    half = child("import time; print('{}\\n{', end='', flush=True); time.sleep(60)")
    half.limit_s = 0.5
    with pytest.raises(WorkerLost, match=r"did not answer within 0\.5 s and was killed"):
        half.ask({})
    deaf = child("import time; print('{}', flush=True); time.sleep(60)")
    deaf.limit_s = 0.5
    with pytest.raises(WorkerLost, match=r"did not answer within 0\.5 s and was killed"):
        deaf.ask({"text": "x" * 1_000_000})


FORK = f"""
import os, signal, sys
from agentgyms.core.errors import WorkerLost
from agentgyms.processes.child import Child
echo = Child([sys.executable, "-c", {ECHO!r}], limit_s=60, environment=os.environ)
if (pid := os.fork()) == 0:
    try:
        echo.ask({{}})
    except WorkerLost:
        echo.kill()
        echo.close()
        os.kill(os.getpid(), signal.SIGSTOP)
    os._exit(echo.alive)
os.waitpid(pid, os.WUNTRACED)
assert echo.ask({{"number": 1}}) == {{"echo": {{"number": 1}}}}
echo.close()
assert echo.exit_code == 0, "the fork keeps the child's input open"
os.kill(pid, signal.SIGCONT)
assert os.waitpid(pid, 0)[1] == 0
"""


def test_a_fork_can_neither_ask_nor_end_the_child_of_its_parent():
    command = [sys.executable, "-W", "error", "-c", FORK]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_child_that_ignores_the_end_of_its_input_is_ended():
    deaf = child("import time; print('{}', flush=True); time.sleep(60)")
    before = time.monotonic()
    deaf.close()
    assert time.monotonic() - before < 30
    assert not deaf.alive
