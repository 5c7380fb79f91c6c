// What is shown of an episode: one turn in full, the figures beside it, and the list of all turns.
import { copy, cut, figure, fill, find, make, show, signed } from "./dom.js";
import * as observation from "./observation.js";

const FEEDBACK = { no_effect: "no effect" };
const KEY_SHOWN = 8;
const GOLDEN_ANGLE = 137.5; // neighbours differ, and hundreds stay apart

// Each state of an episode has a colour of its own, so that the eye finds those that come again.
function colours(turns) {
  const numbers = new Map();
  for (const { info } of turns) if (!numbers.has(info.state_key)) numbers.set(info.state_key, numbers.size);
  return numbers;
}

function dot(number) {
  const mark = make("i", { class: "dot", "aria-hidden": "true" });
  mark.style.setProperty("--hue", Math.round(210 + number * GOLDEN_ANGLE) % 360);
  return mark;
}

const badge = (kind, ...content) => make("span", { class: `mark ${kind}` }, ...content);

// How an episode ended, or "" while it goes on.
export function verdict({ turn, terminated, truncated, info }, maxTurns) {
  if (terminated) return info.success ? "Solved" : "Over, not solved";
  if (!truncated) return "";
  return maxTurns && turn < maxTurns ? "Cut off by the environment" : "Out of turns";
}

// `press` takes the actions that are pressed on a page that is told in a text.
export function drawTurn({ turns, index, maxTurns, press = null }) {
  const turn = turns[index], { info } = turn;
  find("turn").dataset.turn = turn.turn;
  fill("goal", info.goal || "No goal is told.");
  fill("turn-title", index === 0 ? "Start" : `Turn ${turn.turn}`, make("small", {}, maxTurns ? ` of ${maxTurns}` : ""));
  show("taken", index > 0);
  fill("taken-action", turn.action);
  fill("marks", ...marks(turns, index, maxTurns));
  show("deadlocked", info.metrics.deadlocked === 1);
  show("feedback-text", Boolean(info.feedback_text));
  fill("feedback-text", info.feedback_text);
  observation.draw(find("observation"), turn, press);
  drawSaid(turn.agent);
  drawFigures(turns, index);
  drawFacts(turns, index);
}

function marks(turns, index, maxTurns) {
  const turn = turns[index], found = [];
  if (index > 0) found.push(badge(turn.info.feedback, FEEDBACK[turn.info.feedback] ?? turn.info.feedback));
  const [before, now] = [turns[index - 1]?.info.progress, turn.info.progress];
  const change = typeof before === "number" && typeof now === "number" ? now - before : 0;
  if (change) found.push(badge(change > 0 ? "ok" : "failed", `progress ${signed(change)}`));
  if (turn.info.metrics.deadlocked === 1) found.push(badge("lost", "deadlocked"));
  if (turn.reward) found.push(badge(turn.reward > 0 ? "ok" : "failed", `reward ${signed(turn.reward)}`));
  const end = verdict(turn, maxTurns);
  if (end) found.push(badge(turn.info.success ? "won" : "lost", end));
  return found;
}

// Only recordings of agents have this.
function drawSaid(said) {
  const told = Object.keys(said ?? {}).length > 0;
  show("said", told);
  const parts = Object.entries(told ? said : {}).map(([name, value]) => [
    make("h3", {}, name),
    make("pre", {}, typeof value === "string" ? value : JSON.stringify(value, null, 1)),
  ]);
  fill("said-text", ...parts.flat());
}

function drawFigures(turns, index) {
  const { info, reward } = turns[index], { progress, metrics } = info;
  const known = typeof progress === "number";
  fill("score", figure(info.score));
  fill("reward", figure(turns.slice(0, index + 1).reduce((sum, turn) => sum + (turn.reward ?? 0), 0)));
  fill("reward-turn", index > 0 ? `${signed(reward)} in this turn` : "");
  find("progress").hidden = !known;
  find("progress").value = known ? progress : 0;
  fill("progress-figure", known ? `${Number((progress * 100).toFixed(1))} %` : "not measured");
  const subgoals = typeof metrics.subgoals_total === "number";
  fill("subgoals", subgoals ? `${metrics.subgoals_reached} of ${metrics.subgoals_total} subgoals reached` : "");
  const rows = Object.entries(metrics).map(([name, value]) =>
    make("div", {}, make("dt", {}, name.replaceAll("_", " ")), make("dd", {}, figure(value))));
  fill("metrics", ...rows);
  show("more", rows.length > 0);
}

function drawFacts(turns, index) {
  const { state_key: key, task_id: task, family } = turns[index].info;
  fill("state-key", dot(colours(turns).get(key)), key.slice(0, KEY_SHOWN));
  find("state-key").title = `${key}: click to copy`;
  find("state-key").dataset.key = key;
  const before = turns.findIndex((turn) => turn.info.state_key === key);
  fill("visited", before < index ? `as in turn ${before}` : "");
  fill("task-id", task);
  fill("family", family || "–");
}

// `source` is whose tasks they are, as `TextEnv.data_source` says; "" if there is no benchmark.
export function drawSetting({ split, seed, kwargs, parties = {}, source = "" }) {
  fill("seed", `${split}, ${seed}`);
  show("whose", source !== "" && source !== "official");
  const decisive = Object.entries(kwargs).filter(([name]) => name !== "render_mode");
  const named = decisive.map(([name, value]) => `${name}=${JSON.stringify(value)}`);
  show("arguments-row", named.length > 0);
  fill("arguments", named.join(", "));
  const others = Object.entries(parties).map(([role, name]) => `${role}: ${name}`);
  show("parties-row", others.length > 0);
  fill("parties", others.join(", "));
}

let listed = null;

// The list of turns; `checked` tells of each whether it was verified. Turns are only ever added to
// an episode, so that their rows stay.
export function drawHistory({ turns, index, checked = [] }, choose) {
  const list = find("history"), numbers = colours(turns);
  if (listed !== turns) list.replaceChildren();
  listed = turns;
  for (let at = list.children.length; at < turns.length; at++) {
    list.append(make("li", {}, row(turns[at], numbers.get(turns[at].info.state_key), () => choose(at))));
  }
  [...list.children].forEach(({ firstChild: button }, at) => {
    mark(button, at === index, checked[at]);
  });
  keepInView(list.children[index].firstChild);
}

function row(turn, number, choose) {
  const wrong = !["ok", "no_effect"].includes(turn.info.feedback);
  return make("button", { click: choose },
    make("span", { class: "number" }, String(turn.turn)), dot(number),
    make("span", { class: wrong ? "action wrong" : "action" }, turn.turn === 0 ? "start" : cut(turn.action, 200)),
    make("span", { class: turn.reward > 0 ? "gain" : "cost" }, turn.reward ? signed(turn.reward) : ""), make("span", { class: "checked" }));
}

function mark(button, chosen, result = "") {
  if (chosen) button.setAttribute("aria-current", "true");
  else button.removeAttribute("aria-current");
  const last = button.lastChild;
  if (last.dataset.result === result) return;
  last.dataset.result = result;
  last.textContent = { same: "✓", differs: "✗" }[result] ?? "";
}

// Scrolls the list alone; `scrollIntoView` would scroll the page as well.
function keepInView(button) {
  const list = find("history"), top = button.offsetTop - list.offsetTop;
  if (top < list.scrollTop) list.scrollTop = top;
  const bottom = top + button.offsetHeight - list.clientHeight;
  if (bottom > list.scrollTop) list.scrollTop = bottom;
}

export async function copyStateKey() {
  await copy(find("state-key").dataset.key);
  fill("visited", "copied");
}
