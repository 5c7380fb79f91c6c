"""Control of a site by the process that started it for browser environments: JSON lines in a pipe.

Only that process has the pipe, so no secret is needed. It opens visits, sets their pages and reads
their state. The site ends when the pipe ends. Requests:

| request | answer |
|---|---|
| `{"open": {"task_id", "saved", shop's arguments}}` | `{"visit", "turn"}` |
| `{"put": visit, "saved"}` | `{"visit", "turn"}` |
| `{"act": visit, "turn", "action"}` | `{"visit", "turn"}`; for actions that no page offers |
| `{"read": visit}` | `{"turn", "saved", "result"}` of the last page |
| `{"end": visit}` | `{}` |

The answer `{"gone": reason}` means that the visit does not exist any more.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import IO, Any

from agentgyms.core import serialization
from agentgyms.envs.webshop.rules.session import Result, ShopSession
from agentgyms.envs.webshop.sources import open_shop
from env_servers.webshop_site.visits import Full, NoVisit, PurchaseMade, Visits

log = logging.getLogger(__name__)


def answer_requests(requests: IO[str], answers: IO[str], visits: Visits) -> None:
    """Answer requests until the pipe ends."""
    for line in requests:
        try:
            answer = _answer(json.loads(line), visits)
        except (NoVisit, Full) as e:
            answer = {"gone": str(e)}
        except PurchaseMade:
            answer = {"error": "the purchase is made"}
        except Exception as e:
            log.exception("a request of the environments failed")
            answer = {"error": f"{type(e).__name__}: {e}"}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


def _answer(request: Mapping[str, Any], visits: Visits) -> dict[str, Any]:
    match request:
        case {"open": dict(fields)}:
            arguments: dict[str, Any] = fields
            saved = arguments.pop("saved")
            visit = visits.begin(_session(arguments), person=False)
            return {"visit": visit.visit_id, "turn": visit.put(saved)}
        case {"put": visit_id, "saved": saved}:
            with visits.use(visit_id) as visit:
                return {"visit": visit_id, "turn": visit.put(saved)}
        case {"act": visit_id, "turn": turn, "action": action}:
            with visits.use(visit_id) as visit:
                return {"visit": visit_id, "turn": visit.act(turn, action)}
        case {"read": visit_id}:
            with visits.use(visit_id) as visit:
                turn = visit.open(visit.latest)
                return {"turn": visit.latest, "saved": turn.saved, "result": _plain(turn.result)}
        case {"end": visit_id}:
            visits.end(visit_id)
            return {}
    raise ValueError(f"there is no such request: {serialization.dumps(request):.200}")


def _session(arguments: dict[str, Any]) -> ShopSession:
    task_id, compat, show_attributes = (
        arguments.pop(name) for name in ("task_id", "compat", "show_attributes")
    )
    shop = open_shop(**arguments).load()
    goal = shop.goals.find(task_id)
    return ShopSession(shop, goal, compat=compat, show_attributes=show_attributes)


def _plain(result: Result | None) -> dict[str, Any] | None:
    return None if result is None else {**result._asdict(), "feedback": result.feedback.value}
