"""Starts the fork server of a role: `python <folder> ROLE OPTIONS SOCKET`."""

import importlib
import json
import sys
from pathlib import Path

ROLES = ("executor", "engine", "evaluator")


def main() -> None:
    """Serve the role named in the arguments until the control socket ends."""
    role, options, control = sys.argv[1], json.loads(sys.argv[2]), int(sys.argv[3])
    if role not in ROLES:
        sys.exit(f"role: expected one of {', '.join(ROLES)}, got {role!r}")
    folder = Path(__file__).resolve().parent
    sys.path[0] = str(folder.parent)  # as a package, for the relative imports of its modules
    server = importlib.import_module(f"{folder.name}.server")
    # The parent folder has other modules, which the roles must not import by their short names.
    del sys.path[0]
    sys.argv[1:] = []
    module = importlib.import_module(f"{folder.name}.{role}")
    server.serve_forks(control, module, options)


if __name__ == "__main__":
    main()
