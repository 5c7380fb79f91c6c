"""The code of docs/clients.md and examples/clients for other projects runs where these are."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sysconfig
import time
import tomllib
from pathlib import Path

import doc_blocks
import pytest
from chat_server import ChatServer
from ports import free_port, is_free

pytestmark = pytest.mark.adapters

BLOCKS = [block for block in doc_blocks.ALL if block.page == "docs/clients.md"]


def code(begins):
    """Return the block of the page that begins so."""
    (found,) = [block.text for block in BLOCKS if block.text.startswith(begins)]
    return found


@pytest.fixture
def peer(tmp_path):
    """Runs a program of the Python with the other projects in a folder of its own."""
    python = Path(os.environ["AGENTGYMS_ADAPTERS_PYTHON"])

    def start(*words, stdin=None, also="", at=tmp_path):
        path = os.pathsep.join(filter(None, [str(doc_blocks.ROOT), str(tmp_path), also]))
        return subprocess.Popen(
            [python.with_name(words[0]), *words[1:]],
            cwd=at,
            stdin=stdin,
            env={**os.environ, "PYTHONPATH": path, "MY_KEY": "none"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    start.folder = tmp_path
    return start


EXAMPLES = doc_blocks.ROOT / "examples/clients"


def told(process):
    """Return what a program printed, which must have ended well."""
    output, _ = process.communicate(timeout=300)
    assert process.returncode == 0, output
    return output


def test_openenv_plays_an_environment(peer):
    app = code("from agentgyms.adapters.openenv")
    (peer.folder / "my_app.py").write_text(app)
    port = str(free_port())
    (command,) = [line.partition("# ")[2] for line in app.splitlines() if "# uvicorn" in line]
    server = peer(*command.replace("8200", port).split())
    try:
        while is_free(int(port)):
            assert server.poll() is None, server.stdout.read()
            time.sleep(0.05)
        client = code("from openenv.core").replace("8200", port)
        assert told(peer("python", "-c", client)) == "0.0 False\n"
    finally:
        server.terminate()
        server.communicate()


def test_openenv_accepts_the_example(peer):
    folder = peer.folder / "openenv"
    shutil.copytree(doc_blocks.ROOT / "examples/openenv", folder)
    lines = code("cd examples/openenv").splitlines()
    (validate,) = [line for line in lines if line.startswith("openenv")]
    assert told(peer(*shlex.split(validate), at=folder)).endswith("Verdict: PASS\n")
    shown = "from server.app import app, main\nprint(sorted(r.path for r in app.routes))"
    assert "/metadata" in told(peer("python", "-c", shown, at=folder))


def test_verifiers_finds_the_taskset(peer):
    shown = code("import verifiers.v1") + "print(len(list(env.taskset)))\n"
    assert told(peer("python", "-c", shown)).splitlines()[-1] == "240"
    command = shlex.split(code("vf-eval").replace("\\\n", ""))
    assert "agentgyms-tasks" in told(peer(*command, "--dry-run", "true"))


def test_the_example_of_openenv_finds_this_package_and_has_a_program():
    folder = doc_blocks.ROOT / "examples/openenv"
    project = tomllib.loads((folder / "pyproject.toml").read_text())
    path = project["tool"]["uv"]["sources"]["agentgyms"]["path"]
    assert (folder / path).resolve() == doc_blocks.ROOT
    assert project["project"]["scripts"] == {"server": "server.app:main"}
    assert project["build-system"]  # without one uv installs no program


def test_skyrl_gets_a_dataset_and_plays_a_row(peer):
    said = told(peer("python", EXAMPLES / "skyrl_dataset.py"))
    assert said.startswith("Your task: ")
    assert said.endswith("{'return': 0.0, 'success': 0.0, 'turns': 3.0, 'score': 0.0}\n")
    read = "import pyarrow.parquet as p\nprint(p.read_table('train.parquet').num_rows)"
    assert told(peer("python", "-c", read)) == "512\n"


TEMPLATES = """
import importlib.util, json, pathlib, tokenizers, transformers
from trl.chat_template_utils import add_response_schema, supports_tool_calling

made = tokenizers.Tokenizer(tokenizers.models.BPE())
ends = {"bos_token": "<s>", "eos_token": "</s>"}
found = {}
folder = pathlib.Path(importlib.util.find_spec("trl").origin).parent / "chat_templates"
for file in folder.glob("*.jinja"):
    one = transformers.PreTrainedTokenizerFast(tokenizer_object=made, **ends)
    one.chat_template = file.read_text()
    shows = reads = supports_tool_calling(one)
    try:
        add_response_schema(one)
    except ValueError:
        reads = False
    found[file.stem] = [shows, reads]
