"""`make mutants`: changes modules in small ways and reports the changes that no test notices.

A group of `modules.toml` names modules and their quick tests. The tests run once, to see which of
them run which lines. Then those that run a line decide about its mutants, the quickest ones first.
A mutant that no test can tell from the original is in `equivalent.toml`, with the reason.
"""

import argparse
import ast
import json
import os
import queue
import random
import subprocess
import sys
import threading
import time
import tomllib
from collections import Counter
from functools import lru_cache
from pathlib import Path

from mutations import mutant, places

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
BASELINE_S = 1800
FIRST_S = 30


class Runner:
    """A process of `runner.py`."""

    def __init__(self, python):
        env = os.environ | {"PYTHONPATH": str(ROOT)} | dict.fromkeys(THREADS, "1")
        env.pop("PYTHONDONTWRITEBYTECODE", None)  # every mutant would compile all of ours anew
        self._process = subprocess.Popen(
            [python, str(HERE / "runner.py")], cwd=ROOT, text=True, env=env,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip

    def ask(self, **request):
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            sys.exit(f"the runner of the tests ended with status {self._process.wait()}")
        found = json.loads(answer)
        if "error" in found:
            sys.exit(f"the runner of the tests failed: {found['error']}")
        return found

    def close(self):
        self._process.stdin.close()
        self._process.wait()


def options():
    parser = argparse.ArgumentParser(prog="make mutants ARGS=...", description=__doc__)
    parser.add_argument("groups", nargs="*", help="groups of modules.toml; all of them by default")
    parser.add_argument("--sample", type=int, help="so many mutants of each group, drawn by chance")
    parser.add_argument("--seed", type=int, default=0, help="which ones are drawn")
    parser.add_argument("--module", help="mutants of the modules whose path contains this alone")
    parser.add_argument("--jobs", type=int, default=2, help="mutants at a time")
    parser.add_argument("--tests-s", type=float, default=20, help="most seconds of tests a file")
    parser.add_argument("--report", type=Path, default=ROOT / "build" / "mutants.json")
    parser.add_argument("--python", default=str(ROOT / ".venv" / "bin" / "python"))
    return parser.parse_args()


def read_toml(name):
    return tomllib.loads((HERE / name).read_text(encoding="utf-8"))


def paths_of(group):
    found = {p for pattern in group["modules"] for p in ROOT.glob(pattern)}
    found -= {p for pattern in group.get("without", ()) for p in ROOT.glob(pattern)}
    return sorted(str(path.relative_to(ROOT)) for path in found)


class Baseline:
    """The tests of a group on the modules as they are: which run which lines, and how long."""

    def __init__(self, group, paths, args):
        runner, left_out = Runner(args.python), group.get("without_tests", ())
        seen = runner.ask(
            do="baseline", paths=paths, tests=group["tests"], timeout_s=BASELINE_S,
            options=[f"--deselect={test}" for test in left_out],
        )  # fmt: skip
        runner.close()
        if seen.get("exit") != 0:
            sys.exit(
                f"the tests do not pass on the modules as they are: {seen.get('failed') or seen}"
            )
        self.tests, self.packages, self.most_s = seen["tests"], seen["packages"], args.tests_s
        self.noticed = Counter()
        self.lines = {
            path: {int(line): tests for line, tests in of.items()}
            for path, of in seen["lines"].items()
        }

    def files_of(self, path, line):
        """Return the files with tests that run a line, as `(seconds, tests)`, likely ones first.

        Likely are those that noticed most mutants of the module so far, then the quick ones. A line
        that no test runs by itself, such as the second one of a statement, counts as its function;
        one outside of functions, or of a function that runs while the
        module is imported, counts as its module.
        """
        lines, files = self.lines[path], {}
        around = lines.keys() & enclosing_lines(path, line) if line not in lines else {line}
        around = around or lines.keys()
        for number in sorted({number for one in around for number in lines[one]}):
            test, took_s = self.tests[number]
            total_s, tests = files.get(file_of(test), (0.0, []))
            if not tests or total_s + took_s < self.most_s:
                files[file_of(test)] = total_s + took_s, [*tests, test]
        return sorted(
            files.values(), key=lambda one: (-self.noticed[path, file_of(one[1][0])], one[0])
        )


def file_of(test):
    return test.partition("::")[0]


@lru_cache
def functions(path):
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    kinds = ast.FunctionDef | ast.AsyncFunctionDef
    return [
        range(n.body[0].lineno, n.end_lineno + 1) for n in ast.walk(tree) if isinstance(n, kinds)
    ]


def enclosing_lines(path, line):
    """Return the lines of the smallest function with a line, or all lines."""
    around = [function for function in functions(path) if line in function]
    return set(min(around, key=len, default=range(1, 10_000)))


def drawn_mutants(paths, args):
    """Return the mutants to try, as `(path, mutant)`, and the number of places they are from."""
    sources = {path: (ROOT / path).read_text(encoding="utf-8") for path in paths}
    all_places = [(path, *place) for path in paths for place in places(sources[path])]
    random.Random(args.seed).shuffle(all_places)
    drawn = {}
    for path, operator, number in all_places:
        if len(drawn) == args.sample:
            break
        made = mutant(sources[path], operator, number)
        if made is not None:
            drawn[path, made.code] = made
    return [(path, made) for (path, _), made in drawn.items()], len(all_places)


def run(drawn, baseline, args, show):
    """Return a result for each mutant: its path, line, change and the test that noticed it."""
    waiting, results = queue.Queue(), []
    for item in drawn:
        waiting.put(item)

    def serve():
        runner = Runner(args.python)
        runner.ask(do="preload", packages=baseline.packages)
        while True:
            try:
                path, made = waiting.get_nowait()
            except queue.Empty:
                break
            by, num_tests = "", 0
            for seconds, tests in baseline.files_of(path, made.line):
                answer = runner.ask(
                    do="mutant", path=path, code=made.code, tests=tests,
                    timeout_s=FIRST_S + 5 * seconds,
                )  # fmt: skip
                num_tests += len(tests)
                by = "the time limit" if answer.get("timeout") else answer["killed_by"]
                if by:
                    baseline.noticed[path, file_of(tests[0])] += 1
                    break
            results.append(
                {
                    "module": path, "line": made.line, "from": made.before,
                    "to": made.after, "tests": num_tests, "killed_by": by,
                }
            )  # fmt: skip
            show(results, len(drawn))
        runner.close()

    threads = [threading.Thread(target=serve) for _ in range(args.jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sorted(results, key=lambda result: (result["module"], result["line"]))


def progress(name, begun, equivalent):
    def show(results, total):
        if left_over(results[-1], equivalent):
            print(described(results[-1]), flush=True)
        if len(results) % 20 == 0 or len(results) == total:
            survived = sum(left_over(one, equivalent) for one in results)
            took = time.monotonic() - begun
            print(
                f"{name}: {len(results)} of {total} mutants, {survived} survived, {took:.0f} s",
                flush=True,
            )

    return show


def left_over(result, equivalent):
    """Return whether no test notices a mutant that is not noted as equivalent."""
    noted = any(all(one[k] == result[k] for k in ("module", "from", "to")) for one in equivalent)
    return not result["killed_by"] and not noted


def described(one):
    where = f"{one['module']}:{one['line']} ({one['tests']} tests)"
    return f"\n{where}\n  - {one['from']}\n  + {one['to']}"


def main():
    args, groups = options(), read_toml("modules.toml")
    equivalent = read_toml("equivalent.toml")["mutant"]
    unknown = set(args.groups) - set(groups)
    if unknown:
        sys.exit(f"unknown groups {sorted(unknown)}: expected some of {', '.join(groups)}")
    everything, survivors = {}, 0
    args.report.parent.mkdir(parents=True, exist_ok=True)
    for name in args.groups or groups:
        paths = [path for path in paths_of(groups[name]) if (args.module or "") in path]
        begun, baseline = time.monotonic(), Baseline(groups[name], paths, args)
        drawn, num_places = drawn_mutants(paths, args)
        results = run(drawn, baseline, args, progress(name, begun, equivalent))
        left = sum(left_over(one, equivalent) for one in results)
        everything[name] = {"places": num_places, "tried": len(drawn), "results": results}
        survivors += left
        print(f"{name}: {len(drawn)} mutants of {num_places} places, {left} survived unexplained")
        args.report.write_text(json.dumps(everything, indent=1), encoding="utf-8")
    sys.exit(survivors > 0)


if __name__ == "__main__":
    main()
