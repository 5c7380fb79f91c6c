"""Sessions that the original played, page by page, in the mode `compat`."""

from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest

from agentgyms.envs.webshop.goals.goal_list import GoalList
from agentgyms.envs.webshop.goals.nouns import open_extractor
from agentgyms.envs.webshop.rules import compat as original
from agentgyms.envs.webshop.rules import page_texts
from agentgyms.envs.webshop.rules.session import ShopSession
from agentgyms.envs.webshop.shop import Shop


class Replayed(NamedTuple):
    """A recorded step, and the session after the same step."""

    where: str
    step: dict
    session: str
    state: Any
    view: Any
    available: dict
    result: Any
    purchase: Any
    of_goal: bool


@pytest.fixture(scope="module")
def replayed(official_products, recorded_sessions):
    """Play every recorded session and return its steps."""
    from agentgyms.envs.webshop.catalogue.catalogue import Catalogue

    catalogue = Catalogue.of(official_products, "official-1000")
    goals = GoalList.of(catalogue, "synthetic", seed=2024)
    nouns = open_extractor("builtin")
    steps = [
        step for record in recorded_sessions for step in _replay(catalogue, goals, nouns, record)
    ]
    assert steps
    return steps


def _replay(catalogue, goals, nouns, record):
    ranking = {
        " ".join(step["session"]["keywords"]): [catalogue.position(a) for a in found]
        for step in record["steps"]
        if (found := step.get("search_results")) is not None
    }
    ranked = SimpleNamespace(
        __getitem__=catalogue.__getitem__, position=catalogue.position,
        search=lambda query, k: ranking[query],
    )  # fmt: skip
    name = str(record["goal_index"])
    goal = goals[record["goal_index"]]
    session = ShopSession(Shop(ranked, goals, nouns), goal, compat=True, session=name)
    for step in record["steps"]:
        result = None if step["action"] is None else session.act(step["action"])
        yield Replayed(
            f"{record['name']}: {step['action']}", step, name, session.state, session.view,
            session.available(), result, session.purchase(), session.state.asin == goal.asin,
        )  # fmt: skip


@pytest.mark.data
def test_recorded_pages(replayed):
    for at in replayed:
        assert page_texts.text(at.view) == at.step["obs_text"], at.where
        assert page_texts.text_rich(at.view) == at.step["obs_text_rich"], at.where
        assert at.available == at.step["available"], at.where
        assert original.url(at.state, at.session) == at.step["url"], at.where


@pytest.mark.data
def test_recorded_states(replayed):
    for at in replayed:
        if "session" in at.step:
            got = {
                "asin": at.state.asin or None,
                "page": at.state.number or None,
                "options": at.state.chosen,
                "keywords": list(at.state.keywords) or None,
            }
            assert got == at.step["session"], at.where


TYPE_PARTS = ("r_type", "title_score")
"""Parts of a purchase that depend on the noun extractor, and the original's is another one."""


@pytest.mark.data
def test_recorded_rewards(replayed):
    for at in replayed:
        if at.result is None:
            continue
        assert at.result.done == at.step["done"], at.where
        if not at.result.done:
            assert at.result.reward == at.step["reward"] == 0.0, at.where
            continue
        for part, value in at.step["verbose_info"].items():
            assert part in TYPE_PARTS or getattr(at.purchase, part) == value, (at.where, part)
        assert at.result.reward == at.purchase.reward, at.where
        if at.of_goal:  # of type 1, whatever its nouns are
            assert at.result.reward == at.step["reward"], at.where
