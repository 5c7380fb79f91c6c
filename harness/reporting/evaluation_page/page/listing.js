// The list of episodes: what is shown of it, in which order, and one page of it at a time.
const PAGE = 50;
const FILTERS = [
  ["evaluation", "Evaluation", (e) => EVALUATIONS[e.evaluation].label],
  ["family", "Family", (e) => TASKS[e.task].family || "(none)"],
  ["outcome", "Outcome", (e) => (e.success ? "won" : "lost")],
  ["seed", "Seed", (e) => String(e.seed)],
  ["trial", "Trial", (e) => String(e.trial)],
  ["stop", "End", (e) => spaced(e.stop)],
];
const FLAWS = [
  ["", "any"], ["invalid", "with invalid actions"], ["failed", "with failed actions"],
  ["unfinished", "with cut answers"], ["cut", "with cut prompts"],
];
const ORDERS = {
  "as played": () => 0,
  "fewest turns first": (a, b) => a.turns - b.turns,
  "most turns first": (a, b) => b.turns - a.turns,
  "lowest score first": (a, b) => a.score - b.score,
  "highest score first": (a, b) => b.score - a.score,
};
const listing = { wanted: {}, flaw: "", words: "", order: "as played", page: 0, found: EPISODES, inside: null, search: 0 };

function refilter() {
  const words = listing.words.toLowerCase();
  const activeFilters = FILTERS.filter(([key]) => listing.wanted[key]);
  const fits = (e) => activeFilters.every(([key, , read]) => read(e) === listing.wanted[key]) && (!listing.flaw || e[listing.flaw] > 0) &&
    (!words || (listing.inside ? listing.inside.has(e.number) : taskText(TASKS[e.task]).includes(words)));
  listing.found = EPISODES.filter(fits).sort(ORDERS[listing.order]);
  listing.page = 0;
  drawList();
}

function drawFilters(box) {
  const field = (title, id) => {
    const span = html(box, "span", { class: "field" });
    html(span, "label", { for: id }, title);
    return span;
  };
  const select = (title, id, options, change) => {
    const list = html(field(title, id), "select", { id });
    for (const [value, text] of options) html(list, "option", { value }, cut(text, 60));
    list.addEventListener("change", () => { change(list.value); refilter(); });
  };
  for (const [key, title, read] of FILTERS) {
    const values = [...new Set(EPISODES.map(read))];
    if (["seed", "trial"].includes(key)) values.sort((a, b) => a - b);
    else if (key === "family") values.sort((a, b) => FAMILIES.indexOf(a) - FAMILIES.indexOf(b) || (a < b ? -1 : 1));
    else if (key !== "evaluation") values.sort();
    if (values.length < 2 && key !== "outcome") continue;
    select(title, `by-${key}`, [["", "all"], ...values.map((v) => [v, v])], (value) => (listing.wanted[key] = value));
  }
  if (EPISODES.some((e) => FLAWS.some(([key]) => key && e[key]))) select("Turns", "by-flaw", FLAWS, (value) => (listing.flaw = value));
  select("Order", "by-order", Object.keys(ORDERS).map((name) => [name, name]), (value) => (listing.order = value));
  drawSearch(box, field);
}

function drawSearch(box, field) {
  const span = field("Search", "by-words"), input = html(span, "input", { type: "search", id: "by-words", autocomplete: "off", spellcheck: "false" });
  const label = html(span, "label", { class: "check" }), inside = html(label, "input", { type: "checkbox", id: "by-inside" });
  label.append("inside episodes");
  let waiting = 0;
  const search = () => {
    listing.words = input.value.trim();
    listing.inside = null;
    listing.search += 1;
    if (inside.checked && listing.words) searchInside(listing.words.toLowerCase(), listing.search);
    else refilter();
  };
  input.addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(search, inside.checked ? 400 : 120); });
  inside.addEventListener("change", search);
}

