"""Players that read and write text, and rounds in which a model learns the solver's answers.

`ask` stands for a language model: it takes N chats, lists of {"role": ..., "content": ...}, and
returns N texts. Here a dictionary plays that part. Every stage of a round leaves a file, and what
has its file is not done again: a run that was stopped continues with the same command,

    python examples/text_players.py runs/text
"""

import json
import sys
from pathlib import Path

import resgym
from resgym.game.spec import action_axes
from resgym.measure.games import sample_games
from resgym.solver.labels import Labeller
from resgym.texts import format_axes, format_position

GAME = {"dimension": 3, "max_num_points": 4, "max_value": 2}
RULES = """\
A position is a set of points. The host names two axes or more, then the agent one of these: on
it every point gets the sum of its coordinates over the host's axes. Points that are at least as
large as another one on every axis go. The host wants a single point soon, the agent wants it late.
Answer with a last line such as "answer: {}"."""


def chat_of(points, legal, coords=None):
    """The messages that ask for one decision; `legal` are the texts that are answers."""
    system = {"role": "system", "content": RULES.format(legal[0])}
    return [system, {"role": "user", "content": format_position(points, coords)}]


class TextPlayer:
    """Plays what `ask` answers; complains `retries` times, then `otherwise` (a player) plays."""

    rules = ("basic",)

    def __init__(self, role, ask, otherwise, retries=1):
        self.role, self.ask, self.otherwise, self.retries = role, ask, otherwise, retries

    def act(self, state, coords, rng):
        answer = self.otherwise.act(state, coords, rng)
        names = [format_axes(axes) for axes in action_axes(state.points.shape[2])]
        chats, legal = {}, {}
        for row, points in enumerate(state.point_lists()):
            if len(points) > 1:
                axes = None if self.role == "host" else coords[row].nonzero()[:, 0].tolist()
                number = enumerate(names) if axes is None else ((a, "xyzuvw"[a]) for a in axes)
                legal[row] = {text: action for action, text in number}
                chats[row] = chat_of(points, [*legal[row]], axes)
        for _ in range(1 + self.retries):
            replies = self.ask(list(chats.values())) if chats else []
            for row, reply in list(zip(chats, replies, strict=True)):
                said = reply.rpartition("answer:")[2].strip()
                if said in legal[row]:
                    answer[row] = legal[row][said]
                    del chats[row]
                else:
                    complaint = f"Answer one of {', '.join(legal[row])}."
                    chats[row].append({"role": "assistant", "content": reply})
                    chats[row].append({"role": "user", "content": complaint})
        return answer


class Memory(dict):
    """A model that knows by heart what it was taught, and nothing else."""

    def ask(self, chats):
        return [self.get(chat[1]["content"], "I do not know") for chat in chats]

    def train(self, lines):
        self.update((line[1]["content"], line[2]["content"]) for line in lines)


def labelled(games):
    """Chats of the positions in games, each with an optimal answer, as fine-tuning takes them."""
    points = [position for game in games for position in game.positions[:-1]]
    state = resgym.state_from_points(points, resgym.GameSpec(**GAME))
    solver = Labeller(3, GAME["max_num_points"])
    costs, _, solved = solver.costs(state.points.numpy(), state.count.numpy(), exact=False)
    names = [format_axes(axes) for axes in action_axes(3)]
    for position, cost, known in zip(points, costs, solved, strict=True):
        if known:
            said = {"role": "assistant", "content": f"answer: {names[cost.argmin()]}"}
            yield [*chat_of(position, names), said]


def main(folder="runs/text", rounds=3, games=100):
    model = Memory()
    host = TextPlayer("host", model.ask, otherwise=resgym.make_host("random"), retries=0)
    results = []
    for number in range(rounds):
        place = Path(folder) / f"round-{number}"
        place.mkdir(parents=True, exist_ok=True)

        def stage(name, make, place=place):
            file = place / name
            if not file.exists():
                file.with_suffix(".new").write_text(json.dumps(make(), indent=1))
                file.with_suffix(".new").replace(file)
            return json.loads(file.read_text())

        def sample(number=number):
            played = sample_games(host, "choose_last", games=games, seed=number, **GAME)
            return list(labelled(played))

        model.train(stage("train.json", sample))
        found = stage(
            "rho.json", lambda: resgym.rho(host, "choose_last", games=games, seed=1, **GAME).rho
        )
        print(f"round {number}: {len(model)} positions learned, rho {found:.3f}")
        results.append(found)
    return results


if __name__ == "__main__":
    main(*sys.argv[1:2])
