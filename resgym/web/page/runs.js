// The second tab: what the runs of a folder have measured, asked for again and again.
import { ask, byId, make, makeSvg } from "./common.js";

const COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00"];
const EVERY = 3000;
let timer = null;
let marked = null;

export function closeRuns() {
  clearTimeout(timer);
}

export async function openRuns(fields) {
  clearTimeout(timer);
  marked ??= fields.run ? [fields.run] : null;
  try {
    const { runs } = await ask("runs");
    marked ??= runs.slice(0, 1).map((run) => run.name);
    marked = marked.filter((name) => runs.some((run) => run.name === name));
    showBoard(runs);
    await showCurves();
    byId("live").textContent = runs.length ? `live, ${new Date().toLocaleTimeString()}` : "no run has measured anything yet";
  } catch (error) {
    byId("live").textContent = error.message;
  }
  timer = setTimeout(() => openRuns({}), document.hidden ? 5 * EVERY : EVERY);
}

const shown = (value) => (value === null || value === undefined ? "–" : Math.abs(value) >= 1000 ? value.toLocaleString("en") : Number(value.toPrecision(3)).toString());

function age(seconds) {
  if (seconds < 90) return `${seconds} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  return seconds < 129600 ? `${Math.round(seconds / 3600)} h` : `${Math.round(seconds / 86400)} d`;
}

function showBoard(runs) {
  const names = [...new Set(runs.flatMap((run) => Object.keys(run.rho)))].slice(0, 12);
  const best = Object.fromEntries(names.map((name) => [name, Math.max(...runs.map((run) => run.rho[name] ?? -Infinity))]));
  const measured = (name) => runs.filter((run) => name in run.rho).length;
  const head = ["", "run", "step", "last change", ...names].map((text) => make("th", { scope: "col" }, text));
  const rows = runs.map((run) => {
    const box = make("input", { type: "checkbox", checked: marked.includes(run.name), "aria-label": `draw ${run.name}`, onchange: (event) => {
      marked = event.target.checked ? [...marked, run.name].slice(-COLOURS.length) : marked.filter((name) => name !== run.name);
      openRuns({});
    } });
    const cells = names.map((name) => make("td", { class: measured(name) > 1 && run.rho[name] === best[name] ? "best" : "" }, shown(run.rho[name])));
    return make("tr", {}, make("td", {}, box), make("th", { scope: "row" }, run.name), make("td", {}, shown(run.step)), make("td", {}, age(run.age)), ...cells);
  });
  byId("board").replaceChildren(make("thead", {}, make("tr", {}, ...head)), make("tbody", {}, ...rows));
}

async function showCurves() {
  const all = await Promise.all(marked.map(async (run) => [run, (await ask("curves", { run })).curves]));
  const names = [...new Set(all.flatMap(([, curves]) => Object.keys(curves)))];
  const select = byId("metric");
  const chosen = select.value;
  const groups = [["every rho", "*"], ...names.map((name) => [name, name])];
  select.replaceChildren(...groups.map(([text, value]) => make("option", { value }, text)));
  select.value = groups.some(([, value]) => value === chosen) ? chosen : "*";
  select.onchange = () => openRuns({});
  const drawn = all.flatMap(([run, curves]) => Object.entries(curves)
    .filter(([name]) => (select.value === "*" ? name.startsWith("rho/") : name === select.value))
    .map(([name, curve]) => ({ name: marked.length > 1 ? `${run}: ${name}` : name, ...curve }))).slice(0, 12);
  byId("curves").replaceChildren(...(drawn.length ? [plot(drawn), legend(drawn)] : [make("p", { class: "muted" }, "Mark a run below, or choose another measure.")]));
}

const colour = (index) => COLOURS[index % COLOURS.length];
const dashes = (index) => (index < COLOURS.length ? "none" : "6 4");

function legend(curves) {
  return make("ul", { class: "legend" }, ...curves.map((curve, index) => make("li", {},
    makeSvg("svg", { width: 26, height: 10 }, makeSvg("line", { x1: 0, x2: 26, y1: 5, y2: 5, stroke: colour(index), "stroke-width": 3, "stroke-dasharray": dashes(index) })),
    `${curve.name}: ${shown(curve.y.at(-1))}`)));
}

function ticks(low, high) {
  const rough = (high - low) / 5 || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((each) => each * power).find((each) => each >= rough);
  const found = [];
  for (let value = Math.ceil(low / step) * step; value <= high + step * 1e-9; value += step) found.push(Number(value.toPrecision(12)));
  return found;
}

function plot(curves) {
  const narrow = innerWidth < 600;
  const [width, height, left, bottom] = narrow ? [400, 280, 52, 34] : [900, 360, 60, 36];
  const xs = curves.flatMap((curve) => curve.x);
  const bands = curves.map((curve) => (curve.band || []).map((ends, place) => ends && [curve.x[place], ...ends]).filter(Boolean));
  const ys = [...curves.flatMap((curve) => curve.y), ...bands.flat().flatMap(([, ...ends]) => ends)].filter((value) => value !== null);
  const [least, most] = [Math.min(...xs), Math.max(...xs)];
  let [low, high] = ys.length ? [Math.min(...ys), Math.max(...ys)] : [0, 1];
  if (low > 0 && low < high / 2) low = 0;
  if (low === high) [low, high] = [low - 0.5, high + 0.5];
  const across = (x) => left + ((x - least) / (most - least || 1)) * (width - left - 28);
  const up = (y) => height - bottom - ((y - low) / (high - low)) * (height - bottom - 14);
  const text = (x, y, words, anchor) => makeSvg("text", { x, y, "text-anchor": anchor, "font-size": 12, fill: "#66727f" }, words);
  const svg = makeSvg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "learning curves" });
  for (const y of ticks(low, high)) {
    svg.append(makeSvg("line", { x1: left, x2: width - 28, y1: up(y), y2: up(y), stroke: "#e4e8ec" }), text(left - 8, up(y) + 4, shown(y), "end"));
  }
  for (const x of ticks(least, most)) svg.append(text(across(x), height - bottom + 18, shown(x), "middle"));
  curves.forEach((curve, index) => {
    let path = "";
    curve.x.forEach((x, place) => {
      if (curve.y[place] === null) return;
      const goesOn = place && curve.y[place - 1] !== null;
      path += `${goesOn ? "L" : "M"}${across(x).toFixed(1)} ${up(curve.y[place]).toFixed(1)}`;
    });
    const edge = (end) => bands[index].map((each) => `${across(each[0]).toFixed(1)},${up(each[end]).toFixed(1)}`);
    svg.append(makeSvg("polygon", { points: [...edge(1), ...edge(2).reverse()].join(" "), fill: colour(index), opacity: 0.18 }));
    svg.append(makeSvg("path", { d: path, fill: "none", stroke: colour(index), "stroke-width": 2, "stroke-dasharray": dashes(index), "stroke-linejoin": "round" }, makeSvg("title", {}, curve.name)));
    if (curve.x.length < 40) {
      curve.x.forEach((x, place) => curve.y[place] !== null && svg.append(makeSvg("circle", { cx: across(x), cy: up(curve.y[place]), r: 3, fill: colour(index) })));
    }
  });
  return svg;
}
