"""The WebShop environment in a real browser."""

from __future__ import annotations

import re
from io import BytesIO
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from agentgyms.errors import BadOption, WorkerLost
from agentgyms.images import Image
from agentgyms.outcome import Feedback
from agentgyms.tasks import Task
from agentgyms.webshop import actions
from agentgyms.webshop.browser_driver import VISITS
from agentgyms.webshop.browser_launch import find_binaries
from agentgyms.webshop.browser_page import Deed, ShopPage, Shown
from agentgyms.webshop.browser_site import check_packages
from agentgyms.webshop.env import WebShopEnv
from agentgyms.webshop.page_views import SEARCH
from agentgyms.webshop.session import PageState, Result, ShopSession

if TYPE_CHECKING:
    from agentgyms.webshop.view import View

_CANNOT_BE_TYPED: Final = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")
"""Characters that a search box does not take: control characters and halves of pairs."""


class WebShopBrowserEnv(WebShopEnv):
    """WebShop through a real browser: Chromium shops in the web site that people shop in.

    Tasks, actions, texts, rewards and arguments are those of `WebShopEnv`, and so are the states
    and observations that the same actions lead to. Each action is done in the page: a query is
    typed into the search box, and what `click[...]` names is clicked. The text and the admissible
    actions are read from what the page shows; the reward and the true state come from the site,
    through a pipe.

    | argument | default | meaning |
    |---|---|---|
    | `browser_binary` | `None` | Chromium or Chrome; None takes what is on the path |
    | `driver_binary` | `None` | its ChromeDriver, of the same version |
    | `headless` | `True` | show no window |
    | `episodes_per_browser` | 500 | after as many, another browser takes over for new episodes |

    What no page has a place for is told to the site as it stands: text that is no action, clicks on
    what the page does not show, queries with control characters. The page then says that nothing
    happens, where the rules say so.

    A process has one browser, with a tab for each environment, and one site, a child process. Both
    start with the first episode and end with the process, however that ends. Environments may be
    used by several threads; the browser does one thing at a time. A browser or a site that is lost
    is replaced once, and the action done again; if that fails too, `step` raises `WorkerLost`.

    `render_mode="rgb_array"` gives a screenshot of the tab, uint8 [H, W, 3].

    Needs `pip install "agentgyms[browser]"`, Chromium and ChromeDriver.
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
        """Check the arguments; the browser starts with the first episode.

        Raises:
            BadOption: An argument has a value it cannot have.
            EnvUnavailable: There is no Chromium or ChromeDriver.
            DependencyNotInstalled: A package is missing; the message says what to install.
        """
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

        self._session.view  # noqa: B018 (a restored session is brought to the tab by this)
        screenshot = self._page.screenshot(self._session.save())
        with Pillow.open(BytesIO(screenshot), formats=("PNG",)) as picture:
            return np.array(picture.convert("RGB"))

    def close(self) -> None:
        """Give back the tab; an environment that is used again takes another."""
        self._page.close()

    def _new_session(self, task: Task) -> ShopSession:
        goal = self.shop.goals.find(task.task_id)
        session = BrowserSession(
            self.shop, goal, compat=self._compat, show_attributes=self._show_attributes
        )
        session.page = self._page
        return session


class BrowserSession(ShopSession):
    """A visit that takes place in a browser's tab, which is brought to it when it is looked at.

    Attributes:
        page: The tab.
    """

    page: ShopPage
    _shown: Shown | None = None

    @property
    def view(self) -> View:
        """What the tab shows."""
        return self._look().view

    def show(self, state: PageState) -> None:
        """Open the page of a state of this episode, in the tab when that is looked at."""
        super().show(state)
        self._shown = None

    def admissible(self) -> tuple[str, ...]:
        """Return the actions that are legal on the page that the tab shows."""
        return self.rules.admissible(self.view)

    def available(self) -> dict[str, Any]:
        """Return what can be done on the page that the tab shows, as the original says it."""
        return self.rules.available(self.view)

    def act(self, action: str) -> Result:
        """Take an action in the tab; any text is one.

        Raises:
            WorkerLost: The browser or the site does not work, and a new one neither.
        """
        deed = self._deed(action)
        answer, shown = self.page.do(deed, self.save())
        result = Result(**answer["result"] | {"feedback": Feedback(answer["result"]["feedback"])})
        if deed.how == "tell" and result.action_key.startswith("click[") and not result.reason:
            raise WorkerLost(f"the tab does not show what {action!r:.80} clicks")
        self.load(answer["saved"])
        self._shown = shown
        return result

    def _look(self) -> Shown:
        if self._shown is None:
            goal = self.goal
            self._shown = self.page.place(goal.task_id, goal.instruction_text, self.save())
        return self._shown

    def _deed(self, action: str) -> Deed:
        """Return what a person would do in the page to take an action."""
        shown = self._look()
        asked = actions.read_original(action) if self.rules.compat else actions.read(action)
        if isinstance(asked, actions.Action) and shown.view.page != "done":
            if asked.kind == "search" and not _CANNOT_BE_TYPED.search(asked.argument):
                return Deed("type", asked.argument)
            clicked = self.rules.clickables(shown.view).get(asked.argument)
            if asked.kind == "click" and clicked is not None and clicked != SEARCH:
                return Deed("click", shown.place(clicked))
        return Deed("tell", action)
