"""Level files: Boxoban's folders and single files, and everything that can be wrong with them."""

import json
import os
import re

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.error import ResetNeeded

from agentgyms.core.errors import BadOption, BadSnapshot, DataCorrupt, DataMissing, UnknownTask
from agentgyms.envs.sokoban.levels import MAX_SIDE
from agentgyms.remote import InProcessTransport, RemoteEnv
from env_servers import create_app

SOKOBAN, VISUAL = "agentgyms/Sokoban-v0", "agentgyms/VisualSokoban-v0"

EASY = "#####\n#@$.#\n#####\n"
TALL = "###\n#@#\n# #\n#$#\n#.#\n###\n"
LOST = "#####\n#$@.#\n#   #\n#####\n"


def make(path, env_id=SOKOBAN, **kwargs):
    kwargs = {"split": "test", "text_format": "grid", **kwargs}
    return gym.make(env_id, levels=path, **kwargs).unwrapped


def boxoban(*levels):
    return "".join(f"; {number}\n{level}\n" for number, level in enumerate(levels))


@pytest.fixture
def folder(tmp_path):
    """Boxoban's folders: three splits, train with two files."""
    for split, files in (("train", 2), ("valid", 1), ("test", 1)):
        (tmp_path / split).mkdir()
        for number in range(files):
            levels = [EASY, TALL, LOST] * (3 if split == "train" else 1)
            (tmp_path / split / f"{number:03d}.txt").write_text(boxoban(*levels))
    (tmp_path / "README.md").write_text("no level")
    return tmp_path


def test_folders_are_splits(folder):
    assert list(make(folder, split="valid").tasks) == [f"valid/000/000{n}" for n in range(3)]
    train = make(folder, split="train")
    assert (len(train.tasks), train.tasks[9]) == (18, "train/001/0000")
    assert train.tasks.families() == {folder.name: 18}
    sample = make(folder, split="sample")
    assert list(sample.tasks) == list(train.tasks)[:12]
    assert sample.reset(options={"task_id": "train/000/0001"})[0].startswith("###\n#P#")


@pytest.mark.parametrize("kind", [str, lambda path: path], ids=["str", "Path"])
def test_levels_are_played(folder, kind):
    env = make(kind(folder))
    assert env.max_turns == 120
    assert env.reset(options={"task_id": "test/000/0000"})[0] == "#####\n#PXO#\n#####"
    _, reward, terminated, _, info = env.step("right")
    assert (reward, terminated, info["success"], info["family"]) == (
        pytest.approx(10.9),
        True,
        True,
        folder.name,
    )
    assert make(folder, max_turns=7).max_turns == 7


def test_a_level_that_cannot_be_solved_goes_on_to_the_limit(folder):
    env = make(folder, oracle=True, max_turns=3)
    _, info = env.reset(options={"task_id": "test/000/0002"})
    told = json.loads(info["oracle"])
    assert (told["optimal_remaining"], told["deadlocked"]) == (-1, True)
    assert told["best"] in info["admissible_actions"]
    ends = []
    for _ in range(3):
        _, _, *end, info = env.step(env.expert_actions()["best"])
        ends.append(end)
        assert info["progress"] == 0
    assert ends == [[False, False], [False, False], [False, True]]


def test_files_that_lie_in_no_folder_are_of_test(tmp_path):
    (tmp_path / "b.txt").write_text(boxoban(EASY))
    (tmp_path / "a.txt").write_text(boxoban(TALL, EASY))
    assert list(make(tmp_path).tasks) == ["test/a/0000", "test/a/0001", "test/b/0000"]
    assert list(make(tmp_path, split="sample").tasks) == list(make(tmp_path).tasks)
    for split in ("train", "valid"):
        with pytest.raises(DataMissing, match=rf"no level files for split '{split}'.*'{split}'"):
            make(tmp_path, split=split)


def test_a_single_file(tmp_path):
    file = tmp_path / "medium.txt"
    file.write_text(boxoban(EASY, TALL))
    env = make(file)
    assert list(env.tasks) == ["test/medium/0000", "test/medium/0001"]
    assert env.tasks.families() == {"medium": 2}
    assert env.reset(options={"task_id": "test/medium/0001"})[0].count("\n") == 5
    with pytest.raises(UnknownTask, match="did you mean test/medium/000"):
        env.reset(options={"task_id": "test/medium/0002"})


