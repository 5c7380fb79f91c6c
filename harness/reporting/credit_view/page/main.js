// The page: what is chosen, and the figures drawn of it.
const DATA = JSON.parse(find("data").textContent);
const { texts: TEXTS, methods: METHODS } = DATA;
const computed = METHODS.map((_, i) => i).filter((i) => !METHODS[i].missing.length);
const state = { group: 0, rollout: 0, turn: 0, matrix: 0, shared: false, shown: new Set(computed) };
const kept = new Map();
const PHONE = 640;

// Whether a method gives turns of one rollout different advantages, penalties of invalid actions apart.
const perTurn = METHODS.map((_, m) => DATA.groups.some(({ credit, rollouts, feedback }) => credit[m] &&
  rollouts.some((rollout) => new Set(rowsOf(rollout).filter((row) => feedback[row] === "ok").map((row) => credit[m][row])).size > 1)));

// On a phone, where the methods stand one below the other, those that tell turns apart come first,
// after the truth.
function current(width) {
  const shown = computed.filter((m) => state.shown.has(m)), phone = width <= PHONE;
  if (phone) shown.sort((a, b) => METHODS[b].truth - METHODS[a].truth || perTurn[b] - perTurn[a]);
  return { ...state, group: DATA.groups[state.group], shown, phone };
}

const FIGURES = [
  {
    id: "credit", title: "Credit of every turn.", draw: drawCredit, there: (view) => view.shown.length > 0,
    none: "No method is chosen.",
    text: ({ phone, group }) => `A row is a rollout, a cell is a turn, its colour is the advantage that the method gives it. The number beside a method is where its colours end.${phone ? " Methods that give each turn its own advantage come first." : ""}${group.truth ? " A cross in a method's cell is credit of the wrong sign where the truth is clear." : ""}`,
  },
  {
    id: "turns", title: "One rollout, turn by turn.", draw: drawTurns, there: (view) => view.shown.length > 0,
    none: "No method is chosen.", table: true,
    text: (view) => `Rollout ${view.group.rollouts[view.rollout].member}: ${ending(view.group.rollouts[view.rollout])}. The advantages are numbers here; a turn's observations are below.${view.group.truth ? " The truth has a bar of two standard errors to each side, and a larger point where it is clear; framed credit has the wrong sign there." : ""}`,
    pick: (view) => view.group.rollouts.map((r, i) => ({ label: r.member, kind: r.success ? "won" : "lost", on: i === view.rollout, go: () => select({ rollout: i, turn: 0 }) })),
  },
  {
    id: "anchors", title: "ECPO: what is known at each anchor.", draw: drawAnchors, there: (view) => view.group.anchors.shown.length > 0,
    none: "No state of this group was left by different actions with different returns.",
    text: ({ group: { anchors: a } }) => `Open circles are the actions' mean returns, filled ones the calibrated means, larger for more visits; the line is the mean of the state. Of ${a.total} states visited more than once, ${a.comparable} were left by different actions and ${a.divergent} are divergent: an action taken once looks better than all that were taken more often.${a.comparable > a.shown.length ? ` ${a.shown.length} of them are drawn.` : ""}`,
  },
  {
    id: "graph", title: "SALT: the trajectory graph.", draw: drawGraph, there: () => true,
    text: ({ group: { graph: g } }) => `A node is the last ${g.history} actions and their outcomes, an edge a turn. Turns that agree in all of it are one edge, and share the mean of their advantages: ${g.shared} of ${g.merged.length} turns in ${g.sets} edges. Discs are successes, crosses failures.`,
  },
  {
    id: "matrix", title: "SCPO: where a failure followed the success.", draw: drawMatrix, there: (view) => view.group.matrices.length > 0,
    none: "No failed rollout of this group has a successful sibling to compare with.",
    text: (view) => `${DATA.scorer[0].toUpperCase()}${DATA.scorer.slice(1)} similarity of a failed rollout's steps (columns) to those of its reference (rows), a success. Boxes are the credited pairs, ${view.group.matrices[view.matrix].credited.length} of them; the line joins them in the order of the turns.`,
    pick: (view) => view.group.matrices.map((m, i) => ({ label: view.group.rollouts[m.failed].member, kind: "lost", on: i === view.matrix, go: () => { state.matrix = i; redraw(["matrix"]); } })),
  },
];

const SEEN = { anchors: "anchors", graph: "graph", matrix: "matrices" };
const computedFor = (figure, group) => !(figure.id in SEEN) || group[SEEN[figure.id]] !== null;

const ending = (r) => `${r.success ? "success" : "failure"} after ${r.length} turns, return ${number(r.return)}`;

function redraw(ids = FIGURES.map((f) => f.id)) {
  const view = current(innerWidth), theme = THEMES[currentTheme()];
  for (const figure of FIGURES) {
    if (!ids.includes(figure.id)) continue;
    const place = find(figure.id), canvas = place.querySelector(".canvas");
    place.hidden = !computedFor(figure, view.group);
    if (place.hidden) continue;
    const there = figure.there(view);
    caption(place, figure, view, there);
    if (!there) canvas.replaceChildren(Object.assign(document.createElement("p"), { className: "none", textContent: figure.none }));
    else if (figure.table) tabulate(place, view, theme, select);
    else {
      const [svg, boxes] = figure.draw(view, theme, place.clientWidth);
      const focused = canvas.contains(document.activeElement), scrolled = canvas.scrollLeft, at = kept.get(figure.id)?.at ?? -1;
      canvas.replaceChildren(svg);
      canvas.scrollLeft = scrolled;
      kept.set(figure.id, new Reader(svg, boxes, theme, (box) => select({ rollout: box.rollout, turn: box.turn })));
      if (focused) {
        svg.focus({ preventScroll: true });
        if (at >= 0 && at < boxes.length) kept.get(figure.id).show(at);
      }
    }
  }
  if (ids.includes("turns")) describe(view);
}

