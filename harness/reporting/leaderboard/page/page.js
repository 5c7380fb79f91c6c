// The page is whole without this script; it adds the button that changes the colours.
setPreferredTheme();
document.querySelector(".theme").hidden = false;
document.querySelector(".theme").addEventListener("click", () => setTheme(otherTheme()));
document.documentElement.dataset.ready = "yes";
