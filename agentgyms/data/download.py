"""Downloads that survive cut connections and never leave a wrong file behind."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Final

import httpx2

from agentgyms.core.errors import BadOption, DataCorrupt, DataMissing
from agentgyms.core.http_clients import authorities, check_proxies, parse_address
from agentgyms.data.manifests import digest_file
from agentgyms.data.progress_bar import ProgressBar

_TIMEOUT_S: Final = 30
_PAUSE_S: Final = 1.0
_RETRIED: Final = frozenset({408, 425, 429, 500, 502, 503, 504})


def download(
    url: str,
    target: Path,
    *,
    size: int | None = None,
    sha256: str | None = None,
    attempts: int = 5,
    pause_s: float = _PAUSE_S,
    progress: bool = True,
) -> Path:
    """Bring the file at `url` to `target`, which appears only when it is whole.

    A target that has the checksum is returned at once. The part received is kept in
    `<target>.part`; a later call, or the next attempt after a cut connection, requests the rest
    only. The pause of `pause_s` before the second attempt is doubled before each further one.
    `HTTP_PROXY`, `HTTPS_PROXY` and `NO_PROXY` are obeyed.

    Raises `BadOption` if `url` is no http or https address, `DataMissing` if the server does not
    give the file. Raises `DataCorrupt`, and keeps nothing, if the file has another size in bytes or
    another checksum.
    """
    url = _checked(url)
    if target.exists() and sha256 is not None and digest_file(target) == sha256:
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(f"{target.name}.part")
    for attempt in range(1, attempts + 1):
        try:
            _receive(url, part, progress=progress)
            break
        except (httpx2.HTTPError, _Cut) as e:
            if attempt == attempts:
                kept = part.stat().st_size if part.exists() else 0
                later = f"; {kept} bytes are kept, run the same command to go on" if kept else ""
                raise DataMissing(f"{url} cannot be downloaded: {e}{later}") from e
            time.sleep(pause_s * 2 ** (attempt - 1))
    _check(url, part, size, sha256)
    part.replace(target)
    return target


def _checked(url: str) -> str:
    try:
        address = str(httpx2.URL(parse_address(url, with_query=True).geturl()))
    except (ValueError, httpx2.InvalidURL) as e:
        raise BadOption(
            f"{url!r} cannot be downloaded: expected an http or https address ({e})"
        ) from None
    check_proxies()
    return address


class _Cut(Exception):
    """The connection ended early or the server asks to come again."""


def _receive(url: str, part: Path, *, progress: bool) -> None:
    """Append what is missing of the file to `part`, or write it anew if the server must."""
    have = part.stat().st_size if part.exists() else 0
    # uncompressed: a range of a compressed reply would not continue the file
    headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={have}-"} if have else {})
    with (
        httpx2.Client(follow_redirects=True, timeout=_TIMEOUT_S, verify=authorities()) as client,
        client.stream("GET", url, headers=headers) as response,
    ):
        # 416: the range begins at the end of the file, or beyond it
        if response.status_code == 416 and have:
            # The size of the whole file, as an answer 416 tells it.
            _, _, total = response.headers.get("Content-Range", "").partition("/")
            if (int(total) if total.isdigit() else None) == have:
                return
            part.unlink()
            raise _Cut("the partial file does not belong to this download")
        if response.status_code in _RETRIED:
            raise _Cut(f"the server answered {response.status_code}")
        if response.status_code not in (200, 206):
            part.unlink(missing_ok=True)
            raise DataMissing(
                f"{url} cannot be downloaded: the server answered {response.status_code} "
                f"{response.reason_phrase}"
            )
        # 200: the server ignores ranges and sends the whole file
        resumed = response.status_code == 206
        _write(response, part, have if resumed else 0, progress=progress)


def _write(response: httpx2.Response, part: Path, have: int, *, progress: bool) -> None:
    length = response.headers.get("Content-Length")
    total = have + int(length) if length else None
    with (
        part.open("ab" if have else "wb") as file,
        ProgressBar(
            total=total,
            initial=have,
            unit="B",
            unit_scale=True,
            desc=part.stem,
            disable=not progress,
        ) as bar,
    ):
        for chunk in response.iter_bytes():
            file.write(chunk)
            bar.update(len(chunk))
    if total is not None and part.stat().st_size < total:
        raise _Cut(f"{part.stat().st_size} of {total} bytes arrived")


def _check(url: str, part: Path, size: int | None, sha256: str | None) -> None:
    found = part.stat().st_size
    if size is not None and found != size:
        part.unlink()
        raise DataCorrupt(f"{url} gave {found} bytes, expected {size}")
    digest = digest_file(part) if sha256 is not None else None
    if digest != sha256:
        part.unlink()
        raise DataCorrupt(f"{url} gave a file with sha256 {digest}, expected {sha256}")
