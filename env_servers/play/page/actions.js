// The actions a person can choose: a button for each that the state admits, and a field for any.
import { fill, find, make, plural, show } from "./dom.js";

const FORM = /<\w[^<>]*>/;
const FILTERED_FROM = 12;
const MOST_BUTTONS = 300;
const SETTLING_MS = 400;
const DIRECTIONS = ["up", "down", "left", "right"];

let admissible = [];
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
  find("own").addEventListener("submit", (event) => {
    event.preventDefault();
    send();
  });
}

export function draw(turn) {
  admissible = turn.info.admissible_actions.filter((action) => typeof action === "string");
  const count = admissible.length, complete = turn.info.admissible_complete;
  const inside = find("actions").contains(document.activeElement);
  code = count === 0 && !complete;
  filter().value = "";
  filter().hidden = count < FILTERED_FROM;
  show("actions-head", count > 0 || complete);
  fill("complete", complete ? `${plural(count, "action")}, and no other one is legal` : "Others are legal too: type them");
  find("own").classList.toggle("code", code);
  fill("how", code ? "Actions are text of your own, such as code. Ctrl Enter sends, Enter begins another line."
    : `Enter sends. Shift Enter begins another line.${moves() ? " Arrow keys move." : ""}`);
  drawnAt = performance.now();
  drawButtons();
  fit();
  if (inside) find("actions").focus({ preventScroll: true });
}

function shown() {
  const wanted = filter().value.trim().toLowerCase();
  return admissible.filter((action) => action.toLowerCase().includes(wanted));
}

function drawButtons() {
  const found = shown();
  const buttons = found.slice(0, MOST_BUTTONS).map((action, at) => {
    const kind = FORM.test(action) ? "form" : "";
    const button = make("button", { class: kind, click: (event) => press(event, action) });
    if (at < 9) button.append(make("kbd", {}, String(at + 1)), " ");
    button.append(make("span", {}, action));
    return button;
  });
  const rest = found.length - buttons.length;
  if (rest > 0) buttons.push(make("p", {}, `${plural(rest, "action")} more: filter them`));
  if (found.length === 0 && admissible.length > 0) buttons.push(make("p", {}, "No action contains this."));
  fill("actions", ...buttons);
}

// The second half of a double click falls on buttons that nobody has read yet.
function press(event, action) {
  if (event.detail > 1 && performance.now() - drawnAt < SETTLING_MS) return;
  use(action);
}

// Take the action of a number, counted from 0, if there is one.
export function choose(at) {
  const action = shown()[at];
  if (action !== undefined) use(action);
}

// Whether arrow keys are moves in this state.
export const moves = () => DIRECTIONS.some((name) => admissible.includes(name));

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
  find("send").setAttribute("aria-disabled", String(!on));
}

function fit() {
  field().style.height = "auto";
  field().style.height = `${Math.min(field().scrollHeight + 2, 320)}px`;
}
