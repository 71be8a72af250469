// A resolution tree: one walks from chart to chart, the whole tree stands beside it.
import { board } from "./board.js";
import { ask, byId, chartFacts, choice, counted, equation, linkTo, make, options, problem, replace, replaceChoices, setOf, visit } from "./common.js";

const ENDS = { resolved: "resolved", depth: "cut: too deep", size: "cut: too many charts", overflow: "cut: exponents too large" };
let tree = null;
let question = null;
let asked = 0;

const chartOf = (number) => tree.charts[number - 1];
const linkOf = (chart) => linkTo({ page: "explore", ...question, chart });

export async function openTree(fields) {
  const number = ++asked;
  const wanted = { start: fields.start ?? "E6", host: fields.host ?? "optimal", moves: fields.moves ?? "" };
  if (linkTo(wanted) !== linkTo(question ?? {})) {
    byId("forest").hidden = true;
    byId("root").value = wanted.start;
    byId("tree-host").value = wanted.host;
    byId("tree-totals").textContent = "Growing …";
    const grown = await ask("tree", wanted).catch((error) => {
      byId("tree-totals").textContent = "";
      question = null;
      throw error;
    });
    if (number !== asked) return;
    [tree, question] = [grown, wanted];
    showTree();
    showInvariants(wanted);
  }
  showChart(chartOf(Number(fields.chart)) ?? tree.charts[0], number);
}

function showTree() {
  const cut = tree.complete ? "" : `, ${counted(tree.num_cut, "branch", "branches")} cut`;
  const moves = [...question.moves.matchAll(/(\d+)\.(\d)/g)].map(([, axes, axis]) => `${setOf(axes, tree.names)} → ${tree.names[axis]}`);
  const from = moves.length ? `After ${moves.join(", ")}: ` : "";
  byId("tree-totals").textContent = `${from}${counted(tree.depth, "move")} deep, ${counted(tree.num_nodes, "chart")}, ${counted(tree.num_leaves, "leaf", "leaves")}${cut}.`;
  for (const [id, form] of [["tree-svg", "svg"], ["tree-json", "json"]]) {
    byId(id).href = `api/tree?${linkTo({ ...question, form }).slice(1)}`;
  }
  replace(byId("tree"), branch(chartOf(1)));
  byId("forest").hidden = false;
}

// They come after the tree, as they can take longer. A tree that is cut has none.
async function showInvariants(wanted) {
  byId("invariants").replaceChildren();
  if (!tree.complete) return;
  const [[, about], ...rows] = await ask("tree", { ...wanted, form: "invariants" }).catch((error) => [["", `none: ${error.message}`]]);
  if (wanted !== question) return;
  const cells = rows.map(([name, value]) => make("tr", {}, make("th", { scope: "row" }, name), make("td", {}, value)));
  byId("invariants").replaceChildren(make("h2", {}, "Invariants at the origin", about === "given" ? "" : `, ${about}`), make("table", {}, make("tbody", {}, ...cells)));
}

// A chart and all below it, folded: a link to each.
function branch(chart) {
  const link = make("a", { href: linkOf(chart.chart) },
    ...(chart.parent ? [make("b", {}, tree.names[chart.axis]), " "] : []), ...equation(chart));
  link.dataset.chart = chart.chart;
  if (!chart.children.length) return make("div", { class: "leaf" }, link, " ", ending(chart));
  return make("details", { open: chart.depth < 2 }, make("summary", {}, link), ...chart.children.map((each) => branch(chartOf(each))));
}

const ending = (chart) => make("span", { class: `badge ${chart.ending === "resolved" ? "good" : "bad"}` }, ENDS[chart.ending] ?? chart.ending);

function showChart(chart, number) {
  const path = [];
  for (let each = chart; each; each = chartOf(each.parent)) path.unshift(each);
  const moves = [...(question.moves ? [question.moves] : []),
    ...path.slice(1).map((each) => `${chartOf(each.parent).axes.join("")}.${each.axis}`)].join(",");
  byId("node-title").replaceChildren(`Chart ${chart.chart} of ${tree.num_nodes} `, chart.children.length ? "" : ending(chart));
  replace(byId("path"), ...path.flatMap((each) => [each.parent ? " › " : "",
    make("a", { href: linkOf(each.chart), ...(each === chart && { "aria-current": "true" }) }, each.parent ? tree.names[each.axis] : "start")]));
  byId("node-equation").replaceChildren(...equation(chart));
  byId("node-move").textContent = chart.children.length ? `The host blows up ${setOf(chart.axes, tree.names)}. Choose a chart:` : "";
  replaceChoices(byId("children"), chart.children.map(chartOf).map((each) =>
    choice("a", each.axis, { class: "button", href: linkOf(each.chart) }, `${tree.names[each.axis]}:`, make("span", {}, ...equation(each)))));
  byId("parent").disabled = !chart.parent;
  byId("parent").onclick = () => visit(linkOf(chart.parent));
  byId("play-here").href = linkTo({ start: question.start, seat: "host", opponent: "optimal", moves });
  byId("node-facts").replaceChildren(...chartFacts(chart));
  mark(chart);
  // One may walk on meanwhile.
  ask("game", { start: question.start, seat: "both", moves })
    .then((game) => number === asked && replace(byId("node-board"), ...board(game, chart.axes ?? [])))
    .catch((error) => number === asked && problem(error.message));
}

// Show a chart in the whole tree.
function mark(chart) {
  byId("tree").querySelector("[aria-current]")?.removeAttribute("aria-current");
  const link = byId("tree").querySelector(`[data-chart="${chart.chart}"]`);
  link.setAttribute("aria-current", "true");
  for (let each = link.closest("details"); each; each = each.parentElement.closest("details")) each.open = true;
  const box = byId("tree");
  box.scrollTop += link.getBoundingClientRect().top - box.getBoundingClientRect().top - box.clientHeight / 2;
}

export function setUpTree(known) {
  options(byId("tree-host"), known.hosts, "optimal");
  byId("plant").addEventListener("submit", (event) => {
    event.preventDefault();
    visit(linkTo({ page: "explore", ...Object.fromEntries(new FormData(event.target)) }));
  });
}
