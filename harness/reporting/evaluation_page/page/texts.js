// Untrusted texts, shown as plain text only, and numbers as words.
const LONG = 4000, SHOWN = 2400;

const percent = (value) => (value === null || value === undefined ? "–" : (100 * value).toFixed(1));
const plain = (value) => (value === null || value === undefined ? "–" : value.toFixed(2).replace("-", "−"));
const counted = (count, one, many = `${one}s`) => `${count.toLocaleString("en")} ${count === 1 ? one : many}`;
const spaced = (name) => name.replaceAll("_", " ");

// Where a text can be cut without breaking a letter in two.
const boundary = (text, at) => (/[\ud800-\udbff]/.test(text[at - 1] ?? "") ? at - 1 : at);

// A block of pieces, each [text, class]; a long one is cut until its button is pressed.
function passage(parent, pieces, kind = "") {
  const block = html(parent, "div", { class: `passage ${kind}`.trim() });
  const total = pieces.reduce((sum, [text]) => sum + text.length, 0);
  const fill = (limit) => {
    block.replaceChildren();
    let left = limit;
    for (const [text, name] of pieces) {
      const shown = text.length > left ? text.slice(0, boundary(text, left)) : text;
      if (shown) html(block, "span", name ? { class: name } : {}, shown);
      left -= shown.length;
      if (shown.length < text.length) break;
    }
  };
  fill(total > LONG ? SHOWN : total);
  if (total <= LONG) return block;
  const button = html(parent, "button", { type: "button", class: "more", "aria-expanded": "false" });
  const label = (open) => (button.textContent = open ? "Show less" : `Show all ${counted(total, "character")}`);
  button.addEventListener("click", () => {
    const open = button.getAttribute("aria-expanded") === "false";
    button.setAttribute("aria-expanded", String(open));
    fill(open ? total : SHOWN);
    label(open);
  });
  label(false);
  return block;
}

// A folded block that is written when it is first opened.
function folded(parent, title, write, kind = "") {
  const details = html(parent, "details", { class: `folded ${kind}`.trim() });
  html(details, "summary", {}, title);
  details.addEventListener("toggle", () => {
    if (details.open && details.childElementCount === 1) write(details);
  });
  return details;
}

// An answer in pieces: its thoughts, its action, the tags around them, and the rest.
function answerPieces(answer, action) {
  const pieces = [], put = (text, kind) => text && pieces.push([text, kind]);
  const lead = /<\/think>/i.exec(answer), opened = /<think>/i.exec(answer);
  let at = 0;
  if (lead && (!opened || opened.index > lead.index)) {
    put(answer.slice(0, lead.index), "thought");
    put(lead[0], "tag");
    at = lead.index + lead[0].length;
  }
  const element = /<(think|action|search|answer)>([^]*?)(<\/\1>|$)/gi;
  element.lastIndex = at;
  for (let found; (found = element.exec(answer)); ) {
    const [whole, name, inner, end] = found;
    rest(answer.slice(at, found.index));
    put(whole.slice(0, name.length + 2), "tag");
    put(inner, name.toLowerCase() === "think" ? "thought" : "acted");
    put(end, "tag");
    at = found.index + whole.length;
    if (!whole.length) break;
  }
  rest(answer.slice(at));
  return pieces;

  function rest(text) {
    const bare = action.trim(), found = pieces.some(([, kind]) => kind === "acted") || !bare ? -1 : text.indexOf(bare);
    if (found < 0 || text.trim() !== bare) return put(text, "");
    put(text.slice(0, found), "");
    put(bare, "acted");
    put(text.slice(found + bare.length), "");
  }
}

// An observation: a text, or texts and images by name.
function observed(parent, observation, what) {
  if (typeof observation === "string") return observation ? passage(parent, [[observation, ""]]) : html(parent, "p", { class: "none" }, "Nothing.");
  for (const [name, part] of Object.entries(observation)) {
    if (typeof part === "string") passage(parent, [[part, ""]]);
    else if (/^[A-Za-z0-9+/]+=*$/.test(part.png)) html(parent, "img", { src: `data:image/png;base64,${part.png}`, alt: `${what}: ${name}` });
  }
}
