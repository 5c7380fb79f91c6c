"""Renders the site's pages as HTML from views and templates; all text is escaped."""

from __future__ import annotations

from typing import Any, Final

from flask import Flask, Response, render_template, url_for
from markupsafe import Markup, escape

from agentgyms.envs.webshop.goals.reward import Purchase
from env_servers.webshop_site.layout import arrange
from env_servers.webshop_site.visits import Visit

_CARRIAGE_RETURN: Final = Markup("&#13;")


def set_up(app: Flask) -> None:
    """Add the filters of the templates."""
    app.jinja_env.filters["exact"] = exact
    app.jinja_env.trim_blocks = app.jinja_env.lstrip_blocks = True


def exact(text: str) -> Markup:
    """Return text as HTML that browsers submit unchanged, carriage returns included."""
    return Markup(str(escape(text)).replace("\r", _CARRIAGE_RETURN))  # noqa: S704 (escaped above)


def page(visit: Visit, turn: int) -> Response:
    """Return the page of a visit; its session is at this page."""
    session = visit.session
    purchase = session.purchase() if visit.person and session.done else None
    return html(
        "shop.html",
        **arrange(session.view, session.state),
        turn=turn,
        over=visit.over,
        person=visit.person,
        action=url_for("act", visit_id=visit.visit_id, turn=turn),
        latest=url_for("show", visit_id=visit.visit_id, turn=visit.latest),
        start=url_for("start") if visit.person else "",
        purchase=_scores(purchase) if purchase else None,
    )


def message(heading: str, words: str, status: int, *links: tuple[str, str]) -> Response:
    """Return a page with a message, and links to go on."""
    shown = (*links, ("Start with a task", url_for("start")))
    response = html("message.html", heading=heading, words=words, links=shown)
    response.status_code = status
    return response


def html(template: str, **values: Any) -> Response:
    """Return a template filled in; characters that UTF-8 cannot encode are replaced."""
    text = render_template(template, **values)
    return Response(text.encode("utf-8", "replace"), content_type="text/html; charset=utf-8")


def _scores(purchase: Purchase) -> dict[str, Any]:
    """Return the score of a purchase and its parts, for people."""
    options = purchase.r_option
    rows = [
        ("The right kind of product", f"{purchase.r_type:.0%}"),
        ("What you were asked to look for", f"{purchase.r_att:.0%}"),
        ("Options as asked", "none asked for" if options is None else f"{options:.0%}"),
        ("Price within the limit", "yes" if purchase.r_price else "no"),
    ]
    return {"reward": purchase.reward, "rows": rows}
