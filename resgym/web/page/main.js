// The link: everything that is shown is in the part of the address behind #.
import { ask, byId, make } from "./common.js";
import { openGame, setUp } from "./game.js";

const known = await ask("options");

const show = () => openGame(Object.fromEntries(new URLSearchParams(location.hash.slice(1))));

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
