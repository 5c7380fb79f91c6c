// The form for a new episode: which task, seed and arguments.
import * as api from "./api.js";
import { fill, find, make, plural, show } from "./dom.js";

const PAGE = 50;
const TYPING_MS = 200;
const SEED_RANGE = 2 ** 31;
const HERE = ["split", "max_turns", "oracle", "render_mode"]; // those with a field of their own

let environment = null;
let session = null; // opened only to list tasks, where arguments other than the server's decide
let listed = ""; // the arguments of that session
let latest = 0;
let timer = 0;
let begin = () => {};

export function setUp(description, start) {
  [environment, begin] = [description, start];
  fill("split", ...environment.splits.map((split) => new Option(split, split, false, split === environment.split)));
  find("max-turns").placeholder = String(environment.max_turns);
  show("picture-box", environment.render_modes.includes("rgb_array"));
  find("picture-field").checked = environment.render_modes.includes("rgb_array") && !showsImages();
  find("cancel").addEventListener("click", () => find("setup").close());
  find("setup-form").addEventListener("submit", submit);
  find("task").addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(search, TYPING_MS);
  });
  for (const id of ["split", "kwargs"]) find(id).addEventListener("change", search);
}

const showsImages = () =>
  Object.values(environment.observation_space.spaces ?? {}).some((space) => space.type === "Box");

// The arguments are those of the last episode; `running` is its turn if it is not over.
export function open(kwargs, running) {
  find("split").value = kwargs.split ?? environment.split;
  find("max-turns").value = kwargs.max_turns ?? "";
  find("oracle-field").checked = kwargs.oracle === true;
  if (Object.keys(kwargs).length > 0) find("picture-field").checked = kwargs.render_mode === "rgb_array";
  const rest = Object.entries(kwargs).filter(([name]) => !HERE.includes(name));
  find("kwargs").value = rest.length > 0 ? JSON.stringify(Object.fromEntries(rest)) : "";
  find("task").value = find("seed-field").value = "";
  show("given-up", running > 0);
  fill("given-up", `The running episode, at turn ${running}, is given up.`);
  show("setup-wrong", false);
  find("setup").showModal();
  find("begin").focus();
  search();
}

// The kwargs of an episode that nobody has chosen anything for.
export function usual() {
  return find("picture-field").checked ? { render_mode: "rgb_array" } : {};
}

export const anySeed = () => Math.floor(Math.random() * SEED_RANGE);

function kwargsChosen() {
  const typed = find("kwargs").value.trim();
  const kwargs = typed === "" ? {} : JSON.parse(typed);
  if (typeof kwargs !== "object" || kwargs === null || Array.isArray(kwargs)) throw new Error("expected an object");
  if (find("split").value !== environment.split) kwargs.split = find("split").value;
  if (find("max-turns").value) kwargs.max_turns = Number(find("max-turns").value);
  if (find("oracle-field").checked) kwargs.oracle = true;
  if (find("picture-field").checked) kwargs.render_mode = "rgb_array";
  return kwargs;
}

async function submit(event) {
  event.preventDefault();
  let kwargs;
  try {
    kwargs = kwargsChosen();
  } catch (error) {
    return wrong(`The other arguments are no JSON object: ${error.message}`);
  }
  const task = find("task").value.trim(), seed = find("seed-field").value;
  const setting = { kwargs, seed: seed === "" ? anySeed() : Number(seed), options: task ? { task_id: task } : {} };
  try {
    if (await begin(setting)) find("setup").close();
    else wrong("The server has not answered the last action yet: begin when it has.");
  } catch (error) {
    wrong(`${error.message} ${error.hint ?? ""}`);
  }
}

function wrong(text) {
  fill("setup-wrong", text);
  show("setup-wrong");
}

async function search() {
  latest += 1;
  fill("tasks");
  await list(latest, 0, 0);
}

// Add a page of tasks; a search that went on after 50,000 tasks without enough of them goes on.
async function list(number, offset, found) {
  let told;
  try {
    const query = { split: find("split").value, offset, limit: PAGE, contains: find("task").value.trim() };
    told = await api.tasks(await lister(), query);
  } catch (error) {
    if (number === latest) fill("tasks-told", `The tasks cannot be listed: ${error.message}`);
    return;
  }
  if (number !== latest || !find("setup").open) return;
  const rows = told.tasks.map(([id, family]) =>
    make("button", { type: "button", click: () => pick(id) }, make("span", {}, id), make("small", {}, family)));
  const count = found + rows.length, goesOn = typeof told.next === "number";
  find("tasks").querySelector(".more")?.remove();
  find("tasks").append(...rows);
  if (goesOn) {
    const more = () => list(number, told.next, count);
    find("tasks").append(make("button", { type: "button", class: "more", click: more }, rows.length ? "More" : "Search on"));
  }
  fill("tasks-told", `${count.toLocaleString("en")} of ${plural(told.total, "task")}${goesOn ? " shown" : ""}`);
}

function pick(id) {
  find("task").value = id;
  find("begin").focus();
}

// Other arguments may make other tasks; only a session with them can list those.
async function lister() {
  const kwargs = kwargsChosen();
  const plain = Object.keys(kwargs).every((name) => HERE.includes(name));
  if (plain) return null;
  const asked = JSON.stringify(kwargs);
  if (asked !== listed) {
    if (session) api.close(session);
    session = await api.create(kwargs);
    listed = asked;
  }
  return session;
}

// Give up the session that lists tasks.
export function leave() {
  if (session) api.close(session);
  [session, listed] = [null, ""];
}
