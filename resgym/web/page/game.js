// A game: what the link says, the server's answer to it, and the person's next choice.
import { ask, byId, chartFacts, make, options, svgOf } from "./common.js";
import { drawSpace } from "./space.js";
import { forgetTree, grow } from "./tree.js";

const FIELDS = ["start", "seat", "opponent", "seed", "moves", "named"];
const ENDS = {
  resolved: "One monomial is left: the game is over.",
  cut: "Cut: the game has as many moves as may be played.",
  overflow: "Stopped: an exponent would pass 2^59.",
};
let known = null;
let game = null;
let asked = 0;
let marked = new Set();

const fieldsOf = (state) => Object.fromEntries(FIELDS.filter((name) => state[name]).map((name) => [name, state[name]]));
const here = (change = {}) => fieldsOf({ ...game, ...change });
const linkOf = (fields) => `#${new URLSearchParams(fields)}`;
const goTo = (change) => { location.hash = linkOf(here(change)); };
const withMove = (axes, axis) => [...(game.moves ? [game.moves] : []), `${axes}.${axis}`].join(",");

function problem(text) {
  byId("problem").hidden = !text;
  byId("problem").textContent = text;
}

export async function openGame(fields) {
  const number = ++asked;
  if (!fields.start) fields = { start: "E8", seat: "host", opponent: "greedy_points" };
  try {
    const answer = await ask("game", fieldsOf(fields));
    if (number !== asked) return;
    game = answer;
    problem("");
  } catch (error) {
    if (number === asked) problem(error.message);
    return;
  }
  // The opponent's answer is part of the link from now on.
  history.replaceState(null, "", linkOf(here()));
  render();
}

function render() {
  marked = new Set();
  byId("start").value = game.start;
  byId("seat").value = game.seat;
  byId("seed").value = game.seed;
  showOpponents();
  byId("opponent").value = game.opponent;
  byId("notices").hidden = !game.notices.length;
  byId("notices").textContent = game.notices.join("; ");
  const drawn = game.scene ? drawSpace(labelled(game.scene), [...game.named].map(Number)) : game.picture ? plane() : table();
  byId("figure").replaceChildren(drawn);
  byId("turn-hint").textContent = game.scene ? "Drag or use the arrow keys to turn it." : "";
  byId("save-picture").hidden = !(game.scene || game.picture);
  byId("save-game").href = `api/game?${new URLSearchParams(here())}`;
  byId("advice").hidden = true;
  byId("undo").disabled = !game.history.length && !(game.seat === "both" && game.named);
  byId("hint").disabled = !game.to_play;
  byId("status").replaceChildren(...statusText());
  showChoices();
  showHistory();
  byId("chart").replaceChildren(...chartFacts(game.chart));
  forgetTree();
}

function labelled(scene) {
  const points = scene.points.map((point, index) => ({ ...point, label: `(${game.exponents[index].join(", ")})` }));
  return { ...scene, points };
}

// The diagram alone: the text around it stands beside it here.
function plane() {
  const svg = svgOf(game.picture);
  svg.setAttribute("viewBox", "8 52 486 424");
  return svg;
}

function table() {
  const head = game.variables.map((name, axis) => make("th", { scope: "col", class: game.named.includes(axis) ? "named" : "" }, name));
  const rows = game.exponents.map((point, index) => make("tr", {},
    ...point.map((value) => make("td", {}, value)), make("td", { class: "monomial" }, game.monomials[index])));
  return make("div", { class: "scroll points" },
    make("p", { class: "muted" }, `${game.variables.length} axes have no picture; these are the exponents.`),
    make("table", {}, make("thead", {}, make("tr", {}, ...head, make("th", { scope: "col", class: "monomial" }, "monomial"))), make("tbody", {}, ...rows)));
}

function statusText() {
  const count = `${game.history.length} ${game.history.length === 1 ? "move" : "moves"}`;
  if (game.ending) return [make("b", {}, ENDS[game.ending]), ` ${count}.`];
  const named = [...game.named].map((axis) => game.variables[axis]).join(", ");
  const left = ` ${count} so far, ${game.monomials.length} monomials.`;
  if (game.to_play === "host") return [make("b", {}, "Choose two or more axes to blow up."), left];
  return [make("b", {}, "The host named ", make("span", { class: "named" }, `{${named}}`), ". Choose one of them."), left];
}

function choose(code) {
  if (game.to_play === "agent") goTo({ moves: withMove(game.named, code), named: "" });
  else goTo({ named: code });
}

