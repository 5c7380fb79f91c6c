"""Tools: a call becomes an action's text, and an action the call that stands for it."""

import gymnasium as gym
import pytest
from hypothesis import given
from hypothesis import strategies as st

import agentgyms
from agentgyms.core.env import TextEnv
from agentgyms.core.tools import ANY_ACTION, Argument, BadCall, Tool, ToolCall, Tools
from agentgyms.registration import ENVIRONMENTS, env_class

PLAYED = [one for one in ENVIRONMENTS if "Browser" not in one]
GUESS = Tools(
    Tool("guess", "Guess.", "guess {number}", {"number": Argument("From 0 to 15.", "integer")}),
    Tool("give", "Give.", "give {thing} to {who}", {"thing": "What.", "who": "Whom."}),
    Tool("stop", "Stop.", "stop"),
)


@pytest.mark.parametrize("env_id", PLAYED)
def test_calls_are_the_experts_actions_and_all_that_are_admissible(env_id):
    env = gym.make(env_id, split="sample" if "Corridor" not in env_id else "train", oracle=True)
    tools, won, different = env.unwrapped.tools, 0, {}
    for i in range(3):
        observation, info = env.reset(options={"task_id": env.unwrapped.tasks[i]})
        expert, over = agentgyms.expert(env), False
        while not over:
            action = expert(observation, info)
            for one in (action, *info["admissible_actions"]):
                call = tools.call(one)
                assert call is not None, one
                assert tools.action(call) == one
                different[call.name] = one
            observation, _, terminated, truncated, info = env.step(tools.action(tools.call(action)))
            over = terminated or truncated
        won += info["success"]
    env.close()
    assert won == 3 or env.unwrapped.stochastic
    assert set(different) <= {tool.name for tool in tools}
    assert tools is not ANY_ACTION


@pytest.mark.parametrize("env_id", ENVIRONMENTS)
def test_schemas_have_the_form_of_openais_api(env_id):
    for schema in env_class(env_id).tools.schemas:
        assert schema["type"] == "function"
        function = schema["function"]
        assert function["description"].endswith(".")
        parameters = function["parameters"]
        assert parameters["type"] == "object"
        assert parameters["required"] == list(parameters["properties"])
        for argument in parameters["properties"].values():
            assert argument["type"] in ("string", "integer")
            assert argument["description"]


def test_an_environment_that_declares_none_has_one_tool():
    assert TextEnv.tools is ANY_ACTION
    assert ANY_ACTION.call("turn the\nkey") == ToolCall("act", {"action": "turn the\nkey"})
    assert ANY_ACTION.action(ToolCall("act", {"action": "look"})) == "look"
    assert ANY_ACTION.call(" ") is None


@pytest.mark.parametrize(
    ("name", "arguments", "reason"),
    [
        ("fly", {}, "there is no tool 'fly': expected one of guess, give, stop"),
        ("give", {"thing": "cup"}, "give lacks its argument who"),
        ("stop", {"now": True}, "stop has no argument 'now': it takes none"),
        ("give", {"thing": "a", "who": "b", "why": "c"}, "its arguments are thing, who"),
        ("give", {"thing": 1, "who": "b"}, "the argument thing must be a string, got 1"),
        ("give", {"thing": ["a"], "who": "b"}, "must be a string, got list"),
        ("give", {"thing": "", "who": "b"}, "the argument thing is blank"),
        ("give", {"thing": "\ud800", "who": "b"}, "characters that are no text"),
        ("guess", {"number": "7"}, "the argument number must be an integer, got '7'"),
        ("guess", {"number": True}, "must be an integer, got True"),
        ("guess", {"number": 10**30}, "must be an integer"),
        ("x" * 500, {}, "there is no tool"),
    ],
)
def test_what_is_wrong_with_a_call(name, arguments, reason):
    with pytest.raises(BadCall) as refused:
        GUESS.action(ToolCall(name, arguments))
    assert reason in str(refused.value)
    assert len(str(refused.value)) <= 300


def test_a_choice_must_be_one_of_those_there_are():
    walk = env_class("agentgyms/Corridor-v0").tools
    with pytest.raises(BadCall, match="direction must be one of left, right, got 'up'"):
        walk.action(ToolCall("walk", {"direction": "up"}))
    assert walk.call("up") is None


@given(st.text(min_size=1), st.text(min_size=1), st.integers(-99, 99))
def test_every_call_is_found_again_in_its_action(thing, who, number):
    """Arguments may divide otherwise, if one has the words between them: the action is the same."""
    for call in (
        ToolCall("give", {"thing": thing, "who": who}),
        ToolCall("guess", {"number": number}),
    ):
        try:
            action = GUESS.action(call)
        except BadCall:
            continue
        found = GUESS.call(action)
        assert found is not None
        assert GUESS.action(found) == action
        if " to " not in action.replace(" to ", "", 1):
            assert found == call


def test_texts_of_arguments_have_the_values_that_they_stand_for():
    assert GUESS.typed(ToolCall("guess", {"number": "7"})).arguments == {"number": 7}
    assert GUESS.typed(ToolCall("guess", {"number": "7."})).arguments == {"number": "7."}
    assert GUESS.typed(ToolCall("fly", {"to": "7"})).arguments == {"to": "7"}
    assert GUESS.call("guess 07") is None  # the action would be another one


