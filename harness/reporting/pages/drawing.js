// Vector graphics made of elements and attributes, so that a saved figure needs no style sheet.
const FONT = "system-ui, 'Segoe UI', 'Helvetica Neue', Helvetica, 'Liberation Sans', Arial, sans-serif";
const NS = "http://www.w3.org/2000/svg";

function add(parent, name, attributes = {}, text = null) {
  const element = document.createElementNS(NS, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text !== null) element.textContent = text;
  if (parent) parent.append(element);
  return element;
}

function sheet(width, height, theme, label) {
  const svg = add(null, "svg", {
    xmlns: NS, width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label,
    "font-family": FONT, "font-size": 12, fill: theme.ink,
  });
  add(svg, "rect", { width, height, fill: theme.back });
  return svg;
}

function html(parent, name, attributes = {}, text = null) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text !== null) element.textContent = text;
  if (parent) parent.append(element);
  return element;
}

function number(value) {
  if (value === 0) return "0";
  const digits = Math.abs(value) < 0.1 ? 3 : Math.abs(value) < 10 ? 2 : 1;
  return value.toFixed(digits).replace("-", "−");
}

// Round numbers within [low, high], about `count` of them.
function ticks(low, high, count) {
  const rough = (high - low) / count || 1, power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((s) => s * power >= rough);
  const found = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; i++) found.push(i * step);
  return found;
}

const signed = (value) => (value > 0 ? "+" : "") + number(value);
const cut = (text, length) => {
  const letters = Array.from(text.replace(/\s+/g, " "));
  return letters.length > length ? `${letters.slice(0, length - 1).join("").trimEnd()}…` : letters.join("");
};

// Text cut to a width in pixels, as the browser would draw it.
const ruler = document.createElement("canvas").getContext("2d");
function fitted(text, room, size = 12, weight = 400) {
  ruler.font = `${weight} ${size}px ${FONT}`;
  let [fits, letters] = [0, Math.min(Array.from(text).length, Math.ceil(room / 2))];
  if (ruler.measureText(cut(text, letters)).width <= room) return cut(text, letters);
  while (letters - fits > 1) {
    const middle = (fits + letters) >> 1;
    if (ruler.measureText(cut(text, middle)).width <= room) fits = middle;
    else letters = middle;
  }
  return fits ? cut(text, fits) : "";
}

// What is under the pointer or the keyboard's cursor: boxes in the drawing with the lines to say.
class Reader {
  constructor(svg, boxes, theme, choose) {
    Object.assign(this, { svg, boxes, choose, at: -1 });
    if (!boxes.length) return;
    this.ring = add(svg, "rect", {
      fill: "none", stroke: theme.ink, "stroke-width": 2, rx: 2, visibility: "hidden", "pointer-events": "none",
    });
    svg.setAttribute("tabindex", "0");
    svg.setAttribute("aria-description", "Arrow keys read the values one by one; Enter selects.");
    svg.addEventListener("pointermove", (event) => this.point(event));
    svg.addEventListener("pointerleave", () => this.leave());
    svg.addEventListener("blur", () => this.leave());
    svg.addEventListener("click", () => this.at >= 0 && this.choose?.(this.boxes[this.at]));
    svg.addEventListener("keydown", (event) => this.press(event));
  }

  point(event) {
    const box = this.svg.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    const found = this.boxes.findIndex((b) => x >= b.x - 1 && x <= b.x + b.width + 1 && y >= b.y - 1 && y <= b.y + b.height + 1);
    if (found < 0) return this.leave();
    if (found !== this.at) this.show(found);
    place(event.clientX + 14, event.clientY + 16);
  }

  press(event) {
    const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    if (step) {
      event.preventDefault();
      this.show(this.at < 0 ? 0 : this.next(step));
      const box = this.boxes[this.at], frame = this.svg.getBoundingClientRect();
      place(frame.left + box.x + box.width + 8, frame.top + box.y + box.height + 8);
      document.getElementById("announcement").textContent = box.lines.join(". ");
    } else if ((event.key === "Enter" || event.key === " ") && this.at >= 0) {
      event.preventDefault();
      this.choose?.(this.boxes[this.at]);
    } else if (event.key === "Escape") this.leave();
  }

  next([dx, dy]) {
    const middle = (b) => [b.x + b.width / 2, b.y + b.height / 2];
    const [x, y] = middle(this.boxes[this.at]);
    let best = this.at, least = Infinity;
    this.boxes.forEach((box, i) => {
      const [mx, my] = middle(box);
      const ahead = (mx - x) * dx + (my - y) * dy, aside = Math.abs((mx - x) * dy) + Math.abs((my - y) * dx);
      if (ahead > 0.5 && ahead + 4 * aside < least) [best, least] = [i, ahead + 4 * aside];
    });
    return best;
  }

  show(i) {
    this.at = i;
    const box = this.boxes[i];
    const frame = { x: box.x - 1.5, y: box.y - 1.5, width: box.width + 3, height: box.height + 3, visibility: "visible" };
    for (const [key, value] of Object.entries(frame)) this.ring.setAttribute(key, value);
    document.getElementById("tip").textContent = box.lines.join("\n");
    document.getElementById("tip").hidden = false;
  }

  leave() {
    this.at = -1;
    this.ring.setAttribute("visibility", "hidden");
    document.getElementById("tip").hidden = true;
  }
}

function place(x, y) {
  const tip = document.getElementById("tip"), box = tip.getBoundingClientRect();
  tip.style.left = `${Math.max(6, Math.min(x, innerWidth - box.width - 6))}px`;
  tip.style.top = `${y + box.height > innerHeight - 6 ? Math.max(6, y - box.height - 34) : y}px`;
}

function colourBar(svg, x, y, width, theme, low, high, middle = "0") {
  const steps = 48, colour = middle === null ? (i) => sequential(theme, i / (steps - 1)) : (i) => mixed(theme.diverging, i / (steps - 1));
  for (let i = 0; i < steps; i++)
    add(svg, "rect", { x: x + (i * width) / steps, y, width: width / steps + 0.4, height: 9, fill: colour(i) });
  const label = (text, at, anchor) => add(svg, "text", { x: at, y: y + 22, "text-anchor": anchor, "font-size": 11, fill: theme.soft }, text);
  label(low, x, "start");
  if (middle !== null) label(middle, x + width / 2, "middle");
  label(high, x + width, "end");
}
