"""Ways in which a snapshot can be damaged, for tests of local and of remote environments."""

import json

MISSING = "missing"
DAMAGES = [
    (("info",), MISSING),
    (("info",), "text"),
    (("info", "task_id"), MISSING),
    (("info", "task_id"), 7),
    (("info", "task_id"), "no such task"),
    (("info", "goal"), MISSING),
    (("info", "goal"), None),
    (("info", "admissible_actions"), MISSING),
    (("info", "admissible_actions"), 3),
    (("info", "admissible_actions"), [3]),
    (("info", "turn"), "x"),
    (("info", "turn"), 5),
    (("info", "turn"), True),
    (("info", "progress"), "x"),
    (("info", "metrics"), {"a": "x"}),
    (("info", "feedback"), "splendid"),
    (("np_random", "uinteger"), -1),
    (("np_random", "state"), 3),
    (("seed",), -1),
    (("seed",), 1e400),
    (("seed",), "1"),
    (("options",), 3),
    (("options",), {"other": 1}),
    (("options",), {"task_id": "train/free-036"}),
    (("actions",), "right"),
    (("actions",), [3]),
    (("terminated",), 1),
    (("observation",), None),
]
"""The place of the damage and what stands there instead."""


def damaged(snapshot, path, value):
    """Return a snapshot with another value at `path`, or none."""
    fields = json.loads(snapshot)
    place = fields
    for key in path[:-1]:
        place = place[key]
    if value is MISSING:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return json.dumps(fields).replace("Infinity", "1e400").encode()
