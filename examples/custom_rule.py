"""A rule of one's own: the agent's coordinate becomes the sum over the host's set, plus 1.

The class plays N games as tensors. The class in ``ordered`` is the same rule on Python integers,
for trees and the solver. Other functions of `resgym.game.state.Rule` decide when a game is over,
which sets a host may choose, and which axes an agent may choose.
"""

from torch import Tensor

import resgym
from resgym.game.exact import OrderedRule
from resgym.game.state import Rule


class OrderedPlusOne(OrderedRule):
    def total(self, values: list[int]) -> int:
        """The values are a point's coordinates in the host's set."""
        return super().total(values) + 1


@resgym.register_rule("plus_one")
class PlusOne(Rule):
    ordered = OrderedPlusOne

    def sums(self, columns: Tensor, coords: Tensor) -> Tensor:
        """Points int64 [D, P, N], the hosts' sets bool [N, D]."""
        return super().sums(columns, coords) + 1


def main(games: int = 1_000) -> int:
    print(resgym.rho("random", "random", games=games, rule="plus_one"))
    solution = resgym.solve("x^2+y^3", rule="plus_one")
    print(solution)
    return int(solution.value or 0)


if __name__ == "__main__":
    main()
