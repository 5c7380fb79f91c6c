// The actions a person can choose: a button for each that the state admits, and a field for any.
import { fill, find, make, plural, show } from "./dom.js";
import { titlesOf } from "./text_page.js";

const FORM = /<\w[^<>]*>/;
const FILTERED_FROM = 12;
const MOST_BUTTONS = 300;
const SETTLING_MS = 400;
const AXES = [["up", "down"], ["left", "right"]];
const DIRECTIONS = AXES.flat();

let admissible = [];
let titles = new Map(); // what actions that are codes stand for
let crossed = []; // moves that have a key of the cross
let drawnAt = 0;
let take = () => {};

const filter = () => find("filter"), field = () => find("action");

// Actions of which every one is free text, such as code, are often of several lines.
let code = false;

export function setUp(act) {
  take = act;
  filter().addEventListener("input", drawButtons);
  filter().addEventListener("keydown", (event) => {
    if (event.key === "Enter") choose(0);
  });
  field().addEventListener("input", fit);
  field().addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.isComposing) return;
    const several = code || field().value.includes("\n");
    const sends = event.ctrlKey || event.metaKey || (!several && !event.shiftKey);
    if (!sends) return;
    event.preventDefault();
    if (!event.repeat) send();
  });
  for (const name of DIRECTIONS) key(name).addEventListener("click", () => move(name));
  find("own").addEventListener("submit", (event) => {
    event.preventDefault();
    send();
  });
}

// Draw what the last of an episode's turns admits.
export function draw(turns) {
  const turn = turns.at(-1);
  admissible = turn.info.admissible_actions.filter((action) => typeof action === "string");
  const count = admissible.length, complete = turn.info.admissible_complete;
  const inside = find("actions").contains(document.activeElement);
  code = count === 0 && !complete;
  titles = titlesOf(turn);
  drawCross(turns);
  filter().value = "";
  filter().hidden = count < FILTERED_FROM;
  show("actions-head", admissible.some((action) => !crossed.includes(action)) || (complete && crossed.length === 0));
  fill("complete", complete ? `${plural(count, "action")}, and no other one is legal` : "Others are legal too: type them");
  find("own").classList.toggle("code", code);
  fill("how", code ? "Actions are text of your own, such as code. Ctrl Enter sends, Enter begins another line."
    : `Enter sends. Shift Enter begins another line.${moves() ? " Arrow keys move." : ""}`);
  drawnAt = performance.now();
  drawButtons();
  fit();
  if (inside) find("actions").focus({ preventScroll: true });
}

// The cross has the keys of each axis on which the episode has ever admitted a move, and each key its place,
// so that none moves from turn to turn.
function drawCross(turns) {
  const admitted = (name) => turns.some(({ info }) => info.admissible_actions.includes(name));
  crossed = AXES.filter((axis) => axis.some(admitted)).flat();
  show("cross", crossed.length > 0);
  for (const name of DIRECTIONS) show(`key-${name}`, crossed.includes(name));
  enableCross(true);
}

const key = (name) => find(`key-${name}`);

function enableCross(on) {
  for (const name of DIRECTIONS) key(name).setAttribute("aria-disabled", String(!(on && admissible.includes(name))));
}

function shown() {
  const wanted = filter().value.trim().toLowerCase();
  return admissible.filter((action) => `${action}\n${titles.get(action) ?? ""}`.toLowerCase().includes(wanted));
}

function drawButtons() {
  const found = shown(), listed = found.filter((action) => !crossed.includes(action));
  const buttons = listed.slice(0, MOST_BUTTONS).map((action) => buttonOf(action, found.indexOf(action) + 1));
  const rest = listed.length - buttons.length;
  if (rest > 0) buttons.push(make("p", {}, `${plural(rest, "action")} more: filter them`));
  if (found.length === 0 && admissible.length > 0) buttons.push(make("p", {}, "No action contains this."));
  fill("actions", ...buttons);
}

function buttonOf(action, number) {
  const button = make("button", { class: FORM.test(action) ? "form" : "", click: (event) => press(event, action) });
  if (number <= 9) button.append(make("kbd", {}, String(number)), " ");
  const title = titles.get(action);
  if (title) button.append(make("b", {}, title), " ");
  button.append(make("span", {}, action));
  return button;
}

// The second half of a double click falls on buttons that nobody has read yet.
export function press(event, action) {
  if (event.detail > 1 && performance.now() - drawnAt < SETTLING_MS) return;
  use(action);
}

// Take the action of a number, counted from 0, if there is one.
export function choose(at) {
  const action = shown()[at];
  if (action !== undefined) use(action);
}

// Whether arrow keys are moves in this episode.
export const moves = () => crossed.length > 0;

export function move(direction) {
  if (admissible.includes(direction)) use(direction);
}

function use(action) {
  if (FORM.test(action)) writeOut(action);
  else take(action);
}

// An action that leaves something open is written out by the person.
function writeOut(action) {
  const open = FORM.exec(action);
  write(action);
  field().focus();
  field().setSelectionRange(open.index, open.index + open[0].length);
}

export function write(action) {
  field().value = action;
  fit();
}

function send() {
  if (field().value.trim() !== "") take(field().value, true);
}

export const clear = () => write("");

export const focus = () => field().focus();

// Whoever has a keyboard can go on typing; on a phone the field would open one over the page.
export function focusIfFree() {
  const nowhere = document.activeElement === document.body;
  if (nowhere && code && matchMedia("(pointer: fine)").matches) field().focus({ preventScroll: true });
}

export function enable(on) {
  for (const button of find("actions").querySelectorAll("button")) button.setAttribute("aria-disabled", String(!on));
  enableCross(on);
  find("send").setAttribute("aria-disabled", String(!on));
}

function fit() {
  field().style.height = "auto";
  field().style.height = `${Math.min(field().scrollHeight + 2, 320)}px`;
}
