// What all parts of the page share: elements, questions to the server, charts in words.

export const byId = (id) => document.getElementById(id);

export function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name === "class") element.className = value;
    else if (name in element) element[name] = value;
    else element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

export function makeSvg(tag, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

export function svgOf(text) {
  return document.importNode(new DOMParser().parseFromString(text, "image/svg+xml").documentElement, true);
}

const LONGEST = 8000;
const TRIES = 10; // of a server that is busy, or has just been started and not yet all in memory

export async function ask(path, fields = {}) {
  const query = new URLSearchParams(fields).toString();
  if (query.length > LONGEST) throw new Error(`the request must have at most ${LONGEST} characters`);
  let response;
  for (let tries = 1; ; tries += 1) {
    try {
      response = await fetch(`api/${path}?${query}`);
    } catch {
      throw new Error("the server does not answer; is resgym serve still running?");
    }
    if (response.status !== 503 || tries === TRIES) break;
    await new Promise((go) => setTimeout(go, 1000));
  }
  const answer = await response.json().catch(() => ({ error: `the server answered ${response.status}` }));
  if (!response.ok) throw new Error(answer.error);
  return answer;
}

export function options(select, names, labels = (name) => name) {
  const chosen = select.value;
  select.replaceChildren(...names.map((name) => make("option", { value: name }, labels(name))));
  if (names.includes(chosen)) select.value = chosen;
}

// An equation with what the exceptional divisors take out of it.
export function equation({ factor, rest }) {
  if (!factor) return [rest];
  const taken = make("span", { class: "factor" }, factor);
  return rest === "1" ? [taken] : [taken, rest.includes("+") ? ` · (${rest})` : ` · ${rest}`];
}

// A chart's coordinates, equation and divisors, as the server tells them.
export function chartFacts(facts) {
  const rows = facts.divisors.map((divisor) => make("tr", { class: divisor.exceptional ? "exceptional" : "" },
    ...[
      `${divisor.name} = 0`, divisor.exceptional ? "exceptional" : "coordinate", `(${divisor.ray.join(", ")})`,
      divisor.multiplicity, divisor.log_discrepancy, divisor.pole ?? "–",
    ].map((text) => make("td", {}, text))));
  const head = ["divisor", "", "ray", "N", "ν", "−ν/N"].map((text) => make("th", { scope: "col" }, text));
  return [
    make("h3", {}, "Equation"), make("p", { class: "equation" }, ...equation(facts)),
    make("h3", {}, "Old coordinates in new ones"),
    make("p", { class: "formulas" }, ...facts.coordinates.map((text) => make("span", {}, text))),
    make("h3", {}, "Divisors"),
    make("div", { class: "scroll" }, make("table", { class: "divisors" },
      make("thead", {}, make("tr", {}, ...head)), make("tbody", {}, ...rows))),
  ];
}
