// One episode on the server: its turns, and how it goes on in another session.
import * as api from "./api.js";

const COMPARED = ["task_id", "state_key", "observation_key", "admissible_actions", "feedback", "success"];

// The episode cannot be played again: the server reached something else.
export class Mismatch extends Error {
  constructor(turn, name, expected, got) {
    super(`Turn ${turn}: ${name} was ${told(expected)}, and is ${told(got)} here.`);
    Object.assign(this, { turn, hint: "The server's data or version may have changed." });
  }
}

function told(value) {
  const text = JSON.stringify(value) ?? "nothing";
  return text.length > 120 ? `${text.slice(0, 119)}…` : text;
}

// Raise `Mismatch` unless a turn is the same again.
function compare(expected, got) {
  const pairs = COMPARED.map((name) => [name, expected.info[name], got.info[name]]);
  for (const name of ["reward", "terminated", "truncated"]) pairs.push([name, expected[name], got[name]]);
  for (const [name, before, now] of pairs) {
    if (JSON.stringify(before) !== JSON.stringify(now)) throw new Mismatch(expected.turn, name, before, now);
  }
}

function turnOf(reply, action = "") {
  const { observation, info, turn, reward = 0, terminated = false, truncated = false } = reply;
  return { turn, action, observation, reward, terminated, truncated, info };
}

export class Episode {
  // `setting`: kwargs, seed and options, which with the actions decide everything, and who acts.
  constructor(setting) {
    this.setting = { options: {}, actor: "person", ...setting };
    this.turns = [];
    this.session = null;
    this.pending = null; // an action that was sent, of which nobody knows whether it was taken
  }

  get last() {
    return this.turns.at(-1);
  }

  get over() {
    return Boolean(this.last && (this.last.terminated || this.last.truncated));
  }

  async begin() {
    await this.#open();
    this.turns = [await this.#reset()];
    return this;
  }

  // Take a turn. As long as nobody knows whether one was taken, only that one may be asked for.
  async act(action) {
    const turn = this.last.turn + 1, before = this.pending;
    this.pending = action;
    try {
      this.turns.push(await this.#step(action, turn));
      this.pending = null;
    } catch (error) {
      if (!error.unanswered) this.pending = error.turnedAway ? before : null;
      throw error;
    }
  }

  // Play the turns so far again, in a new session, and stand where the lost one stood.
  async goOn() {
    const known = this.turns;
    const twin = new Episode(this.setting);
    await twin.follow(known);
    [this.session, this.number, this.turns] = [twin.session, twin.number, twin.turns];
    this.pending = null; // whatever the lost session took is lost with it
  }

  // Play given turns; each has to be the same again. The session stays open.
  async follow(turns, watch = () => true) {
    await this.#open();
    try {
      for (const expected of turns) {
        const first = this.turns.length === 0;
        const got = first ? await this.#reset() : await this.#step(expected.action, expected.turn);
        compare(expected, got);
        this.turns.push(got);
        if (!watch(expected.turn)) break;
      }
    } catch (error) {
      this.close();
      throw error;
    }
    return this;
  }

  close() {
    if (this.session) api.close(this.session);
    this.session = null;
  }

  async #open() {
    this.session = await api.create(this.setting.kwargs);
  }

  async #reset() {
    const { seed, options } = this.setting;
    const reply = await api.reset(this.session, { seed, options, episode: this.session.episode });
    this.number = reply.episode;
    return this.#drawn(turnOf(reply));
  }

  async #step(action, turn) {
    const reply = await api.step(this.session, { action, turn, episode: this.number });
    return this.#drawn(turnOf(reply, action));
  }

  async #drawn(turn) {
    if (this.setting.kwargs.render_mode === "rgb_array") turn.picture = await this.#picture();
    return turn;
  }

  // What the environment draws is no part of the episode: without it the turn counts all the same.
  async #picture() {
    try {
      return (await api.render(this.session)).render;
    } catch {
      return null;
    }
  }
}
