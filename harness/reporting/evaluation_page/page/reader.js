// The view of one episode: where it stands in the list, ways to the next, and keys.
const reading = { episode: null, turn: 0, ticket: 0, scrolled: 0, keys: true };

async function openEpisode(episode, turn) {
  const ticket = ++reading.ticket, box = find("reader");
  if (!reading.episode) reading.scrolled = scrollY;
  Object.assign(reading, { episode, turn: 0 });
  find("overview").hidden = true;
  box.hidden = false;
  box.replaceChildren();
  drawBar(box, episode);
  const main = html(box, "main", { id: "episode", tabindex: "-1" });
  drawHead(main, episode);
  document.title = `${cut(TASKS[episode.task].id, 60)} · ${DATA.title}`;
  const turns = html(main, "div", { id: "turns" });
  if (typeof DecompressionStream === "undefined") return html(turns, "p", { class: "alert" }, "This browser cannot unpack episodes: it has no DecompressionStream. Any of 2023 or later has one.");
  const contents = await unpackEpisode(episode);
  if (ticket !== reading.ticket) return;
  find("goal").textContent = contents.goal || "(no goal)";
  drawEpisode(turns, episode, contents);
  scrollTo(0, 0);
  main.focus({ preventScroll: true });
  if (turn) showTurn(turn);
  document.documentElement.dataset.shown = String(episode.number);
}

function closeEpisode() {
  reading.ticket += 1;
  reading.episode = null;
  delete document.documentElement.dataset.shown;
  document.title = DATA.title;
  find("reader").hidden = true;
  find("reader").replaceChildren();
  find("overview").hidden = false;
  scrollTo(0, reading.scrolled);
}

// The neighbours of an episode: in the list as it is filtered, or among all where it is not in it.
function neighbours(episode) {
  const list = (listing.found.includes(episode) ? listing.found : EPISODES).filter(readable), at = list.indexOf(episode);
  return { before: list[at - 1], after: list[at + 1], at, count: list.length };
}

function drawBar(box, episode) {
  const { before, after, at, count } = neighbours(episode);
  const bar = html(box, "nav", { class: "bar", "aria-label": "Episodes" });
  html(bar, "a", { class: "button", href: "#episodes", "aria-label": "All episodes" }, "List");
  const step = (to, label, text) => {
    if (to) html(bar, "a", { class: "button", href: addressOf(to), "aria-label": label, title: label }, text);
    else html(bar, "span", { class: "button off", "aria-hidden": "true" }, text);
  };
  step(before, "Episode before", "‹");
  html(bar, "span", { class: "soft" }, `${(at + 1).toLocaleString("en")} of ${count.toLocaleString("en")}`);
  step(after, "Episode after", "›");
  for (const [way, label, text] of [[-1, "Turn before", "↑"], [1, "Turn after", "↓"]])
    html(bar, "button", { type: "button", "aria-label": label, title: label }, text).addEventListener("click", () => showTurn(reading.turn + way));
  const label = html(bar, "label", { class: "check keys" }), keys = html(label, "input", { type: "checkbox" });
  keys.checked = reading.keys;
  keys.addEventListener("change", () => (reading.keys = keys.checked));
  label.append("keys: J K turns, N P episodes, O prompts, Esc back");
  themeButton(bar);
}

function drawHead(main, episode) {
  const task = TASKS[episode.task], head = html(main, "header", { class: "episode-head" });
  html(head, "h1", { id: "goal" }, task.goal || task.id);
  const line = html(head, "p", { class: "lead" });
  mark(line, episode.success ? "won" : "lost");
  const words = [task.id, task.family, `seed ${episode.seed}`, ...(EPISODES.some((e) => e.trial > 1) ? [`trial ${episode.trial}`] : []), counted(episode.turns, "turn"), `score ${scoreText(episode)}`, `ended: ${spaced(episode.stop)}`];
  if (SEVERAL) words.unshift(EVALUATIONS[episode.evaluation].label);
  for (const word of words.filter(Boolean)) html(line, "bdi", {}, word);
  drawSiblings(head, episode);
}

// Links to the same task elsewhere: other trials, seeds and evaluations.
function drawSiblings(head, episode) {
  const same = EPISODES.filter((e) => e.task === episode.task && readable(e));
  if (same.length < 2) return;
  const list = html(head, "p", { class: "siblings" }), trials = same.some((e) => e.trial > 1), seeds = new Set(same.map((e) => e.seed)).size > 1;
  html(list, "span", { class: "soft" }, "Same task:");
  for (const other of same) {
    const words = [...(SEVERAL ? [EVALUATIONS[other.evaluation].label] : []), ...(seeds ? [`seed ${other.seed}`] : []), ...(trials ? [`trial ${other.trial}`] : [])].join(", ");
    const link = html(list, "a", { class: "button", href: addressOf(other), ...(other === episode ? { "aria-current": "true" } : {}) });
    html(link, "bdi", {}, cut(words, 60));
    mark(link, other.success ? "won" : "lost");
  }
}

function showTurn(turn) {
  const cards = [...document.querySelectorAll("#turns article")], numbers = cards.map((card) => Number(card.id.slice(5)));
  const way = turn < reading.turn ? -1 : 1;
  let at = numbers.indexOf(turn);
  if (at < 0) at = way > 0 ? numbers.findIndex((n) => n > turn) : numbers.findLastIndex((n) => n < turn);
  if (at < 0) return;
  reading.turn = numbers[at];
  for (const card of cards) card.classList.toggle("current", card === cards[at]);
  cards[at].focus({ preventScroll: true });
  cards[at].scrollIntoView({ block: "start" });
  history.replaceState(null, "", addressOf(reading.episode, reading.turn));
}

function pressed(event) {
  const typing = event.target.matches?.("input:not([type=checkbox]), select, textarea");
  if (!reading.episode || typing || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Escape") return go("#episodes");
  if (!reading.keys) return;
  const { before, after } = neighbours(reading.episode), key = event.key.toLowerCase();
  if (key === "j") showTurn(reading.turn + 1);
  else if (key === "k") showTurn(reading.turn - 1);
  else if (key === "n" && after) go(addressOf(after));
  else if (key === "p" && before) go(addressOf(before));
  else if (key === "o") {
    const prompts = [...document.querySelectorAll("#turns details.prompt-fold")], open = prompts.some((d) => !d.open);
    for (const prompt of prompts) prompt.open = open;
  } else return;
  event.preventDefault();
}

const go = (hash) => { location.hash = hash; };
