"""Prompts of model parties against those of sotopia 0.1.4, on the benchmark's own encounters."""

import json
import os
from pathlib import Path

import pytest
from talking import SCORES, rated

from agentgyms.envs.sotopia.dialogue import NOTHING, Act, Kind, Rules
from agentgyms.envs.sotopia.llm import prompts
from agentgyms.envs.sotopia.llm.rating_parsing import parse_ratings
from agentgyms.envs.sotopia.official.encounters import read
from agentgyms.envs.sotopia.partner_judge import RANGES

pytestmark = [pytest.mark.sotopia, pytest.mark.data]

SAID = [
    Act(Kind.SPEAK, 'Hi! I\'m "here" - café, 5 > 3.'),
    Act(Kind.NONVERBAL, "smiles"),
    Act(Kind.ACTION, "looks at {agent}"),
    NOTHING,
    Act(Kind.SPEAK, "Would you take 30?"),
    Act(Kind.LEAVE),
]
VERDICT = rated(SCORES, SCORES | {"goal": 2})


@pytest.fixture(scope="module")
def profiles():
    given = os.environ.get("AGENTGYMS_TEST_DATA")
    if not given:
        pytest.skip("AGENTGYMS_TEST_DATA names no folder with sotopia/environments.json")
    return Path(given) / "sotopia"


@pytest.fixture(scope="module")
def encounters(profiles):
    """One encounter of each scenario, with the rows that it was read from."""
    rows = {
        name: {row["pk"]: row for row in json.loads((profiles / f"{name}.json").read_text("utf-8"))}
        for name in ("environments", "agents", "env_agent_combos")
    }
    first = {row["env_id"]: row for row in rows["env_agent_combos"].values()}
    official = read(profiles)
    return [
        (
            official.encounter(f"{combination['pk']}/0"),
            rows["environments"][scenario],
            [rows["agents"][person] for person in combination["agent_ids"]],
        )
        for scenario, combination in first.items()
    ]


def dialogue_of(order):
    """Return turns as we have them, and as the package is told them."""
    acting = [Rules(order).acting(number) for number in range(len(SAID))]
    ours = [tuple((seat, act) for seat in seats) for seats, act in zip(acting, SAID, strict=True)]
    both = [[dict(turn).get(seat, NOTHING) for seat in (0, 1)] for turn in ours]
    return ours, [[[act.kind.value, act.argument] for act in turn] for turn in both]


@pytest.mark.parametrize("order", ["round-robin", "simultaneous"])
def test_prompts_are_those_of_the_package(peer, encounters, order):
    ours, told = dialogue_of(order)
    assert len(encounters) == 90
    for encounter, environment, agents in encounters[:: 1 if order == "round-robin" else 3]:
        answer = peer(
            environment=environment, agents=agents, order=order, dialogue=told, max_turns=20,
            stale_turns=2, verdict=json.dumps(VERDICT),
        )  # fmt: skip
        played = answer["turns"]
        for number, turn in enumerate(played):
            seats = Rules(order).acting(number)
            assert turn["prompts"] == {
                str(seat): prompts.agent_prompt(encounter, ours[:number], seat) for seat in seats
            }
        assert answer["judge_prompt"] == prompts.judge_prompt(encounter, ours[: len(played)])


def test_ratings_are_those_of_the_package(peer, encounters):
    encounter, environment, agents = encounters[0]
    answer = peer(
        environment=environment, agents=agents, order="round-robin", max_turns=20, stale_turns=2,
        dialogue=dialogue_of("round-robin")[1], verdict=json.dumps(VERDICT),
    )  # fmt: skip
    ratings = parse_ratings(json.dumps(VERDICT), [person.name for person in encounter.people])
    for rating, (overall, scores) in zip(ratings, answer["rates"], strict=True):
        assert rating.overall == pytest.approx(overall)
        assert rating.scores == {name: scores[name] for name in RANGES}
