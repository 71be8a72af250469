// The resolution tree from the position shown, unfolding move by move.
import { ask, byId, chartFacts, equation, make } from "./common.js";

const ENDS = { resolved: "resolved", depth: "cut: too deep", size: "cut: too many charts", overflow: "cut: exponents too large" };
const STEP = 450;
let asked = 0;
let timer = null;

export function forgetTree() {
  asked += 1;
  clearInterval(timer);
  document.querySelector(".tree-view").hidden = true;
  byId("unfold").hidden = byId("tree-links").hidden = true;
  byId("tree-totals").textContent = "";
}

export async function grow(fields, goTo) {
  forgetTree();
  const number = asked;
  const question = { ...fields, host: byId("tree-host").value };
  delete question.named;
  byId("tree-totals").textContent = "Growing …";
  let tree;
  try {
    tree = await ask("tree", question);
  } catch (error) {
    if (number === asked) byId("tree-totals").textContent = error.message;
    return;
  }
  if (number !== asked) return;
  const threshold = tree.log_canonical_threshold ? `; log canonical threshold of this monomial ideal ${tree.log_canonical_threshold}` : "";
  const cut = tree.complete ? "" : `, ${tree.num_cut} branches cut`;
  byId("tree-totals").textContent = `${tree.depth} moves deep, ${tree.num_nodes} charts, ${tree.num_leaves} leaves${cut}${threshold}`;
  for (const [id, form] of [["tree-svg", "svg"], ["tree-growing", "growing"], ["tree-json", "json"]]) {
    byId(id).href = `api/tree?${new URLSearchParams({ ...question, form })}`;
  }
  byId("tree-growing").hidden = ![2, 3].includes(tree.variables.length);
  byId("tree-links").hidden = false;
  document.querySelector(".tree-view").hidden = false;
  const branch = (numberOfChart) => element(tree, tree.charts[numberOfChart - 1], branch, question, goTo);
  byId("tree").replaceChildren(branch(1));
  showChart(tree, tree.charts[0], question, goTo);
  unfold(tree.depth);
}

function element(tree, chart, branch, question, goTo) {
  const line = [
    ...(chart.parent ? [make("span", { class: "move" }, tree.names[chart.axis])] : []),
    make("span", { class: "number" }, `${chart.chart}`),
    make("span", { class: "polynomial" }, ...equation(chart)),
  ];
  const look = () => showChart(tree, chart, question, goTo);
  if (!chart.children.length) {
    const note = make("span", { class: `ending ${chart.ending}` }, ENDS[chart.ending] ?? chart.ending);
    return make("button", { class: "plain leaf", onclick: look }, ...line, note);
  }
  const axes = chart.axes.map((axis) => tree.names[axis]).join(", ");
  const summary = make("summary", { onclick: look }, ...line, make("span", { class: "blow-up" }, `blow up {${axes}}`));
  const details = make("details", {}, summary, ...chart.children.map(branch));
  details.dataset.depth = chart.depth;
  return details;
}

function showChart(tree, chart, question, goTo) {
  const path = [];
  for (let each = chart; each.parent; each = tree.charts[each.parent - 1]) {
    path.unshift(`${tree.charts[each.parent - 1].axes.join("")}.${each.axis}`);
  }
  const moves = [...(question.moves ? [question.moves] : []), ...path].join(",");
  byId("tree-chart").replaceChildren(
    make("h3", { class: "title" }, `Chart ${chart.chart}`), ...chartFacts(chart),
    make("button", { disabled: !path.length, onclick: () => goTo(moves) }, "Go to this chart"));
}

// By itself at first, then by the slider.
function unfold(depth) {
  const slider = byId("levels");
  const set = (levels) => {
    slider.value = levels;
    for (const each of byId("tree").querySelectorAll("details")) each.open = Number(each.dataset.depth) < levels;
  };
  slider.max = depth;
  byId("unfold").hidden = depth === 0;
  slider.oninput = () => {
    clearInterval(timer);
    set(Number(slider.value));
  };
  if (matchMedia("(prefers-reduced-motion: reduce)").matches) return set(depth);
  set(0);
  let levels = 0;
  timer = setInterval(() => {
    levels += 1;
    set(levels);
    if (levels >= depth) clearInterval(timer);
  }, STEP);
}
