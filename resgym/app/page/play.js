// A game: what the link says, the server's answer to it, and the person's next choice.
import { board } from "./board.js";
import { ask, byId, chartFacts, choice, counted, formula, linkTo, make, options, replace, replaceChoices, setOf, visit } from "./common.js";
import { markSolved, puzzleAt } from "./puzzles.js";

const FIELDS = ["start", "seat", "opponent", "seed", "moves", "named"];
const FIRST = { start: "E6", seat: "host", opponent: "optimal" };
const ENDS = {
  resolved: "One monomial is left: the game is over.",
  cut: "Cut: the game has as many moves as may be played.",
  overflow: "Stopped: an exponent would pass 2^59.",
};
const STALLED = 2; // moves without progress that are worth a word
let known = null;
let game = null;
let puzzle = null;
let asked = 0;
let marked = new Set();

export const fieldsOf = (state) => Object.fromEntries(FIELDS.filter((name) => state[name]).map((name) => [name, state[name]]));
const here = (change = {}) => fieldsOf({ ...game, ...change });
const linkOf = (fields) => linkTo({ ...fields, puzzle: puzzle?.number });
const goTo = (change) => visit(linkOf(here(change)));
export const withMove = (moves, axes, axis) => [...(moves ? [moves] : []), `${axes}.${axis}`].join(",");
const movesUpTo = (count) => game.moves.split(",").slice(0, count).join(",");
const seats = () => ({ host: [0], agent: [1] })[game.seat] ?? [0, 1];

export async function openGame(fields) {
  const number = ++asked;
  const wanted = fields.start ? fieldsOf(fields) : FIRST;
  byId("start").value = wanted.start;
  const answer = await ask("game", wanted);
  const found = fields.puzzle ? await puzzleAt(fields.puzzle, wanted.start) : null;
  if (number !== asked) return;
  game = answer;
  puzzle = found;
  // The opponent's answer is part of the link from now on.
  history.replaceState(null, "", linkOf(here()));
  render();
  const score = ask("score", here({ named: game.seat === "host" ? "" : game.named })).catch((error) => ({ error: error.message }));
  score.then((found) => number === asked && judge(found)); // one may go on meanwhile
}

function render() {
  marked = new Set();
  document.querySelector("#play .stage").hidden = byId("chart-box").hidden = false;
  byId("new-game").hidden = Boolean(puzzle);
  byId("play-title").textContent = puzzle ? `Puzzle ${puzzle.number} of ${puzzle.count}` : "Play";
  byId("seat").value = game.seat;
  byId("seed").value = game.seed;
  showOpponents();
  byId("opponent").value = game.opponent;
  byId("notices").hidden = !game.notices.length;
  byId("notices").textContent = game.notices.join("; ");
  replace(byId("board"), ...board(game));
  byId("save-picture").hidden = !(game.scene || game.picture);
  byId("save-game").href = `api/game?${linkTo(here()).slice(1)}`;
  byId("tree-link").href = linkTo({ page: "explore", start: game.start, moves: game.moves });
  byId("advice").hidden = byId("verdict").hidden = true;
  byId("undo").disabled = !game.history.length && !(game.seat === "both" && game.named);
  byId("hint").disabled = !game.to_play;
  byId("status").replaceChildren(...statusText());
  byId("par").textContent = "The solver counts …";
  showChoices();
  showHistory([]);
  byId("chart").replaceChildren(...chartFacts(game.chart));
}

function statusText() {
  if (game.ending) return [make("b", {}, ENDS[game.ending])];
  if (game.to_play === "host") return [make("b", {}, "Choose two or more axes to blow up.")];
  return [make("b", {}, "The host chose ", make("span", { class: "named" }, setOf(game.named, game.variables)), ". Choose one of these axes.")];
}

// What the server has proved about the moves so far.
function judge(score) {
  if (score.error) score = { par: null, left: null, costs: [], lost: [null, null], stalled: 0 };
  const played = game.history.length;
  const left = game.ending ? "" : score.left === null ? "" : `, ${score.left} more with best play`;
  const par = score.par === null ? `Par is not proved in ${known.hint_seconds} s` : `Par ${score.par}`;
  byId("par").replaceChildren(make("b", {}, par), `: ${counted(played, "move")} so far${left}.`);
  showHistory(score.costs);
  if (played) showVerdict(score);
  if (puzzle && game.ending === "resolved" && score.lost[0] === 0) markSolved(puzzle);
  if (game.ending) showChoices(firstMistake(score.costs));
}

const firstMistake = (costs) => costs.findIndex((cost) => seats().some((seat) => cost[seat]));

function showVerdict({ par, costs, lost, stalled }) {
  const played = counted(costs.length || game.history.length, "move");
  const lines = [];
  if (game.ending) {
    lines.push(game.seat === "both"
      ? `${played}. The host's choices cost ${shown(lost[0])}, the agent's ${shown(lost[1])}.`
      : verdictOf(played, par, lost[seats()[0]]));
  } else if (game.seat !== "both") {
    const [seat] = seats();
    lines.push(`Your last move: ${words(costs.at(-1)?.[seat], seat)}.`);
  }
  if (stalled >= STALLED && !game.ending) lines.push(`No progress for ${counted(stalled, "move")}: the end is no nearer than before.`);
  const judged = game.ending ? lost : costs.at(-1);
  const good = lines.length === 1 && (!game.ending || game.ending === "resolved") && seats().every((seat) => judged?.[seat] === 0);
  byId("verdict").hidden = !lines.length;
  byId("verdict").className = good ? "note good" : "note";
  byId("verdict").replaceChildren(...lines.map((line) => make("span", {}, line)));
}

