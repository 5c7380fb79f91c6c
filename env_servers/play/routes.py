"""The routes of the page. A person types the token once; a cookie keeps the proof of it."""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import Final, NamedTuple

from flask import Blueprint, Request, Response, request

from agentgyms.remote.protocol import framing
from env_servers.sessions.errors import Refusal
from env_servers.sessions.service import service

play = Blueprint("play", __name__)

_TYPES: Final = {
    ".css": "text/css",
    ".html": "text/html",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
}
_OPEN: Final = ("access.css", "icon.svg")  # the form for the token is made of them
_MOST_DIGITS: Final = 5
_ENTERED: Final = "entered"
_NOTICE: Final = "<!-- told -->"
_WRONG: Final = "This is not the token of this server."
_NO_COOKIE: Final = (
    "That was the token, but your browser kept no cookie: allow cookies for this address."
)
_HEADERS: Final = {
    # No page of another site can frame this one or add to it, and text never becomes markup.
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
        "connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'; "
        "require-trusted-types-for 'script'; trusted-types 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class PageFile(NamedTuple):
    """One of the files that make up the page."""

    content: bytes
    mimetype: str


@play.get("/")
def start() -> Response:
    """Redirect to the page."""
    return _to_page(302)


@play.get("/play")
def page() -> Response:
    """Return the page, or the form for the token."""
    if _admits(request):
        return _file("page.html")
    return _token_form(_NO_COOKIE if _ENTERED in request.args else "")


@play.post("/play")
def enter() -> Response:
    """Take the token that somebody typed."""
    access = service().access
    if not _admits(request) and not access.knows(request.form.get("token", "")):
        return _token_form(_WRONG)
    entered = _to_page(303, f"?{_ENTERED}")
    return access.admit(entered, cookie_name(request), secure=request.is_secure)


@play.get("/play/<name>")
def part(name: str) -> Response:
    """Return a file of the page."""
    if name not in _OPEN and not _admits(request):
        raise Refusal("unauthorized", "the token is missing or wrong: open /play and enter it")
    if name not in _files() or name.endswith(".html"):
        raise Refusal("not_found", f"the page has no file {name!r:.60}")
    return _file(name)


@play.after_request
def _after(response: Response) -> Response:
    response.headers.update(_HEADERS)
    return response


def cookie_name(http_request: Request) -> str:
    """Return the cookie's name, with the port in it: browsers send a cookie to every port."""
    _, _, port = http_request.host.rpartition(":")
    has_port = port.isascii() and port.isdecimal() and len(port) <= _MOST_DIGITS
    return f"agentgyms_play_{port if has_port else http_request.scheme}"


def admits_page(http_request: Request) -> bool:
    """Return whether a request comes from the page, and the person there knows the token.

    The cookie alone is not enough: no other site can make a browser send the protocol's header.
    """
    if framing.PROTOCOL_HEADER not in http_request.headers:
        return False
    return service().access.holds(http_request, cookie_name(http_request))


def _admits(http_request: Request) -> bool:
    return service().access.admits(http_request, cookie_name(http_request))


def _token_form(why: str) -> Response:
    form = _files()["access.html"].content.decode("utf-8")
    text = form.replace(_NOTICE, f'<p class="wrong" role="alert">{why}</p>' if why else "")
    response = Response(text, status=401, mimetype="text/html")
    response.headers["WWW-Authenticate"] = "Bearer"
    return response


def _to_page(status: int, query: str = "") -> Response:
    # A relative address, so that the server may stand behind a prefix.
    return Response(status=status, headers={"Location": f"play{query}"})


def _file(name: str) -> Response:
    file = _files()[name]
    return Response(file.content, mimetype=file.mimetype)


@cache
def _files() -> dict[str, PageFile]:
    folder = resources.files("env_servers.play") / "page"
    return {
        entry.name: PageFile(entry.read_bytes(), _TYPES[f".{entry.name.rpartition('.')[2]}"])
        for entry in folder.iterdir()
        if entry.is_file()
    }
