// The page put together, and what its address asks for.
function paint(theme) {
  document.documentElement.dataset.theme = theme;
  for (const button of document.querySelectorAll(".theme")) button.textContent = theme === "dark" ? "Light" : "Dark";
}

const turnOver = () => paint(document.documentElement.dataset.theme === "dark" ? "light" : "dark");

function themeButton(parent) {
  const button = html(parent, "button", { type: "button", class: "theme" }, document.documentElement.dataset.theme === "dark" ? "Light" : "Dark");
  button.addEventListener("click", turnOver);
}

const sections = { settings: drawSettings, results: drawResults, trials: drawTrials, pairs: drawPairs, tasks: drawTasks, episodes: drawListing };

function route() {
  const wish = addressed(location.hash);
  if (wish?.episode) return void openEpisode(wish.episode, wish.turn);
  const was = reading.episode;
  if (was) closeEpisode();
  if (wish) find("said").textContent = "This page holds no such episode.";
  if (was) document.querySelector(`#list a[href="${CSS.escape(addressOf(was))}"]`)?.focus({ preventScroll: true });
}

paint(matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
document.querySelector("#overview .theme").addEventListener("click", turnOver);
find("lead").textContent = leadLine();
drawAlerts(find("alerts"));
for (const [id, draw] of Object.entries(sections)) {
  const section = find(id);
  draw(section);
  if (!section.hidden) html(find("sections"), "a", { href: `#${id}` }, section.querySelector("h2").textContent);
}
addEventListener("hashchange", route);
addEventListener("keydown", pressed);
route();
document.documentElement.dataset.ready = "yes";

function leadLine() {
  const places = EVALUATIONS.map(({ settings }) => new Map(settings)).map((of) => `${of.get("Environment")}, split ${of.get("Split") ?? "–"}`);
  const where = [...new Set(places)].join("; ");
  return SEVERAL ? `${EVALUATIONS.length} evaluations on ${where}.` : `${where}: ${counted(EPISODES.length, "episode")} of ${counted(EVALUATIONS[0].tasks.length, "task")}, each of which can be read turn by turn.`;
}
