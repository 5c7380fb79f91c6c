"""Worlds of the real engine, in workers, beside plain `AppWorld` objects."""

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

import agentgyms.envs.appworld
from agentgyms.core.errors import BadOption, DataMissing, UnknownSplit, WorkerLost
from agentgyms.envs.appworld.engine import servers as engine_servers
from agentgyms.envs.appworld.engine.world import EngineTasks, EngineWorld
from agentgyms.envs.appworld.world import ApiResponse, Verdict

pytestmark = pytest.mark.appworld

PLAYED = ("note-append_1", "bills-split_2", "requests-approve_3")

PLAIN = Path(__file__).with_name("plain_calls.py")


@pytest.fixture(scope="module")
def tasks(generated_roots):
    made = EngineTasks()
    assert made.roots == generated_roots
    return made


@pytest.fixture(scope="module")
def servers(tasks):
    return engine_servers.servers(tasks.python, tasks.roots)


@pytest.fixture
def open_world(tasks, servers):
    worlds = []

    def open_one(task="note-append_1"):
        worlds.append(EngineWorld(servers, tasks.roots, task, 1))
        return worlds[-1]

    yield open_one
    for world in worlds:
        world.close()


@pytest.fixture(scope="module")
def plain(generated_root, tasks):
    """What plain AppWorld objects answer in the calls of solutions, and in odd ones."""
    asked = {task: [] for task in PLAYED}
    asked["note-append_1"] = odd_calls()
    done = subprocess.run(
        [tasks.python, "-I", str(PLAIN)],
        env={"HOME": str(generated_root), "APPWORLD_ROOT": str(generated_root), "TZ": "UTC"},
        input=json.dumps(asked),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout.splitlines()[-1])


def odd_calls():
    apps = {
        "simple_note": ["show_note", "search_notes", "create_note", "add_content_to_note"],
        "venmo": ["add_friend", "show_transaction", "create_transaction", "show_profile"],
        "spotify": ["show_song", "like_song", "search_songs", "show_artist"],
        "phone": ["show_alarms", "send_text_message", "get_current_date_and_time"],
        "api_docs": ["show_app_descriptions", "show_api_doc", "search_api_docs"],
        "supervisor": ["show_profile", "show_account_passwords", "complete_task"],
    }
    calls = [[app, api, {}] for app, apis in apps.items() for api in apis if api != "complete_task"]
    account = {"first_name": "A", "last_name": "B", "password": "secret"}
    return [
        *calls,
        ["simple_note", "signup", account | {"email": "a.b@mail.com"}],
        ["simple_note", "login", {"username": "a.b@mail.com", "password": "secret"}],
        ["simple_note", "show_note", {"note_id": 10**9, "access_token": "no"}],
        ["venmo", "add_friend", {"user_email": "ä b+c@mail.com", "access_token": "no"}],
        ["spotify", "show_song", {"song_id": "first"}],
        ["spotify", "show_song", {"song_id": 3, "unknown": [1, {"a": None}]}],
        ["spotify", "search_songs", {"query": "love", "page_limit": 21}],
        ["spotify", "search_songs", {"query": ["a", "b"], "page_index": -1}],
        ["spotify", "show_song", {"song_id": 10**30}],
    ]


def replay(world, told):
    """Make the calls again; return those that were answered differently."""
    other = []
    for app, api, arguments, value, error in told:
        reply = world.call(app, api, arguments)
        if (reply.value, reply.error) != (value, error):
            other.append((app, api, arguments, value, error, reply))
    return other


@pytest.mark.parametrize("task", PLAYED)
def test_calls_are_answered_as_plain_appworld_answers_them(plain, open_world, task):
    assert len(plain[task]["told"]) > 5
    assert not replay(open_world(task), plain[task]["told"])


@pytest.mark.parametrize("task", PLAYED)
def test_the_report_is_that_of_plain_appworld(plain, open_world, task):
    world = open_world(task)
    assert not world.completed
    before = world.report()
    assert not before.success
    assert all(v.passed == (v.label == "no_op_pass") for v in before.verdicts)
    replay(world, plain[task]["told"])
    assert world.completed
    after = world.report()
    assert sorted(after.verdicts, key=repr) == verdicts(plain[task]["tests"])
    assert world.report() == after


def verdicts(tests):
    rows = [Verdict(row["requirement"], True, row["label"]) for row in tests["passes"]]
    rows += [Verdict(row["requirement"], False, row["label"]) for row in tests["failures"]]
    return sorted(rows, key=repr)


def test_what_is_known_of_a_task_at_the_beginning(tasks, open_world):
    brief = open_world("bills-split_2").brief
    assert (brief.task_id, brief.difficulty, brief.now[:4]) == ("bills-split_2", 1, "2023")
    assert set(brief.supervisor) == {"first_name", "last_name", "email", "phone_number"}
    assert "complete_task" in brief.apis["supervisor"]
    assert len(brief.apis) == 11
    assert "admin" not in brief.apis
    assert sum(map(len, brief.apis.values())) == 457


