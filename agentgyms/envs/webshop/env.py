"""The WebShop environment: shopping in a site of text pages."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from agentgyms.core import keys
from agentgyms.core.env import Feedback, Outcome, TextEnv
from agentgyms.core.errors import BadOption
from agentgyms.core.tasks import Task, TaskSet
from agentgyms.core.tools import Tool, Tools
from agentgyms.envs.webshop.goals.goal_arrays import CUTS as CUTS
from agentgyms.envs.webshop.rules import page_texts
from agentgyms.envs.webshop.rules.session import ShopSession
from agentgyms.envs.webshop.rules.transitions import Result
from agentgyms.envs.webshop.shop import Shop
from agentgyms.envs.webshop.sources import open_shop

if TYPE_CHECKING:
    from agentgyms.envs.webshop.goals.reward import Purchase

OBSERVATION_MODES: Final = {"text": page_texts.text, "text_rich": page_texts.text_rich}
"""The function that renders a page, by observation mode."""

_PARTS: Final = (
    *("r_type", "r_att", "r_option", "r_price", "w_att", "w_option", "w_price"),
    *("query_match", "category_match", "title_score"),
)
_NOT_BOUGHT: Final = dict.fromkeys(_PARTS, math.nan)
_START: Final = Result(Feedback.OK, action_key="")


class WebShopEnv(TextEnv):
    """Buy what an instruction asks for: `search[query]`, and `click[...]` what a page shows.

    The site, the texts of its pages and the reward are those of WebShop (Yao et al. 2022,
    arXiv:2207.01206). Products and their search are in this process; there is no Java.

    | argument | default | meaning |
    |---|---|---|
    | `split` | `"train"` | see below |
    | `source` | `"generated"` | `"generated"`: 2,400 generated products; `"official"`: imported |
    | `data_path` | `None` | official: the folder of `agentgyms data import webshop` |
    | `goals` | `"synthetic"` | `"synthetic"`: from attributes and options; `"human"`: by people |
    | `goal_seed` | 233 | seed of prices and price bounds |
    | `cut` | `"product"` | `"product"`: no product is in two splits; `"original"`: see below |
    | `observation_mode` | `"text"` | `"text"`, or `"text_rich"`, which marks buttons |
    | `nouns` | `"builtin"` | noun extractor; `"spacy:<model>"` as in the original |
    | `compat` | `False` | behave exactly like the original, flaws included |
    | `show_attributes` | `False` | product pages have a button for the product's attributes |
    | `max_turns` | 15 | turns until the episode is truncated |
    | `oracle` | `False` | put the expert's next action into `info["oracle"]` |

    The purchase ends the episode. Its reward, in [0, 1], is the share of the attributes, options
    and price bound that are met, times how well the type of product matches; all other actions
    have reward 0. Success is a reward of exactly 1, with any product. The score is the reward.

    The default corrects flaws of the original, which `compat=True` keeps:
     - An action without effect is reported: in `feedback`, and by a last line
       `Nothing happens: <reason>.`
     - `search` and `click` may be in any case and between blanks. The argument is everything from
       the first `[` to the last `]`, so that values with brackets can be clicked.
     - A value of several options, or one that is also a button's label, is clicked by
       `click[<option>: <value>]`; in the original only one of them can be clicked.
     - `Next >` is shown only if there is another page; an empty result is reported.
     - In mode `text` the chosen options are listed (`Chosen: color: red`). In `text_rich` a value
       is marked if it is chosen, not if its text is in the page's URL.
     - `<r>`, `<a>`, `<c>` and `<q>` at the beginning of a query are ordinary words. In `compat`
       they return random products (here determined by the task), fail, and list a category or a
       fine category.
     - The last page is a receipt, without the score.
     - Blanks in a query do not matter; a blank query is refused.
    As in the original, `search[...]` works on every page before the purchase, and going back to the
    results clears the chosen options. Both modes differ from the original in two points: the
    episode ends with the purchase, and the goal's own product always has `r_type` 1.

    `info["admissible_actions"]` begins with `search[<query>]`, for any query. `info["state_key"]`
    identifies the open page: search, number, product, chosen options in any order, and in mode
    `text_rich`, which shows them, the visited products.

    `info["metrics"]` has the parts of the reward, absent before the purchase (`r_option` also for
    goals without options), whether the goal's own product was bought (`goal_product_bought`), and
    the numbers of `searches` and of `pages` opened. `info["progress"]` is the share of subgoals
    reached: the parts of the reward of buying the open product now, and a purchase with reward 1.
    `info["atoms"]` has them one by one: `attribute 1`, `option 1`, `price`, `type` (a share) and
    `bought`.

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
    tools = Tools(
        Tool(
            "search",
            "Search the shop for products.",
            "search[{query}]",
            {"query": "Words that describe the product."},
        ),
        Tool(
            "click",
            "Click an element of the page: a product, an option or a button.",
            "click[{element}]",
            {"element": "The element's text, such as Buy Now, or a product's number."},
        ),
    )
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

        Raises `BadOption`, `DataMissing`, `DataCorrupt`, or `DependencyNotInstalled` without spaCy.
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
        """The session of the running episode; see `ShopSession`."""
        return self._session

    @classmethod
    def data_source_of(cls, arguments: Mapping[str, Any]) -> str:
        """Return `"generated"` or `"official"`, the argument `source`."""
        return str(arguments.get("source", "generated"))

    def load_tasks(self) -> TaskSet:
        """Return the goals of the split."""
        return self.shop.goals.tasks(self.split, self._cut)

    def begin(self, task: Task, rng: np.random.Generator) -> Outcome:
        """Open the first page; episodes are deterministic."""
        self._session = self._new_session(task)
        return self._outcome(_START)

    def goal(self, task: Task) -> str:
        """Return the instruction."""
        return self._session.goal.instruction_text

    def act(self, action: str) -> Outcome:
        """Search, or click an element of the page."""
        return self._outcome(self._session.act(action))

    def save(self) -> Any:
        """Return the session as JSON values."""
        return self._session.save()

    def load(self, task: Task, state: Any) -> None:
        """Restore what `save` returned."""
        session = self._new_session(task)
        session.load(state)
        self._session = session

    def expert_actions(self) -> dict[str, str]:
        """Return the next action towards buying the goal's product with its options."""
        from agentgyms.envs.webshop.expert import best

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
            atoms=self._atoms(),
        )

    def _atoms(self) -> dict[str, bool | float]:
        """Return the parts of the reward of buying the open product now, and of the purchase."""
        goal, purchase = self._session.goal, self._session.purchase()
        attributes = purchase.attributes if purchase else (False,) * len(goal.attributes)
        options = purchase.options if purchase else (False,) * len(goal.goal_options)
        return {
            **{f"attribute {i}": met for i, met in enumerate(attributes, 1)},
            **{f"option {i}": met for i, met in enumerate(options, 1)},
            "price": purchase is not None and bool(purchase.r_price),
            "type": purchase.r_type if purchase else 0.0,
            "bought": purchase is not None and self._session.done and purchase.success,
        }

    def _progress(self) -> float:
        purchase = self._session.purchase()
        if purchase is None:
            return 0.0
        if self._session.done and purchase.reward == 1.0:
            return 1.0
        goal = self._session.goal
        num_parts = len(goal.attributes) + len(goal.goal_options) + 1
        return purchase.reward * num_parts / (num_parts + 1)

    def _metrics(self, bought: Purchase | None) -> dict[str, float]:
        session = self._session
        parts = dict(_NOT_BOUGHT)
        if bought:
            values = {name: getattr(bought, name) for name in _PARTS}
            parts = {
                name: math.nan if value is None else float(value) for name, value in values.items()
            }
        is_goal_product = bought is not None and session.state.asin == session.goal.asin
        return {
            **parts,
            "goal_product_bought": float(is_goal_product),
            "searches": float(session.searches),
            "pages": float(session.pages),
        }


def _check_one_of(name: str, value: Any, known: Any) -> None:
    if not isinstance(value, str) or value not in known:
        raise BadOption(f"{name} must be one of {', '.join(known)}, got {value!r:.60}")


def _check_flag(name: str, value: Any) -> None:
    if not isinstance(value, bool):
        raise BadOption(f"{name} must be True or False, got {value!r:.60}")
