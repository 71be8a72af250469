// Which page is shown: the link says it. A link with a start and no page is a game.
import { ask, byId, make, problem, visit } from "./common.js";
import { openTree, setUpTree } from "./explore.js";
import { openHome, openLesson } from "./learn.js";
import { openGame, setUpGame } from "./play.js";
import { listPuzzles } from "./puzzles.js";

const PAGES = { home: openHome, learn: openLesson, play: openGame, puzzles: listPuzzles, explore: openTree };
const BUSY_AFTER = 300; // milliseconds
let shown = null;
let waiting = 0;

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
  const before = document.activeElement;
  waiting += 1;
  const timer = setTimeout(() => busy(true), BUSY_AFTER);
  await PAGES[page](fields).catch((error) => problem(error.message));
  clearTimeout(timer);
  waiting -= 1;
  if (!waiting) busy(false);
  keepFocus(before);
}

function busy(is) {
  byId("busy").hidden = !is;
  for (const page of document.querySelectorAll("main")) page.setAttribute("aria-busy", is);
}

// What had the focus may be gone, hidden or disabled now.
function keepFocus(before) {
  const at = document.activeElement;
  const lost = at === document.body ? before !== document.body : at.matches(":disabled") || !at.checkVisibility();
  if (lost) (byId(shown).querySelector(".choice:enabled, a.choice") ?? byId(shown).querySelector("h1")).focus();
}

function pressed(event) {
  const held = event.repeat && !event.key.startsWith("Arrow");
  if (held && event.key === "Enter") event.preventDefault(); // a button would take it again
  if (held || event.target.closest("input, select, dialog") || event.ctrlKey || event.metaKey || event.altKey) return;
  const page = byId(shown);
  const one = (selector) => page.querySelector(selector);
  const onButton = event.target.closest("button, a, summary");
  let button = event.key === "?" ? byId("keys-button") : one(`[data-key="${CSS.escape(event.key)}"]:not([hidden])`);
  if (waiting && button?.matches(".choice")) button = null; // it belongs to the last position
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
  addEventListener("click", (event) => {
    const link = event.target.closest("a[href^='#']");
    if (link && link.hash === location.hash && !event.defaultPrevented && !event.ctrlKey && !event.metaKey) visit(link.hash);
  });
  await show();
  document.documentElement.dataset.ready = "yes";
} catch (error) {
  problem(error.message);
}
