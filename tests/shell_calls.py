"""What lines of shell would call: the arguments of every program, found by bash itself.

Nothing is executed: programs are functions that print their arguments, and no other can be found.
"""

import shutil
import subprocess

_CALL, _ARGUMENT, _SCRIPT = "\x1e", "\x1f", "\x1d"


def calls(scripts, programs, folder=None):
    """Return, for each script, what it calls: `[program, argument, ...]` of each call in order.

    Args:
        scripts: Lines as they would be typed. Patterns such as `runs/*` stay as they are.
        programs: Names of all that they may call.
        folder: Where their redirections write; the current one if None.

    Raises:
        AssertionError: bash cannot read a script, or it calls another program.
    """
    bash = shutil.which("bash")
    # One write for a call: the programs of a pipe print at the same time.
    told = (
        f'{{ local told; printf -v told \'%s{_ARGUMENT}\' "${{FUNCNAME[0]}}" "$@"; '
        f"printf '{_CALL}%s' \"$told\" >&3; }}"
    )
    begin = ["exec 3>&1", "PATH=", "set -uf", *(f"{name}() {told}" for name in programs)]
    lines = [f"{script}\nprintf '{_SCRIPT}' >&3" for script in scripts]
    done = subprocess.run(
        [bash, "-c", "\n".join([*begin, *lines])], capture_output=True, text=True, cwd=folder
    )
    assert not done.stderr, done.stderr
    found = done.stdout.split(_SCRIPT)[:-1]
    assert len(found) == len(lines)
    return [[call.split(_ARGUMENT)[:-1] for call in script.split(_CALL)[1:]] for script in found]
