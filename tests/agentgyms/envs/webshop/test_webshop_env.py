"""WebShop as an environment: the contract, what is scored, and what callers do wrong."""

import json
import threading

import gymnasium as gym
import pytest

import agentgyms
from agentgyms import testing
from agentgyms.core.errors import BadOption, BadSnapshot, DataMissing, UnknownSplit
from agentgyms.data import datasets
from agentgyms.envs.webshop import sources
from agentgyms.envs.webshop.env import WebShopEnv
from agentgyms.remote import InProcessTransport, RemoteEnv
from agentgyms.serving.server import Server
from env_servers import create_app

ENV_ID = "agentgyms/WebShop-v0"
MODES = [
    {},
    {"split": "valid", "observation_mode": "text_rich", "oracle": True},
    {"split": "test", "goals": "human", "show_attributes": True, "max_turns": 7},
    {"split": "test", "compat": True, "observation_mode": "text_rich", "cut": "original"},
    {"split": "sample", "compat": True, "goal_seed": 7},
]


@pytest.fixture(params=MODES, ids=["default", "rich", "human", "compat rich", "compat"])
def make(request):
    return lambda: gym.make(ENV_ID, **request.param)


@pytest.fixture
def env():
    env = WebShopEnv(split="valid", oracle=True)
    env.reset(seed=0)
    return env


def expert(env):
    return json.loads(env.unwrapped._episode.last.info["oracle"])["best"]


# --- the contract -------------------------------------------------------------------------------


def test_environment(make):
    testing.check_env(make)
    testing.check_leaks(make)


def test_determinism(make):
    testing.check_determinism(make)


def test_snapshots(make):
    testing.check_snapshot(make)


def test_group():
    testing.check_group(lambda: agentgyms.make_group(ENV_ID, 8))


def test_sixteen_environments_at_once():
    testing.check_vector(ENV_ID, num_envs=16, split="test")


def test_remote_equals_local(make):
    kwargs = make().unwrapped.arguments
    transport = InProcessTransport({"http://server": create_app(ENV_ID)})
    testing.check_remote_parity(
        make, lambda: RemoteEnv(ENV_ID, url="http://server", transport=transport, **kwargs)
    )


def test_remote_over_a_socket_in_the_originals_mode():
    kwargs = {"split": "test", "compat": True}
    with Server(create_app(ENV_ID)) as server:
        testing.check_remote_parity(
            lambda: gym.make(ENV_ID, **kwargs), lambda: gym.make(ENV_ID, url=server.url, **kwargs)
        )


@pytest.mark.parametrize("argument", [{"data_path": "/etc"}, {"nouns": "spacy:/etc"}])
def test_clients_may_not_name_files_of_the_server(argument):
    transport = InProcessTransport({"http://server": create_app(ENV_ID)})
    with pytest.raises(BadOption):
        RemoteEnv(ENV_ID, url="http://server", transport=transport, **argument)


# --- episodes -----------------------------------------------------------------------------------


def test_the_expert_buys_what_is_asked_for(env):
    progress = []
    for seed in range(12):
        _, info = env.reset(seed=seed)
        assert "r_type" not in info["metrics"]
        ended = False
        while not ended:
            progress.append(info["progress"])
            _, reward, ended, truncated, info = env.step(expert(env))
            assert not truncated
            assert reward == info["score"] == (1.0 if ended else 0.0)
        assert (info["success"], info["progress"]) == (True, 1.0)
        assert info["metrics"]["goal_product_bought"] == 1.0
        assert info["metrics"]["r_type"] == info["metrics"]["r_att"] == 1.0
        assert info["metrics"]["searches"] >= 1
        assert (info["admissible_actions"], info["admissible_complete"]) == ([], True)
    assert all(0 <= value < 1 for value in progress)
    assert len(set(progress)) > 3


