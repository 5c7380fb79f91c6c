"""Truth sets: they come back as they were, and damaged ones are refused."""

import json
import tracemalloc
import zipfile

import numpy as np
import pytest
from test_truth import measured

from harness.audit import truth_sets
from harness.audit.truth import TruthOptions
from harness.audit.truth_sets import TruthSet
from harness.types.errors import ConfigError


@pytest.fixture(scope="module", params=["success", "environment"])
def kept(request, tmp_path_factory):
    options = TruthOptions(4, reward=request.param, gamma=0.9)
    truth, rollouts = measured(tasks=2, max_turns=6, options=options)
    tasks = tuple(dict.fromkeys(rollout.task_id for rollout in rollouts))
    about = {"env": "agentgyms/Corridor-v0", "policy": "expert, noise 0.6 \udc80"}
    path = tmp_path_factory.mktemp("sets") / "new" / "corridor.npz"
    truth_sets.write(path, TruthSet(truth, tasks, about))
    return TruthSet(truth, tasks, about), path


def test_it_comes_back_as_it_was(kept):
    written, path = kept
    found = truth_sets.read(path)
    assert (found.truth.taken == written.truth.taken).all()
    assert (found.truth.equal == written.truth.equal).all()
    assert found.truth.returns == pytest.approx(written.truth.returns)
    assert (found.truth.options, found.truth.cost) == (written.truth.options, written.truth.cost)
    assert (found.tasks, found.about) == (written.tasks, written.about)
    for name in ("rollout", "group", "reward", "success", "valid", "state_key", "text"):
        assert (getattr(found.truth.turns, name) == getattr(written.truth.turns, name)).all()


def test_equal_sets_give_equal_bytes(kept, tmp_path):
    written, path = kept
    truth_sets.write(tmp_path / "again.npz", written)
    assert (tmp_path / "again.npz").read_bytes() == path.read_bytes()


@pytest.mark.parametrize("change", ["returns", "head", "words", "missing", "pickle", "short"])
def test_damaged_files_are_refused_in_one_line(kept, tmp_path, change):
    with np.load(kept[1]) as file:
        arrays = dict(file)
    if change == "returns":
        arrays["returns"] = arrays["returns"] + 1
    elif change == "head":
        head = json.loads(arrays["head"].tobytes())
        head["options"]["continuations"] = 8
        arrays["head"] = np.frombuffer(json.dumps(head).encode(), np.uint8)
    elif change == "words":
        arrays["text"] = arrays["text"] + 10_000
    elif change == "missing":
        del arrays["turn"]
    elif change == "pickle":
        arrays["reward"] = np.array([{"a": 1}], dtype=object)
    path = tmp_path / "damaged.npz"
    np.savez(path, **arrays)
    if change == "short":
        path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(ConfigError, match="damaged") as caught:
        truth_sets.read(path)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("content", [b"", b"PK", b"{}", None])
def test_other_files_are_refused(tmp_path, content):
    path = tmp_path / "other.npz"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigError, match="other.npz"):
        truth_sets.read(path)


def npy(shape, kind="|u1", content=b"x"):
    header = f"{{'descr': {kind!r}, 'fortran_order': False, 'shape': {shape}}}".encode()
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + content


def packed(**arrays):
    def write(path):
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
            for name, content in arrays.items():
                file.writestr(f"{name}.npy", content)

    return write


def json_array(text):
    return npy(f"({len(text)},)", content=text.encode())


ZEROS = npy(f"({40 << 20},)", content=bytes(40 << 20))
HOSTILE = {
    "deep head": packed(head=json_array("[" * 100_000 + "]" * 100_000)),
    "deep header": packed(head=npy("(" * 4000 + ")" * 4000)),
    "header that is no Python": packed(head=npy("(1,")),
    "huge shape": packed(head=npy(f"({1 << 62},)")),
    "many dimensions": packed(head=npy(f"({'1 << 40,' * 70})")),
    "overflowing shape": packed(head=npy(f"({1 << 40}, {1 << 40})", "<f8")),
    "negative shape": packed(head=npy("(-1,)", content=b"")),
    "nothing of a huge type": packed(head=npy("(0,)", "|V999999999", content=b"")),
    "many of an empty type": packed(head=npy(f"({1 << 40},)", "|V0", content=b"")),
    "texts": packed(head=npy("(1,)", "<U1", content=b"xxxx")),
    "twelve large arrays": packed(**{f"array{i}": ZEROS for i in range(12)}),
    "many arrays": packed(**{f"array{i}": npy("(1,)") for i in range(200)}),
    "a head that is a number": packed(head=json_array("7")),
    "nothing": packed(),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_strangers_files_take_neither_memory_nor_a_traceback(tmp_path, what):
    HOSTILE[what](tmp_path / "set.npz")
    tracemalloc.start()
    try:
        with pytest.raises(ConfigError, match="set.npz is no truth set, or damaged"):
            truth_sets.read(tmp_path / "set.npz")
        assert tracemalloc.get_traced_memory()[1] < 1 << 26
    finally:
        tracemalloc.stop()


def test_other_compressions_and_passwords_are_refused(tmp_path):
    packed(head=json_array("{}"))(tmp_path / "set.npz")
    content = bytearray((tmp_path / "set.npz").read_bytes())
    place = content.index(b"PK\x01\x02")
    for offset, value in ((8, 1), (10, 99)):  # the flag of a password; a method that nobody knows
        changed = content.copy()
        changed[place + offset] = value
        (tmp_path / "set.npz").write_bytes(changed)
        with pytest.raises(ConfigError, match="damaged"):
            truth_sets.read(tmp_path / "set.npz")