const shown = (cost) => (cost === null ? "an unproved number of moves" : counted(cost, "move"));

function verdictOf(played, par, lost) {
  if (lost === null || par === null) return `Finished in ${played}. The solver had not enough time to judge it.`;
  if (game.ending !== "resolved") return `Unfinished after ${played}; par is ${par}.`;
  if (lost) return `Finished in ${played}, par is ${par}. Your choices cost ${counted(lost, "move")}.`;
  const helped = game.history.length === par ? "" : ` The ${game.seat === "host" ? "agent" : "host"} made it easier than best play.`;
  return `Perfect game! ${played}, par is ${par}: every choice of yours was optimal.${helped}`;
}

function words(cost, seat) {
  if (cost === null || cost === undefined) return "not judged in time";
  if (cost === 0) return "optimal";
  return seat ? `it gave away ${counted(cost, "move")}` : `it cost ${counted(cost, "move")}`;
}

function showHistory(costs) {
  const back = (count) => make("button", { class: "plain", title: "Back to this position", onclick: () => goTo({ moves: movesUpTo(count), named: "" }) },
    formula(count ? game.history[count - 1].position : game.first));
  const badges = (index) => (costs[index] ? seats() : []).map((seat) => {
    const cost = costs[index][seat];
    const name = game.seat === "both" ? `${["host", "agent"][seat]} ` : "";
    const text = cost === null ? "?" : cost === 0 ? "optimal" : `${seat ? "−" : "+"}${counted(cost, "move")}`;
    return make("span", { class: `badge ${cost === 0 ? "good" : cost ? "bad" : ""}`, title: words(cost, seat) }, name + text);
  });
  replace(byId("history"),
    make("li", {}, back(0)),
    ...game.history.map(({ move }, index) => make("li", {}, make("span", { class: "move" }, move, " ", ...badges(index)), back(index + 1))));
  byId("history").scrollTop = byId("history").scrollHeight;
}

function choose(code) {
  if (game.to_play === "agent") goTo({ moves: withMove(game.moves, game.named, code), named: "" });
  else goTo({ named: code });
}

function showChoices(mistake = -1) {
  const toMark = game.to_play === "host" && !game.choices.length;
  const buttons = toMark
    ? game.variables.map((name, axis) => choice("button", axis, { "aria-pressed": "false", onclick: () => mark(axis) }, name))
    : game.choices.map(({ code, text }, index) => choice("button", game.named ? Number(code) : index, { onclick: () => choose(code) }, text));
  if (toMark) buttons.push(make("button", { id: "name", class: "primary", disabled: true, onclick: nameMarked }, "Blow up"));
  if (game.ending) {
    if (puzzle) {
      const next = puzzle.next ? { start: puzzle.next, seat: "host", opponent: "optimal", puzzle: puzzle.number + 1 } : { page: "puzzles" };
      buttons.push(make("a", { class: "button primary", href: linkTo(next) }, puzzle.next ? "Next puzzle" : "All puzzles"));
    }
    if (mistake >= 0) buttons.push(make("button", { onclick: () => goTo({ moves: movesUpTo(mistake), named: "" }) }, `Try again from move ${mistake + 1}`));
    buttons.push(make("button", { onclick: () => goTo({ moves: "", named: "" }) }, "Play it again"));
  }
  replaceChoices(byId("choices"), buttons);
}

function mark(axis) {
  if (!marked.delete(axis)) marked.add(axis);
  byId("choices").querySelectorAll(".choice").forEach((button, each) => button.setAttribute("aria-pressed", marked.has(each)));
  byId("name").disabled = marked.size < 2;
}

const nameMarked = () => choose([...marked].sort((one, other) => one - other).join(""));

function undo() {
  if (game.seat === "both" && game.named) return goTo({ named: "" });
  return goTo({ moves: movesUpTo(-1), named: "" });
}

// Show the solver's advice on a position in a box, unless another one is shown by then.
export async function adviceOn(box, position, isShown) {
  box.hidden = false;
  box.textContent = `The solver has ${known.hint_seconds} s …`;
  const text = await ask("hint", position).then((answer) => answer.hint, (error) => error.message);
  if (isShown()) box.textContent = `${text[0].toUpperCase()}${text.slice(1)}.`;
}

function hint() {
  const number = asked;
  return adviceOn(byId("advice"), here(), () => number === asked);
}

async function copyLink() {
  const copied = await navigator.clipboard?.writeText(location.href).then(() => true, () => false);
  byId("advice").hidden = false;
  byId("advice").textContent = copied ? "The link of this position is in your clipboard." : `Link: ${location.href}`;
}

function showOpponents() {
  const seat = byId("seat").value;
  byId("opponent-field").hidden = seat === "both";
  options(byId("opponent"), seat === "agent" ? known.hosts : known.agents, "optimal");
}

function savePicture(event) {
  const text = game.picture ?? new XMLSerializer().serializeToString(byId("board").querySelector("svg"));
  event.target.href = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
}

export function setUpGame(options_) {
  known = options_;
  byId("new-game").open = innerWidth > 820;
  byId("setup").addEventListener("submit", (event) => {
    event.preventDefault();
    const fields = Object.fromEntries(new FormData(event.target));
    if (fields.seat === "both") delete fields.opponent;
    visit(linkTo(fields));
  });
  byId("seat").addEventListener("change", showOpponents);
  byId("undo").addEventListener("click", undo);
  byId("hint").addEventListener("click", hint);
  byId("link").addEventListener("click", copyLink);
  byId("save-picture").addEventListener("click", savePicture);
}