def test_how_an_action_is_shown():
    assert GUESS.shown("give cup to Ada") == 'give(thing="cup", who="Ada")'
    assert GUESS.shown("give <thing> to Ada") == 'give(thing=..., who="Ada")'
    assert GUESS.shown("fly") == "fly"


@pytest.mark.parametrize(
    "made",
    [
        lambda: Tool("no name", "", "x"),
        lambda: Tool("go", "", "go {place}"),
        lambda: Tool("go", "", "go", {"place": "Where."}),
        lambda: Tools(),
        lambda: Tools(Tool("go", "", "go"), Tool("go", "", "walk")),
    ],
)
def test_declarations_that_are_wrong(made):
    with pytest.raises(ValueError, match="tool"):
        made()


WHO = Argument("Who travels.", "object", properties={"name": Argument("The name.")})
BOOK = Tools(
    Tool(
        "book",
        "Book a trip.",
        arguments={
            "city": "Where to.",
            "people": Argument("Who.", "array", items=WHO),
            "price": Argument("At most.", "number", required=False),
            "quick": Argument("Whether at once.", "boolean", required=False),
            "more": Argument("Anything.", "object", required=False),
        },
    ),
    Tool(
        "count",
        "Count.",
        "count {many} of {what}",
        {"many": Argument("It.", "array"), "what": "W."},
    ),
    Tool("stop", "Stop."),
)


def test_calls_with_optional_arguments_and_with_lists_and_objects():
    for arguments, text in [
        ({"city": "Rome", "people": []}, 'book {"city": "Rome", "people": []}'),
        (
            {"city": "", "people": [{"name": "Ada", "age": 7}], "price": 2.5, "quick": False},
            'book {"city": "", "people": [{"name": "Ada", "age": 7}], "price": 2.5, '
            '"quick": false}',
        ),
        (
            {"city": "Köln", "people": [], "more": {"a": [None]}},
            'book {"city": "Köln", "people": [], "more": {"a": [null]}}',
        ),
    ]:
        call = ToolCall("book", arguments)
        assert BOOK.action(call) == text
        assert BOOK.call(text) == call
    assert BOOK.action(ToolCall("book", {"people": [], "price": None, "city": "a"})) == (
        'book {"city": "a", "people": []}'
    )
    assert BOOK.call("stop") == ToolCall("stop", {})
    assert BOOK.call('count [1, "a"] of it') == ToolCall("count", {"many": [1, "a"], "what": "it"})
    assert BOOK.shown('book {"city": "a", "people": []}') == 'book(city="a", people=[])'
    assert BOOK.call('book {"people": [], "city": "a"}') is None  # another text of this call
    assert BOOK.read(' book {"people":[],"city":"a"}').arguments == {"city": "a", "people": []}
    function = BOOK.schemas[0]["function"]["parameters"]
    assert function["required"] == ["city", "people"]
    assert function["properties"]["people"]["items"]["required"] == ["name"]


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"city": "a"}, "book lacks its argument people"),
        ({"city": None, "people": []}, "city must be a string, got None"),
        ({"city": "a", "people": "b"}, "people must be a list"),
        ({"city": "a", "people": ["b"]}, r"people\[0\] must be an object"),
        ({"city": "a", "people": [{}]}, r"people\[0\] lacks name"),
        ({"city": "a", "people": [{"name": 1}]}, r"people\[0\].name must be a string"),
        ({"city": "a", "people": [], "price": True}, "price must be a number"),
        ({"city": "a", "people": [], "price": float("nan")}, "price must be a number"),
        ({"city": "a", "people": [], "quick": 1}, "quick must be a boolean"),
        ({"city": "a", "people": [], "more": {"x": float("inf")}}, "no JSON value"),
        ({"city": "\ud800", "people": []}, "characters that are no text"),
    ],
)
def test_what_is_wrong_with_values_of_json(arguments, reason):
    with pytest.raises(BadCall, match=reason):
        BOOK.action(ToolCall("book", arguments))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("fly {}", "there is no tool 'fly'"),
        ("book {", "are no JSON"),
        ("book " + "[" * 5000, "are no JSON"),
        ("book []", "must be an object"),
        ("count 3", "has not the form count"),
    ],
)
def test_what_cannot_be_read_as_a_call(text, reason):
    assert BOOK.call(text) is None
    with pytest.raises(BadCall, match=reason):
        BOOK.read(text)


def test_texts_of_values_of_json():
    given = {"city": "7", "people": '[{"name": "A"}]', "price": "2", "quick": "true", "more": "{"}
    assert BOOK.typed(ToolCall("book", given)).arguments == {
        "city": "7",
        "people": [{"name": "A"}],
        "price": 2,
        "quick": True,
        "more": "{",
    }


def test_an_optional_argument_has_no_place_in_an_action():
    with pytest.raises(ValueError, match="optional argument"):
        Tool("go", "Go.", "go {place}", {"place": Argument("Where.", required=False)})
