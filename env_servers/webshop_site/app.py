"""`create_site`: the shop as a web site without scripts and cookies."""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple, cast

from flask import Flask, Response, current_app, redirect, request, send_from_directory, url_for
from werkzeug.exceptions import HTTPException

from agentgyms.core.errors import UnknownTask
from agentgyms.core.tasks import TaskSet
from agentgyms.envs.webshop.rules.session import Shop, ShopSession
from agentgyms.remote.protocol import framing
from agentgyms.serving.cross_site import OwnNames
from agentgyms.serving.served import EXTENSION, State, counted
from agentgyms.serving.token_access import Access
from env_servers.webshop_site import rendering
from env_servers.webshop_site.rendering import anchor, key_at
from env_servers.webshop_site.visits import (
    MAX_VISITS,
    TTL_S,
    Full,
    NoVisit,
    PurchaseMade,
    Visits,
)

log = logging.getLogger(__name__)

MAX_QUERY: Final = 8192
"""Maximum length of a query, in characters."""

_COOKIE: Final = "webshop_access"
_PURPOSE: Final = "agentgyms webshop access"
_MAX_BODY_BYTES: Final = 2**18
_MOST_DIGITS: Final = 9
_HEADERS: Final = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; "
        "base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}
_OPEN: Final = ("/healthz", "/access", "/robots.txt", "/favicon.ico", "/static/")


class Offer(NamedTuple):
    """The offer of the site's start page: a shop and tasks, one of which each visit gets at random.

    With `compat` the rules are the original's, flaws included; with `show_attributes` product pages
    lead to a page of the product's attributes.
    """

    shop: Shop
    tasks: TaskSet
    compat: bool = False
    show_attributes: bool = False

    def session(self, task_id: str | None) -> ShopSession:
        """Return a session for a task, or for one at random; `UnknownTask` for an unknown one."""
        if task_id is None:
            task_id = self.tasks[secrets.randbelow(len(self.tasks))]
        goal = self.shop.goals.find(self.tasks.find(task_id).task_id)
        return ShopSession(
            self.shop, goal, compat=self.compat, show_attributes=self.show_attributes
        )


class Site(State[Visits]):
    """The state of one application; `offer` is None if no visit begins at the start page."""

    def __init__(self, offer: Offer | None, visits: Visits, access: Access) -> None:
        super().__init__(access, _MAX_BODY_BYTES, visits)
        self.offer = offer


def create_site(
    offer: Offer | None,
    *,
    token: str = "",
    max_visits: int = MAX_VISITS,
    ttl_s: float = TTL_S,
    hosts: Iterable[str] = (),
    clock: Callable[[], float] = time.monotonic,
) -> Flask:
    """Return the application; raise `BadOption` for a token that cannot be sent.

    `/` begins a visit with a random task of the `offer`, `/?task_id=...` with that one; None lets
    none begin there. A visit's pages are `/s/<visit>/<turn>`; a form sent to one does something on
    that page, drops the pages after it, and leads to the next. `/healthz` answers as long as the
    site does.

    Nothing is shown without the `token`, unless it is "". A visit beyond `max_visits` is answered
    with 429, one unused for `ttl_s` expires. For `hosts` see `create_app`; `clock` is monotonic.
    """
    app = Flask("env_servers.webshop_site", root_path=str(Path(__file__).parent))
    app.config["MAX_CONTENT_LENGTH"] = app.config["MAX_FORM_MEMORY_SIZE"] = _MAX_BODY_BYTES
    app.config["SEND_FILE_MAX_AGE_DEFAULT"] = 3600
    app.url_map.merge_slashes = False
    visits = Visits(max_sessions=max_visits, ttl_s=ttl_s, clock=clock)
    site = Site(offer, visits, Access(framing.check_token(token), _PURPOSE))
    app.extensions[EXTENSION] = site
    app.wsgi_app = counted(app.wsgi_app, site.count)  # type: ignore[assignment]
    rendering.set_up(app)
    app.before_request(partial(_before, OwnNames(hosts)))
    app.after_request(_after)
    app.register_error_handler(Exception, _error)
    app.add_url_rule("/", "start", start)
    app.add_url_rule("/s/<visit_id>/<turn>", "show", show)
    app.add_url_rule("/s/<visit_id>/<turn>", "act", act, methods=["POST"])
    app.add_url_rule("/access", "access", access, methods=["GET", "POST"])
    app.add_url_rule("/healthz", "healthz", lambda: {"status": "ok"})
    app.add_url_rule("/robots.txt", "robots", robots)
    app.add_url_rule("/favicon.ico", "favicon", favicon)
    return app