def test_a_home_folder(folder, monkeypatch):
    monkeypatch.setenv("HOME", str(folder.parent))
    assert len(make(f"~/{folder.name}").tasks) == 3


@pytest.mark.parametrize(
    ("text", "grid"),
    [
        (EASY.replace("\n", "\r\n"), "#####\n#PXO#\n#####"),
        (EASY.rstrip("\n"), "#####\n#PXO#\n#####"),
        ("\n\n; a title\n\n" + EASY + "\n\n", "#####\n#PXO#\n#####"),
        ("  ; 0\n" + EASY, "#####\n#PXO#\n#####"),
        ("#######\n#@-$_.#\n#######", "#######\n#P_X_O#\n#######"),
        ("####\n#+$#\n#  ####\n#####\n", "#######\n#SX####\n#__####\n#######"),
        ("  ###\n###@#\n#.$ #\n#####", "__###\n###P#\n#OX_#\n#####"),
        ("#######\n#@$*. #\n#######", "#######\n#PX√O_#\n#######"),
        ("#####   \n#@$.#\t\n#####", "#####\n#PXO#\n#####"),
    ],
    ids=[
        "crlf",
        "no-newline",
        "titles",
        "indented-title",
        "dashes",
        "ragged",
        "left",
        "star",
        "tail",
    ],
)
def test_ways_to_write_a_level(tmp_path, text, grid):
    file = tmp_path / "level.txt"
    file.write_bytes(text.encode())
    env = make(file)
    assert len(env.tasks) == 1
    assert env.reset(seed=0)[0] == grid


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("####\n#@$#\n####", "1 boxes for 0 targets"),
        ("#####\n#@ .#\n#####", "0 boxes for 1 targets"),
        ("####\n#@ #\n####", "0 boxes for 0 targets"),
        ("######\n#@$..#\n######", "1 boxes for 2 targets"),
        ("######\n#@$$.#\n######", "2 boxes for 1 targets"),
        ("#####\n# $.#\n#####", "one player, this one has 0"),
        ("######\n#@$.@#\n######", "one player, this one has 2"),
        ("######\n#@$.+#\n######", "one player, this one has 2"),
        ("####\n#@*#\n####", "solved already"),
        ("#####\n#@$.#\n##x##", "'##x##' is no row of a level"),
        ("#####\n#@$.#\n###√#", "is no row of a level"),
        ("#" * (MAX_SIDE + 1) + "\n#@$.#\n#####", "more than 60 cells a side"),
        ("#\n" * MAX_SIDE + "#@$.#", "more than 60 cells a side"),
    ],
)
def test_a_level_that_cannot_be_played_is_named(tmp_path, text, message):
    file = tmp_path / "levels.txt"
    file.write_text(boxoban(EASY, text), encoding="utf-8")
    env = make(file)
    assert env.reset(options={"task_id": "test/levels/0000"})
    where = re.escape(f"{file}, line 7: ")
    with pytest.raises(DataCorrupt, match=where + ".*" + message):
        env.reset(options={"task_id": "test/levels/0001"})
    with pytest.raises(ResetNeeded, match="before the first reset"):
        env.step("right")
    assert env.reset(options={"task_id": "test/levels/0000"})[0].startswith("#####")


@pytest.mark.parametrize("content", [b"", b"\n\n", b"; 0\n; 1\n"])
def test_a_file_without_a_level(tmp_path, content):
    file = tmp_path / "levels.txt"
    file.write_bytes(content)
    with pytest.raises(DataCorrupt, match=r"levels\.txt holds no level"):
        make(file).reset(seed=0)


def test_a_file_that_is_no_text(tmp_path):
    file = tmp_path / "levels.txt"
    file.write_bytes(bytes(range(256)))
    with pytest.raises(DataCorrupt, match=r"levels\.txt is no text file"):
        make(file).reset(seed=0)


def test_an_empty_folder(tmp_path):
    for split in ("train", "valid", "test", "sample"):
        with pytest.raises(DataMissing, match="no level files for split"):
            make(tmp_path, split=split)


def test_rooms_without_walls_around_them(tmp_path):
    (tmp_path / "open.txt").write_text("#----\n-@$-.\n-----\n")
    env = make(tmp_path)
    assert env.reset(seed=0)[0] == "#____\n_PX_O\n_____"
    env.step("right")
    assert env.step("right")[2]


