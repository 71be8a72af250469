// What all parts of the page share: elements, links, questions to the server, formulas.

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

// The link of a page: everything that is shown is in the part of the address behind #.
export const linkTo = (fields) =>
  `#${new URLSearchParams(Object.entries(fields).filter(([, value]) => value !== undefined && value !== ""))}`;

// Go to a link, also to the one that is shown: after a lost connection that asks again.
export function visit(link) {
  if (link === location.hash) dispatchEvent(new Event("hashchange"));
  else location.hash = link;
}

const LONGEST = 8000;
const TRIES = 10; // of a server that is busy, or has just been started and not yet all in memory

export async function ask(path, fields = {}) {
  const query = linkTo(fields).slice(1);
  if (query.length > LONGEST) throw new Error(`the request must have at most ${LONGEST} characters`);
  return load(`api/${path}?${query}`);
}

export async function load(address) {
  let response;
  for (let tries = 1; ; tries += 1) {
    try {
      response = await fetch(address);
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

export function problem(text) {
  byId("problem").hidden = !text;
  byId("problem").textContent = text;
}

// Offer names in a list; one that is still among them stays chosen.
export function options(select, names, first) {
  const chosen = names.includes(select.value) ? select.value : first;
  select.replaceChildren(...names.map((name) => make("option", { value: name }, name)));
  select.value = chosen;
}

export const counted = (number, one, many = `${one}s`) => `${number} ${number === 1 ? one : many}`;

// Replace what is in a box; the focus stays at its place in there.
export function replace(box, ...children) {
  const stops = () => [...box.querySelectorAll("button:enabled, a, summary, [tabindex]")];
  const place = stops().indexOf(document.activeElement);
  box.replaceChildren(...children);
  if (place >= 0) stops().at(Math.min(place, stops().length - 1))?.focus();
}

// Replace choices; a keyboard that was on one of them continues on the first new one.
export function replaceChoices(box, choices) {
  const focused = box.contains(document.activeElement);
  box.replaceChildren(...choices);
  if (focused) box.querySelector("button:enabled, a")?.focus();
}

// A choice that the keyboard takes by its number. An axis has the same number wherever it stands.
export function choice(tag, index, properties, ...children) {
  const key = index < 10 ? String((index + 1) % 10) : "";
  return make(tag, { ...properties, class: `${properties.class ?? ""} choice`, "data-key": key }, key && make("kbd", {}, key), ...children);
}

export const setOf = (axes, names) => `{${[...axes].map((axis) => names[axis]).join(", ")}}`;

const RAISED = "⁰¹²³⁴⁵⁶⁷⁸⁹";
const LOWERED = "₀₁₂₃₄₅₆₇₈₉";

// A polynomial with true superscripts, from the server's text: x²y₁ + z.
export function formula(text) {
  const span = make("span", { class: "formula" });
  for (const [part] of text.matchAll(/[⁰¹²³⁴⁵⁶⁷⁸⁹]+|[₀-₉]+|[A-Za-z]+|[^⁰¹²³⁴⁵⁶⁷⁸⁹₀-₉A-Za-z]+/g)) {
    const digits = (row) => [...part].map((digit) => row.indexOf(digit)).join("");
    if (RAISED.includes(part[0])) span.append(make("sup", {}, digits(RAISED)));
    else if (LOWERED.includes(part[0])) span.append(make("sub", {}, digits(LOWERED)));
    else span.append(/[A-Za-z]/.test(part[0]) ? make("i", {}, part) : part);
  }
  return span;
}

// The monomials of a total transform: what the exceptional divisors take out, and the strict transform.
export function equation({ factor, rest }) {
  if (!factor) return [formula(rest)];
  const taken = make("span", { class: "factor" }, formula(factor));
  return rest === "1" ? [taken] : [taken, formula(rest.includes("+") ? ` · (${rest})` : ` · ${rest}`)];
}

// A chart's coordinates, total transform and divisors, as the server tells them.
export function chartFacts(facts) {
  const rows = facts.divisors.map((divisor) => make("tr", { class: divisor.exceptional ? "exceptional" : "" },
    ...[
      formula(`${divisor.name} = 0`), divisor.exceptional ? "exceptional" : "coordinate", `(${divisor.ray.join(", ")})`,
      divisor.multiplicity, divisor.log_discrepancy, divisor.pole ?? "–",
    ].map((text) => make("td", {}, text))));
  const head = ["divisor", "kind", "ray", "N", "ν", "−ν/N"].map((text) => make("th", { scope: "col" }, text));
  return [
    make("h3", {}, "Total transform: exceptional factor · strict transform (only the monomials that no other divides)"), make("p", { class: "equation" }, ...equation(facts)),
    make("h3", {}, "Old coordinates in new ones"),
    make("p", { class: "formulas" }, ...facts.coordinates.map(formula)),
    make("h3", {}, "Divisors"),
    make("div", { class: "scroll" }, make("table", { class: "divisors" },
      make("thead", {}, make("tr", {}, ...head)), make("tbody", {}, ...rows))),
  ];
}
