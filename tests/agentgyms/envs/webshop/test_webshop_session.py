"""The pages of the shop, and what the default mends of the original's."""

import pytest

from agentgyms.core import keys
from agentgyms.core.outcome import Feedback
from agentgyms.envs.webshop.catalogue.catalogue import Catalogue
from agentgyms.envs.webshop.goals.goal_list import GoalList
from agentgyms.envs.webshop.goals.nouns import open_extractor
from agentgyms.envs.webshop.product import Product
from agentgyms.envs.webshop.rules import page_texts, page_views
from agentgyms.envs.webshop.rules.session import ShopSession
from agentgyms.envs.webshop.shop import Shop

LAMP, OAK = "click[b0test0001]", "click[b0test0002]"
INSTRUCTION = "Find me dimmable desk lamps with solid wood with color: walnut, and size: small"


def test_the_pages_of_a_purchase(visit):
    session = visit()
    top = f"Instruction: [SEP] {session.goal.instruction_text} [SEP] Back to Search"
    assert page_texts.text(session.view) == (
        f"WebShop [SEP] Instruction: [SEP] {session.goal.instruction_text} [SEP] Search"
    )
    assert session.goal.instruction_text.startswith(INSTRUCTION)
    session.act("search[walnut dimmer]")
    assert page_texts.text(session.view) == (
        f"{top} [SEP] Page 1 (Total results: 1) [SEP] B0TEST0001 [SEP] "
        "Walnut Desk Lamp with Dimmer [SEP] $34.0"
    )
    session.act(LAMP)
    assert page_texts.text(session.view) == (
        f"{top} [SEP] < Prev [SEP] color [SEP] walnut [SEP] oak [light] [SEP] size [SEP] small "
        "[SEP] large [SEP] Walnut Desk Lamp with Dimmer [SEP] Price: $34.0 [SEP] Rating: N.A. "
        "[SEP] Description [SEP] Features [SEP] Reviews [SEP] Buy Now"
    )
    session.act("click[features]")
    assert page_texts.text(session.view) == f"{top} [SEP] < Prev [SEP] Warm light <soft> [SEP] "
    session.act("click[< prev]")
    session.act("click[description]")
    assert page_texts.text(session.view) == f"{top} [SEP] < Prev [SEP] A lamp for desks & shelves."
    session.act("click[< prev]")
    session.act("click[reviews]")
    assert page_texts.text(session.view) == f"{top} [SEP] < Prev"
    session.act("click[< prev]")
    result = session.act("click[buy now]")
    assert result.done
    assert 0 < result.reward < 1
    assert page_texts.text(session.view) == (
        "Thank you for shopping with us! [SEP] Purchased [SEP] asin [SEP] B0TEST0001 [SEP] "
        "options [SEP] {}"
    )


def test_rich_pages_mark_what_was_clicked(visit):
    session = visit("search[desk lamp]", LAMP, "click[small]")
    lines = page_texts.text_rich(session.view).split("\n")
    assert lines[0] == "You have clicked small."
    assert "  [clicked button] small [clicked button_]" in lines
    assert "  [button] walnut [button_]" in lines
    assert not any(line.startswith("Chosen") for line in lines)
    session.act("click[< prev]")
    rich = page_texts.text_rich(session.view)
    assert "\n\n[clicked button] B0TEST0001 [clicked button_]\nWalnut Desk Lamp" in rich
    assert "\n\n[button] B0TEST0002 [button_]\nOak Desk Lamp" in rich


def test_attributes_have_a_page_where_they_are_asked_for(visit):
    session = visit("search[walnut]", LAMP, "click[attributes]", show_attributes=True)
    assert page_texts.text(session.view).endswith(
        "< Prev [SEP] dimmable [SEP] solid wood [SEP] garden [SEP] desk lamps [SEP] "
        "Home › Lamps › Desk Lamps"
    )
    refused = visit("search[walnut]", LAMP).act("click[attributes]")
    assert refused.feedback is Feedback.INADMISSIBLE


def test_options_survive_sub_pages_and_are_lost_on_the_way_to_the_results(visit):
    for compat in (False, True):
        session = visit("search[walnut]", LAMP, "click[small]", compat=compat)
        session.act("click[features]")
        session.act("click[< prev]")
        assert session.state.chosen == {"size": "small"}
        session.act("click[< prev]")
        assert session.state.page == "search"
        session.act(LAMP)
        assert session.state.chosen == {}


def test_pages_of_results_lead_to_each_other(visit):
    session = visit("search[candle]")
    assert len(session.results()) == 23
    first = session.available()["clickables"]
    assert first[:2] == ["back to search", "next >"]
    assert len(first) == 12
    session.act("click[next >]")
    session.act("click[next >]")
    assert session.available()["clickables"][:2] == ["back to search", "< prev"]
    assert len(session.available()["clickables"]) == 5
    session.act(session.admissible()[-1])
    session.act("click[< prev]")
    assert session.state.number == 3
    assert (session.searches, session.pages) == (1, 5)