def test_the_version_changes_with_the_files(tmp_path):
    (tmp_path / "a.txt").write_text(EASY)
    first = make(tmp_path)
    first.reset(seed=0)
    (tmp_path / "b.txt").write_text(TALL)
    second = make(tmp_path)
    assert first.data_version != second.data_version
    assert second.data_version == make(str(tmp_path)).data_version
    with pytest.raises(BadSnapshot):
        second.restore(first.snapshot())


def test_pictures_of_levels_have_the_size_of_the_first(tmp_path):
    (tmp_path / "levels.txt").write_text(boxoban(TALL, EASY))
    env = make(tmp_path, VISUAL)
    observation, _ = env.reset(options={"task_id": "test/levels/0000"})
    assert observation["image"].shape == (6 * 48, 3 * 48, 3)
    assert observation in env.observation_space
    with pytest.raises(BadOption, match="3 x 5 cells, but the pictures here have 6 x 3"):
        env.reset(options={"task_id": "test/levels/0001"})


def test_pictures_that_nobody_could_send_are_refused(tmp_path):
    side = 40
    rows = ["#" * side, "#@$." + "#" * (side - 4), *["#" * side] * (side - 2)]
    (tmp_path / "large.txt").write_text("\n".join(rows))
    assert make(tmp_path, VISUAL, cell_pixels=64).reset(seed=0)[0]["image"].shape[0] == side * 64
    with pytest.raises(BadOption, match="cell_pixels=256 .* at most 16777216 pixels"):
        make(tmp_path, VISUAL, cell_pixels=256)


# --- on a server ----------------------------------------------------------------------------------


def remote(app, **kwargs):
    transport = InProcessTransport({"http://server": app})
    return RemoteEnv(SOKOBAN, url="http://server", transport=transport, **kwargs)


def test_a_server_plays_its_own_levels(folder):
    env = remote(create_app(SOKOBAN, levels=str(folder), token=""), split="test")
    local = make(folder, text_format="legend")
    assert list(env.tasks) == list(local.tasks)
    assert env.reset(seed=3) == local.reset(seed=3)
    assert env.step("down") == local.step("down")
    env.close()


def test_clients_name_no_paths_of_the_server_and_see_none(folder):
    app = create_app(SOKOBAN, levels=str(folder), token="")
    for path in ("/etc", str(folder)):
        with pytest.raises(BadOption, match="'levels' is the server's to set"):
            remote(app, levels=path)
    with pytest.raises(BadOption, match="'levels' is the server's to set"):
        remote(create_app(SOKOBAN, token=""), levels="/etc")
    env = remote(app, split="test")
    _, info = env.reset(seed=0)
    told = repr(info) + env.snapshot().decode() + repr(np.asarray(list(env.tasks)))
    assert str(folder.parent) not in told
    env.close()


def test_a_file_that_changes_is_read_anew(tmp_path):
    file = tmp_path / "a.txt"
    file.write_text(EASY)
    first, _ = make(file).reset()
    file.write_text(TALL)
    os.utime(file, (1e9, 1e9))
    second, _ = make(file).reset()
    assert second.splitlines()[1:3] == ["#P#", "#_#"]
    assert first.splitlines()[1] == "#PXO#"


def test_an_argument_of_rooms_at_its_default_goes_with_levels(tmp_path):
    (tmp_path / "a.txt").write_text(EASY)
    env = make(tmp_path / "a.txt", size=6, compat_seed=False, walls=(0.2, 0.6))
    assert len(env.tasks) == 1
    with pytest.raises(BadOption, match="boxes cannot be combined with levels"):
        make(tmp_path / "a.txt", boxes=2)


def test_files_of_equal_size_are_told_apart(tmp_path):
    for name, level in (("a", EASY), ("b", EASY.replace("@$.", ".$@"))):
        (tmp_path / name / "test").mkdir(parents=True)
        (tmp_path / name / "test/000.txt").write_text(level)
    first, second = make(tmp_path / "a"), make(tmp_path / "b")
    first.reset(seed=0)
    assert first.data_version != second.data_version
    with pytest.raises(BadSnapshot):
        second.restore(first.snapshot())


def test_links_to_nowhere_are_no_levels(tmp_path):
    (tmp_path / "a.txt").write_text(EASY)
    (tmp_path / "b.txt").symlink_to(tmp_path / "nowhere")
    (tmp_path / "c.txt").mkdir()
    assert list(make(tmp_path).tasks) == ["test/a/0000"]
