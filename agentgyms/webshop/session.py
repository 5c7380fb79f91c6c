"""One person's or agent's visit to the shop: the state machine of its pages, without any text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agentgyms.webshop.page_views import pages_of
from agentgyms.webshop.rules import Result, Rules, with_notice
from agentgyms.webshop.shop import Shop
from agentgyms.webshop.state import PageState
from agentgyms.webshop.view import View

if TYPE_CHECKING:
    from agentgyms.webshop.goals import Goal
    from agentgyms.webshop.reward import Purchase

__all__ = ["PageState", "Result", "Shop", "ShopSession"]


class ShopSession:
    """A visit: where the shopper is, and what was done.

    The session itself goes on after the purchase in the mode `compat`, as the original does; the
    environments end there. Not thread-safe; the shop it is in is.

    Attributes:
        rules: What an action does.
        searches: Searches so far; turning pages is none.
        pages: Pages that actions opened so far.
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
        """Open the first page; the arguments are those of `Rules`."""
        self.rules = Rules(shop, goal, compat, show_attributes, session)
        self._scored: tuple[tuple[str, tuple[tuple[str, str], ...]], Purchase] | None = None
        self.restart()

    @property
    def goal(self) -> Goal:
        """What is to be bought."""
        return self.rules.goal

    @property
    def state(self) -> PageState:
        """Where the shopper is."""
        return self._state

    @property
    def view(self) -> View:
        """What the page shows; its notice is that of the last action."""
        return self._view

    @property
    def done(self) -> bool:
        """The purchase is made."""
        return self._state.page == "done"

    def restart(self) -> None:
        """Return to the first page, as if nothing had been done."""
        self.searches = self.pages = 0
        self.show(PageState())

    def show(self, state: PageState) -> None:
        """Open the page of a state of this episode, such as one that was left."""
        self._state = state
        self._view = self.rules.view(state)

    def act(self, action: str) -> Result:
        """Take an action; any text is one, and a bad one changes nothing but the notice.

        Returns:
            What became of it.
        """
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
        """Return `has_search_bar` and `clickables`, as the original's method of that name does."""
        return self.rules.available(self._view)

    def admissible(self) -> tuple[str, ...]:
        """Return the actions that are legal now."""
        return self.rules.admissible(self._view)

    def results(self) -> tuple[int, ...]:
        """Return the positions of all products that the last search found, the best one first."""
        return self.rules.results(self._state)

    def purchase(self) -> Purchase | None:
        """Return what the open product scores, or would score if it were bought; None if none is.

        The last one is kept: a sub page scores what its product does.
        """
        state = self._state
        if not state.asin:
            return None
        bought = (state.asin, state.options)
        if self._scored is None or self._scored[0] != bought:
            self._scored = bought, self.rules.purchase(state)
        return self._scored[1]

    def save(self) -> dict[str, Any]:
        """Return the visit as JSON-plain values."""
        return {
            "state": self._state.to_json(),
            "searches": self.searches,
            "pages": self.pages,
            "notice": self._view.notice,
        }

    def load(self, saved: Any) -> None:
        """Take up what `save` returned; nothing changes if it is refused.

        Raises:
            TypeError: A part has the wrong type.
            ValueError: The parts do not go together.
            LookupError: A part is missing, or the shop has no such product.
        """
        state = PageState.from_json(saved["state"], self.rules.shop)
        searches, pages, notice = (saved[name] for name in ("searches", "pages", "notice"))
        if type(searches) is not int or type(pages) is not int or type(notice) is not str:
            raise TypeError(f"{searches!r:.80}, {pages!r:.80} or {notice!r:.80} has a wrong type")
        if not (state.page != "index") <= searches <= pages:
            raise ValueError(f"{searches} searches among {pages} pages cannot lead here")
        counted = state.keywords and not self.rules.compat  # the original counts on for ever
        if counted and not 1 <= state.number <= pages_of(self.rules, state):
            raise ValueError(f"the search has no page {state.number}")
        self.searches, self.pages = searches, pages
        self.show(state)
        self._view = with_notice(self._view, notice)
