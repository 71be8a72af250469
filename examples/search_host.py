"""A host that searches before it moves, as AlphaZero does, with the values that `played` learned.

cd examples
resgym scoreboard add search_host --import search_host --track search --task moves-20
"""

import math
from functools import partial
from typing import Literal

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

import resgym
from resgym import functional
from sb3_ext.checkpoints.models import read_policy
from sb3_ext.networks.mlp import action_scores
from sb3_ext.teach.shipped import PLAYED

SETS = [[0, 1], [2, 3], [4, 5], [6, 7, 8]]  # the moves of each set, see `functional.moves`


class Choice:  # of a seat, by PUCT
    def __init__(self, values: list[float]) -> None:
        odds = [math.exp(2 * (value - max(values))) for value in values]
        self.prior, self.sums = [each / sum(odds) for each in odds], values[:]
        self.visits = [1] * len(values)  # the network's value counts as one

    def best(self) -> int:
        wish, row = 3 * math.sqrt(sum(self.visits)), range(len(self.prior))
        return max(row, key=lambda k: (self.sums[k] + wish * self.prior[k]) / self.visits[k])


class Node:
    def __init__(self, points: list[tuple[int, ...]], values: list[float]) -> None:
        self.points, self.host = points, Choice(values)
        self.value = max(values) if len(points) > 1 else 0.0
        self.after, self.agents = list[Node](), list[Choice]()


@resgym.register_host("search_host")
class SearchHost:
    role: Literal["host"] = "host"
    name = "search_host"

    def __init__(self, positions: int = 32) -> None:
        self.positions = positions  # looked into before a move
        self.scores = partial(action_scores, read_policy(PLAYED[3], torch.device("cpu")))

    def act(self, state: resgym.GameState, coords: Tensor | None, rng: resgym.RowRandom) -> Tensor:
        roots = self.nodes(state)
        for _ in range(self.positions):
            lines = [self.line(root) for root in roots]
            self.look_into([node for _, node in lines if len(node.points) > 1])
            for choices, node in lines:
                value = node.value
                for host, action, agent, answer in reversed(choices):
                    agent.sums[answer] -= value
                    agent.visits[answer] += 1
                    value = 0.98 * value - 1  # the discount that `played` learned with
                    host.sums[action] += value
                    host.visits[action] += 1
        most = [
            max(range(4), key=lambda k: (h.visits[k], h.prior[k])) for h in (r.host for r in roots)
        ]
        return torch.tensor(most)

    def nodes(self, state: resgym.GameState) -> list[Node]:
        with torch.no_grad():
            values = self.scores(functional.observe(state, scale=False)).double()
        return [*map(Node, state.point_lists(), values.round(decimals=4).tolist())]

    def line(self, node: Node) -> tuple[list[tuple[Choice, int, Choice, int]], Node]:
        choices = []
        while node.after:
            action = node.host.best()
            answer = node.agents[action].best()
            choices.append((node.host, action, node.agents[action], answer))
            node = node.after[SETS[action][answer]]
        return choices, node

    def look_into(self, leaves: list[Node]) -> None:
        rows = [torch.tensor(leaf.points) for leaf in leaves]
        if not rows:
            return
        points = pad_sequence(rows, batch_first=True, padding_value=-1)
        state = resgym.GameState(points, torch.tensor([*map(len, rows)]))
        after = self.nodes(functional.successors(state)[0])
        for number, leaf in enumerate(leaves):
            leaf.after = after[9 * number : 9 * number + 9]
            leaf.agents = [Choice([-leaf.after[k].value for k in moves]) for moves in SETS]
