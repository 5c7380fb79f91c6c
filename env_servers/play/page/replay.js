// A recording step by step: read, verified on this server, and gone on with.
import { fill, find, plural, show } from "./dom.js";
import { Episode } from "./episode.js";
import * as notices from "./notices.js";
import * as recording from "./recording.js";
import * as view from "./view.js";

const TURN_MS = 1000;

let server = null;
let takeOver = () => {};
let episodes = [];
let number = 0; // of the episode
let shown = 0; // the turn
let checked = []; // of each turn "same", "differs" or nothing
let visible = false;
let timer = 0;
let work = 0; // grows when what was going on is no longer wanted

export function setUp(info, enter) {
  [server, takeOver] = [info, enter];
  find("file").addEventListener("change", () => read(find("file").files[0]));
  find("which").addEventListener("change", () => choose(Number(find("which").value)));
  find("slider").addEventListener("input", () => go(Number(find("slider").value)));
  const presses = {
    first: () => go(0), previous: () => move(-1), next: () => move(1), final: () => go(Infinity),
    run, verify, "take-over": goOn, other: () => find("file").click(),
  };
  for (const [id, press] of Object.entries(presses)) find(id).addEventListener("click", press);
}

function maxTurnsOf({ env_id: envId, kwargs }) {
  return kwargs.max_turns ?? (envId === server.env_id ? server.environment.max_turns : null);
}

export async function read(file) {
  if (!file) return;
  try {
    load(await recording.open(file), file.name);
  } catch (error) {
    notices.tell(`${file.name} cannot be replayed.`, error.message);
  }
  find("file").value = "";
}

// `found` are episodes: a header and turns each.
export function load(found) {
  episodes = found;
  const names = found.map(({ header, turns }, at) => {
    const end = view.verdict(turns.at(-1), maxTurnsOf(header)) || "not over";
    return new Option(`${at + 1}. ${turns[0].info.task_id}, ${plural(turns.length - 1, "turn")}, ${end.toLowerCase()}`, at);
  });
  fill("which", ...names);
  notices.clear();
  choose(0);
}

const current = () => episodes[number];

function choose(at) {
  stop();
  [number, shown, checked] = [at, 0, []];
  find("which").value = String(at);
  find("slider").max = String(current().turns.length - 1);
  fill("verified");
  draw();
}

export function go(index) {
  if (episodes.length === 0) return;
  shown = Math.max(0, Math.min(index, current().turns.length - 1));
  if (shown === current().turns.length - 1) pause();
  draw();
}

export const move = (by) => go(shown + by);

export function run() {
  if (timer) return pause();
  if (episodes.length === 0) return undefined;
  if (shown === current().turns.length - 1) go(0);
  timer = setInterval(() => move(1), TURN_MS);
  return drawRun();
}

function pause() {
  clearInterval(timer);
  timer = 0;
  drawRun();
}

function drawRun() {
  find("run").setAttribute("aria-pressed", String(timer !== 0));
  fill("run", timer ? "Pause" : "Run");
}

function stop() {
  work += 1;
  pause();
}

export function open() {
  visible = true;
  draw();
}

export function hide() {
  visible = false;
  stop();
}

function draw() {
  if (!visible) return;
  const any = episodes.length > 0;
  show("opening", !any);
  show("main", any);
  if (!any) return;
  const { header, turns } = current();
  for (const id of ["controls", "dock", "result", "past"]) show(id, false);
  show("recorded");
  for (const id of ["checks", "transport"]) show(id);
  fill("actor", `Played by ${recording.actor(header)}${header.env_id === server.env_id ? "" : ` on ${header.env_id}`}`);
  view.drawTurn({ turns, index: shown, maxTurns: maxTurnsOf(header) });
  const { data_version: here, data_source: source } = server.environment; // a file says no source
  view.drawSetting({ ...header, split: turns[0].info.split, source: header.data_version === here ? source : "" });
  view.drawHistory({ turns, index: shown, checked }, go);
  find("slider").value = String(shown);
  find("slider").setAttribute("aria-valuetext", `Turn ${shown} of ${turns.length - 1}`);
  const end = turns[shown];
  find("take-over").disabled = end.terminated || end.truncated;
  if (!find("oracle").hidden) show("oracle", false);
}

// --- on this server -------------------------------------------------------------------------------

// Play turns again on this server and tell of each whether it is the same.
async function follow(turns) {
  const { header } = current(), mine = (work += 1);
  pause();
  if (header.env_id !== server.env_id) {
    throw new Error(`It was recorded on ${header.env_id}, and this server plays ${server.env_id}: open the page of a server for it.`);
  }
  const { kwargs, seed, options } = header;
  if (!Number.isSafeInteger(seed)) {
    throw new Error("Its seed has more digits than a browser keeps: use `agentgyms replay`.");
  }
  checked = [];
  const episode = new Episode({ kwargs, seed, options });
  try {
    await episode.follow(turns, (turn) => {
      if (mine !== work) return false;
      checked[turn] = "same";
      fill("verified", `Turn ${turn} of ${turns.length - 1} is the same`);
      return true;
    });
  } catch (error) {
    if (mine === work && error.turn !== undefined) checked[error.turn] = "differs";
    throw error;
  } finally {
    if (mine === work) draw();
  }
  if (mine === work) return episode;
  episode.close();
  return null;
}

async function verify() {
  find("verified").className = "";
  fill("verified", "Playing it again…");
  try {
    const episode = await follow(current().turns);
    if (!episode) return;
    episode.close();
    find("verified").className = "good";
    fill("verified", `All ${plural(episode.turns.length, "state")} are the same on this server.`);
  } catch (error) {
    find("verified").className = "bad";
    fill("verified", `${error.message} ${error.hint ?? ""}`);
    if (error.turn !== undefined) go(error.turn);
  }
}

async function goOn() {
  const { header } = current(), turn = shown;
  const who = recording.actor(header);
  fill("verified", "Playing it to here…");
  try {
    const episode = await follow(current().turns.slice(0, turn + 1));
    if (!episode) return;
    fill("verified");
    episode.setting.actor = turn === 0 || who === "person" ? "person" : `${who}, person from turn ${turn + 1}`;
    takeOver(episode);
  } catch (error) {
    find("verified").className = "bad";
    fill("verified", `${error.message} ${error.hint ?? ""}`);
  }
}
