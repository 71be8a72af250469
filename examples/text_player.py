"""A host that speaks, and a "model" that learns by heart what the solver labelled.

In place of the dictionary stand the calls of a language model: `ask` gets chats and returns texts.
"""

from resgym import GameSpec, make_host, rho
from resgym.text import TextPlayer, decisions_of, record_games, score_decisions

SIZES = {"dimension": 3, "max_num_points": 4, "max_value": 2}


class Memory(dict):
    def ask(self, chats):
        """Known positions are answered as learned; others are left to `on_unreadable`."""
        return [self.get(chat[1]["content"], "?") for chat in chats]

    def learn(self, lines):
        for line in lines:
            _, question, answer = line["messages"]
            self[question["content"]] = answer["content"]


def main(games: int = 200, rounds: int = 3) -> tuple[float, float, float]:
    memory = Memory()
    host = TextPlayer("host", memory.ask, retries=0, on_unreadable="zeillinger")

    def measured(player) -> float:
        return rho(player, "choose_last", games=games, seed=1, **SIZES).rho

    before = measured(host)
    for number in range(rounds):
        played = record_games(host, "choose_last", GameSpec(**SIZES), games, seed=number)
        labelled = [each for each in score_decisions(decisions_of(played, "host")) if each.optimal]
        memory.learn(each.chat(each.optimal[0]) for each in labelled)
    after, best = measured(host), measured(make_host("optimal"))
    print(f"{len(memory)} positions learned: rho {before:.3f} -> {after:.3f}, optimal {best:.3f}")
    return before, after, best


if __name__ == "__main__":
    main()