def test_the_way_back_to_the_start_forgets_everything(visit):
    session = visit("search[walnut]", LAMP, "click[back to search]")
    assert session.state == visit().state


# --- what the default mends ---------------------------------------------------------------------


def test_what_does_nothing_says_so(visit):
    mended, kept = visit(), visit(compat=True)
    before = page_texts.text(kept.view), page_texts.text_rich(kept.view)
    for session in (mended, kept):
        result = session.act("click[buy now]")
        assert result.feedback is Feedback.INADMISSIBLE
        assert result.reason == "there is no 'buy now' to click on this page"
        assert result.action_key == keys.INVALID_ACTION
        assert result.reward == 0.0
    notice = "Nothing happens: there is no 'buy now' to click on this page."
    assert page_texts.text(mended.view) == f"{before[0]} [SEP] {notice}"
    assert page_texts.text_rich(mended.view) == f"{before[1]}{notice}\n"
    assert (page_texts.text(kept.view), page_texts.text_rich(kept.view)) == before
    mended.act("search[walnut]")
    assert "Nothing happens" not in page_texts.text(mended.view)


@pytest.mark.parametrize(
    "action", ["Search[Walnut  Lamp]", "  search[walnut lamp]  ", "SEARCH [ walnut\nlamp ]"]
)
def test_case_and_blanks_do_not_matter(visit, action):
    session = visit()
    assert session.act(action).action_key == "search[walnut lamp]"
    assert session.state == visit("search[walnut lamp]").state
    assert visit(compat=True).act(action).feedback is Feedback.MALFORMED


def test_values_with_brackets_can_be_clicked(visit):
    session = visit("search[walnut]", LAMP)
    assert "click[oak [light]]" in session.admissible()
    assert session.act("click[oak [light]]").action_key == "click[oak [light]]"
    assert session.state.chosen == {"color": "oak [light]"}
    kept = visit("search[walnut]", LAMP, compat=True)
    assert "oak [light]" in kept.available()["clickables"]
    assert "click[oak [light]]" not in kept.admissible()
    assert kept.act("click[oak [light]]").feedback is Feedback.MALFORMED


def test_equal_values_are_told_apart_by_their_option(visit):
    session = visit("search[oak]", OAK)
    clicks = session.admissible()
    assert {"click[color: black]", "click[shade: black]", "click[color: reviews]"} <= set(clicks)
    assert "click[black]" not in clicks
    assert "click[grey]" in clicks
    refused = session.act("click[black]")
    assert refused.reason == (
        "'black' is a value of several options: click[color: black] or click[shade: black]"
    )
    session.act("click[shade: black]")
    session.act("click[color: reviews]")
    assert session.state.chosen == {"shade": "black", "color": "reviews"}
    kept = visit("search[oak]", OAK, "click[black]", compat=True)
    assert kept.state.chosen == {"shade": "black"}
    kept.act("click[reviews]")
    assert kept.state.sub_page == "Reviews"


def test_no_page_leads_to_an_empty_one(visit):
    mended, kept = visit("search[walnut]"), visit("search[walnut]", compat=True)
    assert mended.act("click[next >]").feedback is Feedback.INADMISSIBLE
    for number in (2, 3):
        assert kept.act("click[next >]").feedback is Feedback.OK
        assert kept.state.number == number
        assert f"Page {number} (Total results: 1) [SEP] < Prev [SEP] Next >" in page_texts.text(
            kept.view
        )


def test_a_full_last_page_leads_to_no_other(visit, monkeypatch):
    assert "click[next >]" in visit("search[candle]").admissible()
    monkeypatch.setattr(page_views, "PRODUCTS_SHOWN", 23)  # as many as there are candles
    assert "click[next >]" not in visit("search[candle]").admissible()


def test_a_search_that_finds_nothing_says_so(visit):
    mended, kept = visit("search[zzzqqq]"), visit("search[zzzqqq]", compat=True)
    assert page_texts.text(mended.view).endswith(
        "Page 1 (Total results: 0) [SEP] No products found"
    )
    assert page_texts.text(kept.view).endswith("Page 1 (Total results: 0) [SEP] Next >")


def test_chosen_options_are_read(visit):
    session = visit("search[walnut]", LAMP, "click[large]", "click[walnut]")
    shown = "large [SEP] Chosen: color: walnut, size: large [SEP] Walnut Desk Lamp"
    assert shown in page_texts.text(session.view)
    kept = visit("search[walnut]", LAMP, compat=True)
    before = page_texts.text(kept.view)
    kept.act("click[large]")
    assert page_texts.text(kept.view) == before


