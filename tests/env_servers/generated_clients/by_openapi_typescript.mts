// Plays an episode and a batch with the types that openapi-typescript wrote to `made.d.ts`, which
// the compiler holds it to. Standard input and output are those of `by_openapi_python_client.py`.

import { readFileSync } from "node:fs";

import createClient from "openapi-fetch";

import type { components, paths } from "./made.d.ts";

type Info = components["schemas"]["TurnInfo"];

const asked = JSON.parse(readFileSync(0, "utf8"));
const seed: number = asked.seed;
const actions: string[] = asked.actions;
const client = createClient<paths>({
  baseUrl: asked.url,
  headers: { Authorization: `Bearer ${asked.token}` },
});

function given<T>(reply: { data?: T; error?: unknown }): T {
  if (reply.data === undefined) throw new Error(JSON.stringify(reply.error));
  return reply.data;
}

const served = given(await client.GET("/v1/info"));
if (served.env_id !== asked.env) throw new Error(served.env_id);
const listed = given(await client.GET("/v1/tasks", { params: { query: { limit: 1 } } }));
const task_id: string | undefined = listed.tasks[0][0];

const body = { kwargs: { render_mode: "ansi" }, request_id: "mine" };
const opened = given(await client.POST("/v1/sessions", { body }));
const params = { path: { session_id: opened.session_id } };
const first = given(await client.POST("/v1/sessions/{session_id}/reset", { params, body: { seed } }));
const infos: Info[] = [first.info];
const saved = given(await client.POST("/v1/sessions/{session_id}/snapshot", { params, body: {} }));
for (const [index, action] of actions.entries()) {
  const step = { action, turn: index + 1, episode: first.episode };
  const turn = given(await client.POST("/v1/sessions/{session_id}/step", { params, body: step }));
  infos.push(turn.info);
}
const rendered = given(await client.GET("/v1/sessions/{session_id}/render", { params })).render;
if (typeof rendered !== "string") throw new Error("no text");
const branch = given(await client.POST("/v1/sessions/{session_id}/fork", { params, body: {} }));
const back = given(await client.POST("/v1/sessions/{session_id}/restore", { params, body: saved }));
const late = { action: "look", turn: 9 };
const gap = await client.POST("/v1/sessions/{session_id}/step", { params, body: late });
const options = { options: { task_id } };
const reset = await client.POST("/v1/sessions/{session_id}/reset", { params, body: options });
if (given(reset).info.task_id !== task_id) throw new Error("another task");
for (const { session_id } of [opened, branch]) {
  await client.DELETE("/v1/sessions/{session_id}", { params: { path: { session_id } } });
}

const made = given(await client.POST("/v1/batch/create", { body: { items: [{}, {}] } }));
const ids = made.results.flatMap((one) => ("session_id" in one ? [one.session_id] : []));
await client.POST("/v1/batch/reset", { body: { items: ids.map((session_id) => ({ session_id, seed })) } });
const items = [...ids, "nobody"].map((session_id) => ({ session_id, action: actions[0], turn: 1 }));
const steps = given(await client.POST("/v1/batch/step", { body: { items } }));
await client.POST("/v1/batch/close", { body: { items: ids.map((session_id) => ({ session_id })) } });

const batch = steps.results.flatMap((one) => ("info" in one ? [one.info] : []));
const errors = steps.results.flatMap((one) => ("error" in one ? [one.error.code] : []));
if (gap.error === undefined) throw new Error("a gap is refused");
const told = { infos, restored: back.info, batch, errors: [gap.error.error.code, ...errors] };
process.stdout.write(JSON.stringify(told));
