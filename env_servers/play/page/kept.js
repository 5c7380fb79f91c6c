// The last episode, kept in this window for a reload: what decides it, and its turns in short.

const NAME = "agentgyms episode";
const IN_SHORT = ["task_id", "state_key", "observation_key", "admissible_actions", "feedback", "success"];

function short(turn) {
  const { action, reward, terminated, truncated, info } = turn;
  const kept = Object.fromEntries(IN_SHORT.map((name) => [name, info[name]]));
  return { turn: turn.turn, action, reward, terminated, truncated, info: kept };
}

export function keep(envId, { setting, turns }) {
  if (turns.length < 2) return forget();
  try {
    sessionStorage.setItem(NAME, JSON.stringify({ envId, setting, turns: turns.map(short) }));
  } catch {
    forget(); // it is too large, or the browser keeps nothing
  }
}

export function load(envId) {
  try {
    const left = JSON.parse(sessionStorage.getItem(NAME));
    return left?.envId === envId ? left : null;
  } catch {
    return null;
  }
}

export function forget() {
  try {
    sessionStorage.removeItem(NAME);
  } catch {
    // then there is nothing to forget
  }
}
