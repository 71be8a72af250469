// A guided first game on E6: the points, the host, the agent, the move, par and the end.
import { board, picture } from "./board.js";
import { ask, byId, choice, counted, formula, linkTo, make, replace, replaceChoices, setOf, visit } from "./common.js";
import { adviceOn, withMove } from "./play.js";
import { listPuzzles } from "./puzzles.js";

const START = "E6";
const FIRST = { set: "012", move: "012.2" }; // for links to a later step
// Best play after each first move, until two moves are left; {x, y, z} with x ends the game.
const LATER = {
  "01.0": "", "01.1": "012.0,012.2,012.2,01.1", "02.0": "01.1", "02.2": "012.0,012.0,12.1", "12.1": "01.1",
  "12.2": "02.2,012.1,012.1,012.1", "012.0": "", "012.1": "", "012.2": "012.1,012.1,012.1",
};
let asked = 0;

const laterIn = (move = FIRST.move) => [move, LATER[move]].filter(Boolean).join(",");

// Formulas stand between $.
const prose = (text) => text.split("$").map((part, index) => (index % 2 ? formula(part) : part));

// Each step: its title, the fields of the game it shows, and its paragraphs.
const STEPS = [
  {
    title: "A polynomial is a set of points",
    game: () => ({}),
    text: () => [
      "This is the surface singularity E6, $x² + y³ + z⁴$. Its monomials are points: the exponents of $x$, $y$ and $z$ are the coordinates. Coefficients play no part.",
      "The blue body is the Newton polyhedron: the convex hull of the points and of everything above them. The game is over when one point is left.",
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
    text: (game, _, before) => {
      const [axes, axis] = game.moves.split(".");
      const sums = before.exponents.map((point) => {
        const parts = [...axes].map((each) => point[each]);
        const sum = String(parts.reduce((total, each) => total + Number(each), 0));
        const after = point.map((value, each) => (each === Number(axis) ? sum : value)).join(", ");
        const dropped = game.exponents.some((other) => other.join(", ") === after) ? "" : ", dropped";
        return `(${point.join(", ")}): ${parts.join(" + ")} = ${sum}, so it becomes (${after})${dropped}`;
      });
      return [
        `Move: ${game.history[0].move}. In each point, the orange coordinate is now the sum of its coordinates on the host's axes.`,
        sums,
        `Before: $${game.first}$`,
        `After: $${game.history[0].position}$`,
        "A point that is at least as large as another one in every coordinate is dropped: the other monomial divides it.",
      ];
    },
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
    game: ({ move, moves, named }) => ({ moves: moves ?? laterIn(move), named, seat: "host", opponent: "optimal" }),
    text: (game, score) => game.ending ? [
      `$${game.history.at(-1).position}$: one monomial is left. The game is over in this chart.`,
      `It took ${counted(game.history.length, "move")}, par is ${score.par}. The host's choices cost ${counted(score.lost[0], "move")}, the agent's gave away ${counted(score.lost[1], "move")}.`,
      "A host that wins against every agent makes the ideal of the monomials principal in every chart. Now play E6 from the start, and try to reach par.",
    ] : [
      `${game.history.length > 1 ? "Later in your game, after best play by both," : "In your game"} ${counted(game.monomials.length, "point")} are left, and best play needs ${counted(score.left, "more move")}.`,
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
  const before = at === 4 ? await ask("game", { start: START, seat: "both" }) : null;
  if (number !== asked) return;
  const link = (to, change = {}) => linkTo({ ...fields, page: "learn", step: to, ...change });
  byId("step-title").textContent = `${at}. ${step.title}`;
  replace(byId("steps"), ...STEPS.map(({ title }, index) => make("li", index + 1 === at ? { "aria-current": "step" } : {}, make("a", { href: link(index + 1), title }, `${index + 1}`))));
  replace(byId("learn-board"), ...board(game, at === 4 ? [Number(game.moves.at(-1))] : undefined));
  byId("lesson").replaceChildren(...step.text(game, score, before).map((text) => (Array.isArray(text)
    ? make("ul", {}, ...text.map((each) => make("li", {}, each)))
    : make("p", {}, ...prose(text)))));
  byId("step-back").href = at > 1 ? link(at - 1) : "#";
  const choosing = step.ask && !game.ending;
  byId("step-next").hidden = Boolean(choosing);
  byId("step-next").href = at < STEPS.length ? link(at + 1) : linkTo({ start: START, seat: "host", opponent: "optimal" });
  byId("step-next").textContent = at < STEPS.length ? "Next" : "Play E6";
  const chosen = (code) => {
    const again = { moves: "", named: "" }; // the last step's game starts anew
    if (at === 2) return link(3, { set: code, ...again });
    if (at === 3) return link(4, { move: withMove("", game.named, code), ...again });
    return link(6, { moves: game.moves, named: code });
  };
  replaceChoices(byId("learn-choices"), !choosing ? [] : game.choices.map(({ code, text }, index) =>
    choice("a", game.named ? Number(code) : index, { class: "button", href: chosen(code) }, text)));
  // In the last step one may take back what one has played in it, and ask for advice.
  const first = laterIn(fields.move);
  byId("learn-undo").hidden = at < 6 || game.moves === first;
  byId("learn-undo").onclick = () => visit(link(6, { moves: game.moves.split(",").slice(0, -1).join(","), named: "" }));
  byId("learn-hint").hidden = at < 6 || !choosing;
  byId("learn-hint").onclick = () => adviceOn(byId("learn-note"), { ...question, moves: game.moves, named: "" }, () => number === asked);
  byId("learn-note").hidden = true;
}

// The start page: one move of the first game, in two pictures.
export async function openHome() {
  await listPuzzles();
  if (byId("one-move").children.length) return;
  const [axes, axis] = FIRST.move.split(".");
  const [before, after] = await Promise.all(["", FIRST.move].map((moves) => ask("game", { start: START, seat: "both", moves })));
  const shown = [
    [before, [...axes].map(Number), `The host chooses ${setOf(axes, before.variables)}`],
    [after, [Number(axis)], `The agent chooses ${before.variables[axis]}`],
  ];
  byId("one-move").replaceChildren(...shown.map(([game, named, text]) => make("figure", { class: "card" },
    picture(game, named)[0], make("figcaption", {}, `${text}: `, formula(game.history.at(-1)?.position ?? game.first)))));
}
