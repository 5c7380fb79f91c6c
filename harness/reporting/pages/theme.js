// The light and the dark theme; each button of class "theme" names the other one.
const find = (id) => document.getElementById(id);
const currentTheme = () => document.documentElement.dataset.theme;
const otherTheme = () => (currentTheme() === "dark" ? "light" : "dark");
const themeLabel = () => (currentTheme() === "dark" ? "Light" : "Dark");

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  for (const button of document.querySelectorAll(".theme")) button.textContent = themeLabel();
}

const setPreferredTheme = () => setTheme(matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