def test_buying_the_wrong_product_scores_less(env):
    _, info = env.reset(seed=1)
    env.step("search[the a of]")
    other = next(product for product in env.shop.catalogue if product.category != info["family"])
    env.step(f"search[{other.title}]")
    env.step(f"click[{other.asin.lower()}]")
    observation, reward, terminated, _, info = env.step("click[buy now]")
    assert terminated
    assert reward == info["score"] < 1
    assert not info["success"]
    assert info["progress"] < 1
    assert info["metrics"]["goal_product_bought"] == 0.0
    parts = info["metrics"]
    assert reward == pytest.approx(
        parts["r_type"]
        * (
            parts["r_att"] * parts["w_att"]
            + parts.get("r_option", 0) * parts["w_option"]
            + parts["r_price"] * parts["w_price"]
        )
    )
    assert str(reward) not in observation.removeprefix("Thank you")


def test_info_of_the_first_page(env):
    observation, info = env.reset(seed=2)
    assert observation == f"WebShop [SEP] Instruction: [SEP] {info['goal']} [SEP] Search"
    assert info["admissible_actions"] == ["search[<query>]"]
    assert info["admissible_complete"] is False
    assert info["family"] in ("beauty", "electronics", "fashion", "garden", "grocery")
    assert (info["progress"], info["score"], info["success"]) == (0.0, 0.0, False)


@pytest.mark.parametrize(
    "action",
    [
        "search[<script>alert(1)</script>]",
        "search[../../etc/passwd]",
        "search[a/b?c=d&e#f%20]",
        "search[a] b]",
        "search[Ω≈ç√ 漢字 🙂 \x00 \ud800]",
        "search['; drop table products --]",
        "search[" + "a " * 4000 + "]",
        "search[" + "x" * 8184 + "]",
    ],
)
@pytest.mark.parametrize("compat", [False, True])
def test_any_query_is_searched(action, compat):
    env = WebShopEnv(compat=compat)
    env.reset(seed=0)
    observation, _, _, _, info = env.step(action)
    assert info["feedback"] == "ok"
    assert "Page 1 (Total results: " in observation


@pytest.mark.parametrize("compat", [False, True])
@pytest.mark.parametrize(
    ("action", "feedback"),
    [
        ("", "malformed"),
        ("search[" + "x" * 10_000 + "]", "malformed"),
        ("click[" * 2000, "malformed"),
        ("]search[", "malformed"),
        ("click[nothing like it]", "inadmissible"),
        ("click[\ud800]", "inadmissible"),
        ("click[search]", "inadmissible"),
    ],
)
def test_what_cannot_be_done_takes_a_turn_and_nothing_else(action, feedback, compat):
    env = WebShopEnv(compat=compat)
    before, first = env.reset(seed=0)
    observation, reward, terminated, _, info = env.step(action)
    assert (info["feedback"], info["action_key"]) == (feedback, "<invalid>")
    assert info["feedback_text"]
    assert "\n" not in info["feedback_text"]
    assert (info["state_key"], info["turn"]) == (first["state_key"], 1)
    assert (reward, terminated) == (0.0, False)
    expected = "" if compat else f" [SEP] Nothing happens: {info['feedback_text']}."
    assert observation == before + expected


def test_states_are_equal_where_their_futures_are():
    def reached(mode, *actions):
        env = WebShopEnv(split="sample", observation_mode=mode)
        info = env.reset(seed=0)[1]
        for action in actions:
            info = env.step(action)[4]
        return info["state_key"], info["observation_key"]

    env = WebShopEnv(split="sample")
    env.reset(seed=0)
    there = "search[lamp]"
    asin = env.step(there)[4]["admissible_actions"][-1]
    assert reached("text", "junk", "SEARCH[ Lamp ]") == reached("text", there)
    assert reached("text", there, asin, "click[< prev]") == reached("text", there)
    assert reached("text_rich", there, asin, "click[< prev]") != reached("text_rich", there)
    assert reached("text", there, asin) != reached("text", there)


def test_members_of_a_group_do_not_share_a_visit():
    group = agentgyms.make_group(ENV_ID, 2, split="sample")
    group.reset(seed=3)
    group.step(["search[lamp]", None])
    pages = [env.session.state.page for env in group.envs]
    assert pages == ["search", "index"]


