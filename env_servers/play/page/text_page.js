// Pages told as one text, such as a shop's: their parts, and which of them are actions.
//
// A part is set apart by `[SEP]`, or is a line of a text whose buttons are marked `[button]`. It is an
// action if the state admits `click[part]`, in whatever case, and begins one if it admits `part[<words>]`.

const SEPARATOR = /\s*\[SEP\]\s*/;
const MARKED = /^\s*\[(clicked )?button\] (.*) \[(?:clicked )?button_\]$/;
const ACTION = /^([^[]+)\[(.*)\]$/s;
const OPEN = /^<\w[^<>]*>$/;
const CODE = /^(?=.*\d)[A-Z0-9]{8,}$/; // says nothing to people: the text after it tells what it is
const LABEL_LENGTH = 40;

// Return the page's blocks, or null if the text is no page. A block is `{ words }`, a row of actions
// `{ label, actions }`, or an entry `{ action, code, words }`: an action that is a code, and what it stands for.
export function blocksOf(text, info) {
  const parts = partsOf(text, info);
  return parts && inBlocks(withoutGoal(parts, info.goal.trim()), info.feedback_text);
}

// Return what the codes among the actions stand for: a text by action.
export function titlesOf({ observation, info }) {
  const text = typeof observation === "string" ? observation : observation.text;
  const blocks = typeof text === "string" ? blocksOf(text, info) ?? [] : [];
  return new Map(blocks.filter((block) => block.code).map(({ action, words }) => [action, words[0]]));
}

function partsOf(text, info) {
  const actions = new Map();
  for (const action of info.admissible_actions) {
    const [, verb, argument] = ACTION.exec(action) ?? [];
    const name = OPEN.test(argument) ? verb : argument;
    if (name) actions.set(name.toLowerCase(), action);
  }
  const part = (words, chosen = false) => ({ text: words, action: actions.get(words.toLowerCase()), chosen });
  if (SEPARATOR.test(text)) return text.split(SEPARATOR).filter(Boolean).map((words) => part(words));
  const lines = text.split("\n").filter((line) => line.trim());
  if (!lines.some((line) => MARKED.test(line))) return null;
  return lines.map((line) => {
    const [, clicked, label] = MARKED.exec(line) ?? [];
    return label === undefined ? { text: line.trim() } : part(label.trim(), Boolean(clicked));
  });
}

// The goal stands above every page already.
function withoutGoal(parts, goal) {
  const at = parts.findIndex(({ text }) => text.trim() === goal);
  if (goal === "" || at < 0) return parts;
  return parts.filter((part, i) => i !== at && !(i === at - 1 && part.text.endsWith(":")));
}

function inBlocks(parts, told) {
  const blocks = [];
  const isText = (part) => part && !part.action && !(told && part.text.includes(told));
  for (let at = 0; at < parts.length; ) {
    const { text, action } = parts[at], from = at;
    at += 1;
    if (action && CODE.test(text) && isText(parts[at])) {
      while (isText(parts[at])) at += 1;
      blocks.push({ action, code: text, words: parts.slice(from + 1, at).map((part) => part.text) });
    } else if (action) {
      const above = blocks.at(-1), isLabel = above?.words && !above.code && labels(above.words[0]);
      while (parts[at]?.action && !(CODE.test(parts[at].text) && isText(parts[at + 1]))) at += 1;
      const label = isLabel ? blocks.pop().words[0] : "";
      blocks.push({ label, actions: parts.slice(from, at) });
    } else {
      blocks.push({ words: [text] });
    }
  }
  return blocks;
}

const labels = (words) => words.length <= LABEL_LENGTH && !/^\w+: /.test(words);