function caption(place, figure, view, there) {
  const words = place.querySelector("figcaption"), tools = place.querySelector(".tools");
  words.replaceChildren();
  html(words, "b", {}, `Figure ${FIGURES.filter((f) => computedFor(f, view.group)).indexOf(figure) + 1}. ${figure.title} `);
  html(words, "span", {}, there ? figure.text(view) : "");
  const focused = [...tools.children].indexOf(document.activeElement);
  tools.replaceChildren();
  if (!there) return;
  const choices = figure.pick?.(view) ?? [];
  if (choices.length) html(tools, "span", { class: "unseen" }, "Rollout");
  for (const { label, kind, on, go } of choices) {
    const button = html(tools, "button", { type: "button", class: `pick ${kind}`, "aria-pressed": on, "aria-label": `rollout ${label}, ${kind === "won" ? "success" : "failure"}` }, label);
    button.addEventListener("click", go);
  }
  html(tools, "button", { type: "button", class: "save" }, "Save SVG").addEventListener("click", () => save(figure));
  if (focused >= 0) tools.children[focused]?.focus({ preventScroll: true });
}

function select({ rollout, turn }) {
  Object.assign(state, { rollout, turn });
  redraw(["credit", "turns", "graph"]);
}

function svgText(figure, width = 960) {
  const [svg] = figure.draw({ ...current(width), turn: figure.id === "turns" ? state.turn : -1 }, THEMES.light, width);
  svg.removeAttribute("tabindex");
  return `<?xml version="1.0" encoding="UTF-8"?>\n${new XMLSerializer().serializeToString(svg)}\n`;
}

function save(figure) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([svgText(figure)], { type: "image/svg+xml" }));
  link.download = `${figure.id}-group-${DATA.groups[state.group].id}.svg`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

function showGroup(index) {
  const last = DATA.groups.length - 1;
  Object.assign(state, { group: Math.max(0, Math.min(index, last)), rollout: 0, turn: 0 });
  state.matrix = mostCredited(DATA.groups[state.group].matrices ?? []);
  const group = DATA.groups[state.group], won = group.rollouts.filter((r) => r.success).length;
  find("group").value = String(state.group);
  find("group-before").disabled = state.group === 0;
  find("group-after").disabled = state.group === last;
  find("task").replaceChildren();
  html(find("task"), "b", {}, cut(group.goal || group.task || `group ${group.id}`, 300));
  find("task").append(` ${cut(group.task, 120)}; ${won} of ${group.rollouts.length} rollouts succeed.`);
  redraw();
}

function mostCredited(matrices) {
  const counts = matrices.map((m) => m.credited.length);
  return Math.max(0, counts.indexOf(Math.max(...counts)));
}

function controls() {
  DATA.groups.forEach((group, i) => html(find("group"), "option", { value: i }, cut(`${group.id}: ${group.goal || group.task}`, 60)));
  find("group").addEventListener("change", (event) => showGroup(Number(event.target.value)));
  find("group-before").addEventListener("click", () => showGroup(state.group - 1));
  find("group-after").addEventListener("click", () => showGroup(state.group + 1));
  find("scale").addEventListener("change", (event) => { state.shared = event.target.value === "shared"; redraw(["credit", "turns"]); });
  find("theme").addEventListener("click", () => { setTheme(otherTheme()); redraw(); });
  const count = () => (find("chosen").textContent = `${state.shown.size} of ${computed.length}`);
  for (const m of computed) {
    const label = html(find("boxes"), "label"), box = html(label, "input", { type: "checkbox", checked: "" });
    label.append(METHODS[m].name);
    box.addEventListener("change", () => { state.shown[box.checked ? "add" : "delete"](m); count(); redraw(["credit", "turns"]); });
  }
  count();
  document.addEventListener("click", (event) => { if (!find("chooser").contains(event.target)) find("chooser").open = false; });
  find("chooser").addEventListener("keydown", (event) => { if (event.key === "Escape") { find("chooser").open = false; find("chooser").querySelector("summary").focus(); } });
  const table = find("methods").querySelector("table"), head = html(html(table, "thead"), "tr");
  for (const title of ["method", "paper", "settings"]) html(head, "th", { scope: "col" }, title);
  const body = html(table, "tbody");
  for (const method of METHODS) {
    const line = html(body, "tr");
    html(line, "th", { scope: "row" }, [method.name, ...method.aliases].join(", "));
    html(line, "td", {}, method.reference);
    html(line, "td", {}, method.missing.length ? `not computed: needs ${method.missing.join(", ")}` : [method.settings, method.note].filter(Boolean).join("; "));
  }
}

controls();
setPreferredTheme();
const wish = /^#group=(\d+)$/.exec(location.hash);
showGroup(wish ? DATA.groups.findIndex((group) => String(group.id) === wish[1]) : 0);
let drawnAt = innerWidth;
addEventListener("resize", () => requestAnimationFrame(() => { if (innerWidth !== drawnAt) { drawnAt = innerWidth; redraw(); } }));
let onScreen = "light";
addEventListener("beforeprint", () => { onScreen = currentTheme(); setTheme("light"); redraw(); });
addEventListener("afterprint", () => { setTheme(onScreen); redraw(); });
document.documentElement.dataset.ready = "yes";
