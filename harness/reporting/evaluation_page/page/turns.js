// One episode as it is read: the start, a card for each turn, the end.
function labelled(parent, title, kind = "") {
  const part = html(parent, "div", { class: `part ${kind}`.trim() });
  html(part, "h3", {}, title);
  return part;
}

function drawStart(box, contents) {
  const card = html(box, "article", { class: "turn", id: "turn-0", tabindex: "-1", "aria-label": "Start" });
  html(card, "h2", {}, "Start");
  if (contents.preamble !== null)
    folded(card, "Preamble: what stood before the agent's prompts", async (details) => passage(details, [[await unpack(`preamble-${contents.preamble}`), ""]], "prompt"), "preamble");
  observed(labelled(card, "First observation", "observation-part"), contents.observation, "First observation");
}

const FEEDBACK = ["ok", "no_effect", "inadmissible", "malformed", "failed"];

function drawTurn(box, contents, turn) {
  const card = html(box, "article", { class: "turn", id: `turn-${turn.turn}`, tabindex: "-1", "aria-label": `Turn ${turn.turn}` });
  const head = html(card, "div", { class: "turn-head" });
  html(head, "h2", {}, `Turn ${turn.turn}`);
  html(head, "span", { class: turn.action ? "acted" : "soft" }, cut(turn.action, 80) || "no action found in the answer");
  html(head, "span", { class: `badge ${FEEDBACK.includes(turn.feedback) ? turn.feedback : ""}` }, spaced(turn.feedback));
  if (!turn.own) html(head, "span", { class: "badge" }, "partner's seat");
  if (!turn.valid) html(head, "span", { class: "badge malformed" }, "format broken");
  if (!turn.finished) html(head, "span", { class: "badge malformed" }, "answer cut by the token limit");
  const facts = [];
  if (turn.reward) facts.push(`reward ${signed(turn.reward)}`);
  if (turn.progress !== null) facts.push(`progress ${percent(turn.progress)} %`);
  if (turn.score) facts.push(`score ${percent(turn.score)}`);
  if (turn.tokens[0] + turn.tokens[1]) facts.push(`${turn.tokens[0].toLocaleString("en")} tokens read, ${turn.tokens[1].toLocaleString("en")} written`);
  html(head, "span", { class: "facts" }, facts.join(" · "));
  if (contents.prompts) {
    const without = turn.left_out ? `; left out: ${turn.left_out}` : "";
    folded(card, `Prompt, ${counted(turn.prompt.length, "character")}${without}`, (details) => passage(details, [[turn.prompt, ""]], "prompt"), "prompt-fold");
  } else if (turn.left_out) html(card, "p", { class: "note" }, `The prompt left out: ${turn.left_out}`);
  const columns = html(card, "div", { class: "columns" }), left = html(columns, "div"), right = html(columns, "div");
  const pieces = answerPieces(turn.answer, turn.action), plainly = (text) => text.trim().toLowerCase();
  passage(labelled(left, "Answer", "answer-part"), pieces, "answer");
  const there = pieces.some(([text, kind]) => kind === "acted" && plainly(text) === plainly(turn.action));
  if (!there && cut(turn.action, 80) !== turn.action) passage(labelled(left, "Action", "action-part"), [[turn.action, "acted"]], "action");
  const seen = labelled(right, "Observation", "observation-part");
  const whole = typeof turn.observation === "string" ? turn.observation : Object.values(turn.observation).filter((p) => typeof p === "string").join("\n");
  if (turn.feedback_text && !whole.includes(turn.feedback_text)) passage(seen, [[turn.feedback_text, ""]], "feedback");
  observed(seen, turn.observation, `Observation of turn ${turn.turn}`);
}

function drawEnd(box, episode, contents) {
  const card = html(box, "article", { class: "turn end", id: `turn-${contents.count + 1}`, tabindex: "-1", "aria-label": "End" });
  html(card, "h2", {}, "End");
  const line = html(card, "p");
  mark(line, episode.success ? "won" : "lost");
  html(line, "span", {}, ` after ${counted(episode.turns, "turn")}, score ${scoreText(episode)}; ended: ${spaced(episode.stop)}.`);
  const metrics = Object.entries(contents.metrics);
  if (metrics.length) {
    const list = html(card, "dl", { class: "settings" });
    for (const [name, value] of metrics) {
      const pair = html(list, "div");
      html(pair, "dt", {}, spaced(name));
      html(pair, "dd", {}, plain(value));
    }
  }
  if (!contents.reflection) return;
  const { prompt, answer, tokens } = contents.reflection;
  const part = labelled(card, "Reflection on this trial", "reflection");
  if (prompt) folded(part, `Prompt, ${counted(prompt.length, "character")}`, (details) => passage(details, [[prompt, ""]], "prompt"), "prompt-fold");
  passage(part, [[answer, ""]], "answer");
  if (tokens[0] + tokens[1]) html(part, "p", { class: "note" }, `${tokens[0].toLocaleString("en")} tokens read, ${tokens[1].toLocaleString("en")} written`);
}

function drawEpisode(box, episode, contents) {
  drawStart(box, contents);
  let last = 0;
  for (const turn of contents.turns) {
    if (turn.turn > last + 1) skippedTurns(box, last + 1, turn.turn - 1);
    drawTurn(box, contents, turn);
    last = turn.turn;
  }
  if (last < contents.count) skippedTurns(box, last + 1, contents.count);
  drawEnd(box, episode, contents);
}

function skippedTurns(box, from, to) {
  const which = from === to ? `Turn ${from} is` : `Turns ${from} to ${to} are`;
  html(box, "p", { class: "alert skipped" }, `${which} left out of this page, which would be too large with all turns. The recordings hold all of them.`);
}
