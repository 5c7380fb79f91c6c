// Figure 1: one panel for each method, a row for each rollout, a cell for each turn.
function limits(group, shown, shared) {
  const ends = shown.map((m) => group.credit[m].reduce((end, v) => Math.max(end, Math.abs(v)), 0));
  return shared ? ends.map(() => Math.max(...ends, 0)) : ends;
}

const rowsOf = (rollout) => Array.from({ length: rollout.length }, (_, t) => rollout.start + t);

function turnLines(group, rollout, t) {
  const row = rollout.start + t, feedback = group.feedback[row];
  const lines = [`rollout ${rollout.member}, turn ${t + 1} of ${rollout.length}`, cut(TEXTS[group.action[row]], 160)];
  if (feedback !== "ok") lines.push(`feedback: ${feedback}`);
  if (group.reward[row]) lines.push(`reward ${signed(group.reward[row])}`);
  if (group.truth) lines.push(`truth ${withError(group.truth, row)}`);
  return lines;
}

// Of an audit: the measured truth with two standard errors, and whether credit has the wrong sign.
const withError = ({ advantage, error }, row) => `${signed(advantage[row])} ± ${number(2 * error[row])}`;
const isWrong = ({ truth }, method, row, value) =>
  Boolean(truth && !METHODS[method].truth && truth.clear[row] && Math.sign(value) !== Math.sign(truth.advantage[row]));

function drawCredit(view, theme, width) {
  const { group, shown } = view;
  const turns = Math.max(...group.rollouts.map((r) => r.length)), count = group.rollouts.length;
  const label = 34, gap = 26, least = Math.min(width, Math.max(turns * 10 + label, 226));
  const columns = Math.max(1, Math.min(shown.length + 1, Math.floor((width + gap) / (least + gap))));
  const panel = (width - (columns - 1) * gap) / columns, cell = (panel - label) / turns;
  const tall = Math.max(9, Math.min(cell, 15)), high = 24 + count * tall + 22;
  const lines = Math.ceil((shown.length + 1) / columns), legend = width < 560 ? 80 : 44;
  const svg = sheet(width, lines * (high + 14) + legend, theme, `Credit of every turn, ${shown.length} methods`);
  const ends = limits(group, shown, view.shared), boxes = [];
  const corner = (i) => [(i % columns) * (panel + gap), Math.floor(i / columns) * (high + 14)];

  const frame = ([left, top], name, right, paint) => {
    add(svg, "text", { x: left + label, y: top + 13, "font-size": 13, "font-weight": 600 }, name);
    add(svg, "text", { x: left + panel, y: top + 13, "text-anchor": "end", "font-size": 11, fill: theme.soft }, right);
    group.rollouts.forEach((rollout, r) => {
      const y = top + 24 + r * tall;
      add(svg, "text", { x: left + 16, y: y + tall / 2 + 4, "text-anchor": "end", "font-size": 11, fill: theme.soft }, rollout.member);
      add(svg, "circle", {
        cx: left + 25, cy: y + tall / 2, r: 3.2, stroke: theme.soft, "stroke-width": 1.2, fill: rollout.success ? theme.soft : "none",
      });
      rowsOf(rollout).forEach((row, t) => {
        const box = { x: left + label + t * cell, y, width: cell - Math.min(1, cell / 6), height: tall - 1, rollout: r, turn: t };
        paint(box, row, rollout, t);
        if (view.rollout === r && view.turn === t)
          add(svg, "rect", { x: box.x - 1, y: box.y - 1, width: box.width + 2, height: box.height + 2, rx: 2, fill: "none", stroke: theme.ink, "stroke-width": 1.8 });
        boxes.push(box);
      });
    });
    for (let t = 1; t <= turns; t += t === 1 ? 4 : 5)
      add(svg, "text", {
        x: left + label + (t - 0.5) * cell, y: top + 24 + count * tall + 13, "text-anchor": "middle", "font-size": 10.5, fill: theme.soft,
      }, t);
  };

  frame(corner(0), "what happened", "", (box, row, rollout, t) => {
    add(svg, "rect", { x: box.x, y: box.y, width: box.width, height: box.height, rx: 1.5, fill: theme.faint });
    happened(svg, box.x + box.width / 2, box.y + box.height / 2, group.feedback[row], group.reward[row], theme);
    box.lines = turnLines(group, rollout, t);
  });
  shown.forEach((method, i) => {
    frame(corner(i + 1), METHODS[method].name, `±${number(ends[i])}`, (box, row, rollout, t) => {
      const value = group.credit[method][row];
      add(svg, "rect", { x: box.x, y: box.y, width: box.width, height: box.height, rx: 1.5, fill: diverging(theme, value, ends[i]) });
      const wrong = isWrong(group, method, row, value);
      if (wrong) crossed(svg, box.x + box.width / 2, box.y + box.height / 2, inkOn(diverging(theme, value, ends[i])));
      box.lines = [`${METHODS[method].name}  ${signed(value)}${wrong ? ", the wrong sign" : ""}`, ...turnLines(group, rollout, t)];
    });
  });
  creditLegend(svg, lines * (high + 14) + 8, width, theme, view.shared ? ends[0] : null);
  return [svg, boxes];
}

function happened(svg, x, y, feedback, reward, theme) {
  if (reward) add(svg, "circle", { cx: x, cy: y, r: 3.4, fill: reward > 0 ? theme.diverging[5] : theme.diverging[1] });
  else if (feedback === "ok") return;
  else if (feedback === "no_effect") add(svg, "path", { d: `M${x - 3} ${y}h6`, stroke: theme.soft, "stroke-width": 1.5 });
  else crossed(svg, x, y, theme.mark);
}

function crossed(svg, x, y, stroke) {
  add(svg, "path", { d: `M${x - 2.8} ${y - 2.8}l5.6 5.6m0 -5.6l-5.6 5.6`, stroke, "stroke-width": 1.6, fill: "none" });
}

function creditLegend(svg, y, width, theme, end) {
  const bar = Math.min(200, width * 0.5);
  colourBar(svg, 34, y, bar, theme, end === null ? "−scale" : `−${number(end)}`, end === null ? "+scale" : `+${number(end)}`);
  const entries = [["●", "success"], ["○", "failure"], ["reward", "reward"], ["malformed", "invalid or failed"], ["no_effect", "no effect"]];
  const begin = width < 560 ? 39 : 34 + bar + 30;
  let x = begin, row = width < 560 ? y + 36 : y;
  for (const [mark, text] of entries) {
    if (x + 14 + text.length * 6.4 > width) [x, row] = [begin, row + 18];
    if ("●○".includes(mark)) add(svg, "circle", { cx: x, cy: row + 5, r: 3.2, stroke: theme.soft, "stroke-width": 1.2, fill: mark === "●" ? theme.soft : "none" });
    else happened(svg, x, row + 5, mark, mark === "reward" ? 1 : 0, theme);
    add(svg, "text", { x: x + 9, y: row + 9, "font-size": 11, fill: theme.soft }, text);
    x += 32 + text.length * 6;
  }
}
