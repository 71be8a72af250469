// A position: its picture, and its polynomial beside its points.
import { formula, make, svgOf } from "./common.js";
import { drawSpace } from "./space.js";

// `game` is the server's answer; `named` are axes that are highlighted.
export function board(game, named = [...game.named].map(Number)) {
  return [...picture(game, named), table(game, named)];
}

export function picture(game, named) {
  if (game.scene) {
    const points = game.scene.points.map((point, index) => ({ ...point, label: `(${game.exponents[index].join(", ")})` }));
    const turned = make("p", { class: "muted" }, "Drag or use the arrow keys to turn it.");
    return [make("div", { class: "figure" }, drawSpace({ ...game.scene, points }, named)), turned];
  }
  if (!game.picture) return [];
  // The diagram alone: the text around it stands beside it here.
  const svg = svgOf(game.picture);
  for (const [name, value] of [["viewBox", "8 52 430 424"], ["width", 430], ["height", 424]]) svg.setAttribute(name, value);
  return [make("div", { class: "figure" }, svg)];
}

function table(game, named) {
  const head = game.variables.map((name, axis) => make("th", { scope: "col", class: named.includes(axis) ? "named" : "" }, formula(name)));
  const rows = game.exponents.map((point, index) => make("tr", {},
    make("th", { scope: "row" }, game.picture ? `#${index + 1} ` : "", formula(game.monomials[index])),
    ...point.map((value, axis) => make("td", { class: named.includes(axis) ? "named" : "" }, value))));
  return make("div", { class: "scroll" }, make("table", { class: "points" },
    make("thead", {}, make("tr", {}, make("th", { scope: "col" }, "monomial"), ...head)), make("tbody", {}, ...rows)));
}
