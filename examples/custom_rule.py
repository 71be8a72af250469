"""A rule of one's own: the new coordinate is the sum over the host's set less half of its largest.

The class plays N games as tensors. The class in `ordered` is the same rule on Python integers, for
trees and the solver: without one they play the default rule. Other functions of
`resgym.game.state.Rule` decide when a game is over, which sets a host may choose, and which axes an
agent may choose.
"""

from torch import Tensor

import resgym
from resgym.game.exact import OrderedRule
from resgym.game.state import Rule


class OrderedLessHalf(OrderedRule):
    def total(self, values: list[int]) -> int:
        """The values are a point's coordinates in the host's set."""
        return sum(values) - max(values) // 2


@resgym.register_rule("less_half")
class LessHalf(Rule):
    ordered = OrderedLessHalf

    def sums(self, columns: Tensor, coords: Tensor) -> Tensor:
        """Points int64 [D, P, N], the hosts' sets bool [N, D]."""
        chosen = columns * coords.t()[:, None]  # 0 outside the set; points are never negative
        return chosen.sum(0) - chosen.amax(0) // 2


def main(games: int = 1_000) -> int:
    print(resgym.rho("random", "random", games=games, rule="less_half"))
    solution = resgym.solve("x^2+y^5", rule="less_half", time_limit=10)
    print(solution)
    return int(solution.value or 0)


if __name__ == "__main__":
    main()
