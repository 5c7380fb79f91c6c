"""`python -m env_servers.retriever`: what it serves, to how many, what it writes and refuses."""

import json
import os
import resource
import signal
import subprocess
import sys
from http.client import HTTPConnection

import pytest
from click.testing import CliRunner

from agentgyms.envs.searchqa.corpus import Document, load_corpus
from agentgyms.envs.searchqa.http_retriever import TOKEN_VARIABLE, HttpRetriever
from agentgyms.envs.searchqa.sources import closed_world_retriever, corpus_retriever
from agentgyms.envs.searchqa.world import closed_world
from env_servers.retriever.__main__ import main


@pytest.fixture(autouse=True)
def _no_ambient_token(monkeypatch):
    monkeypatch.delenv(TOKEN_VARIABLE, raising=False)


def start(*arguments, **variables):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("AGENTGYMS_")}
    return subprocess.Popen(
        [sys.executable, "-m", "env_servers.retriever", "--port", "0", *arguments],
        env=environment | {"PYTHONPATH": os.pathsep.join(sys.path)} | variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_the_program_serves_a_corpus_and_sigterm_ends_it(tmp_path, monkeypatch):
    corpus = tmp_path / "corpus.jsonl"
    corpus.write_text('{"id": "a", "contents": "\\"Heron\\"\\na bird"}\n')
    process = start("--corpus", str(corpus), **{TOKEN_VARIABLE: "tok"})
    try:
        said = process.stdout.readline()
        assert said.startswith("1 documents at http://127.0.0.1:")
        monkeypatch.setenv(TOKEN_VARIABLE, "tok")
        (hit,) = HttpRetriever(said.split()[-1]).search("bird", 3)
        assert hit.document == Document("a", '"Heron"\na bird')
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.communicate()


@pytest.mark.slow
def test_two_thousand_clients_stay_connected():
    """As in training: each keeps its connection and thinks; the shell's limit is raised for it."""
    files = resource.getrlimit(resource.RLIMIT_NOFILE)
    if files[1] < 9000:
        pytest.skip(f"this machine allows {files[1]} open files: two ends of 2,000 need more")
    resource.setrlimit(resource.RLIMIT_NOFILE, (1024, files[1]))
    try:
        process = start()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(files[0], 4096), files[1]))
    clients = []
    try:
        address = process.stdout.readline().split()[-1].removesuffix("/retrieve")
        host, port = address.removeprefix("http://").split(":")
        clients += [HTTPConnection(host, int(port), timeout=20) for _ in range(2000)]
        assert answered(clients)
        sockets = [client.sock for client in clients]
        assert answered(clients)
        assert [client.sock for client in clients] == sockets, "a connection was not kept"
    finally:
        for client in clients:
            client.close()
        process.terminate()
        process.communicate(timeout=20)
        resource.setrlimit(resource.RLIMIT_NOFILE, files)


def answered(clients):
    """Return whether a search of each of the clients, all at once, is answered."""
    for client in clients:
        client.request("POST", "/retrieve", '{"query": "the river", "topk": 1}')
    replies = [client.getresponse() for client in clients]
    return all(len(json.loads(reply.read())["result"][0]) == 1 for reply in replies)


def test_the_corpus_is_written_to_a_file_that_can_be_served(tmp_path):
    file = tmp_path / "world.jsonl"
    result = CliRunner().invoke(main, ["--export", str(file)])
    assert (result.exit_code, result.output) == (0, f"3640 documents in {file}\n")
    assert load_corpus(file) == list(closed_world().documents)
    again = tmp_path / "again.jsonl"
    assert CliRunner().invoke(main, ["--corpus", str(file), "--export", str(again)]).exit_code == 0
    assert again.read_bytes() == file.read_bytes()
    assert corpus_retriever(again).search("the river", 3) == closed_world_retriever().search(
        "the river", 3
    )


@pytest.mark.parametrize(
    ("arguments", "status", "says"),
    [
        (["--export", "/no/such/folder/x"], 1, "cannot write /no/such/folder/x: No such file"),
        (["--corpus", "/no/such.jsonl", "--export", "x"], 2, "no file"),
    ],
)
def test_an_export_that_fails_says_why(arguments, status, says):
    result = CliRunner().invoke(main, arguments)
    assert (result.exit_code, type(result.exception)) == (status, SystemExit)
    assert says in result.output


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--host", "0.0.0.0"], "--insecure"),
        (["--host", "0.0.0.0", "--token", " "], "--insecure"),
        (["--corpus", "/no/such.jsonl"], "no file"),
        (["--token", "a\nb"], "cannot be sent"),
    ],
)
def test_the_program_refuses_to_start(arguments, says):
    result = CliRunner().invoke(main, ["--port", "0", *arguments])
    assert (result.exit_code, type(result.exception)) == (2, SystemExit)
    assert says in result.output
