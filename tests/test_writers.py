"""Every place that writes a file has a row here: what becomes of the file in an interruption."""

import ast
from pathlib import Path

ROOT = Path(__file__).parents[1]

HELPER = "agentgyms/data/writing.py"
"""The one module that replaces files and appends to them."""

NEW = "in a new folder that gets its name when it is whole"
RENAMED = "beside the file, which it replaces when it is whole"
RESUMED = "a download, which goes on behind what is there and is checked by its digest"
SCRATCH = "in a folder of this process alone, which no later one reads"
HELPED = "written into a file that the helper opened"
MENDED = "its end is cut off in one step"
REMADE = "an export that the same command writes again, from nothing but its arguments"
DATABASE = "an SQLite file, which has a journal"
NO_CONTENT = "a lock or a device: its content is not kept"
READ = "read only"

LOG = "the log of an error, new each time: a cut one is still read"

WRITERS = {
    "agentgyms/cli/last_resort.py": LOG,
    "agentgyms/cli/streams.py": NO_CONTENT,
    "agentgyms/data/archives.py": NEW,
    "agentgyms/data/datasets.py": NEW,
    "agentgyms/data/download.py": RESUMED,
    "agentgyms/data/manifests.py": NEW,
    "agentgyms/envs/alfworld/generated/writer.py": REMADE,
    "agentgyms/envs/appworld/engine/data_roots.py": RENAMED,
    "agentgyms/envs/appworld/sandbox/child/confinement.py": NO_CONTENT,
    "agentgyms/envs/appworld/sandbox/child/generated/root.py": NEW,
    "agentgyms/envs/appworld/sandbox/child/records.py": READ,
    "agentgyms/envs/sotopia/official/files.py": NEW,
    "agentgyms/envs/webshop/build/build.py": NEW,
    "agentgyms/envs/webshop/build/official_files.py": NEW,
    "agentgyms/envs/webshop/goals/goal_arrays.py": NEW,
    "agentgyms/envs/webshop/goals/goal_list.py": NEW,
    "agentgyms/envs/webshop/storage/array_files.py": RENAMED,
    "agentgyms/models/answer_store.py": DATABASE,
    "env_servers/appworld_engine.py": NEW,
    "harness/audit/truth_sets.py": HELPED,
    "harness/distributed/process_group.py": NO_CONTENT,
    "harness/evaluation/episode_store.py": MENDED,
    "harness/inference/vllm_generators.py": SCRATCH,
    "harness/inference/weight_sync.py": SCRATCH,
    "harness/model/adapters.py": NEW,
    "harness/model/chat_templates/child.py": NO_CONTENT,
    "harness/model/policy.py": NEW,
    "harness/model/weights/converted/cache.py": NEW,
    "harness/model/weights/converted/gguf_file.py": NEW,
    "harness/model/weights/converted/names.py": NEW,
    "harness/model/weights/stored_weights.py": NEW,
    "harness/reporting/figure.py": HELPED,
    "harness/runs/folder_lock.py": NO_CONTENT,
    "harness/runs/training_state.py": NEW,
    "harness/training/model_export.py": NEW,
    "harness/training/saving.py": NEW,
    "harness/training/sft_state.py": NEW,
}

_METHODS = {
    *("write_text", "write_bytes", "save", "savez", "savez_compressed", "save_file", "savefig"),
    *("copyfile", "copytree", "copy2", "save_pretrained", "FileHandler", "RotatingFileHandler"),
}
_FLAGS = {"O_WRONLY", "O_RDWR", "O_CREAT", "O_APPEND"}


def mode_of(call, method):
    """Return the mode of an `open`, "r" where none is given."""
    place = 0 if method else 1
    given = [*call.args[place : place + 1], *(k.value for k in call.keywords if k.arg == "mode")]
    modes = [
        node.value
        for one in given
        for node in ast.walk(one)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    return "".join(modes) or "r"


def writes(tree):
    """Yield the names of calls that write a file."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        method = isinstance(node.func, ast.Attribute)
        name = node.func.attr if method else getattr(node.func, "id", "")
        owner = getattr(getattr(node.func, "value", None), "id", "")
        if owner == "os" and name == "open":
            if _FLAGS & {getattr(one, "attr", "") for one in ast.walk(node)}:
                yield "os.open"
        elif owner == "sqlite3" and name == "connect":
            yield "sqlite3.connect"
        elif name == "open" and set(mode_of(node, method)) <= set("rwaxbt+"):
            if set("wax+") & set(mode_of(node, method)):
                yield "open"
        elif name in _METHODS and not (name == "save" and owner not in ("np", "torch")):
            yield name


def test_the_search_finds_every_way_of_writing():
    code = """
open(path, "w"); path.open("ab"); path.open(mode="r+b"); path.open("ab" if have else "wb")
os.open(path, os.O_RDWR | os.O_CREAT); path.write_text(text); np.save(path, array)
sqlite3.connect(path)
"""
    assert len(list(writes(ast.parse(code)))) == 8
    assert not list(writes(ast.parse('path.open("rb"); open(path); os.open(path, os.O_RDONLY)')))


def test_every_writer_has_a_row():
    """A new one is written with the helper, or says here what an interruption leaves."""
    found = {
        str(path.relative_to(ROOT))
        for package in ("agentgyms", "env_servers", "harness")
        for path in (ROOT / package).rglob("*.py")
        if list(writes(ast.parse(path.read_text())))
    }
    assert found - {HELPER, *WRITERS} == set(), f"write it with {HELPER}, or give it a row"
    assert set(WRITERS) - found == set(), "these write nothing any more"