def start() -> Response:
    """Begin a visit and redirect to its first page."""
    if request.method == "HEAD":  # which is to change nothing
        return Response()
    offer = _site().offer
    if offer is None:
        return rendering.message("Nothing here", "Visits to this shop are begun elsewhere.", 404)
    session = offer.session(request.args.get("task_id"))
    visit = _site().sessions.begin(session, person=True)
    return _to("show", visit_id=visit.visit_id, turn=0)


def show(visit_id: str, turn: str) -> Response:
    """Return a page of a visit."""
    with _site().sessions.use(visit_id) as visit:
        number = _number(turn)
        visit.open(number)
        return rendering.page(visit, number)


def act(visit_id: str, turn: str) -> Response:
    """Search or click on a page of a visit, and redirect to the next page."""
    query, place = request.form.get("query"), request.form.get("at", "")
    with _site().sessions.use(visit_id) as visit:
        number = _number(turn)
        visit.open(number)
        here = ("Back to the page", url_for("show", visit_id=visit_id, turn=number))
        if query is not None:
            if len(query) > MAX_QUERY:
                words = f"It has {len(query)} characters; at most {MAX_QUERY} can be searched for."
                return rendering.message("This query is too long", words, 422, here)
            action = f"search[{query}]"
        else:
            key = key_at(visit.session.view, place)
            if key is None:
                words = "The page has changed, or the form was not sent by it."
                return rendering.message("There is nothing to click there", words, 422, here)
            action = f"click[{key}]"
        try:
            number = visit.act(number, action)
        except PurchaseMade:
            receipt = url_for("show", visit_id=visit_id, turn=visit.latest)
            words = "Something was bought in this visit, so that it is over."
            return rendering.message("The purchase is made", words, 409, ("Receipt", receipt))
        seen = None if visit.session.view.notice else anchor(place)  # a notice is at the top
        return _to("show", visit_id=visit_id, turn=number, _anchor=seen)


def access() -> Response:
    """Check the token, or show the form for it."""
    access = _site().access
    if request.method != "POST" or not access.knows(request.form.get("token", "")):
        response = rendering.html("access.html", wrong=request.method == "POST")
        response.status_code = 401
        return response
    return access.admit(_to("start"), _COOKIE, secure=request.is_secure)


def robots() -> Response:
    """Return `robots.txt`, which excludes crawlers."""
    return Response("User-agent: *\nDisallow: /\n", mimetype="text/plain")


def favicon() -> Response:
    """Return the icon."""
    return send_from_directory(cast("str", current_app.static_folder), "icon.svg")


def _before(names: OwnNames) -> Response | None:
    site = _site()
    if request.path.startswith(_OPEN):
        return None
    mistake = names.mistake(request) if site.access.is_open else ""
    if mistake:
        return rendering.message("Not at this address", f"{mistake[0].upper()}{mistake[1:]}.", 401)
    if not site.access.admits(request, _COOKIE):
        response = rendering.html("access.html", wrong=False)
        response.status_code = 401
        return response
    if site.draining:
        response = rendering.message("The shop is closing", "Please come back in a moment.", 503)
        response.headers["Retry-After"] = "5"
        return response
    return None


def _after(response: Response) -> Response:
    response.headers.update(_HEADERS)
    if not request.path.startswith("/static/"):
        response.headers["Cache-Control"] = "no-store"
    return response


def _error(error: Exception) -> Response:
    match error:
        case NoVisit():
            heading = "This page is gone" if error.status == 410 else "This page was not found"
            return rendering.message(heading, error.reason, error.status)
        case UnknownTask():
            return rendering.message("There is no such task", str(error), 404)
        case Full():
            words = "As many people are shopping as the shop can take. Please try again soon."
            response = rendering.message("The shop is full", words, 429)
            response.headers["Retry-After"] = str(error.retry_after_s)
            return response
        case HTTPException():
            words = error.description or ""
            response = rendering.message(error.name, words, error.code or 500)
            response.headers.extend(
                [(name, value) for name, value in error.get_headers() if name == "Allow"]
            )
            return response
    log.error("a request failed", exc_info=error)
    return rendering.message("Something went wrong", "The shop's log has the details.", 500)


def _number(turn: str) -> int:
    if not turn.isascii() or not turn.isdecimal() or len(turn) > _MOST_DIGITS:
        raise NoVisit(404, "The visit has no such page.")
    return int(turn)


def _to(endpoint: str, **values: str | int | None) -> Response:
    response = redirect(url_for(endpoint, **values), code=303)  # type: ignore[arg-type]
    return cast("Response", response)


def _site() -> Site:
    return cast("Site", current_app.extensions[EXTENSION])
