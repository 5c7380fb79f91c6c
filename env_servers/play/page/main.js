// The page: which part of it is open, and the keys.
import * as actions from "./actions.js";
import * as api from "./api.js";
import { fill, find, show } from "./dom.js";
import * as notices from "./notices.js";
import * as player from "./player.js";
import * as replay from "./replay.js";
import * as setup from "./setup.js";
import { copyStateKey } from "./view.js";

let replaying = false;

async function open() {
  let info;
  try {
    info = await api.info();
  } catch (error) {
    notices.tellError(error, [["Try again", open]]);
    return;
  }
  notices.clear();
  const name = info.env_id.split("/").at(-1).replace(/-v\d+$/, "");
  fill("name", name);
  fill("env-id", info.env_id, ` · data ${info.environment.data_version}`);
  document.title = `${name} · agentgyms`;
  player.setUp(info, () => turnTo(false));
  replay.setUp(info, player.enter);
  listen();
  await turnTo(location.hash === "#replay");
  document.documentElement.dataset.ready = "yes";
}

async function turnTo(replays) {
  replaying = replays;
  find("to-play").setAttribute("aria-pressed", String(!replays));
  find("to-replay").setAttribute("aria-pressed", String(replays));
  show("download", !replays);
  history.replaceState(null, "", replays ? "#replay" : location.pathname);
  if (replays) {
    player.hide();
    replay.open();
  } else {
    replay.hide();
    player.open();
    if (!player.playing()) await player.start();
  }
}

function newEpisode() {
  setup.open(player.playing() ? player.setting().kwargs : {}, player.unfinished());
}

function listen() {
  const presses = {
    "to-play": () => turnTo(false),
    "to-replay": () => turnTo(true),
    new: newEpisode,
    another: newEpisode,
    again: player.sameAgain,
    "look-back": () => {
      replay.load([player.recorded()]);
      turnTo(true);
    },
    download: player.download,
    keep: player.download,
    now: player.toNow,
    help: () => find("key-help").showModal(),
    "state-key": copyStateKey,
  };
  for (const [id, press] of Object.entries(presses)) find(id).addEventListener("click", press);
  document.addEventListener("keydown", press);
  document.addEventListener("dragover", (event) => event.preventDefault());
  document.addEventListener("drop", drop);
  window.addEventListener("pagehide", player.leave);
  window.addEventListener("pageshow", (event) => event.persisted && location.reload());
}

async function drop(event) {
  event.preventDefault();
  const [file] = event.dataTransfer.files;
  if (!file) return;
  await turnTo(true);
  await replay.read(file);
}

const writes = (element) => element.closest("textarea, select, input:not([type=checkbox], [type=range])") !== null;

function press(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.repeat && !(replaying && event.key.startsWith("Arrow"))) return;
  if (document.querySelector("dialog[open]")) return;
  if (writes(event.target)) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  const act = shared[event.key] ?? (replaying ? inReplay : inPlay)(event);
  if (!act) return;
  event.preventDefault();
  act();
}

const shared = { n: newEpisode, "?": () => find("key-help").showModal() };

function inReplay({ key, target }) {
  if (target.type === "range" || (key === " " && target.closest("button, a, summary"))) return null;
  const { move, go, run } = replay;
  return {
    ArrowLeft: () => move(-1), ArrowRight: () => move(1), Home: () => go(0), End: () => go(Infinity), " ": run,
  }[key];
}

function inPlay({ key }) {
  if (!player.playing()) return null;
  if (/^[1-9]$/.test(key)) return () => actions.choose(Number(key) - 1);
  const { move, choose, toNow } = player;
  const direction = key.startsWith("Arrow") && key.slice(5).toLowerCase();
  if (direction && actions.moves()) return () => actions.move(direction);
  return {
    a: actions.focus, "/": actions.focus, Escape: toNow,
    ArrowLeft: () => move(-1), ArrowRight: () => move(1), Home: () => choose(0), End: toNow,
  }[key];
}

open();
