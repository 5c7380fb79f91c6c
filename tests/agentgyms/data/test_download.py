"""Downloads over a real socket: resumed, refused, cut, wrong."""

from hashlib import sha256

import pytest
from file_server import CONTENT, serve

from agentgyms.core.errors import BadOption, DataCorrupt, DataMissing
from agentgyms.data.download import download


@pytest.fixture
def server():
    with serve() as handler:
        yield handler


def get(server, target, **kwargs):
    return download(f"{server.url}/file.bin", target, pause_s=0.01, progress=False, **kwargs)


def test_a_file_arrives_whole(server, tmp_path):
    target = get(server, tmp_path / "new" / "file", size=len(CONTENT), sha256=digest(CONTENT))
    assert target.read_bytes() == CONTENT
    assert [path.name for path in target.parent.iterdir()] == ["file"]


def digest(content: bytes) -> str:
    return sha256(content).hexdigest()


def test_a_cut_download_goes_on_where_it_stopped(server, tmp_path):
    server.cut, server.cuts = 262_144, 2
    assert get(server, tmp_path / "file").read_bytes() == CONTENT
    assert server.requests == [None, "bytes=262144-", "bytes=524288-"]


def test_a_later_call_goes_on_too(server, tmp_path):
    server.cut, server.cuts = 262_144, 1
    with pytest.raises(DataMissing, match="262144 bytes are kept, run the same command to go on"):
        get(server, tmp_path / "file", attempts=1)
    assert [path.name for path in tmp_path.iterdir()] == ["file.part"]
    assert get(server, tmp_path / "file", sha256=digest(CONTENT)).read_bytes() == CONTENT
    assert server.requests[1] == "bytes=262144-"


def test_a_server_that_cannot_resume_sends_everything_again(server, tmp_path):
    server.cut, server.cuts, server.ranges = 262_144, 1, False
    assert get(server, tmp_path / "file").read_bytes() == CONTENT


def test_a_partial_file_that_is_already_whole_is_taken(server, tmp_path):
    (tmp_path / "file.part").write_bytes(CONTENT)
    assert get(server, tmp_path / "file", sha256=digest(CONTENT)).read_bytes() == CONTENT
    assert len(server.requests) == 1


def test_a_partial_file_that_is_too_long_is_dropped(server, tmp_path):
    (tmp_path / "file.part").write_bytes(CONTENT + b"more")
    assert get(server, tmp_path / "file").read_bytes() == CONTENT


def test_a_file_that_is_there_is_not_asked_for(server, tmp_path):
    (tmp_path / "file").write_bytes(CONTENT)
    get(server, tmp_path / "file", sha256=digest(CONTENT))
    assert server.requests == []


@pytest.mark.parametrize("wrong", [{"sha256": "0" * 64}, {"size": 5}])
def test_a_wrong_file_leaves_nothing_behind(server, tmp_path, wrong):
    with pytest.raises(DataCorrupt, match="expected"):
        get(server, tmp_path / "file", **wrong)
    assert list(tmp_path.iterdir()) == []


def test_a_missing_file_leaves_nothing_behind(server, tmp_path):
    with pytest.raises(DataMissing, match="the server answered 404"):
        download(f"{server.url}/other", tmp_path / "file", progress=False)
    assert list(tmp_path.iterdir()) == []


def test_a_busy_server_is_asked_again_and_then_given_up(server, tmp_path):
    server.status = 503
    with pytest.raises(DataMissing, match="503"):
        get(server, tmp_path / "file", attempts=3)
    assert len(server.requests) == 3


def test_no_server_at_all(tmp_path):
    with pytest.raises(DataMissing, match="cannot be downloaded"):
        download("http://127.0.0.1:9/x", tmp_path / "x", attempts=2, pause_s=0, progress=False)


@pytest.mark.parametrize(
    "url", ["foo", "", "file:///etc/passwd", "http://", "http://[", "ftp://x/y"]
)
def test_what_is_no_address_is_refused_at_once(tmp_path, url):
    with pytest.raises(BadOption, match="cannot be downloaded"):
        download(url, tmp_path / "file", pause_s=60, progress=False)
    assert list(tmp_path.iterdir()) == []


def test_a_server_that_sends_its_clients_in_circles(tmp_path, server):
    server.redirect = True
    with pytest.raises(DataMissing, match="redirects"):
        get(server, tmp_path / "file", attempts=1)
