"""The rules of one episode: from a state and an action to the next state. Pure functions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from agentgyms import keys
from agentgyms.outcome import Feedback
from agentgyms.webshop import actions, original, page_views
from agentgyms.webshop.actions import Action
from agentgyms.webshop.state import PageState
from agentgyms.webshop.view import Button, Card, Choice, Clickable, View

if TYPE_CHECKING:
    from agentgyms.webshop.goals import Goal
    from agentgyms.webshop.reward import Purchase
    from agentgyms.webshop.shop import Shop


class Result(NamedTuple):
    """What became of an action.

    Attributes:
        feedback: The kind of what became of it.
        reason: Why nothing happened, in one line; "" if something did.
        action_key: The canonical form of the action; `keys.INVALID_ACTION` if it was none.
        reward: What the purchase scored, 0 for every other action.
        done: It was the purchase.
    """

    feedback: Feedback
    reason: str = ""
    action_key: str = keys.INVALID_ACTION
    reward: float = 0.0
    done: bool = False


@dataclass(frozen=True)
class Rules:
    """One goal in one shop, and the mode: nothing here changes.

    Attributes:
        shop: Where it is shopped.
        goal: What is to be bought.
        compat: Do all that the original does; else its flaws are mended.
        show_attributes: Product pages lead to a page with the product's attributes.
        session: The name of the session, which the original has in its addresses.
    """

    shop: Shop
    goal: Goal
    compat: bool = False
    show_attributes: bool = False
    session: str = "0"

    def view(self, state: PageState) -> View:
        """Return what is shown in a state."""
        return page_views.view_of(self, state)

    def results(self, state: PageState) -> tuple[int, ...]:
        """Return the positions of all products that the last search found, the best one first."""
        if not state.keywords:
            return ()
        if self.compat:
            return original.results(self.shop, self.goal.task_id, state)
        return self.shop.search(" ".join(state.keywords))

    def purchase(self, state: PageState) -> Purchase:
        """Return what buying the open product with the chosen options scores.

        Raises:
            LookupError: No product is open.
        """
        return self.shop.purchase(self.goal, state.asin, state.chosen)

    def clickables(self, view: View) -> dict[str, Clickable]:
        """Return what can be clicked by the key that `click[...]` names it by.

        In the default mode it is in page order, in the original's mode in the original's.
        """
        if self.compat:
            return original.clickables(view)
        found: dict[str, Clickable] = {}
        for clickable in view.clickables():
            if clickable != page_views.SEARCH:
                found.setdefault(clickable.key, clickable)
        return found

    def available(self, view: View) -> dict[str, Any]:
        """Return what the original's `get_available_actions` does: a flag and a list of keys."""
        return {
            "has_search_bar": view.has_search_box,
            "clickables": list(self.clickables(view)),
        }

    def admissible(self, view: View) -> tuple[str, ...]:
        """Return the actions that are legal: `search[<query>]` stands for any query."""
        if view.page == "done" and not self.compat:
            return ()
        clicks = [f"click[{key}]" for key in self.clickables(view)]
        if self.compat:
            clicks = [click for click in clicks if _is_click(click)]
        return ("search[<query>]", *clicks)

    def act(self, state: PageState, view: View, action: str) -> tuple[PageState, Result]:
        """Return the state after an action, and what became of it; any text is an action.

        Args:
            state: The state that the action is taken in.
            view: What it shows.
            action: The agent's text.
        """
        asked = actions.read_original(action) if self.compat else actions.read(action)
        if isinstance(asked, str):
            return state, Result(Feedback.MALFORMED, asked)
        if asked.kind == "search":
            return self._search(state, asked)
        return self._click(state, view, asked)

    def _search(self, state: PageState, asked: Action) -> tuple[PageState, Result]:
        if not self.compat:
            if state.page == "done":
                return state, Result(Feedback.INADMISSIBLE, "the purchase is made")
            words = tuple(asked.argument.split())
            return state.with_results(words, 1), Result(Feedback.OK, action_key=asked.key)
        words = tuple(asked.argument.split(" "))
        if failure := original.failure(words):
            return state, Result(Feedback.FAILED, failure, asked.key)
        shown = original.results_page(state, words, 1)
        return shown, Result(Feedback.OK, action_key=asked.key)

    def _click(self, state: PageState, view: View, asked: Action) -> tuple[PageState, Result]:
        clicked = self.clickables(view).get(asked.argument)
        if clicked is None or (self.compat and asked.argument == page_views.SEARCH.key):
            return state, Result(Feedback.INADMISSIBLE, self._no_such_click(view, asked.argument))
        after = self._after_click(state, clicked, asked.argument)
        if isinstance(clicked, Choice) and after.options == state.options and after.page == "item":
            reason = f"{clicked.option} is {clicked.value} already"
            return after, Result(Feedback.NO_EFFECT, reason, asked.key)
        done = after.page == "done"
        reward = self.purchase(after).reward if done else 0.0
        return after, Result(Feedback.OK, "", asked.key, reward, done)

    def _after_click(self, state: PageState, clicked: Clickable, name: str) -> PageState:
        if self.compat:
            return original.after_click(state, clicked, name, self.session)
        match clicked:
            case Card(asin):
                return state.with_product(asin)
            case Choice(option, value):
                return state.with_option(option, value)
            case Button(label):
                return _after_button(state, label)

    def _no_such_click(self, view: View, name: str) -> str:
        if view.page == "done":
            return "the purchase is made"
        if name == page_views.SEARCH.key:
            return "a search is search[query]"
        same = [item for item in view.clickables() if isinstance(item, Choice)]
        meant = [item.key for item in same if actions.collapsed(item.value) == name]
        if meant and not self.compat:
            named = " or ".join(f"click[{key}]" for key in meant)
            return f"{name!r:.60} is a value of several options: {named}"
        return f"there is no {name!r:.60} to click on this page"


def _after_button(state: PageState, label: str) -> PageState:
    if label == page_views.BACK.label:
        return state.at_start()
    if label == page_views.BUY.label:
        return state.with_page("done")
    if label == page_views.NEXT.label:
        return state.with_results(state.keywords, state.number + 1)
    if label != page_views.PREVIOUS.label:
        return state.with_page("sub", label)
    if state.page == "sub":
        return state.with_page("item")
    return state.with_results(state.keywords, state.number - (state.page == "search"))


def _is_click(action: str) -> bool:
    """Return whether the original reads this as the click that it is meant to be."""
    read = actions.read_original(action)
    return (
        isinstance(read, Action)
        and read.key != "click[search]"
        and (f"{read.kind}[{read.argument}]" == action)
    )


def with_notice(view: View, reason: str) -> View:
    """Return the view with a line that says why nothing happened."""
    return replace(view, notice=reason)
