// An observation on the page: its texts letter by letter, its images to the pixel.
import { make } from "./dom.js";
import { blocksOf } from "./text_page.js";

const BASE64 = /^[A-Za-z0-9+/]+=*$/;
const SEPARATOR = /( ?\[SEP\] ?)/;
const GRID_LINES = 3;
const SMALL_PX = 384;

// `press` takes an event and the action that was pressed on a page; without it pages are only read.
export function draw(parent, turn, press = null) {
  parent.replaceChildren(...partsOf(turn, press));
}

function partsOf({ observation, turn, picture, info }, press) {
  const parts = typeof observation === "string" ? { text: observation } : observation;
  const drawn = Object.entries(parts).flatMap(([name, part]) => {
    const blocks = typeof part === "string" ? blocksOf(part, info) : null;
    return blocks ? page(blocks, partOf(name, part, turn), press) : partOf(name, part, turn);
  });
  // What answers to code is mostly data.
  const code = info.admissible_actions.length === 0 && !info.admissible_complete;
  if (code && turn > 0) drawn.forEach((part) => part.classList.add("code"));
  if (isImage(picture)) {
    drawn.unshift(image(picture.png, `The state after turn ${turn}, drawn; agents read the text below`));
  }
  return drawn;
}

function partOf(name, part, turn) {
  if (isImage(part)) return image(part.png, `Part “${name}” of the observation of turn ${turn}, an image`);
  const shown = text(typeof part === "string" ? part : JSON.stringify(part));
  shown.dataset.part = name;
  return shown;
}

const isImage = (part) => typeof part?.png === "string" && BASE64.test(part.png);

function image(png, description) {
  const shown = make("img", { class: "picture", src: `data:image/png;base64,${png}`, alt: description });
  shown.addEventListener("load", () => scale(shown));
  return shown;
}

// Small pictures are enlarged by a whole number, so that a pixel stays a square.
function scale(shown) {
  const times = Math.floor(SMALL_PX / Math.max(shown.naturalWidth, shown.naturalHeight));
  shown.classList.toggle("pixels", times >= 1);
  if (times > 1) shown.style.width = `${shown.naturalWidth * times}px`;
}

function text(content) {
  if (content === "") return make("p", { class: "text empty" }, "(nothing is said)");
  const lines = content.split("\n");
  const from = gridIn(lines);
  if (from === null) return make("div", { class: "text", dir: "auto" }, ...separated(content));
  const [first, last] = from;
  const before = lines.slice(0, first).map((line) => `${line}\n`).join("");
  const after = lines.slice(last).map((line) => `\n${line}`).join("");
  return make("div", { class: "text" }, before, make("span", { class: "grid-text" }, lines.slice(first, last).join("\n")), after);
}

// The longest run of lines that form a map: as long as each other, without spaces, of few characters.
function gridIn(lines) {
  let found = null;
  for (let first = 0; first < lines.length; ) {
    let last = first + 1;
    while (last < lines.length && lines[last].length === lines[first].length) last += 1;
    const run = lines.slice(first, last);
    const map = run[0].length > 2 && !/\s/.test(run.join("")) && new Set(run.join("")).size <= 12;
    if (map && run.length >= GRID_LINES && run.length > (found ? found[1] - found[0] : 0)) found = [first, last];
    first = last;
  }
  return found;
}

// A page as a person reads it, and folded away the text that agents read.
function page(blocks, read, press) {
  const drawn = make("div", { class: "page" }, ...blocks.map((block) => blockOf(block, press)));
  return make("div", { class: "told" }, drawn, make("details", { class: "read" }, make("summary", {}, "As agents read it"), read));
}

function blockOf({ action, code, words, label, actions }, press) {
  if (actions) {
    const row = actions.map((part) => pressable(part.action, press, part.chosen, part.text));
    return make("div", { class: "choices" }, ...(label ? [make("span", { class: "label" }, label)] : []), ...row);
  }
  if (!code) return make("p", {}, words[0]);
  const [title, ...more] = words;
  const rest = [...more.map((word) => make("span", {}, word)), make("code", {}, code)];
  return pressable(action, press, false, make("b", {}, title), make("small", {}, ...rest));
}

function pressable(action, press, chosen, ...content) {
  if (!press) return make("span", { class: chosen ? "press chosen" : "press" }, ...content);
  return make("button", { class: "press", title: action, "aria-pressed": chosen && "true", click: (event) => press(event, action) }, ...content);
}

// Pages told in one line are easier to read where their separators stand out; the text is the same.
function separated(content) {
  return content.split(SEPARATOR).map((part, i) => (i % 2 ? make("span", { class: "separator" }, part) : part));
}
