// A guided first game on E6: the points, the host, the agent, the move, par and the end.
import { board } from "./board.js";
import { ask, byId, counted, formula, linkTo, make, numberKey, replaceButtons } from "./common.js";
import { withMove } from "./play.js";

const START = "E6";
const FIRST = { set: "012", move: "012.2" }; // for links to a later step
const ENDGAME = "02.2,012.0,012.0,12.1"; // optimal so far, two moves are left
let asked = 0;

// Formulas stand between $.
const prose = (text) => text.split("$").map((part, index) => (index % 2 ? formula(part) : part));

// Each step: its title, the fields of the game it shows, and its paragraphs.
const STEPS = [
  {
    title: "A polynomial is a set of points",
    game: () => ({}),
    text: () => [
      "This is the surface singularity E6, $x² + y³ + z⁴$. Its monomials are points: the exponents of $x$, $y$ and $z$ are the coordinates. Coefficients play no part.",
      "The blue body is the Newton polyhedron: the points and everything above them. The game is over when one point is left.",
    ],
  },
  {
    title: "The host chooses a set of axes",
    game: () => ({}),
    text: () => [
      "The host wants a short game. It chooses two or more axes. In geometry it blows up the subspace where these coordinates vanish.",
      "You are the host: choose a set.",
    ],
    ask: "host",
  },
  {
    title: "The agent chooses one of them",
    game: ({ set }) => ({ named: set ?? FIRST.set }),
    text: () => [
      "The agent wants a long game. It answers with one axis of the host's set. Each axis is one chart of the blow-up: the game must end in all of them, and the agent picks the worst.",
      "Now take the agent's seat: choose one of the orange axes.",
    ],
    ask: "agent",
  },
  {
    title: "What the move does",
    game: ({ move }) => ({ moves: move ?? FIRST.move }),
    text: (game) => [
      `Move: ${game.history[0].move}. In each point, the orange coordinate is now the sum of its coordinates on the host's axes.`,
      `Before: $${game.first}$`,
      `After: $${game.history[0].position}$`,
      "A point that is at least as large as another one in every coordinate is dropped: the other monomial divides it.",
    ],
  },
  {
    title: "How good was the move?",
    game: ({ move }) => ({ moves: move ?? FIRST.move }),
    text: (game, score) => [
      `A solver has proved that best play ends E6 in ${score.par} moves. This number is called par.`,
      score.costs[0][0]
        ? `Your set cost ${counted(score.costs[0][0], "move")}: against best answers the game is now that much longer than par.`
        : "Your set was optimal: no other one makes the game shorter against best answers.",
      score.costs[0][1]
        ? `The agent's axis gave away ${counted(score.costs[0][1], "move")}. From here the host needs ${score.left} more.`
        : `The agent's axis was optimal too. From here the host needs ${score.left} more.`,
    ],
  },
  {
    title: "The end",
    game: ({ moves, named }) => ({ moves: moves ?? ENDGAME, named, seat: "host", opponent: "optimal" }),
    text: (game, score) => game.ending ? [
      `$${game.history.at(-1).position}$: one monomial is left. The game is over in this chart.`,
      "A host that wins against every agent makes the ideal of the monomials principal in every chart. Now play E6 from the start, and try to reach par.",
    ] : [
      `Later in this game ${counted(game.monomials.length, "point")} are left, and best play needs ${counted(score.left, "more move")}.`,
      "Be the host again and finish the game. The agent answers with its best axis.",
    ],
    ask: "host",
  },
];

export async function openLesson(fields) {
  const number = ++asked;
  const at = Math.min(Math.max(Math.trunc(Number(fields.step)) || 1, 1), STEPS.length);
  const step = STEPS[at - 1];
  const question = { start: START, seat: "both", ...step.game(fields) };
  const game = await ask("game", question);
  const score = at > 4 ? await ask("score", { ...question, moves: game.moves, named: "" }) : null;
  if (number !== asked) return;
  const link = (to, change = {}) => linkTo({ ...fields, page: "learn", step: to, ...change });
  byId("step-title").textContent = `${at}. ${step.title}`;
  byId("steps").replaceChildren(...STEPS.map(({ title }, index) => make("li", index + 1 === at ? { "aria-current": "step" } : {}, make("a", { href: link(index + 1), title }, `${index + 1}`))));
  byId("learn-board").replaceChildren(...board(game, at === 4 ? [Number(game.moves.at(-1))] : undefined));
  byId("lesson").replaceChildren(...step.text(game, score).map((text) => make("p", {}, ...prose(text))));
  byId("step-back").href = at > 1 ? link(at - 1) : "#";
  const choosing = step.ask && !game.ending;
  byId("step-next").hidden = Boolean(choosing);
  byId("step-next").href = at < STEPS.length ? link(at + 1) : linkTo({ start: START, seat: "host", opponent: "optimal" });
  byId("step-next").textContent = at < STEPS.length ? "Next" : "Play E6";
  const chosen = (code) => {
    if (at === 2) return link(3, { set: code });
    if (at === 3) return link(4, { move: withMove("", game.named, code) });
    return link(6, { moves: game.moves, named: code });
  };
  replaceButtons(byId("learn-choices"), !choosing ? [] : game.choices.map(({ code, text }, index) =>
    make("a", { class: "button choice", href: chosen(code) }, numberKey(index), text)));
}
