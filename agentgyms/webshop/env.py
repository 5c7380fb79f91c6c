"""The WebShop environment: shopping in a site of text pages."""

from __future__ import annotations

import math
import os
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from agentgyms import keys
from agentgyms.core import Feedback, Outcome, TextEnv
from agentgyms.errors import BadOption
from agentgyms.tasks import Task, TaskSet
from agentgyms.webshop import pages
from agentgyms.webshop.goal_table import CUTS as CUTS
from agentgyms.webshop.rules import Result
from agentgyms.webshop.session import ShopSession
from agentgyms.webshop.shop import Shop
from agentgyms.webshop.sources import open_shop

if TYPE_CHECKING:
    from agentgyms.webshop.reward import Purchase

OBSERVATION_MODES: Final = {"text": pages.text, "text_rich": pages.text_rich}
"""How pages are written, by the name of the observation mode."""

_PARTS: Final = (
    *("r_type", "r_att", "r_option", "r_price", "w_att", "w_option", "w_price"),
    *("query_match", "category_match", "title_score"),
)
_NOT_BOUGHT: Final = dict.fromkeys(_PARTS, math.nan)
_BEGUN: Final = Result(Feedback.OK, action_key="")


class WebShopEnv(TextEnv):
    """Buy what an instruction asks for: `search[query]`, and `click[...]` what a page shows.

    The site, the texts of its pages and the reward are those of WebShop (Yao et al. 2022,
    arXiv:2207.01206). Products and their search are in this process; there is no Java.

    | argument | default | meaning |
    |---|---|---|
    | `split` | `"train"` | see below |
    | `source` | `"generated"` | `"generated"`: 2,400 products of our own; `"official"`: imported |
    | `data_path` | `None` | official: what `agentgyms data import webshop` made, if elsewhere |
    | `goals` | `"synthetic"` | `"synthetic"`: from attributes and options; `"human"`: by people |
    | `goal_seed` | 233 | seed of prices and price bounds, which are drawn once |
    | `cut` | `"product"` | `"product"`: no product is in two splits; `"original"`: see below |
    | `observation_mode` | `"text"` | `"text"`, or `"text_rich"` with marks for what is clickable |
    | `nouns` | `"builtin"` | what finds nouns in titles: `"spacy:<model>"` is the original's way |
    | `compat` | `False` | do everything as the original does, flaws included |
    | `show_attributes` | `False` | product pages lead to a page of the product's attributes |
    | `max_turns` | 15 | turns until the episode is truncated |
    | `oracle` | `False` | put the expert's next action into `info["oracle"]` |

    The purchase ends the episode. Its reward, in [0, 1], is the share of attributes, options and
    the price bound that are met, times the type of the product; everything else has reward 0.
    Success is a reward of exactly 1, with whatever product. The score is the reward.

    What the default mends (`compat=True` has it as the original does):
     - What does nothing says so: `feedback`, and a last line `Nothing happens: <reason>.`
     - `search` and `click` are read in any case, with blanks around. An action is all from the
       first `[` to the last `]`, so that values with brackets can be clicked.
     - A value that several options have, or that is a button's label too, is clicked by
       `click[<option>: <value>]`; in the original the other one cannot be clicked at all.
     - `Next >` is there only where there is another page; a search that finds nothing says so.
     - In mode `text` the chosen options are listed (`Chosen: color: red`). In `text_rich` a value
       is marked if it is chosen, not if its text occurs in the page's address.
     - `<r>`, `<a>`, `<c>` and `<q>` at the beginning of a query are words like others. In `compat`
       they search at random (here: a function of the task), fail, and list a category or a query.
     - The last page is a receipt, without the score.
     - Blanks in a query do not matter; a blank query is refused.
    Kept are: `search[...]` on every page before the purchase; the loss of chosen options on the way
    back to the results. Departs from the original in both modes: the episode ends with the
    purchase, and the goal's own product always has `r_type` 1.

    `info["admissible_actions"]` begins with `search[<query>]`, for any query. `info["state_key"]`
    is that of the open page: search, number, product, chosen options in any order, and in mode
    `text_rich`, which shows them, the visited products.

    `info["metrics"]` has the parts of the reward, nan before the purchase (`r_option` also for
    goals without options), whether the goal's own product was bought (`goal_product_bought`), and
    the number of `searches` and of `pages` opened. `info["progress"]` counts subgoals: each part
    that buying the open product now would meet, times its type, and a purchase with reward 1.

    | split | `cut="product"` | `cut="original"`: indices of the shuffled list |
    |---|---|---|
    | `train` | goals of 80 % of the products | from 1500 |
    | `valid` | of 10 % | 500 to 1499 |
    | `test` | of 10 % | 0 to 499 |
    | `sample` | 12 goals of train | 12 goals of train |

    Scores on the generated products are not comparable with those on the official ones. Families
    are the categories: beauty, electronics, fashion, garden, grocery.

    Expert: `best` finds the goal's own product, chooses its options and buys it.
    """

    default_max_turns = 15
    splits = ("train", "valid", "test", "sample")
    private_arguments = frozenset({"data_path", "nouns"})

    def __init__(
        self,
        *,
        source: str = "generated",
        data_path: str | os.PathLike[str] | None = None,
        goals: str = "synthetic",
        goal_seed: int = 233,
        cut: str = "product",
        observation_mode: str = "text",
        nouns: str = "builtin",
        compat: bool = False,
        show_attributes: bool = False,
        **common: Any,
    ) -> None:
        """Check the arguments; see the class for their meaning.

        Raises:
            BadOption: An argument has a value it cannot have, or two do not go together.
            DataMissing: The official catalogue or spaCy's model is not there.
            DataCorrupt: The catalogue is damaged.
            DependencyNotInstalled: `nouns` asks for spaCy, which is not installed.
        """
        super().__init__(**common)
        _check_one_of("observation_mode", observation_mode, OBSERVATION_MODES)
        _check_one_of("cut", cut, CUTS)
        _check_flag("compat", compat)
        _check_flag("show_attributes", show_attributes)
        self._opened = open_shop(source, data_path, goals, goal_seed, nouns)
        if data_path is not None:
            self._arguments["data_path"] = os.fspath(data_path)
        self._cut, self._mode = cut, observation_mode
        self._compat, self._show_attributes = compat, show_attributes
        self.data_version = self._opened.version

    @cached_property
    def shop(self) -> Shop:
        """The shop, shared by all environments of the process with the same data."""
        return self._opened.load()

    @property
    def session(self) -> ShopSession:
        """The running visit, for what looks further than `info` does; see `ShopSession`."""
        return self._session

    def load_tasks(self) -> TaskSet:
        """Return the goals of the split."""
        return self.shop.goals.tasks(self.split, self._cut)

    def begin(self, task: Task, rng: np.random.Generator) -> Outcome:
        """Open the first page; nothing in an episode is left to chance."""
        self._session = self._new_session(task)
        return self._outcome(_BEGUN)

    def goal(self, task: Task) -> str:
        """Return the instruction."""
        return self._session.goal.instruction_text

    def act(self, action: str) -> Outcome:
        """Search, or click something of the page."""
        return self._outcome(self._session.act(action))

    def save(self) -> Any:
        """Return where the visit is."""
        return self._session.save()

    def load(self, task: Task, state: Any) -> None:
        """Take up what `save` returned."""
        session = self._new_session(task)
        session.load(state)
        self._session = session

    def expert_actions(self) -> dict[str, str]:
        """Return the next action towards buying the goal's own product with its options."""
        from agentgyms.webshop.expert import best

        return {"best": best(self._session)}

    def _new_session(self, task: Task) -> ShopSession:
        goal = self.shop.goals.find(task.task_id)
        return ShopSession(
            self.shop, goal, compat=self._compat, show_attributes=self._show_attributes
        )

    def _outcome(self, result: Result) -> Outcome:
        session = self._session
        bought = session.purchase() if session.done else None
        score = bought.reward if bought else 0.0
        with_visited = self._mode == "text_rich"
        return Outcome(
            observation=OBSERVATION_MODES[self._mode](session.view),
            state_key=keys.state_key(
                "webshop", session.goal.task_id, *session.state.key_parts(with_visited=with_visited)
            ),
            reward=result.reward,
            terminated=session.done,
            admissible=() if session.done else session.admissible(),
            admissible_complete=session.done,
            action_key=result.action_key,
            feedback=result.feedback,
            feedback_text=result.reason,
            progress=self._progress(),
            score=score,
            success=score == 1.0,
            metrics=self._metrics(bought),
        )

    def _progress(self) -> float:
        scored = self._session.purchase()
        if scored is None:
            return 0.0
        if self._session.done and scored.reward == 1.0:
            return 1.0
        goal = self._session.goal
        num_parts = len(goal.attributes) + len(goal.goal_options) + 1
        return scored.reward * num_parts / (num_parts + 1)

    def _metrics(self, bought: Purchase | None) -> dict[str, float]:
        session = self._session
        parts = dict(_NOT_BOUGHT)
        if bought:
            values = {name: getattr(bought, name) for name in _PARTS}
            parts = {
                name: math.nan if value is None else float(value) for name, value in values.items()
            }
        own = bought is not None and session.state.asin == session.goal.asin
        return {
            **parts,
            "goal_product_bought": float(own),
            "searches": float(session.searches),
            "pages": float(session.pages),
        }


def _check_one_of(name: str, value: Any, known: Any) -> None:
    if not isinstance(value, str) or value not in known:
        raise BadOption(f"{name} must be one of {', '.join(known)}, got {value!r:.60}")


def _check_flag(name: str, value: Any) -> None:
    if not isinstance(value, bool):
        raise BadOption(f"{name} must be True or False, got {value!r:.60}")