def test_environments_of_a_process_share_one_shop():
    shops: list[object] = []
    threads = [
        threading.Thread(target=lambda: shops.append(WebShopEnv(goal_seed=41).shop))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({id(shop) for shop in shops}) == 1
    assert WebShopEnv().shop is not shops[0]
    assert WebShopEnv().shop.catalogue is WebShopEnv(goal_seed=41).shop.catalogue


def test_the_version_tells_what_decides_the_scores():
    versions = {
        WebShopEnv(**arguments).data_version
        for arguments in ({}, {"goals": "human"}, {"goal_seed": 5}, {"compat": True})
    }
    assert len(versions) == 3
    assert WebShopEnv(goal_seed=233).data_version in versions, "WebShop's own seed"
    assert "builtin" in WebShopEnv().data_version


# --- callers' mistakes --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"source": "amazon"}, "source 'amazon' is unknown: expected one of generated, official"),
        ({"data_path": "x"}, "data_path is for source='official'"),
        ({"source": "official", "data_path": 3}, "data_path must be a path, got 3"),
        ({"goals": "mine"}, "mine"),
        ({"goal_seed": -1}, "goal_seed must be an integer"),
        ({"goal_seed": True}, "goal_seed must be an integer"),
        ({"cut": "random"}, "cut must be one of product, original, got 'random'"),
        ({"observation_mode": "html"}, "observation_mode must be one of text, text_rich"),
        ({"observation_mode": ["text"]}, "observation_mode must be one of"),
        ({"compat": 1}, "compat must be True or False, got 1"),
        ({"show_attributes": "yes"}, "show_attributes must be True or False"),
        ({"nouns": None}, "nouns must be"),
        ({"nouns": "nltk"}, "nltk"),
    ],
)
def test_wrong_arguments_say_what_is_right(arguments, message):
    with pytest.raises(BadOption, match=message):
        WebShopEnv(**arguments)


def test_an_unknown_split_is_refused():
    with pytest.raises(UnknownSplit, match="train, valid, test, sample"):
        WebShopEnv(split="dev")


def test_an_official_catalogue_that_is_not_there_is_missed(tmp_path, monkeypatch):
    with pytest.raises(DataMissing, match="agentgyms data import webshop PATH"):
        WebShopEnv(source="official", data_path=tmp_path)
    monkeypatch.setenv("AGENTGYMS_DATA", str(tmp_path))
    with pytest.raises(DataMissing, match="agentgyms data import webshop"):
        WebShopEnv(source="official")


@pytest.mark.parametrize(
    "damage",
    [
        lambda engine: engine["state"].update(asin="B0NOWHERE1"),
        lambda engine: engine["state"].update(page="done"),
        lambda engine: engine["state"].update(number=99),
        lambda engine: engine.pop("state"),
        lambda engine: engine.update(searches="one"),
    ],
)
def test_damaged_snapshots_are_refused(env, damage):
    env.step("search[lamp]")
    snapshot = json.loads(env.snapshot())
    env.restore(json.dumps(snapshot).encode())
    damage(snapshot["engine"])
    with pytest.raises(BadSnapshot):
        env.restore(json.dumps(snapshot).encode())


@pytest.mark.data
def test_official_products_are_shopped_for(official_folder, monkeypatch, tmp_path):
    monkeypatch.setenv("AGENTGYMS_DATA", str(tmp_path))
    datasets.import_data("webshop", official_folder, progress=False)
    env = WebShopEnv(source="official", cut="original", split="test", compat=True, oracle=True)
    assert len(env.tasks) == 500
    versions = {env.data_version, WebShopEnv(source="official", goals="human").data_version}
    assert len(versions) == 2
    rewards = []
    for seed in range(40):
        env.reset(seed=seed)
        ended = truncated = False
        while not (ended or truncated):
            _, reward, ended, truncated, _ = env.step(expert(env))
        rewards.append(reward)
    assert sum(rewards) / len(rewards) > 0.9
    named = WebShopEnv(source="official", data_path=tmp_path / "webshop")
    assert named.data_version == WebShopEnv(source="official").data_version
    assert named.shop.catalogue is env.shop.catalogue


def test_another_import_is_another_catalogue(tmp_path):
    """A folder that was imported anew is opened anew, in a process that had the old one open."""
    (tmp_path / "manifest.json").write_text("{}")
    before = sources._folder(tmp_path)
    (tmp_path / "manifest.json").write_text("{ }")
    assert sources._folder(tmp_path) != before
    assert sources._folder(str(tmp_path)) == sources._folder(tmp_path)
