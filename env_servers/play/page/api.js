// The server's routes under /v1, as every client uses them.

const HEADERS = { "Agentgyms-Protocol": "1" };
const LIMIT_MS = 180_000;
const PAUSES_MS = [250, 1000];

// What the server says, or what stood between it and this page (code "unreachable").
export class ServerError extends Error {
  constructor({ code, message, hint = "", retryable = false }, status = 0) {
    super(message);
    Object.assign(this, { code, hint, retryable, status });
  }

  // The session is gone, or closed because its environment failed.
  get lost() {
    const gone = ["unknown_session", "session_expired", "turn_conflict"].includes(this.code);
    const waits = ["model_unavailable", "draining", "not_ready", "timeout", "unreachable"];
    return gone || (this.status >= 500 && !waits.includes(this.code));
  }

  // Nobody knows whether the server did what it was asked to.
  get unanswered() {
    return this.code === "unreachable" || this.code === "timeout";
  }

  // The server did not look at what was asked of it, so that nothing is known of earlier requests.
  get turnedAway() {
    return this.code === "unauthorized" || this.code === "draining";
  }
}

const UNREACHABLE = {
  code: "unreachable",
  message: "The server does not answer.",
  hint: "Try again when it is back: no turn is ever taken twice.",
  retryable: true,
};

async function send(method, path, body, options) {
  const headers = body === undefined ? HEADERS : { ...HEADERS, "Content-Type": "application/json" };
  const content = body === undefined ? undefined : JSON.stringify(body);
  const signal = AbortSignal.timeout(LIMIT_MS);
  for (const pause of [...PAUSES_MS, null]) {
    try {
      return await fetch(`v1/${path}`, { method, headers, body: content, signal, ...options });
    } catch {
      if (pause === null || signal.aborted) throw new ServerError(UNREACHABLE);
      await new Promise((done) => setTimeout(done, pause));
    }
  }
}

async function told(reply) {
  try {
    return await reply.text();
  } catch {
    throw new ServerError(UNREACHABLE);
  }
}

// A proxy's error is no JSON of ours.
function errorOf(text, status) {
  try {
    return new ServerError(JSON.parse(text).error, status);
  } catch {
    const between = { code: "unreachable", message: `The server's answer was HTTP ${status}.`, retryable: true };
    return new ServerError(between, status);
  }
}

async function ask(method, path, body, options = {}) {
  const reply = await send(method, path, body, options);
  const text = await told(reply);
  if (!reply.ok) throw errorOf(text, reply.status);
  return text;
}

const json = async (...request) => JSON.parse((await ask(...request)) || "null");
const of = (session) => `sessions/${encodeURIComponent(session.session_id)}`;

const requestId = () => Array.from(crypto.getRandomValues(new Uint32Array(4)), (n) => n.toString(16)).join("-");

export const info = () => json("GET", "info");
export const create = (kwargs) => json("POST", "sessions", { kwargs, request_id: requestId() });
export const reset = (session, fields) => json("POST", `${of(session)}/reset`, fields);
export const step = (session, fields) => json("POST", `${of(session)}/step`, fields);
export const render = (session) => json("GET", `${of(session)}/render`);
export const trajectory = (session, actor) =>
  ask("GET", `${of(session)}/trajectory?${new URLSearchParams({ actor })}`);

// One page of a list that may have millions of tasks; `next` of the reply asks for the one after.
export function tasks(session, query) {
  const asked = new URLSearchParams(Object.entries(query).filter(([, value]) => value));
  return json("GET", session ? `${of(session)}/tasks?${asked}` : `tasks?${asked}`);
}

// `keepalive` lets it go out while the page is being left. Sessions that stay behind expire.
export const close = (session) =>
  fetch(`v1/${of(session)}`, { method: "DELETE", headers: HEADERS, keepalive: true }).catch(() => {});