def account(world, app="simple_note"):
    """Log the supervisor in; return what later calls need."""
    known = world.call("supervisor", "show_account_passwords", {}).value
    password = next(row["password"] for row in known if row["account_name"] == app)
    name = world.brief.supervisor["phone_number" if app == "phone" else "email"]
    reply = world.call(app, "login", {"username": name, "password": password})
    return {"access_token": reply.value["access_token"]}


def note(world, login, title):
    made = world.call("simple_note", "create_note", {"title": title, "content": "-", **login})
    return made.value["note_id"]


def test_the_digest_is_that_of_the_records(open_world):
    one, two = open_world(), open_world()
    beginning = one.digest()
    assert two.digest() == beginning
    first, second = account(one), account(two)
    assert first == second
    one.call("simple_note", "search_notes", first)
    logged_in = one.digest()
    assert logged_in == two.digest()

    number = note(one, first, "a")
    assert one.digest() not in (beginning, logged_in)
    assert note(two, second, "a") == number
    assert one.digest() == two.digest()

    one.call("simple_note", "delete_note", {"note_id": number, **first})
    assert one.digest() == logged_in, "a change and its opposite"
    note(one, first, "b")
    assert one.digest() != two.digest()


def test_worlds_of_one_task_do_not_mix(open_world):
    one, two = open_world("bills-split_2"), open_world("bills-split_2")
    login = account(one)
    note(one, login, "zebra crossing")
    search = {"query": "zebra crossing"}
    titles = [
        {row["title"] for row in w.call("simple_note", "search_notes", search | account(w)).value}
        for w in (one, two)
    ]
    assert titles[0] - titles[1] == {"zebra crossing"}
    assert one.pid != two.pid
    assert one.digest() != two.digest()
    [none_changed] = [v.passed for v in two.report().verdicts if v.label == "no_op_pass"]
    [note_added] = [v.passed for v in one.report().verdicts if v.label == "no_op_pass"]
    assert (none_changed, note_added) == (True, False)


@pytest.mark.parametrize("app", ["admin", "nope", "_requester", ""])
def test_apps_that_are_not_the_agents_are_unknown(open_world, app):
    reply = open_world().call(app, "debit_from_card", {})
    assert reply == ApiResponse(error=f"No app named '{app}' found.", status=0)


def test_apis_that_are_not_the_agents_are_unknown(open_world):
    world = open_world()
    for api in ("index", "clear", "access_token_from", ""):
        reply = world.call("venmo", api, {})
        assert reply == ApiResponse(error=f"No API named '{api}' found in the venmo app.", status=0)


def test_documents_hold_nothing_private(open_world):
    world = open_world()
    names = {row["name"] for row in world.call("api_docs", "show_app_descriptions", {}).value}
    assert names == set(world.brief.apis)
    for app, apis in world.brief.apis.items():
        shown = world.call("api_docs", "show_api_descriptions", {"app_name": app}).value
        assert {row["name"] for row in shown} == set(apis)
    hidden = world.call("api_docs", "show_api_descriptions", {"app_name": "admin"})
    assert hidden.status == 422


CLIMBING = [
    "..",
    ".",
    "../..",
    "../../dbs",
    "../search_notes",
    "1?x=1",
    "1#a",
    "%2e%2e",
    "..%2fdbs",
]
CLIMBING += [
    "%252e%252e%252fdbs",
    "1/../../../dbs",
    "%25252e%25252e",
    "\\..\\",
    "{note_id}",
    "..;/",
]


def test_arguments_in_a_path_reach_only_their_api(open_world):
    world = open_world()
    note_login, bills_login = account(world), account(world, "splitwise")
    for value in CLIMBING:
        shown = world.call("simple_note", "show_note", {"note_id": value, **note_login})
        assert shown.status == 422, (value, shown)
        assert "note_id" in shown.error
        # An argument that is a text arrives as it is, but for a slash.
        code = {"invitation_code": value, **bills_login}
        joined = world.call("splitwise", "accept_group_invitation", code)
        assert joined.status in (409, 422), (value, joined)


def test_an_empty_argument_does_not_lead_elsewhere(open_world):
    world = open_world()
    login = account(world)
    reply = world.call("simple_note", "show_note", {"note_id": "", **login})
    assert reply.value is None
    assert reply.error


def test_keywords_that_control_the_engine_do_nothing(open_world):
    world = open_world()
    controls = {"raise_on_failure": False, "track": False, "client": 1, "show": True}
    controls |= {"_system_datetime": "2030-01-01", "_app_name": "admin", "_api_name": "x"}
    reply = world.call("simple_note", "show_note", {"note_id": 10**9, **controls})
    assert reply.status == 401
    assert world.call("supervisor", "show_profile", controls).value["email"]


def test_text_that_cannot_be_sent_is_the_agents_error(open_world):
    reply = open_world().call("simple_note", "show_note", {"note_id": "\ud800"})
    assert (reply.kind, reply.status) == ("UnicodeEncodeError", 0)


def test_the_worker_has_no_ground_truth_at_hand(tasks, open_world):
    world = open_world()
    names = [name for _, folders, files in os.walk(tasks.roots.world) for name in folders + files]
    assert len(names) > 100
    assert not {"ground_truth", "solution_blocks.json", "answer.json"} & set(names)
    opened = [str(fd.readlink()) for fd in Path(f"/proc/{world.pid}/fd").iterdir()]
    mapped = Path(f"/proc/{world.pid}/maps").read_text()
    assert not any(str(tasks.roots.truth) in text for text in [*opened, mapped])


