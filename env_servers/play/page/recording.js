// Recordings: JSON lines, a header and a line per turn, as `agentgyms.recording.recording_format` writes them.

const FORMAT = "agentgyms-recording-1";
const TYPES = { turn: "number", action: "string", terminated: "boolean", truncated: "boolean", info: "object" };
const INFO_TYPES = { task_id: "string", state_key: "string", goal: "string", feedback: "string", feedback_text: "string" };

const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
const objectOf = (value) => (isObject(value) ? value : {});

// Read a file's text, unpacked if its name says that it is compressed.
export async function open(file) {
  if (!file.name.endsWith(".gz")) return parse(await file.text());
  const unpacked = file.stream().pipeThrough(new DecompressionStream("gzip"));
  return parse(await new Response(unpacked).text());
}

// Return the episodes in a text; errors name the line.
export function parse(text) {
  const episodes = [];
  text.split("\n").forEach((line, at) => {
    if (line.trim() === "") return;
    try {
      read(line, episodes);
    } catch (error) {
      throw new Error(`Line ${at + 1} is not a line of a recording: ${error.message}`);
    }
  });
  if (episodes.length === 0) throw new Error("The file holds no episode: expected a recording, which is JSON lines.");
  const empty = episodes.findIndex((episode) => episode.turns.length === 0);
  if (empty >= 0) throw new Error(`Episode ${empty + 1} has no line of a reset (turn 0).`);
  return episodes;
}

function read(line, episodes) {
  const fields = JSON.parse(line);
  if (!isObject(fields)) throw new Error("expected a JSON object");
  if ("format" in fields) {
    episodes.push({ header: headerOf(fields), turns: [] });
  } else if (episodes.length === 0) {
    throw new Error("no header line comes before it");
  } else {
    const { turns } = episodes.at(-1);
    turns.push(turnOf(fields, turns.length));
  }
}

function headerOf(fields) {
  if (fields.format !== FORMAT) throw new Error(`format ${JSON.stringify(fields.format)}, expected "${FORMAT}"`);
  if (typeof fields.env_id !== "string" || !Number.isInteger(fields.seed) || !isObject(fields.kwargs)) {
    throw new Error("the header needs env_id (a string), seed (an integer) and kwargs (an object)");
  }
  return { ...fields, options: objectOf(fields.options), parties: objectOf(fields.parties) };
}

function turnOf(fields, expected) {
  check(fields, TYPES, "turn");
  check(fields.info, INFO_TYPES, "info");
  if (fields.turn !== expected) throw new Error(`turn ${fields.turn}, expected turn ${expected}`);
  if (typeof fields.observation !== "string" && !isObject(fields.observation)) {
    throw new Error("the observation is neither a text nor an object of texts and images");
  }
  const info = { ...fields.info, metrics: objectOf(fields.info.metrics) };
  if (!Number.isFinite(info.progress)) info.progress = null;
  if (!Array.isArray(info.admissible_actions)) info.admissible_actions = [];
  return { ...fields, info };
}

function check(fields, types, what) {
  for (const [name, type] of Object.entries(types)) {
    const value = fields[name];
    const fits = type === "object" ? isObject(value) : typeof value === type;
    if (!fits) throw new Error(`${JSON.stringify(name)} of the ${what} must be of type ${type}`);
  }
}

// Who acted, as far as a header tells.
export function actor(header) {
  const told = isObject(header.provenance) ? header.provenance : {};
  if (told.actor ?? told.agent) return String(told.actor ?? told.agent);
  if (isObject(told.evaluation)) return `agent of an evaluation, trial ${told.evaluation.trial}`;
  return "unknown";
}

// A file's name without characters that file systems mind.
export function fileName(envId, turns, seed) {
  const env = envId.split("/").at(-1);
  const name = `${env}_${turns[0].info.task_id}_seed${seed}`;
  return `${name.replace(/[^A-Za-z0-9._-]+/g, "-").slice(0, 150)}.jsonl`;
}
