"""Run in AppWorld's Python: what its `execute` answers to sessions of code, as JSON."""

import contextlib
import json
import os
import sys


def main(root: str, task: str) -> None:
    os.environ["APPWORLD_ROOT"] = root
    os.chdir(root)
    with contextlib.redirect_stdout(sys.stderr):
        from appworld import AppWorld, update_root

        update_root(root)
        outputs = []
        for number, cells in enumerate(json.load(sys.stdin)):
            with AppWorld(
                task,
                experiment_name=f"session-{number}",
                load_ground_truth=False,
                timeout_seconds=2,
                max_api_calls_per_interaction=5,
            ) as world:
                outputs.append([world.execute(cell) for cell in cells])
    json.dump(outputs, sys.stdout)
    sys.stdout.flush()
    os._exit(0)  # the engine leaves threads behind that would be waited for


main(*sys.argv[1:])