def test_marks_are_those_of_what_is_chosen(visit):
    acts = ("search[oak]", OAK)
    for value in ('white "snow"', "漆黒"):
        mended = visit(*acts, f"click[{value}]")
        assert f"  [clicked button] {value} [clicked button_]" in page_texts.text_rich(mended.view)
        kept = visit(*acts, f"click[{value}]", compat=True)
        assert "clicked" not in page_texts.text_rich(kept.view)
    mended = visit(*acts, "click[shade: black]")
    kept = visit(*acts, "click[black]", compat=True)
    assert page_texts.text_rich(mended.view).count("[clicked button] black") == 1
    assert page_texts.text_rich(kept.view).count("[clicked button] black") == 2


def test_a_chosen_value_cannot_be_chosen_again(visit):
    session = visit("search[walnut]", LAMP, "click[small]")
    state = session.state
    result = session.act("click[small]")
    assert (result.feedback, result.action_key) == (Feedback.NO_EFFECT, "click[small]")
    assert session.state == state
    assert page_texts.text(session.view).endswith("Nothing happens: size is small already.")


def test_special_queries_are_words_like_others(visit):
    for query in ("<r>", "<a> x", "<c> garden", "<q> candles", "<c>"):
        session = visit()
        assert session.act(f"search[{query}]").feedback is Feedback.OK
        assert session.results() == session.rules.shop.search(query)
    assert len(visit("search[<c> garden]", compat=True).results()) == 14
    assert len(visit("search[<q> desk lamps]", compat=True).results()) == 2
    for query in ("<a> x", "<c>"):
        kept = visit(compat=True)
        assert kept.act(f"search[{query}]").feedback is Feedback.FAILED
        assert kept.state.page == "index"


def test_random_pages_differ_and_repeat_with_the_task(visit, small_shop):
    first, again = (visit("search[<r>]", compat=True) for _ in range(2))
    assert first.results() == again.results()
    assert sorted(first.results()) == list(range(len(small_shop.catalogue)))
    before = first.results()
    first.act("search[<r>]")
    assert first.results() != before


def test_after_the_purchase_nothing_is_possible_but_in_the_original(visit):
    mended, kept = (visit("search[walnut]", LAMP, "click[buy now]", compat=c) for c in (0, 1))
    for action in ("search[lamp]", "click[back to search]", "click[search]"):
        assert mended.act(action).reason == "the purchase is made"
    assert mended.admissible() == ()
    assert mended.done
    assert kept.act("click[back to search]").feedback is Feedback.INADMISSIBLE
    assert kept.act("search[lamp]").feedback is Feedback.OK
    assert not kept.done


def test_only_the_original_tells_the_score(visit):
    mended, kept = (visit("search[walnut]", LAMP, "click[buy now]", compat=c) for c in (0, 1))
    assert "score" not in page_texts.text(mended.view)
    score = kept.purchase().reward
    assert f"Your score (min 0.0, max 1.0) [SEP] {score} [SEP]" in page_texts.text(kept.view)


def test_a_query_with_a_page_name_misleads_the_original_alone(visit):
    acts = ("search[walnut search_results]", LAMP, "click[< prev]")
    assert visit(*acts).state.number == 1
    kept = visit(*acts, compat=True)
    assert kept.state.number == 0
    assert "Page 0 (Total results: 1)" in page_texts.text(kept.view)
    acts = ("search[walnut item_page]", LAMP, "click[features]", "click[< prev]")
    assert visit(*acts).state.page == "item"
    assert visit(*acts, compat=True).state.page == "search"


def test_the_original_takes_values_as_they_are_written():
    lamp = Product(
        asin="B0TEST0009",
        title="Brass Lamp",
        description="",
        bullet_points=(),
        category="garden",
        query="lamps",
        product_category="Home › Lamps",
        attributes=("brass",),
        options={"size": ("two  feet", "two feet", "")},
        pricing=(5.0,),
        instruction="Find me lamps of brass",
        instruction_attributes=("brass",),
    )
    catalogue = Catalogue.of((lamp,), "one-1")
    shop = Shop(catalogue, GoalList.of(catalogue), open_extractor("builtin"))
    session = ShopSession(shop, shop.goals[0], compat=True)
    session.act("search[brass]")
    session.act("click[b0test0009]")
    assert session.available()["clickables"][-3:] == ["two  feet", "two feet", ""]
    listed = [action for action in session.admissible() if "feet" in action or action == "click[]"]
    assert listed == ["click[two  feet]", "click[two feet]"]
    for action in listed:
        assert session.act(action).action_key == action
        assert session.state.chosen == {"size": action.removeprefix("click[").removesuffix("]")}
    assert session.act("click[]").feedback == Feedback.MALFORMED
