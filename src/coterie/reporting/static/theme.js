"use strict";
// Light or dark: the system's choice until the switch is used. Nothing is stored.
const themed = [];
function theme() {
  const own = document.documentElement.dataset.theme;
  return own || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
}
function setTheme(name) {
  document.documentElement.dataset.theme = name;
  const button = document.getElementById("theme");
  button.textContent = name === "dark" ? "Light" : "Dark";
  button.setAttribute("aria-label", `switch to ${name === "dark" ? "light" : "dark"} colours`);
  themed.forEach((draw) => draw());
}
document.getElementById("theme").addEventListener("click", () => setTheme(theme() === "dark" ? "light" : "dark"));
setTheme(theme());
