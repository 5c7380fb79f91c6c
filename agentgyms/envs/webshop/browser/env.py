"""The WebShop environment in a real browser."""

from __future__ import annotations

import re
from io import BytesIO
from typing import Any, Final

import numpy as np

from agentgyms.core.errors import BadOption, WorkerLost
from agentgyms.core.images import Image
from agentgyms.core.outcome import Feedback
from agentgyms.core.tasks import Task
from agentgyms.envs.webshop.browser.driver import VISITS
from agentgyms.envs.webshop.browser.launch import find_binaries
from agentgyms.envs.webshop.browser.site import check_packages
from agentgyms.envs.webshop.browser.tab import PageAction, PageContent, ShopPage
from agentgyms.envs.webshop.env import WebShopEnv
from agentgyms.envs.webshop.rules import actions
from agentgyms.envs.webshop.rules.page_views import SEARCH
from agentgyms.envs.webshop.rules.session import PageState, Result, ShopSession
from agentgyms.envs.webshop.rules.view import View

_CANNOT_BE_TYPED: Final = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")
"""Characters that a search box does not accept: control characters and lone surrogates."""


class WebShopBrowserEnv(WebShopEnv):
    """WebShop in a real browser: Chromium visits the web site that people use.

    Tasks, actions, texts, rewards and arguments are those of `WebShopEnv`, and the same actions
    lead to the same states and observations. Each action is performed on the page: a query is
    typed into the search box, and the element that `click[...]` names is clicked. The text and the
    admissible actions are read from the page; the reward and the state come from the site, through
    a pipe.

    | argument | default | meaning |
    |---|---|---|
    | `browser_binary` | `None` | Chromium or Chrome; None searches the path |
    | `driver_binary` | `None` | its ChromeDriver, of the same version |
    | `headless` | `True` | show no window |
    | `episodes_per_browser` | 500 | after so many, new episodes get another browser |

    Actions that cannot be performed on a page are sent to the site as text: invalid actions, clicks
    on elements that the page does not have, queries with control characters. The page then
    displays that nothing happens, as in the text environment.

    A process has one browser, with a tab for each environment, and one site, a child process. Both
    start with the first episode and end with the process, however that ends. Environments may be
    used by several threads; the browser performs one operation at a time. A browser or a site that
    is lost is replaced once, and the action retried; if that fails too, `step` raises `WorkerLost`.

    `render_mode="rgb_array"` returns a screenshot of the tab, uint8 [H, W, 3].

    Needs the extra `browser`, Chromium and ChromeDriver.
    """

    private_arguments = WebShopEnv.private_arguments | {
        "browser_binary",
        "driver_binary",
        "headless",
        "episodes_per_browser",
    }
    blocking = True

    def __init__(
        self,
        *,
        browser_binary: str | None = None,
        driver_binary: str | None = None,
        headless: bool = True,
        episodes_per_browser: int = VISITS,
        **arguments: Any,
    ) -> None:
        """Check the arguments; raise `BadOption`, `EnvUnavailable` or `DependencyNotInstalled`."""
        super().__init__(**arguments)
        if type(episodes_per_browser) is not int or episodes_per_browser < 1:
            raise BadOption(
                f"episodes_per_browser must be a positive integer, got {episodes_per_browser!r:.60}"
            )
        check_packages()
        binaries = find_binaries(browser_binary, driver_binary, headless)
        shop = ("source", "data_path", "goals", "goal_seed", "nouns")
        named = {name: self._arguments[name] for name in shop if name in self._arguments}
        rules = {"compat": self._compat, "show_attributes": self._show_attributes}
        self._page = ShopPage(binaries, named | rules, episodes_per_browser)

    def draw(self) -> Image:
        """Return a screenshot of the tab."""
        from PIL import Image as Pillow

        self._session.view  # noqa: B018 (shows a restored session in the tab)
        screenshot = self._page.screenshot(self._session.save())
        with Pillow.open(BytesIO(screenshot), formats=("PNG",)) as picture:
            return np.array(picture.convert("RGB"))

    def close(self) -> None:
        """Release the tab; an environment that is used again opens another one."""
        self._page.close()

    def _new_session(self, task: Task) -> ShopSession:
        goal = self.shop.goals.find(task.task_id)
        session = BrowserSession(
            self.shop, goal, compat=self._compat, show_attributes=self._show_attributes
        )
        session.page = self._page
        return session


class BrowserSession(ShopSession):
    """A session in a browser's tab, which shows its page when it is read."""

    page: ShopPage
    _content: PageContent | None = None

    @property
    def view(self) -> View:
        """The page in the tab."""
        return self._read_page().view

    def show(self, state: PageState) -> None:
        """Make `state` the current state; the tab shows it when it is next read."""
        super().show(state)
        self._content = None

    def admissible(self) -> tuple[str, ...]:
        """Return the legal actions of the page in the tab."""
        return self.rules.admissible(self.view)

    def available(self) -> dict[str, Any]:
        """Return `has_search_bar` and `clickables` of the page in the tab."""
        return self.rules.available(self.view)

    def act(self, action: str) -> Result:
        """Take any action in the tab; raise `WorkerLost` if a new browser or site failed too."""
        page_action = self._page_action(action)
        reply, content = self.page.perform(page_action, self.save())
        result = Result(**reply["result"] | {"feedback": Feedback(reply["result"]["feedback"])})
        if (
            page_action.method == "send"
            and result.action_key.startswith("click[")
            and not result.reason
        ):
            raise WorkerLost(f"the tab has no element for {action!r:.80}")
        self.load(reply["saved"])
        self._content = content
        return result

    def _read_page(self) -> PageContent:
        if self._content is None:
            goal = self.goal
            self._content = self.page.restore(goal.task_id, goal.instruction_text, self.save())
        return self._content

    def _page_action(self, action: str) -> PageAction:
        content = self._read_page()
        parsed = actions.parse_original(action) if self.rules.compat else actions.parse(action)
        if isinstance(parsed, actions.Action) and content.view.page != "done":
            if parsed.kind == "search" and not _CANNOT_BE_TYPED.search(parsed.argument):
                return PageAction("type", parsed.argument)
            clicked = self.rules.clickables(content.view).get(parsed.argument)
            if parsed.kind == "click" and clicked is not None and clicked != SEARCH:
                return PageAction("click", content.button_value(clicked))
        return PageAction("send", action)