print(json.dumps(found))
"""
SHOWN = {
    "Qwen 2.5": "qwen2_5",
    "Qwen 3": "qwen3(_instruct_2507)?",
    "Qwen3-VL": "qwen3_vl",
    "Qwen 3.5": "qwen3_5_(no)?think",
    "Qwen 3.6": "qwen3_6",
    "Qwen 3.8": "qwen3_8",
    "Llama 3.1": "llama3_1",
    "Llama 3.2": "llama3_2",
    "Gemma 4": r"gemma4(_v\d)?",
    "GLM-4-MoE": "glm4moe",
    "gpt-oss": "gptoss",
    "LFM2.5": "lfm2_(2_5(_v2|_vl)?|v2)",
    "Nemotron 3": "nemotron_3_.*",
}
NOT_SHOWN = {
    "Llama 3": "llama3",
    "Gemma 1 to 3": "gemma3?",
    "Phi-3": "phi3(_5)?",
    "Cohere": "cohere2?",
    "Qwen2.5-VL": "qwen2_5_vl",
    "SmolVLM": "smolvlm",
    "Idefics3": "idefics3",
    "LLaVA-NeXT": "llava_next",
    "DeepSeek-R1's distilled models": "deepseek_r1_distill",
}
"""Models that the page names, and TRL's names of their templates."""


def test_the_page_tells_which_templates_show_tools_to_trl(peer):
    page = " ".join((doc_blocks.ROOT / "docs/clients.md").read_text().split())
    shown, _, rest = page.partition("It does with the templates of ")[2].partition(", letter by")
    not_shown = rest.partition("No tools are shown by those of ")[2].partition(". TRL refuses")[0]
    assert re.split(", | and ", shown) == list(SHOWN)
    assert re.split(", | and ", not_shown) == list(NOT_SHOWN)
    found = json.loads(told(peer("python", "-c", TEMPLATES)).splitlines()[-1])
    kinds = {name: kind for name, kind in found.items() if not name.endswith("_training")}
    for patterns, kind in ((SHOWN, [True, True]), (NOT_SHOWN, [False, False])):
        for pattern in patterns.values():
            names = [name for name in kinds if re.fullmatch(pattern, name)]
            assert names, pattern
            assert [kinds[name] for name in names] == [kind] * len(names), names
    read = {name for name, (_, reads) in kinds.items() if reads}
    assert read <= {n for n in kinds if any(re.fullmatch(p, n) for p in SHOWN.values())}


def test_tinker_gets_a_dataset_and_plays_a_turn(peer):
    pytorch = sysconfig.get_path("purelib")
    said = told(peer("python", EXAMPLES / "tinker_dataset.py", also=pytorch))
    assert "100 batches; seeds of the second: [16, 17, " in said
    assert "user: Your task: " in said
    assert said.endswith("reward 0.0, over: False\n")


def test_an_agent_plays_by_mcp(peer):
    said = told(peer("python", EXAMPLES / "mcp_agent.py")).splitlines()
    assert said[0] == "tools: reset, walk, take_key, open_door, end_episode"
    assert said[-1] == "The episode is over: success"


def test_inspect_evaluates_and_shows_its_log(peer):
    """With a model that never answers: each sample is an error, and none is scored."""
    (info,) = Path(sysconfig.get_path("purelib")).glob("agentgyms-*.dist-info")
    (peer.folder / info.name).symlink_to(info)  # inspect_ai finds the task by it
    command, view = map(shlex.split, code("inspect eval").splitlines())
    command[command.index("openai/gpt-5")] = "none"
    command[command.index("20")] = "2"
    said = told(peer(*command, "--display", "plain", "--no-fail-on-error"))
    assert "2 of 2 executed samples" in said
    told(peer(*view, "bundle", "--log-dir", "logs", "--output-dir", "site"))
    listed = json.loads((peer.folder / "site/logs/listing.json").read_text())
    assert [log["task"] for log in listed.values()] == ["agentgyms/episodes"]


def test_inspect_asks_a_server_of_ones_own(peer, monkeypatch):
    (info,) = Path(sysconfig.get_path("purelib")).glob("agentgyms-*.dist-info")
    (peer.folder / info.name).symlink_to(info)
    export, line = code("export LOCAL_API_KEY").splitlines()
    monkeypatch.setenv(*export.removeprefix("export ").split("="))
    usage = {"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13}
    answer = {"content": "<action>right</action>", "usage": usage}
    with ChatServer(lambda _: answer, model="qwen") as model:
        command = shlex.split(line.replace("http://127.0.0.1:8000/v1", model.url))
        command[command.index("env_id=ALFWorld")] = "env_id=Corridor"
        few = ("-T", "native=false", "--limit", "1", "--display", "plain")
        asking = peer(*command, *few)
        said, _ = asking.communicate(timeout=300)
        if "requires at least version 3.4" in said:
            pytest.skip("another project of these takes no openai that inspect_ai would")
        assert asking.returncode == 0, said
        assert {asked.body["model"] for asked in model.requests} == {"qwen"}


def test_an_agent_that_speaks_mcp_finds_its_tools(peer):
    (entry,) = json.loads(code('{"mcpServers"'))["mcpServers"].values()
    (command,) = [b.text for b in BLOCKS if b.text.startswith("agentgyms mcp")]
    for words in (entry["args"], shlex.split(command)[1:]):
        assert words[:2] == ["mcp", "ALFWorld"]
    script = doc_blocks.ROOT / "tests/env_servers/mcp_peer.py"
    asked = [{"command": entry["args"][1:], "folder": str(peer.folder), "calls": [["reset", {}]]}]
    given = peer.folder / "asked.json"
    given.write_text(json.dumps(asked))
    with given.open() as file:
        (got,) = json.loads(told(peer("python", str(script), stdin=file)))
    assert {"reset", "end_episode", "take"} <= {tool["name"] for tool in got["tools"]}
    assert not got["results"][0]["error"]
