// The page put together, and what its address asks for.
function themeButton(parent) {
  const button = html(parent, "button", { type: "button", class: "theme" }, themeLabel());
  button.addEventListener("click", toggleTheme);
}

const toggleTheme = () => setTheme(otherTheme());

const sections = { settings: drawSettings, results: drawResults, trials: drawTrials, pairs: drawPairs, tasks: drawTasks, episodes: drawListing };

function route() {
  const wish = addressed(location.hash);
  if (wish?.episode) return void openEpisode(wish.episode, wish.turn);
  const was = reading.episode;
  if (was) closeEpisode();
  if (wish) find("announcement").textContent = "This page holds no such episode.";
  if (was) document.querySelector(`#list a[href="${CSS.escape(addressOf(was))}"]`)?.focus({ preventScroll: true });
}

setPreferredTheme();
document.querySelector("#overview .theme").addEventListener("click", toggleTheme);
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
