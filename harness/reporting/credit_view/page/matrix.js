// Figure 5: SCPO. How like the steps of a failed rollout are to those of its successful sibling.
function drawMatrix(view, theme, room) {
  const { group } = view, chosen = group.matrices[view.matrix];
  const { rows, columns, score, credited } = chosen;
  const [failed, reference] = [chosen.failed, chosen.reference].map((r) => group.rollouts[r]);
  const words = Math.min(250, room * 0.36);
  const cell = Math.max(14, Math.min(30, (room - words - 16) / Math.max(1, columns.length)));
  const head = Math.min(170, words * 0.8) + 22;
  const width = Math.max(room, words + 16 + cell * columns.length + 90), height = head + rows.length * cell + 70;
  const svg = sheet(width, height, theme, `Similarity of rollout ${failed.member}, failed, to rollout ${reference.member}, successful`);
  const left = words + 12, text = (row) => TEXTS[group.action[row]], boxes = [];
  const at = (row, rollout) => row - group.rollouts[rollout].start;
  add(svg, "text", { x: words + 4, y: head - 6, "text-anchor": "end", "font-size": 11, "font-weight": 600 }, `rollout ${reference.member}`);
  add(svg, "text", { x: left, y: 12, "font-size": 11, "font-weight": 600 }, `rollout ${failed.member}, failed`);
  columns.forEach((row, v) => {
    const x = left + (v + 0.5) * cell;
    add(svg, "text", { x, y: head - 6, "text-anchor": "middle", "font-size": Math.min(10.5, cell * 0.62), "font-weight": 600 }, at(row, chosen.failed) + 1);
    add(svg, "text", { x: x + 3, y: head - 20, transform: `rotate(-55 ${x + 3} ${head - 20})`, "font-size": 11, fill: theme.soft },
      fitted(text(row), head - 16, 11));
  });
  rows.forEach((row, u) => {
    const y = head + u * cell;
    add(svg, "text", { x: words + 4, y: y + cell / 2 + 4, "text-anchor": "end", "font-size": 10.5, "font-weight": 600 }, at(row, chosen.reference) + 1);
    add(svg, "text", { x: words - 16, y: y + cell / 2 + 4, "text-anchor": "end", "font-size": 11, fill: theme.soft }, fitted(text(row), words - 18, 11));
    columns.forEach((column, v) => {
      const similarity = score[u * columns.length + v] / 100;
      const box = { x: left + v * cell, y, width: cell - 1, height: cell - 1, rollout: chosen.failed, turn: at(column, chosen.failed) };
      add(svg, "rect", { x: box.x, y, width: box.width, height: box.height, fill: sequential(theme, similarity) });
      const hit = credited.find(([i, j]) => i === u && j === v);
      box.lines = [
        `similarity ${similarity.toFixed(2)}${hit ? `, credit ${number(hit[2])}` : ""}`,
        `failed, turn ${box.turn + 1}: ${cut(text(column), 90)}`, `reference, turn ${at(row, chosen.reference) + 1}: ${cut(text(row), 90)}`,
      ];
      boxes.push(box);
    });
  });
  const middle = ([u, v]) => `${left + (v + 0.5) * cell - 0.5} ${head + (u + 0.5) * cell - 0.5}`;
  if (credited.length) add(svg, "polyline", { points: credited.map(middle).join(" "), fill: "none", stroke: theme.mark, "stroke-width": 1.8, "stroke-linejoin": "round" });
  for (const [u, v] of credited)
    add(svg, "rect", { x: left + v * cell - 0.5, y: head + u * cell - 0.5, width: cell, height: cell, fill: "none", stroke: theme.mark, "stroke-width": 2.4, rx: 2 });
  const y = head + rows.length * cell + 18;
  colourBar(svg, left, y, Math.min(160, room * 0.4), theme, "0", "similarity 1", null);
  return [svg, boxes];
}
