"""Code that is refused before it runs, and ordinary code, which is not."""

import json
import os
import subprocess

import pytest
from attacks import BREAKING, READING

from agentgyms.envs.appworld.sandbox import code_check, code_extraction

LIKE_APPWORLD = {
    "import subprocess": "module is not allowed: subprocess.",
    "import sys": "module is not allowed: sys.",
    "import socket, sys, signal": "modules is not allowed: signal, socket and sys.",
    "from ctypes import CDLL": "module is not allowed: ctypes.",
    "def f():\n    import shutil": "module is not allowed: shutil.",
    "import numpy as np, requests": "modules is not allowed: numpy and requests.",
    "open('/etc/passwd')": "function is not allowed: builtins.open.",
    "from os import listdir as ls\nls('.')": "function is not allowed: os.listdir.",
    "import os\nos.system('ls')\nos.getcwd()": "function is not allowed: os.system.",
    "shutil.rmtree('/')": "function is not allowed: shutil.rmtree.",
    "import pathlib\npathlib.Path.unlink(x)": "function is not allowed: pathlib.Path.unlink.",
    "from pathlib import Path\np = Path('x')\np.touch()": "not allowed: pathlib.Path.touch.",
    "import pathlib\na = b = pathlib.Path('x')\nb.open()": "not allowed: pathlib.Path.open.",
    "from .os import x\nimport ctypes": "module is not allowed: ctypes.",
    "make().open('x')": "function is not allowed: builtins.open.",
    "def open(x):\n    return x\nopen(1)": "function is not allowed: builtins.open.",
    "def f(exit):\n    exit()": "function is not allowed: builtins.exit.",
    "exit()": "function is not allowed: builtins.exit.",
    "quit()": "function is not allowed: builtins.quit.",
    "builtins.open('x')": "function is not allowed: builtins.open.",
    "import json\njson.load(x)": "function is not allowed: json.load.",
    "from json import load as l\nl(x)": "function is not allowed: json.load.",
    "import csv as c\nc.reader(x)": "function is not allowed: csv.reader.",
    "import time\ntime.sleep(1)": "function is not allowed: time.sleep.",
    "from time import sleep\nsleep(1)": "function is not allowed: time.sleep.",
    "import json\njson.load(x)\nexit()": "functions is not allowed",
}
"""Code that AppWorld refuses too, in the same words."""

STRICTER = {
    "import appworld": "module is not allowed: appworld.",
    "from appworld.task import Task": "module is not allowed: appworld.",
}
"""Code that AppWorld lets pass: what docs/appworld.md names."""

ORDINARY = [
    "print(1)",
    "import json, re, datetime\nprint(json.dumps({}))\njson.loads('[]')",
    "from collections import Counter, defaultdict\nfrom collections.abc import Iterator",
    "from datetime import *",
    "import pendulum\nfrom pendulum import MONDAY",
    "import builtins\nbuiltins.print(1)",
    "class A:\n    def __init__(self):\n        self.x = 1\n    def __str__(self): ...",
    "print(A().__class__.__name__, A.__name__, A.__doc__, A().__dict__)",
    "if __name__ == '__main__':\n    print('x' in globals())",
    "requests = apis.purse.show_requests(access_token=t)\nfor request in requests: print(request)",
    "apis.file_system.open(path='x')\ncase.exit()\npage.compile()",
    "import re\npattern = re.compile('x')",
    "def load(x):\n    return x\nload(1)",
    "open = 1\nprint(open)",
    "import os\nprint(os.getcwd(), os.path.exists('x'))",
    "from os import listdir, path",
    "import pathlib\nprint(pathlib.Path('x').read_text())",
    "from pathlib import Path\nPath('x').write_text('y')",
    "from unittest import mock",
    "from . import x",
    "from .os import x",
    "requester.client",
    "__import__('os')",
    "eval('1')",
    "builtins.exec('1')",
    "compile('1', '', 'eval')",
    "print(open)\nf = open\nf('x')",
    "__builtins__['open']",
    "().__class__.__base__.__subclasses__()",
    "getattr(print, '__globals__')",
    "(x for x in [1]).gi_frame.f_back",
    "def f():\n    from os import listdir as ls\n    ls('.')",
    "print('import os; eval(1); open it')",
    "raise SystemExit",
    "input('?')",
    "print('hello', end='')\nprint(f'{1:>3}')",
]


@pytest.mark.parametrize("code", [*LIKE_APPWORLD, *STRICTER])
def test_refused(code):
    refused = code_check.refusal(code)
    assert refused is not None
    assert refused.output == f"Execution failed. Traceback:\n{refused.reason}"
    expected = {**LIKE_APPWORLD, **STRICTER}[code]
    assert refused.reason.startswith("Usage of the following ")
    assert expected in refused.reason


@pytest.mark.parametrize("code", ORDINARY)
def test_ordinary_code_passes(code):
    assert code_check.refusal(code) is None


@pytest.mark.parametrize(
    ("code", "line", "message"),
    [
        ("print(x", "print(x", "'(' was never closed"),
        ("x = 1\ny = = 2", "y = = 2", "invalid syntax"),
        ("I will look it up.", "I will look it up.", "invalid syntax"),
    ],
)
def test_syntax_errors_have_appworlds_form(code, line, message):
    refused = code_check.refusal(code)
    assert refused.output == (
        f"Execution failed. Traceback:\nSyntax error in line:\n{line}\nMessage: {message}"
    )
    assert refused.reason == f"SyntaxError: {message}"


def test_deep_nesting_is_refused_and_not_crashed_on():
    assert "nested too deeply" in code_check.refusal("not " * 2000 + "1").reason
    assert "nested too deeply" in code_check.refusal("1" + "+1" * 4000).reason


ASK_APPWORLD = """
import json, sys
from appworld.common.safety_guard import SafetyGuard
guard = SafetyGuard()
print(json.dumps([guard.is_syntax_safe(code) for code in json.loads(sys.stdin.read())]))
"""


@pytest.mark.appworld
def test_appworlds_own_check_says_the_same(tmp_path):
    attacks = [
        code.replace("{{", "{").replace("}}", "}") for code in {**READING, **BREAKING}.values()
    ]
    parsed = [code for code in attacks if code_extraction.is_code(code)]
    # Its parser chokes on a star.
    codes = [code for code in [*LIKE_APPWORLD, *ORDINARY, *parsed] if "import *" not in code]
    answered = subprocess.run(
        [os.environ["AGENTGYMS_APPWORLD_PYTHON"], "-c", ASK_APPWORLD],
        input=json.dumps(codes),
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path), "APPWORLD_ROOT": str(tmp_path)},
    )
    for code, (safe, said) in zip(codes, json.loads(answered.stdout), strict=True):
        refused = code_check.refusal(code)
        if "appworld" not in code:
            assert (refused.reason if refused else "") == said, code
            assert safe == (refused is None), code
