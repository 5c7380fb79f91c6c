"""Tools that depend on an environment's arguments: told by the server, in adapters and prompts."""

import json

import gymnasium as gym
import pytest
from transformers.utils import get_json_schema

from agentgyms import Outcome, Task, TaskSet, TextEnv, keys
from agentgyms.adapters.messages import tools_of
from agentgyms.adapters.trl import _described, environment_factory
from agentgyms.core.errors import BadRequest
from agentgyms.core.tools import ANY_ACTION, Argument, BadCall, Tool, ToolCall, Tools
from agentgyms.remote import RemoteEnv
from agentgyms.remote.protocol import framing
from env_servers import Server, create_app
from harness import prompts

ENV_ID = "test/Trips-v0"
PLACE = Argument("A place.", "object", properties={"city": Argument("Its city.")})
BOOK = Tools(
    Tool(
        "book",
        "Book a trip.",
        arguments={
            "note": Argument("A note.", required=False),
            "cabin": Argument("The cabin.", choices=("first", "second")),
            "stops": Argument("The stops.", "array", items=PLACE),
            "price": Argument("At most.", "number", required=False),
        },
    ),
)
CANCEL = Tools(Tool("cancel", "Cancel a trip.", "cancel {trip}", {"trip": "Its number."}))
TRIP = {"cabin": "first", "stops": [{"city": "Rome"}]}


class TripsEnv(TextEnv):
    """Says what was called; the tools are those of `desk`."""

    default_max_turns = 3

    def __init__(self, *, desk="book", **common):
        super().__init__(**common)
        self.tools = self.tools_of(self.arguments)

    @classmethod
    def tools_of(cls, arguments):
        return CANCEL if arguments.get("desk") == "cancel" else BOOK

    def load_tasks(self):
        return TaskSet(self.split, [Task("trip", "trip")])

    def begin(self, task, rng):
        return self.outcome("")

    def act(self, action):
        return self.outcome(action)

    def outcome(self, action):
        return Outcome(action, keys.state_key(action), admissible_complete=False)


gym.register(ENV_ID, TripsEnv, disable_env_checker=True)


@pytest.mark.parametrize(("desk", "tools"), [("book", BOOK), ("cancel", CANCEL)])
def test_a_server_tells_the_tools_of_the_environment_that_it_made(desk, tools):
    with Server(create_app(ENV_ID, token="")) as server:
        remote = RemoteEnv(ENV_ID, url=server.url, desk=desk)
        assert (
            remote.tools.schemas
            == tools.schemas
            == gym.make(ENV_ID, desk=desk).unwrapped.tools.schemas
        )
        call = tools.call("cancel 7") or ToolCall("book", TRIP)
        remote.reset(seed=0)
        assert remote.step(remote.tools.action(call))[0] == tools.action(call)
        remote.close()


def test_adapters_and_prompts_take_the_tools_of_the_arguments():
    assert tools_of(ENV_ID, {}) is BOOK
    assert tools_of(ENV_ID, {"desk": "cancel"}) is CANCEL
    assert prompts.load("tools", ENV_ID).tools.tools is BOOK
    assert prompts.load("tools", ENV_ID, "hermes", {"desk": "cancel"}).tools.tools is CANCEL


def test_trl_has_optional_arguments_and_lists():
    player = environment_factory(ENV_ID)()
    assert json.dumps([get_json_schema(player.book)]) == json.dumps(_described(BOOK))
    player.reset(seed=0)
    assert player.book(**TRIP) == 'book {"cabin": "first", "stops": [{"city": "Rome"}]}'
    with pytest.raises(BadCall, match="lacks city"):
        player.book(cabin="first", stops=[{}])


def test_tools_go_over_the_wire_and_damaged_ones_are_refused():
    sent = json.loads(json.dumps(BOOK.plain))
    assert Tools.from_plain(sent).plain == BOOK.plain
    described = framing.describe(gym.make(ENV_ID).unwrapped)
    for damage in (
        [1],
        [{}],
        [{**sent[0], "name": 1}],
        [{**sent[0], "arguments": {"a": {}}}],
        sent * 2,
    ):
        description = framing.read_reply(framing.Description, {**described, "tools": damage}, "it")
        with pytest.raises(BadRequest, match="tools of test/Trips-v0 are damaged"):
            framing.read_tools(ENV_ID, description)
    older = framing.read_reply(framing.Description, {**described, "tools": []}, "it")
    assert framing.read_tools(ENV_ID, older) is ANY_ACTION
