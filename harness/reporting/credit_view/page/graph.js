// Figure 4: SALT's trajectory graph. Nodes are histories, edges are turns; merged turns are one edge.
function edgesOf(group) {
  const { before, after, merged, value, base } = group.graph, edges = new Map();
  group.rollouts.forEach((rollout, r) => {
    rowsOf(rollout).forEach((row, t) => {
      const key = merged[row] < 0 ? `row ${row}` : `set ${merged[row]}`;
      if (!edges.has(key)) edges.set(key, { from: before[row], to: after[row], row, value: value[row], base: [], members: [] });
      edges.get(key).members.push([r, t]);
      edges.get(key).base.push(base[row]);
    });
  });
  return [...edges.values()];
}

function layOut(group) {
  const { before, after } = group.graph, visitors = new Map(), ends = new Map();
  const visit = (node, r) => visitors.set(node, (visitors.get(node) ?? new Set()).add(r));
  group.rollouts.forEach((rollout, r) => {
    for (const row of rowsOf(rollout)) [before[row], after[row]].forEach((node) => visit(node, r));
    const last = after[rollout.start + rollout.length - 1];
    ends.set(last, [...(ends.get(last) ?? []), r]);
  });
  const lane = lanes(group, visitors), layers = new Map();
  for (const [node, depth] of depths(before, after)) {
    const own = [...visitors.get(node)], mean = own.reduce((sum, r) => sum + lane[r], 0) / own.length;
    layers.set(depth, [...(layers.get(depth) ?? []), { node, want: mean }]);
  }
  const place = new Map();
  for (const [depth, nodes] of layers) for (const [node, y] of apart(nodes)) place.set(node, [depth, y]);
  return { place, visitors, ends };
}

// The longest way from the task to each node, over edges that close no circle.
function depths(before, after) {
  const next = new Map(), depth = new Map(), order = [], open = new Set(), done = new Set(), ahead = new Map();
  before.forEach((node, row) => next.set(node, (next.get(node) ?? new Set()).add(after[row])));
  const enter = (node) => { open.add(node); ahead.set(node, []); return [node, (next.get(node) ?? new Set()).values()]; };
  const stack = [enter(before[0])];
  while (stack.length) {
    const [node, rest] = stack[stack.length - 1], { value, done: over } = rest.next();
    if (over) {
      stack.pop();
      open.delete(node);
      done.add(node);
      order.unshift(node);
    } else if (!open.has(value)) {
      ahead.get(node).push(value);
      if (!done.has(value)) stack.push(enter(value));
    }
  }
  for (const node of order) depth.set(node, depth.get(node) ?? 0);
  for (const node of order) for (const to of ahead.get(node)) depth.set(to, Math.max(depth.get(to), depth.get(node) + 1));
  return depth;
}

// Rollouts that go the same way longest lie side by side; ways that succeed more lie above.
function lanes(group, visitors) {
  const { after } = group.graph;
  const rank = (node) => [...visitors.get(node)].reduce((s, r) => s + group.rollouts[r].return, 0) / visitors.get(node).size;
  const order = group.rollouts.map((_, r) => r).sort((a, b) => {
    const [x, y] = [rowsOf(group.rollouts[a]), rowsOf(group.rollouts[b])];
    for (let t = 0; t < Math.min(x.length, y.length); t++) {
      const [m, n] = [after[x[t]], after[y[t]]];
      if (m !== n) return rank(n) - rank(m) || m - n;
    }
    return x.length - y.length || a - b;
  });
  const lane = [];
  order.forEach((r, i) => (lane[r] = i));
  return lane;
}

// Each node as near as can be to where it wants to be, at least one lane from the next.
function apart(nodes) {
  nodes.sort((a, b) => a.want - b.want);
  const blocks = [];
  for (const { node, want } of nodes) {
    let block = { sum: want, nodes: [node] };
    while (blocks.length) {
      const over = blocks[blocks.length - 1], middle = (b) => b.sum / b.nodes.length;
      if (middle(over) + (over.nodes.length - 1) / 2 + 1 <= middle(block) - (block.nodes.length - 1) / 2 + 1e-9) break;
      blocks.pop();
      block = { sum: over.sum + block.sum, nodes: [...over.nodes, ...block.nodes] };
    }
    blocks.push(block);
  }
  return blocks.flatMap((b) => b.nodes.map((node, i) => [node, b.sum / b.nodes.length - (b.nodes.length - 1) / 2 + i]));
}

