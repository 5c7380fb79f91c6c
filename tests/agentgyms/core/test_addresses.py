"""Addresses of servers and proxies: one form, and a reason for what is none."""

import asyncio
import shutil
import socket
import ssl
import subprocess
import threading
from contextlib import contextmanager, suppress

import gymnasium as gym
import pytest

from agentgyms.core.errors import BadOption, ServerUnavailable
from agentgyms.core.http_clients import check_proxies, parse_address
from agentgyms.data.download import download
from agentgyms.envs.searchqa.http_retriever import HttpRetriever
from agentgyms.models.client import ChatClient
from agentgyms.models.endpoint import base_url
from agentgyms.models.json_client import JsonPoster, exchange
from agentgyms.models.types import Service
from env_servers import Server, create_app
from harness.inference.completers.vllm_server import VLLMServer
from harness.types.errors import ConfigError

CORRIDOR = "agentgyms/Corridor-v0"
WRONG = {
    "": "begins with none of http://, https://",
    "host:80": "begins with none",
    "ftp://host": "begins with none",
    "http:/host": "begins with none",
    "http://": "names no host",
    "http://:80": "names no host",
    "http://ho st": "a blank or a control character",
    "http://host/\x1b[2J": "a blank or a control character",
    "http://host:port": "no port",
    "http://host:0": "its port is 0",
    "http://host:65536": "no port",
    "http://[::1": "no host",
    f"http://{'x' * 64}.de": "no name of a host",
    "http://host/#part": "a fragment",
    "http://host/?a=secret": "a query",
}


@pytest.mark.parametrize("text", WRONG)
def test_what_is_no_address_is_named(text):
    with pytest.raises(ValueError, match=WRONG[text]) as refused:
        parse_address(text)
    assert "secret" not in str(refused.value)


def test_forms_of_one_address():
    for text in ("http://host:1", " HTTP://host:1/ ", "\thttp://host:1//\n"):
        assert parse_address(text).geturl() == "http://host:1"
    assert parse_address("https://[::1]:8/a/").geturl() == "https://[::1]:8/a"
    assert parse_address("HTTP://host/a?b=C", with_query=True).geturl() == "http://host/a?b=C"
    for text in (None, 3, b"http://host"):
        with pytest.raises(ValueError, match="begins with none"):
            parse_address(text)


READERS = {
    "environments": lambda text: gym.make(CORRIDOR, url=text),
    "a retriever": HttpRetriever,
    "models": base_url,
    "data": lambda text: download(text, target=None),
    "vLLM": VLLMServer,
}


@pytest.mark.parametrize("text", [text for text in WRONG if "?" not in text and text])
@pytest.mark.parametrize("reader", READERS)
def test_every_reader_of_addresses_refuses_the_same(reader, text):
    with pytest.raises((BadOption, ConfigError), match=r"address"):
        READERS[reader](text)


def test_every_reader_takes_the_same_forms(tmp_path):
    with Server(create_app(CORRIDOR), "127.0.0.1", 0) as server:
        odd = f"  {server.url.replace('http', 'HTTP')}/ "
        with gym.make(CORRIDOR, url=odd) as env:
            env.reset(seed=1)
        assert exchange("GET", base_url(odd), timeout_s=10)[0] == 404
        assert download(odd, tmp_path / "data", progress=False).is_file()
    assert base_url(odd) == f"{server.url}/v1"
    assert VLLMServer(odd).url == server.url


def environments(url):
    gym.make(CORRIDOR, url=url, patience={"connect_s": 0.5})


def models(url):
    async def check():
        client = ChatClient("any", url, service=Service(timeout_s=0.5))
        try:
            await client.check()
        finally:
            await client.close()

    asyncio.run(check())


def scores(url):
    async def post():
        poster = JsonPoster(url, {}, 0.5)
        try:
            await poster.post("/score", {}, 1000)
        finally:
            await poster.close()

    asyncio.run(post())


CLIENTS = {
    "environments": environments,
    "models": models,
    "scores": scores,
    "one request": lambda url: exchange("GET", url, timeout_s=0.5, connect_s=0.5),
}


@contextmanager
def serving(answer):
    """A server that gives each connection to `answer`; yields host and port."""

    def serve():
        while True:
            try:
                peer, _ = listening.accept()
            except OSError:
                return
            with peer, suppress(OSError):
                answer(peer)

    with socket.create_server(("localhost", 0)) as listening:
        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"localhost:{listening.getsockname()[1]}"
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            thread.join()


def slow_in_tls(peer):
    """Answer HTTP, and wait for the rest of anything else, as many servers do."""
    peer.settimeout(20)
    received = b""
    while b"\r\n\r\n" not in received:
        part = peer.recv(4096)
        if not part:
            return
        received += part
    peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")


@pytest.mark.parametrize("client", CLIENTS)
def test_https_to_a_server_without_tls_says_so(client):
    said = r"it speaks HTTP without TLS.* write http://, not https://$"
    with (
        Server(create_app(CORRIDOR), "127.0.0.1", 0) as server,
        pytest.raises((ServerUnavailable, BadOption), match=said),
    ):
        CLIENTS[client](server.url.replace("http", "https"))
    with serving(slow_in_tls) as place, pytest.raises((ServerUnavailable, BadOption), match=said):
        CLIENTS[client](f"https://{place}")


@pytest.mark.skipif(not shutil.which("openssl"), reason="openssl makes the certificate")
@pytest.mark.parametrize("client", CLIENTS)
def test_http_to_a_server_with_tls_says_so(client, tmp_path):
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    made = ("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256")
    files = ("-nodes", "-subj", "/CN=localhost", "-keyout", key, "-out", certificate)
    subprocess.run([*made, *files], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)

    def answer(peer):
        with context.wrap_socket(peer, server_side=True) as secured:
            secured.recv(4096)

    said = r"it speaks TLS.* write https://, not http://$"
    with serving(answer) as place, pytest.raises((ServerUnavailable, BadOption), match=said):
        CLIENTS[client](f"http://{place}")


PROXIES = {
    "ftp://proxy:1": "no address of a proxy",
    "http://": "no address of a proxy",
    "http://proxy:port": "no address of a proxy",
    "proxy:65536": "no address of a proxy",
    "http://me:sesame@proxy:1#x": "no address of a proxy",
    "socks5://proxy:1": "SOCKS",
}


@pytest.mark.parametrize("variable", ["ALL_PROXY", "all_proxy", "HTTP_PROXY", "https_proxy"])
@pytest.mark.parametrize("value", PROXIES)
def test_a_wrong_proxy_is_one_line_that_names_its_variable(variable, value, monkeypatch, tmp_path):
    monkeypatch.setenv(variable, value)
    for ask in (
        lambda: exchange("GET", "http://192.0.2.1/", timeout_s=0.1, connect_s=0.1),
        lambda: download("http://192.0.2.1/file", tmp_path / "file", progress=False),
    ):
        with pytest.raises(BadOption, match=f"variable {variable} .*{PROXIES[value]}") as refused:
            ask()
        assert "sesame" not in str(refused.value)
        assert "\n" not in str(refused.value)


def test_proxies_do_not_count_for_servers_on_this_machine(monkeypatch):
    monkeypatch.setenv("ALL_PROXY", "ftp://proxy")
    with Server(create_app(CORRIDOR), "127.0.0.1", 0) as server:
        assert exchange("GET", f"{server.url}/healthz", timeout_s=10)[0] in (200, 404)
    monkeypatch.setenv("ALL_PROXY", "proxy.example:3128")
    check_proxies()