// Look through every text of every episode; a search begun later ends this one.
async function searchInside(words, ticket) {
  listing.inside = new Set();
  for (const [i, episode] of EPISODES.filter(readable).entries()) {
    const texts = wordsOf(await unpackEpisode(episode));
    if (ticket !== listing.search) return;
    if (texts.some((text) => text.toLowerCase().includes(words))) listing.inside.add(episode.number);
    if (i % 200 === 199) find("found").textContent = `Searching: ${counted(i + 1, "episode")} of ${EPISODES.length.toLocaleString("en")}`;
  }
  refilter();
}

function wordsOf(episode) {
  const parts = (seen) => (typeof seen === "string" ? [seen] : Object.values(seen).filter((part) => typeof part === "string"));
  const reflection = episode.reflection ? [episode.reflection.answer] : [];
  return [episode.goal, ...parts(episode.observation), ...reflection, ...episode.turns.flatMap((t) => [t.answer, t.action, t.feedback_text, ...parts(t.observation)])];
}

function mark(parent, kind) {
  const words = { won: "won", lost: "lost", missing: "missing" }[kind];
  html(parent, "span", { class: `mark ${kind}` }, words);
}

const scoreText = (episode) => (episode.score === null ? "–" : percent(episode.score));

function drawList() {
  const { found, page } = listing, pages = Math.max(1, Math.ceil(found.length / PAGE));
  const won = found.filter((e) => e.success).length;
  find("found").textContent = `${counted(found.length, "episode")}${found.length < EPISODES.length ? ` of ${EPISODES.length.toLocaleString("en")}` : ""}, ${won.toLocaleString("en")} won`;
  const body = find("list");
  body.replaceChildren();
  for (const episode of found.slice(page * PAGE, (page + 1) * PAGE)) drawLine(body, episode);
  pager(find("pager"), page, pages, (next) => { listing.page = next; drawList(); });
}

function drawLine(body, episode) {
  const row = html(body, "tr"), task = TASKS[episode.task];
  mark(html(row, "td"), episode.success ? "won" : "lost");
  const cell = html(row, "td", { class: "what" });
  const title = cut(task.goal || task.id, 140) || "(no goal)";
  if (readable(episode)) html(cell, "a", { href: addressOf(episode) }, title);
  else html(cell, "span", {}, title);
  html(cell, "small", {}, task.id);
  const tell = (title, text, kind = "") => html(row, "td", { class: kind, "data-title": title }, text);
  if (SEVERAL) html(tell("", ""), "span", { class: `swatch s${episode.evaluation % 6}` }, EVALUATIONS[episode.evaluation].label);
  tell("family", task.family || "–");
  tell("seed", episode.seed, "value");
  tell("trial", episode.trial, "value");
  tell("turns", episode.turns, "value");
  tell("score", scoreText(episode), "value");
  tell("end", spaced(episode.stop) || "–");
  tell("invalid", episode.invalid ?? "–", "value");
}

// Buttons to the page before and the page after.
function pager(box, page, pages, go) {
  const had = [...box.children].indexOf(document.activeElement);
  box.replaceChildren();
  box.hidden = pages < 2;
  const button = (label, text, to) => {
    const made = html(box, "button", { type: "button", "aria-label": label }, text);
    made.disabled = to < 0 || to >= pages;
    made.addEventListener("click", () => go(to));
  };
  button("First page", "«", page ? 0 : -1);
  button("Page before", "‹", page - 1);
  html(box, "span", {}, `page ${page + 1} of ${pages}`);
  button("Page after", "›", page + 1);
  button("Last page", "»", page < pages - 1 ? pages - 1 : -1);
  if (had >= 0 && !box.hidden) (box.children[had].disabled ? box.querySelector("button:not(:disabled)") : box.children[had])?.focus({ preventScroll: true });
}

function drawListing(section) {
  drawFilters(html(section, "div", { class: "filters" }));
  html(section, "p", { id: "found", class: "note", "aria-live": "polite" });
  const heads = ["outcome", "task", ...(SEVERAL ? ["evaluation"] : []), "family", "seed", "trial", "turns", "score", "end", "invalid"];
  const body = tableIn(section, "Episodes", heads, "list");
  body.id = "list";
  for (const head of body.parentNode.querySelectorAll("th")) if (["seed", "trial", "turns", "score", "invalid"].includes(head.textContent)) head.className = "value";
  html(section, "div", { id: "pager", class: "pager" });
  refilter();
}
