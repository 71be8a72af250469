// Positions of rising proved depth. The browser remembers which ones are solved.
import { byId, formula, linkTo, load, make } from "./common.js";

const KEY = "resgym.solved";
let puzzles = null;

const read = async () => (puzzles ??= await load("page/puzzles.json"));

// Without storage, as in some private windows, nothing is remembered.
function solved() {
  try {
    return new Set(JSON.parse(localStorage.getItem(KEY)));
  } catch {
    return new Set();
  }
}

export function markSolved({ start }) {
  try {
    localStorage.setItem(KEY, JSON.stringify([...solved().add(start)]));
  } catch { /* see above */ }
}

// The puzzle of a game's link; null if the start is another one.
export async function puzzleAt(number, start) {
  const all = await read();
  const index = Number(number) - 1;
  if (all[index]?.start !== start) return null;
  return { start, number: index + 1, count: all.length, next: all[index + 1]?.start };
}

export async function listPuzzles() {
  const all = await read();
  const known = solved();
  const done = all.filter(({ start }) => known.has(start)).length;
  byId("solved-count").textContent = done ? `${done} solved.` : "";
  byId("puzzle-count").textContent = `${done} of ${all.length} solved.`;
  byId("puzzle-list").replaceChildren(...all.map(({ start, text, depth }, index) => {
    const link = linkTo({ start, seat: "host", opponent: "optimal", puzzle: index + 1 });
    const mark = known.has(start) ? make("span", { class: "badge good" }, "✓ solved") : "";
    return make("li", {}, make("a", { class: "card door", href: link },
      make("span", { class: "row" }, make("b", {}, `${index + 1}`), make("span", { class: "badge" }, `par ${depth}`), mark), formula(text)));
  }));
}