FENCED = """
import sys
sys.path.insert(0, sys.argv[1])
from child import fence, landlock
root, truth = sys.argv[2:]
fence.prepare(root, saves=True)
if not fence.confine():
    print("no Landlock")
    sys.exit()
def tried(*arguments):
    try:
        open(*arguments).close()
    except PermissionError:
        return "refused"
    return "open"
import os, socket
print(tried(root + "/data/datasets/train.txt"), tried(root + "/experiments/new", "w"))
print(tried(truth + "/data/tasks/note-append_1/ground_truth/answer.json"))
print(tried(root + "/data/datasets/train.txt", "a"), tried("/proc/1/environ"))
print(tried(os.path.dirname(os.path.dirname(truth)) + "/found", "w"))
"""


def test_the_fence_of_workers_keeps_the_ground_truth_out(tasks, servers):
    child = Path(agentgyms.envs.appworld.__file__).parent / "sandbox"
    root = servers.experiment().parents[2]
    done = subprocess.run(
        [tasks.python, "-c", FENCED, str(child), str(root), str(tasks.roots.truth)],
        capture_output=True,
        text=True,
        check=True,
    )
    if done.stdout == "no Landlock\n":
        pytest.skip("this kernel has no Landlock")
    assert done.stdout.split() == ["open", "open", "refused", "refused", "refused", "refused"]
    Path(root, "experiments/new").unlink()


def test_a_killed_worker_is_lost(open_world):
    world, other = open_world(), open_world()
    os.kill(world.pid, signal.SIGKILL)
    with pytest.raises(WorkerLost, match="SIGKILL"):
        world.call("supervisor", "show_profile", {})
    with pytest.raises(WorkerLost):
        world.digest()
    assert other.call("supervisor", "show_profile", {}).status == 200


def test_a_worker_lost_while_it_opens_is_replaced(tasks, servers, monkeypatch):
    fork, forked = servers.engines.fork, []

    def killed_once():
        forked.append(fork())
        if len(forked) == 1:
            os.kill(forked[0].pid, signal.SIGKILL)
        return forked[-1]

    monkeypatch.setattr(servers.engines, "fork", killed_once)
    world = tasks.open("note-append_1")
    assert world.call("supervisor", "show_profile", {}).status == 200
    world.close()
    assert len(forked) == 2


def test_worlds_leave_nothing_behind(servers, tasks):
    """Of many worlds no files, processes or descriptors stay."""
    parent = Path("/proc/self/fd")

    def one():
        world = EngineWorld(servers, tasks.roots, "note-append_1", 1)
        world.report()
        world.close()
        world.close()
        return world.pid

    one()
    before = len(list(parent.iterdir()))
    pids = [one() for _ in range(12)]
    assert len(list(parent.iterdir())) <= before
    assert not [pid for pid in pids if Path(f"/proc/{pid}").exists()]
    assert list(servers.experiment().parent.iterdir()) == []


def test_a_worker_shares_most_of_its_memory(open_world):
    world = open_world()
    account(world)
    lines = Path(f"/proc/{world.pid}/smaps_rollup").read_text().splitlines()
    sizes = {line.split()[0]: int(line.split()[1]) for line in lines[1:]}
    private_mb = (sizes["Private_Clean:"] + sizes["Private_Dirty:"]) / 1024
    assert private_mb < 120
    assert private_mb < 0.6 * sizes["Rss:"] / 1024


def test_a_dropped_world_is_released(servers, tasks):
    world = EngineWorld(servers, tasks.roots, "note-append_1", 1)
    pid = world.pid
    del world
    assert not Path(f"/proc/{pid}").exists()


def test_closed_servers_leave_no_folder(tasks):
    made = engine_servers.Servers(tasks.python, tasks.roots)
    folder = made.experiment().parents[3]
    assert folder.is_dir()
    made.close()
    assert not folder.exists()


def test_tasks_of_our_own_data(tasks):
    assert tasks.version.startswith("generated-")
    splits = {split: tasks.families(split) for split in ("train", "dev", "test_normal")}
    assert list(splits["train"])[:2] == ["note-tag_1", "note-tag_2"]
    assert {d for families in splits.values() for d in families.values()} == {1, 2, 3}
    assert all(len(families) % 3 == 0 for families in splits.values())
    assert len(tasks.solution("note-append_1")) > 1
    with pytest.raises(UnknownSplit, match="test_challenge"):
        tasks.families("valid_seen")
    with pytest.raises(DataMissing, match="nope_1"):
        tasks.open("nope_1")


def test_official_data_has_no_solutions_here(generated_roots):
    tasks = EngineTasks("official", generated_roots.world.parent)
    assert tasks.version.startswith("official-")
    assert tasks.solution("note-append_1") is None


def test_a_source_that_is_none():
    with pytest.raises(BadOption, match="'generated', 'official'"):
        EngineTasks("other")
