// The page put together, and what its address asks for.
function themeButton(parent) {
  const button = html(parent, "button", { type: "button", class: "theme" }, themeLabel());
  button.addEventListener("click", toggleTheme);
}

const toggleTheme = () => setTheme(otherTheme());

const sections = { results: drawResults, trials: drawTrials, pairs: drawPairs, settings: drawSettings, tasks: drawTasks, episodes: drawListing };

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
  if (SEVERAL) return `${EVALUATIONS.length} evaluations of ${counted(TASKS.length, "task")}, side by side.`;
  const [{ label, settings, seeds, tasks }] = EVALUATIONS, of = new Map(settings);
  const how = [of.get("Agent"), `${seeds.length === 1 ? "seed" : "seeds"} ${seeds.join(", ")}`].filter(Boolean).join(", ");
  return `${label}: ${how}. ${counted(EPISODES.length, "episode")} of ${counted(tasks.length, "task")}${EPISODES.some(readable) ? ", each of which can be read turn by turn" : ""}.`;
}
