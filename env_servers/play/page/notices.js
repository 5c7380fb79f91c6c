// What went wrong, in words, with what can be done about it.
import { fill, find, make, show } from "./dom.js";

// `actions` are pairs of a label and what it does; a notice stays until something else is done.
export function tell(text, hint = "", actions = [], kind = "bad") {
  find("notice").className = kind;
  fill("notice-text", text);
  fill("notice-hint", hint);
  show("notice-hint", hint !== "");
  const buttons = actions.map(([label, act]) => make("button", { click: act }, label));
  fill("notice-actions", ...buttons, make("button", { class: "plain", "aria-label": "Close this notice", click: clear }, "✕"));
  show("notice");
  if (actions.length > 0) buttons[0].focus({ preventScroll: true });
}

export function clear() {
  show("notice", false);
  fill("notice-text");
}

export function tellError(error, actions = []) {
  if (error.status === 401) {
    const hint = "Open the page in another window, enter the token there if it asks for one, and go on here.";
    tell(error.message, hint, [["Open", () => window.open("play", "_blank", "noopener")], ...actions]);
  } else {
    tell(error.message, error.hint, actions);
  }
}
