// Figure 3: ECPO's evidence at the states that several turns of the group were taken in.
function drawAnchors(view, theme, width) {
  const { shown } = view.group.anchors, tall = 21, head = 40, pad = 20, foot = 34, gap = 48;
  const wide = width >= 900 && shown.length > 2 ? (width - gap) / 2 : width;
  const size = (anchor) => head + anchor.actions.length * tall + pad;
  const total = shown.reduce((sum, anchor) => sum + size(anchor), 0), sides = [[], []], high = [0, 0];
  for (const anchor of shown) {
    const side = wide < width && high[0] + size(anchor) / 2 > total / 2 ? 1 : 0;
    sides[side].push(anchor);
    high[side] += size(anchor);
  }
  const svg = sheet(width, Math.max(...high) + foot, theme, "Step returns of actions at the group's anchors, before and after shrinkage");
  const values = shown.flatMap((a) => [a.mean, ...a.actions.flatMap((x) => [x.q, x.shrunk])]);
  const [low, top] = [Math.min(...values), Math.max(...values)];
  const words = Math.min(250, wide * 0.42), boxes = [];
  const scale = (value) => words + 42 + ((value - low) / (top - low || 1)) * (wide - words - 60);
  sides.forEach((anchors, i) => {
    const left = i * (wide + gap), at = (value) => left + scale(value);
    if (!anchors.length) return;
    for (const tick of ticks(low, top, 3)) {
      add(svg, "line", { x1: at(tick), x2: at(tick), y1: 4, y2: high[i] - 8, stroke: theme.line, "stroke-width": 0.7, "stroke-dasharray": "1 3" });
      add(svg, "text", { x: at(tick), y: high[i] + 6, "text-anchor": "middle", "font-size": 11, fill: theme.soft }, number(tick));
    }
    add(svg, "text", { x: at((low + top) / 2), y: high[i] + 22, "text-anchor": "middle", "font-size": 11, fill: theme.soft }, "discounted return of the turn");
    let y = 0;
    for (const anchor of anchors) y = anchorBlock(svg, anchor, { left, y, words, at, low, top, wide, tall, head, theme, boxes }) + pad;
  });
  return [svg, boxes];
}

const named = (action) => (TEXTS[action.action] === "<invalid>" ? "invalid actions" : TEXTS[action.action] || "(no action)");

function anchorBlock(svg, anchor, { left, y, words, at, low, top: high, wide, tall, head, theme, boxes }) {
  add(svg, "text", { x: left, y: y + 12, "font-weight": 600 }, fitted(TEXTS[anchor.state] || "(no observation)", wide, 12, 600));
  const facts = add(svg, "text", { x: left, y: y + 29, "font-size": 11, fill: theme.soft }, `visited ${anchor.visits} times, `);
  add(facts, "tspan", { "font-weight": 600, fill: theme.ink }, `ρ ${number(anchor.rho)}`);
  if (anchor.divergent) add(facts, "tspan", { "font-weight": 600, fill: theme.mark }, "   ◆ divergent");
  const top = y + head, bottom = top + anchor.actions.length * tall;
  add(svg, "line", { x1: at(anchor.mean), x2: at(anchor.mean), y1: top - 2, y2: bottom, stroke: theme.ink, "stroke-width": 1 });
  anchor.actions.forEach((action, i) => {
    const line = top + (i + 0.5) * tall, radius = Math.min(8, 2.6 + 1.5 * Math.sqrt(action.n));
    const colour = action.shrunk >= anchor.mean ? theme.diverging[5] : theme.diverging[1];
    add(svg, "text", { x: left, y: line + 4 }, fitted(named(action), words - 4));
    add(svg, "text", { x: left + words + 22, y: line + 4, "text-anchor": "end", "font-size": 11, fill: theme.soft }, `×${action.n}`);
    add(svg, "line", { x1: at(low), x2: at(high), y1: line, y2: line, stroke: theme.faint, "stroke-width": 1 });
    add(svg, "line", { x1: at(action.q), x2: at(action.shrunk), y1: line, y2: line, stroke: colour, "stroke-width": 2.2 });
    add(svg, "circle", { cx: at(action.q), cy: line, r: radius, fill: theme.back, stroke: colour, "stroke-width": 1.6 });
    add(svg, "circle", { cx: at(action.shrunk), cy: line, r: radius, fill: colour });
    boxes.push({
      x: left, y: line - tall / 2, width: wide, height: tall - 1, rollout: action.at[0], turn: action.at[1],
      lines: [
        `${cut(named(action), 90)}  ×${action.n}`, `mean return ${number(action.q)}, calibrated ${number(action.shrunk)}`,
        `mean of the state ${number(anchor.mean)}`, `advantage ${signed(action.advantage)}, ρ ${number(anchor.rho)}`,
      ],
    });
  });
  return bottom;
}
