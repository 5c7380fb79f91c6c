"""Sessions that the original played, page by page, in the mode `compat`."""

from types import SimpleNamespace

import pytest

from agentgyms.webshop import original, pages
from agentgyms.webshop.goals import GoalList
from agentgyms.webshop.nouns import open_extractor
from agentgyms.webshop.session import ShopSession
from agentgyms.webshop.shop import Shop


@pytest.fixture(scope="module")
def replayed(official_products, recorded_sessions):
    """Play every recorded session and return `(name, action, got, wanted)` of each step."""
    from agentgyms.webshop.catalogue import Catalogue

    catalogue = Catalogue.of(official_products, "official-1000")
    goals = GoalList.of(catalogue, "synthetic", seed=2024)
    nouns = open_extractor("builtin")
    return [
        (record["name"], *step)
        for record in recorded_sessions
        for step in _replay(catalogue, goals, nouns, record)
    ]


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
    index = record["goal_index"]
    session = ShopSession(Shop(ranked, goals, nouns), goals[index], compat=True, session=str(index))
    for step in record["steps"]:
        result = None if step["action"] is None else session.act(step["action"])
        yield step, session.state, session.view, session.available(), result, str(index)


@pytest.mark.data
def test_recorded_pages(replayed):
    for name, step, state, view, available, _, index in replayed:
        said = f"{name}: {step['action']}"
        assert pages.text(view) == step["obs_text"], said
        assert pages.text_rich(view) == step["obs_text_rich"], said
        assert available == step["available"], said
        assert original.url(state, index) == step["url"], said


@pytest.mark.data
def test_recorded_states(replayed):
    for name, step, state, *_ in replayed:
        if "session" in step:
            got = {
                "asin": state.asin or None,
                "page": state.number or None,
                "options": state.chosen,
                "keywords": list(state.keywords) or None,
            }
            assert got == step["session"], f"{name}: {step['action']}"


@pytest.mark.data
def test_recorded_rewards(replayed):
    checked = 0
    for name, step, _, _, _, result, _ in replayed:
        if result is not None:
            assert result.done == step["done"], f"{name}: {step['action']}"
            if name != "wrong_product_same_query":  # whose type depends on the noun extractor
                assert result.reward == step["reward"], f"{name}: {step['action']}"
                checked += step["done"]
    assert checked == 7
