// The tabs, and the link: everything that is shown is in the part of the address behind #.
import { ask, byId, make } from "./common.js";
import { openGame, setUp } from "./game.js";
import { openRuns, closeRuns } from "./runs.js";

const known = await ask("options");

function show() {
  const fields = Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
  const runs = known.runs && fields.tab === "runs";
  for (const [name, chosen] of [["play", !runs], ["runs", runs]]) {
    byId(name).hidden = !chosen;
    byId(`tab-${name}`).setAttribute("aria-selected", chosen);
  }
  if (runs) return openRuns(fields);
  closeRuns();
  return openGame(fields);
}

let played = "";
byId("tab-runs").hidden = !known.runs;
byId("tab-runs").addEventListener("click", () => {
  played = location.hash;
  location.hash = "tab=runs";
});
byId("tab-play").addEventListener("click", () => {
  if (byId("play").hidden) location.hash = played || "start=E8";
});
for (const text of known.examples) {
  byId("examples").append(make("option", { value: text }));
  byId("chips").append(make("button", { type: "button", class: "chip", onclick: () => {
    byId("start").value = text;
    byId("setup").requestSubmit();
  } }, text));
}
byId("keys-button").addEventListener("click", () => byId("keys").showModal());
setUp(known);
addEventListener("hashchange", show);
await show();
document.documentElement.dataset.ready = "yes";
