// A person's episode: every action once, and what to do when something goes wrong on the way.
import * as actions from "./actions.js";
import * as api from "./api.js";
import { fill, find, save, show } from "./dom.js";
import { Episode } from "./episode.js";
import * as kept from "./kept.js";
import * as notices from "./notices.js";
import { fileName } from "./recording.js";
import * as setup from "./setup.js";
import * as view from "./view.js";

let server = null;
let episode = null;
let shown = 0; // the turn that is read
let busy = false;
let visible = false;

let entered = () => {};

// `shows` turns to the part of the page on which is played.
export function setUp(info, shows) {
  [server, entered] = [info, shows];
  setup.setUp(info.environment, (chosen) => during(() => begin(chosen)));
  actions.setUp(act);
}

export const playing = () => episode !== null;
export const inPast = () => episode !== null && shown < episode.turns.length - 1;
export const setting = () => episode.setting;
export const unfinished = () => (episode && !episode.over ? episode.last.turn : 0);
export const recorded = () => ({ header: headerOf(), turns: episode.turns });

const headerOf = () => ({
  env_id: server.env_id, ...episode.setting, provenance: { actor: episode.setting.actor },
});

// Begin what a reload of the page has interrupted, or any episode.
export async function start() {
  const left = kept.load(server.env_id);
  if (left) return resume(left);
  return attempt(() => begin({ kwargs: setup.usual(), seed: setup.anySeed(), options: {} }));
}

async function resume({ setting: before, turns }) {
  await attempt(async () => {
    enter(await new Episode(before).follow(turns));
  }, [["Begin another one", anew]]);
}

export function anew() {
  kept.forget();
  return start();
}

// Begin an episode; the running one is given up only when the new one has begun.
async function begin(chosen) {
  const next = new Episode(chosen);
  try {
    await next.begin();
  } catch (error) {
    next.close();
    throw error;
  }
  enter(next);
  return true;
}

export function sameAgain() {
  const { kwargs, seed, options } = episode.setting;
  return attempt(() => begin({ kwargs, seed, options: { ...options } }));
}

// Take over an episode that stands in a session already.
export function enter(next) {
  episode?.close();
  [episode, shown] = [next, next.turns.length - 1];
  notices.clear();
  actions.clear();
  entered();
}

// --- acting ---------------------------------------------------------------------------------------

async function act(chosen, typed = false) {
  if (busy || !visible || episode.over || inPast()) return undefined;
  const { pending } = episode, action = pending ?? chosen;
  return attempt(async () => {
    try {
      await episode.act(action);
    } catch (error) {
      if (!typed && pending === null) actions.write(action); // so that it can be sent again
      throw error;
    }
    if (find("action").value === action) actions.clear();
    shown = episode.turns.length - 1;
    draw();
  });
}

// Do something with the server, and offer to go on where it fails.
async function attempt(work, choices = []) {
  notices.clear();
  try {
    await during(work);
  } catch (error) {
    const again = () => attempt(work, choices);
    notices.tellError(error, [...ways(error, again), ...choices]);
  }
}

function ways(error, again) {
  if (error.lost && episode) {
    const turns = episode.turns.length - 1;
    return [[turns ? "Play it again to here and go on" : "Begin it again", goOn]];
  }
  return error.retryable || error.status === 401 ? [["Try again", again]] : [];
}

const goOn = () => attempt(async () => {
  await episode.goOn();
  shown = episode.turns.length - 1;
  draw();
  notices.tell("The episode goes on in a new session.", "Every turn came out as before.", [], "good");
});

// One thing at a time: what is asked for meanwhile is left undone.
async function during(work) {
  if (busy) return false;
  busy = true;
  actions.enable(false);
  const patience = setTimeout(() => show("waiting"), 200);
  try {
    return await work();
  } finally {
    busy = false;
    actions.enable(true);
    clearTimeout(patience);
    show("waiting", false);
  }
}

export function download() {
  return attempt(async () => {
    const text = await api.trajectory(episode.session, episode.setting.actor);
    save(fileName(server.env_id, episode.turns, episode.setting.seed), text);
  });
}

// --- showing --------------------------------------------------------------------------------------

export function choose(index) {
  shown = Math.max(0, Math.min(index, episode.turns.length - 1));
  draw();
}

export const move = (by) => choose(shown + by);
export const toNow = () => choose(episode.turns.length - 1);

export function open() {
  visible = true;
  for (const id of ["recorded", "checks", "transport", "opening"]) show(id, false);
  show("main", episode !== null);
  if (episode) draw();
}

export function hide() {
  visible = false;
}

function draw() {
  kept.keep(server.env_id, episode);
  if (!visible) return;
  const { turns, session } = episode, maxTurns = session?.environment.max_turns;
  show("main");
  const acting = !episode.over && !inPast();
  view.drawTurn({ turns, index: shown, maxTurns, press: acting ? actions.press : null });
  const { parties, data_source: source } = session?.environment ?? {};
  view.drawSetting({ ...episode.setting, split: turns[0].info.split, parties, source });
  view.drawHistory({ turns, index: shown }, choose);
  show("past", inPast());
  fill("past-text", `You read turn ${shown}; the episode is at turn ${turns.length - 1}.`);
  for (const id of ["controls", "dock"]) show(id, acting);
  show("result", episode.over && !inPast());
  drawResult(maxTurns);
  drawOracle();
  if (acting) actions.draw(turns);
  actions.focusIfFree();
}

function drawResult(maxTurns) {
  const { info, turn } = episode.last;
  find("result").className = info.success ? "won" : "lost";
  fill("verdict", view.verdict(episode.last, maxTurns));
  fill("verdict-text", info.score === null ? "It cannot be scored." : `After turn ${turn}, with a score of ${info.score}.`);
}

function drawOracle() {
  const told = episode.last.info.oracle;
  show("oracle", Boolean(told) && !episode.over);
  fill("oracle-text", told ?? "");
}

// Sessions of a page that is left are given back; what a reload needs is kept.
export function leave() {
  episode?.close();
  setup.leave();
}
