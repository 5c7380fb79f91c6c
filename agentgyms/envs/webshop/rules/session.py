"""A session of one person or agent in the shop: the state machine of its pages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agentgyms.envs.webshop.rules.page_views import pages_of
from agentgyms.envs.webshop.rules.state import PageState
from agentgyms.envs.webshop.rules.transitions import Result, Rules, with_notice
from agentgyms.envs.webshop.rules.view import View
from agentgyms.envs.webshop.shop import Shop

if TYPE_CHECKING:
    from agentgyms.envs.webshop.goals.goal_list import Goal
    from agentgyms.envs.webshop.goals.reward import Purchase

__all__ = ["PageState", "Result", "Shop", "ShopSession"]


class ShopSession:
    """A session: the current state, the page it shows, and counts of actions; not thread-safe.

    In `compat` it goes on after the purchase. Another page of results does not count as a search.
    """

    def __init__(
        self,
        shop: Shop,
        goal: Goal,
        *,
        compat: bool = False,
        show_attributes: bool = False,
        session: str = "0",
    ) -> None:
        self.rules = Rules(shop, goal, compat, show_attributes, session)
        self._last_purchase: tuple[tuple[str, tuple[tuple[str, str], ...]], Purchase] | None = None
        self.restart()

    @property
    def goal(self) -> Goal:
        """The goal."""
        return self.rules.goal

    @property
    def state(self) -> PageState:
        """The current state."""
        return self._state

    @property
    def view(self) -> View:
        """The current page; its notice is that of the last action."""
        return self._view

    @property
    def done(self) -> bool:
        """Whether the purchase is made."""
        return self._state.page == "done"

    def restart(self) -> None:
        """Return to the first page and set the counts to 0."""
        self.searches = self.pages = 0
        self.show(PageState())

    def show(self, state: PageState) -> None:
        """Make `state` the current state, and show its page."""
        self._state = state
        self._view = self.rules.view(state)

    def act(self, action: str) -> Result:
        """Take an action and return its result; an invalid one changes the notice alone."""
        before = with_notice(self._view, "") if self._view.notice else self._view
        state, result = self.rules.act(self._state, before, action)
        if result.reason:
            self._view = before if self.rules.compat else with_notice(before, result.reason)
            return result
        self.searches += result.action_key.startswith("search[")
        self.pages += 1
        self.show(state)
        return result

    def available(self) -> dict[str, Any]:
        """Return `has_search_bar` and `clickables`, like the original's `get_available_actions`."""
        return self.rules.available(self._view)

    def admissible(self) -> tuple[str, ...]:
        """Return the actions that are legal now."""
        return self.rules.admissible(self._view)

    def results(self) -> tuple[int, ...]:
        """Return the positions of all products that the last search found, the best one first."""
        return self.rules.results(self._state)

    def purchase(self) -> Purchase | None:
        """Return the (cached) score of buying the open product as chosen; None if none is open."""
        state = self._state
        if not state.asin:
            return None
        key = (state.asin, state.options)
        if self._last_purchase is None or self._last_purchase[0] != key:
            self._last_purchase = key, self.rules.purchase(state)
        return self._last_purchase[1]

    def save(self) -> dict[str, Any]:
        """Return the session as JSON values."""
        return {
            "state": self._state.to_json(),
            "searches": self.searches,
            "pages": self.pages,
            "notice": self._view.notice,
        }

    def load(self, saved: Any) -> None:
        """Restore the result of `save`; nothing changes if it is refused.

        Raises `TypeError`, `ValueError` or `LookupError`, as `PageState.from_json`.
        """
        state = PageState.from_json(saved["state"], self.rules.shop)
        searches, pages, notice = (saved[name] for name in ("searches", "pages", "notice"))
        if type(searches) is not int or type(pages) is not int or type(notice) is not str:
            raise TypeError(
                f"searches and pages must be integers and notice a string, got {searches!r:.80}, "
                f"{pages!r:.80}, {notice!r:.80}"
            )
        if not (state.page != "index") <= searches <= pages:
            raise ValueError(
                f"page {state.page!r} is impossible after {searches} searches and {pages} pages"
            )
        counted = state.keywords and not self.rules.compat  # the original has no last page
        if counted and not 1 <= state.number <= pages_of(self.rules, state):
            raise ValueError(f"the search has no page {state.number}")
        self.searches, self.pages = searches, pages
        self.show(state)
        self._view = with_notice(self._view, notice)