function showChoices() {
  const toMark = game.to_play === "host" && !game.choices.length;
  const buttons = toMark
    ? game.variables.map((name, axis) => make("button", { class: "choice", "aria-pressed": "false", onclick: () => mark(axis) }, number(axis), name))
    : game.choices.map(({ code, text }, index) => make("button", { class: "choice", onclick: () => choose(code) }, number(index), text));
  if (toMark) buttons.push(make("button", { id: "name", class: "primary", disabled: true, onclick: nameMarked }, "Name them"));
  if (game.ending) buttons.push(make("button", { class: "primary", onclick: () => goTo({ moves: "", named: "" }) }, "Play it again"));
  byId("choices").replaceChildren(...buttons);
}

const number = (index) => (index < 10 ? make("kbd", {}, String((index + 1) % 10)) : "");

function mark(axis) {
  if (!marked.delete(axis)) marked.add(axis);
  byId("choices").querySelectorAll(".choice").forEach((button, each) => button.setAttribute("aria-pressed", marked.has(each)));
  byId("name").disabled = marked.size < 2;
}

const nameMarked = () => choose([...marked].sort((one, other) => one - other).join(""));

function showHistory() {
  const moves = game.moves ? game.moves.split(",") : [];
  const back = (count) => make("button", { class: "plain", title: "back to here", onclick: () => goTo({ moves: moves.slice(0, count).join(","), named: "" }) },
    count ? game.history[count - 1].position : game.first);
  byId("history").replaceChildren(
    make("li", { class: "first" }, back(0)),
    ...game.history.map(({ move }, index) => make("li", {}, make("span", { class: "move" }, move), back(index + 1))));
  byId("history").scrollTop = byId("history").scrollHeight;
}

function undo() {
  if (game.seat === "both" && game.named) return goTo({ named: "" });
  return goTo({ moves: game.moves.split(",").slice(0, -1).join(","), named: "" });
}

async function hint() {
  const number = asked;
  byId("advice").hidden = false;
  byId("advice").textContent = `The solver has ${known.hint_seconds} s …`;
  const text = await ask("hint", here()).then((answer) => answer.hint, (error) => error.message);
  if (number === asked) byId("advice").textContent = `${text[0].toUpperCase()}${text.slice(1)}.`;
}

async function copyLink() {
  const copied = await navigator.clipboard?.writeText(location.href).then(() => true, () => false);
  byId("advice").hidden = false;
  byId("advice").textContent = copied ? "The link of this position is in your clipboard." : `Link: ${location.href}`;
}

function showOpponents() {
  const seat = byId("seat").value;
  byId("opponent-field").hidden = seat === "both";
  options(byId("opponent"), seat === "agent" ? known.hosts : known.agents);
}

function savePicture(event) {
  const text = game.picture ?? new XMLSerializer().serializeToString(byId("figure").querySelector("svg"));
  event.target.href = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
}

function pressed(event) {
  const typing = event.target.closest("input, select, textarea, dialog");
  if (typing || event.ctrlKey || event.metaKey || event.altKey || byId("play").hidden) return;
  const keys = { u: byId("undo"), h: byId("hint"), t: byId("grow"), "?": byId("keys-button") };
  let button = keys[event.key];
  if (/^[0-9]$/.test(event.key)) button = byId("choices").querySelectorAll(".choice")[(Number(event.key) + 9) % 10];
  if (event.key === "Enter" && event.target.tagName !== "BUTTON" && event.target.tagName !== "A") button = byId("name");
  if (event.key === "/") {
    event.preventDefault();
    byId("start").focus();
    byId("start").select();
  }
  button?.click();
}

export function setUp(options_) {
  known = options_;
  options(byId("tree-host"), known.hosts);
  byId("tree-host").value = "zeillinger";
  byId("setup").addEventListener("submit", (event) => {
    event.preventDefault();
    const fields = Object.fromEntries(new FormData(event.target));
    if (fields.seat === "both") delete fields.opponent;
    const link = linkOf(fields);
    if (link === location.hash) openGame(fields);
    else location.hash = link;
  });
  byId("seat").addEventListener("change", showOpponents);
  byId("undo").addEventListener("click", undo);
  byId("hint").addEventListener("click", hint);
  byId("link").addEventListener("click", copyLink);
  byId("save-picture").addEventListener("click", savePicture);
  byId("grow").addEventListener("click", () => grow(here(), (moves) => goTo({ seat: "both", moves, named: "" })));
  addEventListener("keydown", pressed);
}
