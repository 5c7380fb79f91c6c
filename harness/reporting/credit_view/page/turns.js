// Figure 2: one rollout, a row for each turn, a column for each method.
function tabulate(figure, view, theme, choose) {
  const { group, shown } = view, rollout = group.rollouts[view.rollout];
  const ends = limits(group, shown, view.shared);
  const canvas = figure.querySelector(".canvas");
  const kept = canvas.scrollLeft;
  canvas.replaceChildren();
  canvas.setAttribute("tabindex", "0");
  canvas.setAttribute("role", "region");
  canvas.setAttribute("aria-label", `Turns of rollout ${rollout.member}`);
  const table = html(canvas, "table"), head = html(html(table, "thead"), "tr");
  html(head, "th", { scope: "col" }, "turn");
  html(head, "th", { scope: "col" }, "action");
  html(head, "th", { scope: "col" }, "reward");
  if (group.truth) html(head, "th", { scope: "col" }, "truth, two errors");
  for (const m of shown) html(html(head, "th", { scope: "col", class: "of" }), "span", {}, METHODS[m].name);
  const body = html(table, "tbody");
  rowsOf(rollout).forEach((row, t) => {
    const line = html(body, "tr", { class: t === view.turn ? "chosen" : "" });
    line.addEventListener("click", () => choose({ rollout: view.rollout, turn: t }));
    html(line, "th", { scope: "row" }, t + 1);
    const feedback = group.feedback[row];
    html(line, "td", { class: "action" }, cut(TEXTS[group.action[row]], 90) + (feedback === "ok" ? "" : `  (${feedback.replace("_", " ")})`));
    html(line, "td", { class: "value" }, group.reward[row] ? number(group.reward[row]) : "");
    if (group.truth) errorBar(html(line, "td", { class: "bar-of" }), group.truth, row, theme);
    shown.forEach((m, i) => {
      const value = group.credit[m][row], colour = diverging(theme, value, ends[i]), wrong = isWrong(group, m, row, value);
      const cell = html(line, "td", { class: wrong ? "value wrong" : "value", ...(wrong && { title: "the wrong sign" }) }, number(value));
      cell.style.background = colour;
      cell.style.color = inkOn(colour);
    });
  });
  canvas.scrollLeft = kept;
}

// The truth of a turn as a point with two standard errors to each side, on one scale for the group.
function errorBar(cell, truth, row, theme) {
  const { advantage, error } = truth, width = 88, middle = width / 2, tall = 18;
  const end = advantage.reduce((most, a, i) => Math.max(most, Math.abs(a) + 2 * error[i]), 0) || 1;
  const at = (value) => middle + (value / end) * (middle - 4);
  const svg = add(cell, "svg", { width, height: tall, role: "img", "aria-label": withError(truth, row) });
  add(svg, "title", {}, withError(truth, row));
  add(svg, "path", { d: `M${middle} 1v${tall - 2}`, stroke: theme.line });
  const [low, high] = [at(advantage[row] - 2 * error[row]), at(advantage[row] + 2 * error[row])];
  add(svg, "path", { d: `M${low} ${tall / 2}H${high}`, stroke: theme.soft, "stroke-width": 1.5 });
  add(svg, "circle", { cx: at(advantage[row]), cy: tall / 2, r: truth.clear[row] ? 3.6 : 2.4, fill: truth.clear[row] ? theme.ink : theme.soft });
}

function drawTurns(view, theme) {
  const { group, shown } = view, rollout = group.rollouts[view.rollout];
  const ends = limits(group, shown, view.shared);
  const words = 250, cell = 50, tall = 19, top = 96, left = 30 + words;
  const width = left + shown.length * cell + 60, height = top + rollout.length * tall + 10;
  const svg = sheet(width, height, theme, `Rollout ${rollout.member}`);
  add(svg, "text", { x: 30, y: top - 8, "font-weight": 600 }, `rollout ${rollout.member}, ${rollout.success ? "success" : "failure"}`);
  shown.forEach((m, i) => {
    const x = left + (i + 0.5) * cell;
    add(svg, "text", { x, y: top - 8, transform: `rotate(-45 ${x} ${top - 8})`, "font-weight": 600 }, METHODS[m].name);
  });
  rowsOf(rollout).forEach((row, t) => {
    const y = top + t * tall;
    add(svg, "text", { x: 20, y: y + 13, "text-anchor": "end", fill: theme.soft, "font-size": 11 }, t + 1);
    add(svg, "text", { x: 30, y: y + 13, fill: group.feedback[row] === "ok" ? theme.ink : theme.mark }, fitted(TEXTS[group.action[row]], words - 8));
    shown.forEach((m, i) => {
      const value = group.credit[m][row], colour = diverging(theme, value, ends[i]), x = left + i * cell;
      add(svg, "rect", { x, y, width: cell - 1, height: tall - 1, rx: 2, fill: colour });
      add(svg, "text", { x: x + cell - 6, y: y + 13, "text-anchor": "end", "font-size": 11, fill: inkOn(colour) }, number(value));
    });
  });
  return [svg, []];
}

function describe(view) {
  const { group } = view, rollout = group.rollouts[view.rollout], row = rollout.start + view.turn;
  const card = document.getElementById("card");
  card.replaceChildren();
  const part = (title, text, kind = "") => {
    const box = html(card, "div", { class: kind });
    html(box, "h3", {}, title);
    html(box, "p", { tabindex: "0" }, text);
  };
  part(`Turn ${view.turn + 1} of rollout ${rollout.member}: action`, TEXTS[group.action[row]], "wide");
  part("Observation acted on", TEXTS[group.observation[row]]);
  part(`Outcome${group.feedback[row] === "ok" ? "" : `, ${group.feedback[row].replace("_", " ")}`}`, TEXTS[group.outcome[row]]);
}
