// Which page is shown: the link says it. A link with a start and no page is a game.
import { ask, byId, make, problem } from "./common.js";
import { openTree, setUpTree } from "./explore.js";
import { openLesson } from "./learn.js";
import { openGame, setUpGame } from "./play.js";
import { listPuzzles } from "./puzzles.js";

const PAGES = { home: listPuzzles, learn: openLesson, play: openGame, puzzles: listPuzzles, explore: openTree };
let shown = null;

async function show() {
  const fields = Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
  const page = Object.hasOwn(PAGES, fields.page) ? fields.page : fields.start ? "play" : "home";
  for (const each of document.querySelectorAll("main")) each.hidden = each.id !== page;
  for (const link of document.querySelectorAll("nav[aria-label=pages] a")) {
    if (link.hash === `#page=${page}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  problem("");
  if (shown && shown !== page) {
    scrollTo(0, 0);
    byId(page).querySelector("h1").focus({ preventScroll: true });
  }
  shown = page;
  await PAGES[page](fields).catch((error) => problem(error.message));
}

function pressed(event) {
  if (event.target.closest("input, select, dialog") || event.ctrlKey || event.metaKey || event.altKey) return;
  const page = byId(shown);
  const one = (selector) => page.querySelector(selector);
  const onButton = event.target.closest("button, a, summary");
  const keys = { u: one("#undo, #parent, #step-back"), h: one("#hint"), t: one("#tree-link"), "?": byId("keys-button") };
  let button = keys[event.key];
  if (/^[0-9]$/.test(event.key)) button = page.querySelectorAll(".choices .choice")[(Number(event.key) + 9) % 10];
  if (event.key === "Enter" && !onButton) button = one("#name");
  if (event.key === " " && event.target.matches("a")) button = event.target;
  const input = event.key === "/" && one("form:not([hidden]) input");
  if (button || input) event.preventDefault();
  if (input) {
    for (const box of page.querySelectorAll("details:has(form)")) box.open = true;
    input.focus();
    input.select();
  }
  button?.click();
}

try {
  const known = await ask("options");
  for (const text of known.examples) {
    byId("examples").append(make("option", { value: text }));
    byId("chips").append(make("button", { type: "button", class: "chip", onclick: () => {
      byId("start").value = text;
      byId("setup").requestSubmit();
    } }, text));
  }
  setUpGame(known);
  setUpTree(known);
  byId("keys-button").addEventListener("click", () => byId("keys").showModal());
  addEventListener("keydown", pressed);
  addEventListener("hashchange", show);
  await show();
  document.documentElement.dataset.ready = "yes";
} catch (error) {
  problem(error.message);
}
