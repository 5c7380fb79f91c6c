// Elements found and made. Text is only ever set as text, so that nothing in it becomes markup.

export const find = (id) => document.getElementById(id);

export function make(name, attributes = {}, ...content) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(key, value);
    else if (value !== false && value !== null) element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...content);
  return element;
}

export function fill(id, ...content) {
  find(id).replaceChildren(...content);
}

export function show(id, shown = true) {
  find(id).hidden = !shown;
}

// A figure in as few digits as say enough; "–" for one that is unknown.
export function figure(value) {
  if (typeof value !== "number") return "–";
  return String(Number(value.toFixed(3))).replace("-", "−");
}

export const signed = (value) => (value > 0 ? "+" : "") + figure(value);

export const plural = (count, word) => `${count.toLocaleString("en")} ${word}${count === 1 ? "" : "s"}`;

// Only for short texts: of long ones the end is cut.
export const cut = (text, length) => (text.length > length ? `${text.slice(0, length - 1).trimEnd()}…` : text);

export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch { // there is no clipboard where the page came over plain HTTP from another machine
    const field = make("textarea", { class: "unseen", "aria-hidden": "true" });
    field.value = text;
    document.body.append(field);
    field.select();
    document.execCommand("copy");
    field.remove();
  }
}

export function save(name, text) {
  const address = URL.createObjectURL(new Blob([text], { type: "application/jsonl" }));
  const link = make("a", { href: address, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}
