"""Plays an episode and a batch with a package of openapi-generator, `made_client`.

Standard input and output are those of `by_openapi_python_client.py`.
"""

import json
import sys

from made_client import ApiClient, BatchApi, Configuration, ServerApi, SessionsApi
from made_client import models as m
from made_client.exceptions import ConflictException

asked = json.load(sys.stdin)
client = ApiClient(Configuration(host=asked["url"], access_token=asked["token"]))
server, sessions, batches = ServerApi(client), SessionsApi(client), BatchApi(client)
assert server.info().env_id == asked["env"]
task_id = server.list_tasks(limit=1).tasks[0][0]

body = m.Create(kwargs={"render_mode": "ansi"}, request_id="mine")
at = sessions.create_session(create=body).session_id
state = sessions.reset_session(at, reset=m.Reset(seed=asked["seed"]))
infos = [state.info.to_dict()]
saved = sessions.snapshot_session(at, body={})
for turn, action in enumerate(asked["actions"], 1):
    state = sessions.step_session(at, step=m.Step(action=action, turn=turn, episode=1))
    infos.append(state.info.to_dict())
assert isinstance(sessions.render_session(at).render.actual_instance, str)
branch = sessions.fork_session(at, fork=m.Fork()).session_id
restored = sessions.restore_session(at, restore=m.Restore(snapshot=saved.snapshot)).info.to_dict()
try:
    sessions.step_session(at, step=m.Step(action="look", turn=9))
    raise SystemExit("a gap is refused")
except ConflictException as e:
    gap = json.loads(e.body)["error"]["code"]
chosen = sessions.reset_session(at, reset=m.Reset(options=m.ResetOptions(task_id=task_id)))
assert chosen.info.task_id == task_id
assert sessions.get_session(at).turn == 0
recorded = sessions.get_trajectory_without_preload_content(at)  # it reads no JSON lines
assert len(recorded.data.splitlines()) == 2
for session_id in (at, branch):
    sessions.delete_session(session_id)

made = batches.batch_create(m.BatchCreateRequest(items=[m.Create(), m.Create()])).results
ids = [opened.actual_instance.session_id for opened in made]
items = [m.ResetItem(session_id=i, seed=asked["seed"]) for i in ids]
batches.batch_reset(m.BatchResetRequest(items=items))
steps = [m.StepItem(session_id=i, action=asked["actions"][0], turn=1) for i in ids]
steps.append(m.StepItem(session_id="nobody", action="x", turn=1))
results = batches.batch_step(m.BatchStepRequest(items=steps)).results
batches.batch_close(m.BatchCloseRequest(items=[m.CloseItem(session_id=i) for i in ids]))

*batch, nobody = [result.actual_instance for result in results]
told = {"infos": infos, "restored": restored, "batch": [turn.info.to_dict() for turn in batch]}
told["errors"] = [gap, nobody.error.code]
sys.stdout.write(json.dumps(told))
