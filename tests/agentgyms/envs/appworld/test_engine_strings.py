"""The executor answers what the real engine answers, to the letter."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from agentgyms.envs.appworld.engine.world import EngineTasks
from agentgyms.envs.appworld.sandbox import code_check
from agentgyms.envs.appworld.sandbox.executors import executor

pytestmark = pytest.mark.appworld

# Each list is an episode: its cells share their variables.
SESSIONS = [
    # what is printed
    [
        "print('hello')",
        "print('a', 'b', sep='-', end='')",
        "print()",
        "x = 5",
        "x",
        "print(x)",
        "   print('indented')   ",
        "",
        "   \n  ",
        "# nothing but a comment",
        "print({'a': 1, 'b': [1, 2]})",
        "print([{'name': 'n' * 40, 'value': i} for i in range(3)])",
        "print((1, 2), (3, 4))",
        "print((1, 2))",
        "print({1, 2, 3})",
        "print([1, 2], end='')",
        "print('%d of %s' % (3, 'four'))",
        "print('grün ✓ 漢字 \U0001f600')",
        "print(['grün ✓'])",
        "print('a\\x0bb\\rc')",
        "import builtins\nbuiltins.print('kept')",
        "print(print); print(len); print(lambda: 0)",
        "print(__name__)",
        "class Thing: pass\nprint(Thing, type(Thing()))",
        "print(f'{3:>5}|{\"x\":^5}|')",
        "for i in range(3):\n    print(i)",
        "print('  ')",
    ],
    # exceptions
    [
        "1/0",
        "x = 1\ny = 2\nx / (y - 2)",
        "print('lost')\nraise ValueError('bad value')",
        "def f(n):\n    return 10 / n\n\ndef g(n):\n    return f(n) + 1\n\ng(0)",
        "f(0)",
        "def f(n):\n    return n['key']\n\nf({})",
        "g(0)",
        "class Odd(Exception):\n    pass\n\nraise Odd('strange')",
        "class Silent(Exception):\n    def __str__(self):\n        return ''\n\nraise Silent",
        "raise Exception('first\\nsecond\\n  third, indented\\n\\n   \\nlast')",
        "try:\n    1/0\nexcept Exception as e:\n    raise RuntimeError('after') from e",
        "try:\n    1/0\nexcept Exception:\n    undefined",
        "try:\n    1/0\nexcept Exception:\n    raise RuntimeError('alone') from None",
        "import json\njson.loads('{bad')",
        "int('x')",
        "{}['missing']",
        "[][3]",
        "'a' + 1",
        "None.attribute",
        "sum(\n    [1,\n     2],\n    'x',\n)",
        "def deep(n):\n    return deep(n + 1)\ndeep(0)",
        "raise SystemExit(3)",
        "def fail():\n    raise SystemExit\nfail()",
        "assert 1 == 2, 'no'",
        "assert x == 7",
        "e = ValueError('noted'); e.add_note('a note'); raise e",
        "exec_ = (lambda: [1/0 for _ in range(2)])\nexec_()",
        "from datetime import datetime\ndatetime.strptime('x', '%Y')",
        "next(iter([]))",
        "def gen():\n    yield 1\n    raise KeyError('late')\nprint(list(gen()))",
        "with_long_name = 'y' * 3\nwith_long_name.no_such_method(1, 2, 3)",
        "print([set()])",
        "import re\nre.compile('(')",
        "from collections import Missing",
        "del never_defined",
        "def h():\n    x += 1\nh()",
    ],
    # code that cannot be parsed or compiled
    [
        "print(x",
        "```python\nprint(1)\n```",
        "for i in range(3)\n    print(i)",
        "if True:\nprint(1)",
        "  x = 1\n y = 2",
        "x = = 2",
        "I will now look at the notes.",
        "'unterminated",
        "return 3",
        "print('runs first')\nreturn 3",
        "def f():\n    yield\n    await 3",
        "break",
        "x = 1\n\tx = 2",
        "print 'hello'",
        "f(**{'a': 1}, *[1])",
        "async def answer():\n    return 42\nprint(await answer())",
        "def typed(a: Unknown): return a",
        "def later():\n    nonlocal q",
        "x: int = 'annotated'\nprint(x)",
    ],
    # apps
    [
        "apis.nope.thing()",
        "apis.nope",
        "apis.simple_note.nope()",
        "apis.simple_note.login('a', 'b')",
        "apis.simple_note.login(username='nobody@example.com', password='x')",
        "token = apis.simple_note.login(username='nobody@example.com', password='x')['t']",
        "def sign_in(app):\n    return apis[app].login(username='a')\nsign_in('gmail')",
        "apis.supervisor.no_such_api(x=1)",
        "try:\n    apis.nope\nexcept Exception as e:\n    print(e, repr(e), type(e).__name__)",
        "try:\n    apis.gmail.login(username='a', password='b')\n"
        "except Exception as e:\n    print(type(e), str(e)[:28])",
        "print(apis)",
        "print(dir(apis.simple_note)[:2], 'login' in apis.simple_note, 'nope' in apis)",
        "print(apis.simple_note.login)",
        "print(type(apis.supervisor.show_active_task()).__name__)",
        "print(apis.supervisor.show_active_task()['status'])",
        "apis.simple_note.create_note(title='t', content={1, 2}, access_token='x')",
        "for _ in range(9):\n    apis.supervisor.show_active_task()",
        "print(len([apis.supervisor.show_active_task() for _ in range(5)]))",
        "apis.supervisor.show_active_task(unknown_argument=1) and None",
        "1/0 if apis.supervisor.show_active_task() else None",
        "try:\n    1/0\nexcept Exception:\n    apis.nope",
    ],
    # time, dates, chance, asking
    [
        "print(datetime.datetime.now(), datetime.date.today(), datetime.datetime.utcnow())",
        "print(repr(datetime.datetime.now()), repr(datetime.date.today()))",
        "print(DateTime.now(), Date.today(), Time(1, 2), type(DateTime.now()))",
        "print(pendulum.now(), pendulum.today(), pendulum.now().add(days=3).to_date_string())",
        "print(DateTime.now().subtract(months=1), DateTime(2023, 1, 31).add(months=1))",
        "print(pendulum.parse('2023-01-02T03:04:05'), DateTime.fromisoformat('2023-01-02T03:04'))",
        "print(DateTime.now().to_date_string(), pendulum.tomorrow().to_date_string())",
        "print(pendulum.DateTime.now().to_datetime_string(), pendulum.Date, pendulum.Time)",
        "print(pendulum.duration(days=3), DateTime.now().diff_for_humans(DateTime(2023, 1, 1)))",
        "print(MONDAY, SUNDAY, DateTime.now().day_of_week, DateTime.now().start_of('week'))",
        "print((DateTime.now() - DateTime(2023, 1, 1)).in_days())",
        "import time\nprint(time.time(), time.monotonic(), time.strftime('%Y-%m-%d %H:%M'))",
        "import time\nprint(time.localtime(), time.gmtime()[:5])",
        "print(datetime.datetime.now() + datetime.timedelta(days=1, hours=2))",
        "print(datetime.datetime(2023, 1, 2), repr(datetime.datetime(2023, 1, 2)))",
        "print(isinstance(datetime.datetime.now(), datetime.date), deepcopy(DateTime.now()))",
        "print(json.dumps([datetime.date.today()]))",
        "print(Counter('abca'), defaultdict(list), reduce(lambda a, b: a + b, [1, 2, 3]))",
        "print(list(itertools.islice(itertools.count(), 3)), math.pi, re.findall('[a-z]', 'a1b'))",
        "print(calendar.monthrange(2023, 2), Iterator)",
        "input()",
        "name = input('Which one? ')",
        "while True:\n    pass",
        "def wait():\n    while True:\n        x = 1\n\nwait()",
        "print('goes on', x if 'x' in dir() else 'no x')",
    ],
    ["print(random.random(), random.randint(1, 100), random.choice('abc'))"],
    # what is Python's own, and the functions that AppWorld refuses or lets do nothing
    [
        "print(eval('1 + 1'), eval, exec, compile, __import__)",
        "exec('y = 5')\nprint(y)",
        "eval('1/0')",
        "exec('def f():\\n    return 1/0\\nf()')",
        "eval('1 +')",
        "print(compile('1', '', 'eval'))",
        "import os\nprint(os.path.join('a', 'b'), os.path.exists('/nowhere'), os.sep, os.name)",
        "import pathlib\nprint(pathlib.PurePath('a/b').name, pathlib.Path('x'))",
        "print(__import__('math').pi, __import__('os').__name__, os.stat)",
        "import sys",
        "import os, io, socket",
        "from os import listdir\nlistdir('/')",
        "os.system('ls')",
        "print(getattr(os, 'listdir')('/'), __import__('os').system('ls'), os.listdir)",
        "print(__import__('subprocess').run(['ls']), __import__('os').fork())",
        "open('x')",
        "print(open, builtins.open)",
        "f = open\nf('/nowhere/x')",
        "f(1)",
        "builtins.__dict__['open']('/tmp/new', 'w')",
        "pathlib.Path('x').write_text('y')",
        "print(pathlib.Path('x').exists(), pathlib.Path('x').write_bytes)",
        "p = pathlib.Path('x')\np.touch()",
        "print(__builtins__, type(__builtins__), __builtins__.len is len)",
        "print(type(apis), type(apis.simple_note), type(apis.simple_note.login))",
        "print(repr(apis.supervisor)[:60], apis.simple_note.login.__qualname__)",
        "print(json.load, json.dump, __import__('sys').exit)",
        "import time\nprint(time.sleep)\ngetattr(time, 'sleep')(1)",
        "import csv\nprint(csv.reader)",
        "exit",
        "exit()",
        "breakpoint()",
        "print(SystemExit, input, license, copyright)",
        "help(len)",
        "from . import x",
        "from unittest import mock\nprint(mock.MagicMock)",
        "print(().__class__.__base__.__subclasses__()[0], print.__globals__['__name__'])",
        "print((x for x in [1]).gi_frame.f_back, __spec__, __loader__)",
        "print(type(datetime.datetime.min.now()), datetime.datetime.min)",
        "print(yaml.safe_load('a: 1'), os.environ.get('TZ'))",
    ],
]

NO_NAME = "NameError: name '{}' is not defined"
DIFFERENCES = {
    "import appworld": "Usage of the following module is not allowed: appworld.",
    "requester": NO_NAME.format("requester"),
    "apis.admin": "Exception: No app named 'admin' found.",
    "print(__import__('pathlib').Path('/etc/passwd').read_text())": "PermissionError: [Errno 13] ",
    "__import__('socket').socket()": "PermissionError: [Errno 1] ",
    "__import__('threading').Thread(target=print).start()": "RuntimeError: can't start new thread",
    "print(__import__('os').getcwd())": "/\n",
    "print(sorted(__import__('os').environ))": '["LANG", "TZ"]\n',
    "print(__import__('os').getpid())": "1\n",
    "print(__import__('time').process_time())": "0.0\n",
    "print(random.SystemRandom().random())": "0.",
    "print(exit)": "<function SafetyGuard.enable.<locals>.",
    "get_ipython()": NO_NAME.format("get_ipython"),
    "print(__doc__)": "None\n",
    "apis.supervisor.show_profile(x='x' * 2_000_000)": "ValueError: a message of 2000067 bytes",
}
"""Code whose output is not AppWorld's, and what it begins with or has here: docs/appworld.md."""


