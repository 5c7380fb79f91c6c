"""The transition function of an episode: state and action to next state and result; pure."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

from agentgyms.core import keys
from agentgyms.core.outcome import Feedback
from agentgyms.envs.webshop.rules import actions, compat, page_views
from agentgyms.envs.webshop.rules.actions import Action
from agentgyms.envs.webshop.rules.page_views import Shopping
from agentgyms.envs.webshop.rules.state import PageState
from agentgyms.envs.webshop.rules.view import Button, Card, Choice, Clickable, View


class Result(NamedTuple):
    """The result of an action; `reason` says why nothing happened, "" if it had an effect.

    `action_key` is `keys.INVALID_ACTION` if it is invalid. Only the purchase has a reward.
    """

    feedback: Feedback
    reason: str = ""
    action_key: str = keys.INVALID_ACTION
    reward: float = 0.0
    done: bool = False


class Rules(Shopping):
    """The rules for one goal in one shop; see `Shopping` for the arguments."""

    def view(self, state: PageState) -> View:
        """Return the page of a state."""
        return page_views.view_of(self, state)

    def clickables(self, view: View) -> dict[str, Clickable]:
        """Return the clickable elements by key, in page order or, with `compat`, the original's."""
        if self.compat:
            return compat.clickables(view)
        found: dict[str, Clickable] = {}
        for clickable in view.clickables():
            if clickable != page_views.SEARCH:
                found.setdefault(clickable.key, clickable)
        return found

    def available(self, view: View) -> dict[str, Any]:
        """Return `has_search_bar` and `clickables`, like the original's `get_available_actions`."""
        return {
            "has_search_bar": view.has_search_box,
            "clickables": list(self.clickables(view)),
        }

    def admissible(self, view: View) -> tuple[str, ...]:
        """Return the legal actions; `search[<query>]` stands for every query."""
        if view.page == "done" and not self.compat:
            return ()
        clicks = [f"click[{key}]" for key in self.clickables(view)]
        if self.compat:
            clicks = [click for click in clicks if _is_click(click)]
        return ("search[<query>]", *clicks)

    def act(self, state: PageState, view: View, action: str) -> tuple[PageState, Result]:
        """Return the state after an action in `state`, whose page is `view`, and the result."""
        parsed = actions.parse_original(action) if self.compat else actions.parse(action)
        if isinstance(parsed, str):
            return state, Result(Feedback.MALFORMED, parsed)
        if parsed.kind == "search":
            return self._search(state, parsed)
        return self._click(state, view, parsed)

    def _search(self, state: PageState, parsed: Action) -> tuple[PageState, Result]:
        if not self.compat:
            if state.page == "done":
                return state, Result(Feedback.INADMISSIBLE, "the purchase is made")
            words = tuple(parsed.argument.split())
            return state.with_results(words, 1), Result(Feedback.OK, action_key=parsed.key)
        words = tuple(parsed.argument.split(" "))
        if failure := compat.failure(words):
            return state, Result(Feedback.FAILED, failure, parsed.key)
        shown = compat.results_page(state, words, 1)
        return shown, Result(Feedback.OK, action_key=parsed.key)

    def _click(self, state: PageState, view: View, parsed: Action) -> tuple[PageState, Result]:
        clicked = self.clickables(view).get(parsed.argument)
        if clicked is None or (self.compat and parsed.argument == page_views.SEARCH.key):
            return state, Result(Feedback.INADMISSIBLE, self._no_such_click(view, parsed.argument))
        after = self._after_click(state, clicked, parsed.argument)
        if isinstance(clicked, Choice) and after.options == state.options and after.page == "item":
            reason = f"{clicked.option} is {clicked.value} already"
            return after, Result(Feedback.NO_EFFECT, reason, parsed.key)
        done = after.page == "done"
        reward = self.purchase(after).reward if done else 0.0
        return after, Result(Feedback.OK, "", parsed.key, reward, done)

    def _after_click(self, state: PageState, clicked: Clickable, name: str) -> PageState:
        if self.compat:
            return compat.after_click(state, clicked, name, self.session)
        match clicked:
            case Card(asin):
                return state.with_product(asin)
            case Choice(option, value):
                return state.with_option(option, value)
            case Button(label):
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

    def _no_such_click(self, view: View, name: str) -> str:
        if view.page == "done":
            return "the purchase is made"
        if name == page_views.SEARCH.key:
            return "a search is search[query]"
        choices = [item for item in view.clickables() if isinstance(item, Choice)]
        keys_of_value = [item.key for item in choices if actions.collapsed(item.value) == name]
        if keys_of_value and not self.compat:
            clicks = " or ".join(f"click[{key}]" for key in keys_of_value)
            return f"{name!r:.60} is a value of several options: {clicks}"
        return f"there is no {name!r:.60} to click on this page"


def _is_click(action: str) -> bool:
    """Return whether the original parses this text as that click."""
    parsed = actions.parse_original(action)
    return (
        isinstance(parsed, Action)
        and parsed.key != "click[search]"
        and (f"{parsed.kind}[{parsed.argument}]" == action)
    )


def with_notice(view: View, reason: str) -> View:
    """Return the view with the reason why nothing happened."""
    return replace(view, notice=reason)
