"""The official engine's recorded answers, replayed: text, commands and victory, byte for byte."""

from collections import Counter

import pytest
from alfworld_traces import GOLDEN, answer, read_traces, start

from agentgyms.envs.alfworld.engine import VERBS
from agentgyms.envs.alfworld.generated.writer import resource

TRACES = {
    trace["name"]: trace
    for name in ("alfworld_quirks", "alfworld_generated")
    for trace in read_traces(GOLDEN / f"{name}.jsonl.gz")
}


@pytest.mark.parametrize("name", sorted(TRACES))
def test_the_engine_answers_as_the_official_one_did(name):
    trace = TRACES[name]
    fields = {
        "pddl_domain": resource("household.pddl"),
        "grammar": resource("household.twl2").replace("UNKNOWN GOAL", trace["sentence"]),
        "pddl_problem": trace["problem"],
    }
    state, first = start(fields)
    (_, *expected), *steps = trace["steps"]
    assert list(first.values()) == expected
    for action, *expected in steps:
        assert list(answer(state, action).values()) == expected, action


def test_the_traces_hold_every_verb_and_junk():
    counts = Counter()
    for trace in TRACES.values():
        for action, observation, _, _ in trace["steps"][1:]:
            effective = observation != "Nothing happens."
            counts[action.strip().partition(" ")[0] if effective else "junk"] += 1
    assert not [verb for verb in VERBS if counts[verb] < 15], counts
    assert counts["junk"] >= 20
    assert len(TRACES) >= 60
    assert sum(trace["steps"][-1][3] for trace in TRACES.values()) >= 10, "too few victories"
