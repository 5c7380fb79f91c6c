"""Plays an episode and a batch with a package of openapi-python-client, `made_client`.

Standard input is JSON: `url`, `token`, `env`, `seed` and `actions`. Standard output has the infos
of the session's turns, the results of a batch, and the codes of errors.
"""

import json
import sys

from made_client import AuthenticatedClient
from made_client.api.batch import batch_close, batch_create, batch_reset, batch_step
from made_client.api.server import info, list_tasks
from made_client.api.sessions import (
    create_session,
    delete_session,
    fork_session,
    get_session,
    render_session,
    reset_session,
    restore_session,
    snapshot_session,
    step_session,
)
from made_client.models import (
    BatchCloseBody,
    BatchCreateBody,
    BatchResetBody,
    BatchStepBody,
    CloseItem,
    Create,
    CreateKwargs,
    Empty,
    Fork,
    Reset,
    ResetItem,
    ResetOptionsType0,
    Restore,
    Step,
    StepItem,
)

asked = json.load(sys.stdin)
client = AuthenticatedClient(asked["url"], asked["token"])
assert info.sync(client=client).env_id == asked["env"]
task_id = list_tasks.sync(client=client, limit=1).tasks[0][0]

kwargs = CreateKwargs.from_dict({"render_mode": "ansi"})
opened = create_session.sync(client=client, body=Create(kwargs, "mine"))
at = {"session_id": opened.session_id, "client": client}
state = reset_session.sync(**at, body=Reset(asked["seed"]))
infos = [state.info.to_dict()]
saved = snapshot_session.sync(**at, body=Empty())
for turn, action in enumerate(asked["actions"], 1):
    state = step_session.sync(**at, body=Step(action, turn, episode=1))
    infos.append(state.info.to_dict())
rendered = render_session.sync(**at).render
assert isinstance(rendered, str)
branch = fork_session.sync(**at, body=Fork()).session_id
restored = restore_session.sync(**at, body=Restore(saved.snapshot)).info.to_dict()
gap = step_session.sync(**at, body=Step("look", 9))
chosen = reset_session.sync(**at, body=Reset(options=ResetOptionsType0(task_id=task_id)))
assert chosen.info.task_id == task_id
assert get_session.sync(**at).turn == 0
delete_session.sync_detailed(**at)
delete_session.sync_detailed(branch, client=client)

made = batch_create.sync(client=client, body=BatchCreateBody([Create(), Create()])).results
ids = [opened.session_id for opened in made]
batch_reset.sync(client=client, body=BatchResetBody([ResetItem(i, asked["seed"]) for i in ids]))
first = [StepItem(i, asked["actions"][0], 1) for i in ids]
steps = batch_step.sync(client=client, body=BatchStepBody([*first, StepItem("nobody", "x", 1)]))
batch_close.sync(client=client, body=BatchCloseBody([CloseItem(i) for i in ids]))

*batch, nobody = steps.results
told = {"infos": infos, "restored": restored, "batch": [turn.info.to_dict() for turn in batch]}
told["errors"] = [gap.error.code, nobody.error.code]
sys.stdout.write(json.dumps(told))