def masked(output):
    """Leave out what differs between two runs of the engine itself."""
    output = re.sub(r"\bat 0x[0-9a-f]+", "at 0x7f0000000000", output)
    return re.sub(r"Previous line repeated \d+ more", "Previous line repeated N more", output)


@pytest.fixture(scope="module")
def engine_outputs(generated_root: Path, tmp_path_factory):
    root = tmp_path_factory.mktemp("engine-outputs")
    (root / "data").symlink_to(generated_root / "data")
    task = first_task(generated_root)
    done = subprocess.run(
        [
            os.environ["AGENTGYMS_APPWORLD_PYTHON"],
            str(Path(__file__).with_name("engine_outputs.py")),
            str(root),
            task,
        ],
        input=json.dumps([*SESSIONS, list(DIFFERENCES)]),
        env={"HOME": str(root), "TZ": "UTC", "OMP_NUM_THREADS": "1"},
        cwd="/",
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    shutil.rmtree(root / "experiments")
    return json.loads(done.stdout)


def first_task(root: Path) -> str:
    return min(entry.name for entry in (root / "data/tasks").iterdir())


def executed(cells: list[str], root: Path) -> list[str]:
    """Return what this package answers to the cells of an episode."""
    world, process = EngineTasks().open(first_task(root)), executor("appworld")
    try:
        process.begin(world.brief)
        return [
            process.run(cell, world.call, timeout_s=2, max_calls=5).output
            if (refused := code_check.refusal(cell)) is None or "SyntaxError" in refused.reason
            else refused.output
            for cell in cells
        ]
    finally:
        process.close()
        world.close()


def test_the_executor_answers_what_the_engine_answers(engine_outputs, generated_root):
    differences = [
        (cell, there, here)
        for cells, expected in zip(SESSIONS, engine_outputs, strict=False)
        for cell, there, here in zip(cells, expected, executed(cells, generated_root), strict=True)
        if masked(here) != masked(there)
    ]
    assert not differences, "\n\n".join(
        f"{cell}\n-- engine:\n{there}\n-- executor:\n{here}" for cell, there, here in differences
    )


def test_what_differs_is_what_the_page_lists(engine_outputs, generated_root):
    page = Path(__file__).parents[4].joinpath("docs", "appworld.md").read_text()
    here = executed(list(DIFFERENCES), generated_root)
    for (cell, expected), ours, theirs in zip(
        DIFFERENCES.items(), here, engine_outputs[-1], strict=True
    ):
        assert f"`{cell}`" in page, cell
        assert expected in ours, cell
        assert masked(ours) != masked(theirs), cell