function drawGraph(view, theme, room) {
  const { group } = view, { place, visitors, ends } = layOut(group);
  const places = [...place.values()], deepest = Math.max(...places.map((p) => p[0]));
  const highest = Math.min(...places.map((p) => p[1])), lowest = Math.max(...places.map((p) => p[1]));
  const width = Math.max(room, deepest * 26 + 60), tall = 34, top = 34;
  const svg = sheet(width, top + (lowest - highest) * tall + 76, theme, "Trajectory graph with merged edges");
  const rim = 36 + 6.5 * Math.max(...[...ends.values()].map((rollouts) => namesOf(rollouts, group).length));
  const spot = (node) => {
    const [depth, y] = place.get(node);
    return [22 + (depth / deepest) * (width - 22 - rim), top + (y - highest) * tall];
  };
  const edges = edgesOf(group), boxes = [];
  const end = Math.max(...edges.map((e) => Math.abs(e.value)), ...edges.flatMap((e) => e.base.map(Math.abs)));
  for (const edge of [...edges].sort((a, b) => a.members.length - b.members.length)) boxes.push(drawEdge(svg, edge, spot, end, view, theme));
  for (const node of place.keys()) {
    const [x, y] = spot(node), shared = visitors.get(node).size > 1;
    add(svg, "circle", { cx: x, cy: y, r: shared ? 4.2 : 2.6, fill: theme.back, stroke: theme.ink, "stroke-width": shared ? 1.4 : 0.9 });
  }
  add(svg, "text", { x: 22, y: spot(group.graph.before[0])[1] - 12, "text-anchor": "middle", "font-size": 11, fill: theme.soft }, "task");
  for (const [node, rollouts] of ends) finish(svg, spot(node), rollouts, group, theme);
  const y = top + (lowest - highest) * tall + 40;
  colourBar(svg, 22, y, Math.min(200, width * 0.4), theme, `−${number(end)}`, `+${number(end)}`);
  const x = 22 + Math.min(200, width * 0.4) + 26;
  add(svg, "line", { x1: x, x2: x + 26, y1: y + 5, y2: y + 5, stroke: theme.ink, "stroke-width": 5.4, "stroke-linecap": "round" });
  add(svg, "text", { x: x + 34, y: y + 9, "font-size": 11, fill: theme.soft }, "merged");
  add(svg, "line", { x1: x, x2: x + 26, y1: y + 20, y2: y + 20, stroke: theme.ink, "stroke-width": 1.8 });
  add(svg, "text", { x: x + 34, y: y + 24, "font-size": 11, fill: theme.soft }, "one turn alone");
  return [svg, boxes];
}

function drawEdge(svg, edge, spot, end, view, theme) {
  const [x1, y1] = spot(edge.from), [x2, y2] = spot(edge.to), count = edge.members.length;
  const bend = Math.max(14, (x2 - x1) / 2);
  const path = edge.from === edge.to ? `M${x1} ${y1}c-16 -26 16 -26 0 0`
    : x2 > x1 ? `M${x1} ${y1}C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}`
    : `M${x1} ${y1}C${x1 + 22} ${y1 - 24} ${x2 - 22} ${y2 - 24} ${x2} ${y2}`;
  const thick = count > 1 ? 3.2 + 1.1 * Math.min(count, 8) : 1.8;
  const chosen = edge.members.some(([r, t]) => r === view.rollout && t === view.turn);
  const outline = chosen ? theme.ink : theme.soft;
  add(svg, "path", { d: path, fill: "none", stroke: outline, "stroke-width": thick + (chosen ? 3 : 1.2), "stroke-linecap": "round" });
  add(svg, "path", { d: path, fill: "none", stroke: diverging(theme, edge.value, end), "stroke-width": thick, "stroke-linecap": "round" });
  const [x, y] = x1 === x2 && y1 === y2 ? [x1, y1 - 18] : [(x1 + x2) / 2, (y1 + y2) / 2 - (x2 > x1 ? 0 : 16)];
  const [low, high] = [Math.min(...edge.base), Math.max(...edge.base)];
  return {
    x: x - 7, y: y - 7, width: 14, height: 14, rollout: edge.members[0][0], turn: edge.members[0][1],
    lines: [
      cut(TEXTS[view.group.action[edge.row]], 120), `credit ${signed(edge.value)}`,
      count > 1 ? `mean of ${count} turns, ${signed(low)} to ${signed(high)}` : "not merged",
      cut(`rollout and turn: ${edge.members.map(([r, t]) => `${view.group.rollouts[r].member}.${t + 1}`).join(" ")}`, 90),
    ],
  };
}

const namesOf = (rollouts, group) => cut(rollouts.map((r) => group.rollouts[r].member).join(", "), 24);

function finish(svg, [x, y], rollouts, group, theme) {
  const won = rollouts.some((r) => group.rollouts[r].success);
  add(svg, "circle", { cx: x, cy: y, r: 5.4, fill: won ? theme.ink : theme.back, stroke: theme.ink, "stroke-width": 1.5 });
  if (!won) add(svg, "path", { d: `M${x - 2.3} ${y - 2.3}l4.6 4.6m0 -4.6l-4.6 4.6`, stroke: theme.ink, "stroke-width": 1.4 });
  add(svg, "text", { x: x + 10, y: y + 4, "font-size": 11, fill: theme.soft }, namesOf(rollouts, group));
}
