// Several evaluations: the paired test, and every task with what each of them made of it.
const ROWS = 40;
const grid = { differ: true, words: "", page: 0 };

function drawPairs(section) {
  section.hidden = !PAIRS.length;
  if (section.hidden) return;
  const done = PAIRS.filter((pair) => !pair.why), names = (pair) => [pair.first, pair.second].map((i) => EVALUATIONS[i].label).join(" and ");
  for (const pair of PAIRS.filter((p) => p.why)) html(section, "p", { class: "alert" }, `${names(pair)}: ${pair.why}`);
  if (!done.length) return;
  html(section, "p", { class: "note" }, "Only tasks and seeds that both finished count. Differences are the first less the second, in points of 100, with a bootstrap interval over tasks; p is that of the exact McNemar test, which needs one seed.");
  const heads = ["first", "second", "success", "95 % interval", "score", "95 % interval", "p", "compared", "only first won", "only second won", "both won", "none won"];
  const table = tableIn(section, "Paired comparison", heads, "paired"), points = (value) => (value === null ? "–" : value === 0 ? "0.0" : `${value > 0 ? "+" : "−"}${Math.abs(100 * value).toFixed(1)}`);
  for (const head of [...table.parentNode.querySelectorAll("th")].slice(2)) head.className = "value";
  for (const pair of done) {
    const row = html(table, "tr");
    for (const i of [pair.first, pair.second]) html(html(row, "td", { class: "who" }), "span", { class: `swatch s${i % 6}` }, EVALUATIONS[i].label);
    for (const { mean, interval } of [pair.success, pair.score]) {
      html(row, "td", { class: "value" }, points(mean));
      html(row, "td", { class: "value soft" }, interval ? interval.map(points).join(" to ") : "–");
    }
    html(row, "td", { class: "value" }, pair.p === null ? "–" : pair.p < 0.0001 ? "< 0.0001" : pair.p.toPrecision(2));
    for (const count of [pair.units, pair.wins, pair.losses, pair.both, pair.neither]) html(row, "td", { class: "value" }, count.toLocaleString("en"));
  }
}

// What an evaluation made of a task: for each seed won, lost or missing.
function outcomes(i, task) {
  return EVALUATIONS[i].seeds.map((seed) => {
    const trials = playedAt(i, task, seed);
    return { seed, trials, kind: !trials.length ? "missing" : trials.some((e) => e.success) ? "won" : "lost" };
  });
}

const GRID = SEVERAL ? gridOf() : [];

function gridOf() {
  const given = EVALUATIONS.map((e) => new Set(e.tasks));
  return TASKS.map((task, number) => {
    const cells = EVALUATIONS.map((_, i) => (given[i].has(number) ? outcomes(i, number) : null));
    const shares = cells.map((cell) => cell && cell.filter((o) => o.kind === "won").length / (cell.filter((o) => o.kind !== "missing").length || NaN));
    const known = shares.filter((share) => share !== null && !Number.isNaN(share));
    return { number, task, cells, differs: known.some((share) => share !== known[0]) };
  });
}

function drawCell(row, cell, i, task) {
  const box = html(row, "td", { class: "outcomes" });
  if (!cell) return html(box, "span", { class: "soft" }, "not in it");
  for (const { seed, trials, kind } of cell) {
    const last = trials.findLast((e) => e.success) ?? trials.at(-1), words = cell.length > 1 ? `seed ${seed}: ${kind}` : kind;
    const label = `${words}, ${EVALUATIONS[i].label}, ${cut(task.goal || task.id, 120)}`;
    const link = last && readable(last) ? html(box, "a", { href: addressOf(last), class: `mark ${kind}`, title: words, "aria-label": label }, cell.length > 1 ? "" : kind) : html(box, "span", { class: `mark ${kind}`, title: words }, cell.length > 1 ? "" : kind);
    if (cell.length > 1) html(link, "span", { class: "unseen" }, words);
  }
}

function drawGrid() {
  const words = grid.words.toLowerCase();
  const found = GRID.filter((row) => (!grid.differ || row.differs) && taskText(row.task).includes(words));
  const pages = Math.max(1, Math.ceil(found.length / ROWS));
  grid.page = Math.min(grid.page, pages - 1);
  find("tasks-found").textContent = `${counted(found.length, "task")} of ${GRID.length.toLocaleString("en")}`;
  const body = find("grid");
  body.replaceChildren();
  for (const { task, cells, differs } of found.slice(grid.page * ROWS, (grid.page + 1) * ROWS)) {
    const row = html(body, "tr", { class: differs ? "differs" : "" }), name = html(row, "th", { scope: "row", class: "what" });
    html(name, "span", {}, cut(task.goal || task.id, 120) || "(no goal)");
    html(name, "small", {}, task.id);
    cells.forEach((cell, i) => drawCell(row, cell, i, task));
  }
  if (!found.length) html(html(body, "tr"), "td", { colspan: EVALUATIONS.length + 1, class: "soft" }, grid.differ ? "No task was won by one and lost by another." : "No task fits.");
  pager(find("tasks-pager"), grid.page, pages, (next) => { grid.page = next; drawGrid(); });
}

function drawTasks(section) {
  section.hidden = !SEVERAL;
  if (section.hidden) return;
  const tools = html(section, "div", { class: "filters" }), many = GRID.filter((row) => row.differs).length;
  const label = html(tools, "label", { class: "check" }), box = html(label, "input", { type: "checkbox", id: "only-different", checked: "" });
  label.append(`only those that came out differently (${many.toLocaleString("en")})`);
  box.addEventListener("change", () => { grid.differ = box.checked; grid.page = 0; drawGrid(); });
  const field = html(tools, "span", { class: "field" });
  html(field, "label", { for: "task-words" }, "Search");
  const input = html(field, "input", { type: "search", id: "task-words", autocomplete: "off", spellcheck: "false" });
  input.addEventListener("input", () => { grid.words = input.value.trim(); grid.page = 0; drawGrid(); });
  html(section, "p", { id: "tasks-found", class: "note", "aria-live": "polite" });
  tableIn(section, "Tasks", ["task", ...EVALUATIONS.map((e) => e.label)], "grid").id = "grid";
  html(section, "div", { id: "tasks-pager", class: "pager" });
  drawGrid();
}
