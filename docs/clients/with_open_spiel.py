"""The game in OpenSpiel, solved by its minimax search; see docs/clients.md."""

import pyspiel
from open_spiel.python.algorithms.minimax import alpha_beta_search

import resgym
from resgym.game.exact import OrderedRule
from resgym.game.spec import action_axes

START, MOVES = resgym.singularity("A2"), 4  # a game is cut after so many moves
RULE, SETS = OrderedRule(resgym.GameSpec(dimension=3)), action_axes(3)
TYPE = pyspiel.GameType
FORM = TYPE.Dynamics.SEQUENTIAL, TYPE.ChanceMode.DETERMINISTIC, TYPE.Information.PERFECT_INFORMATION
FORM += TYPE.Utility.ZERO_SUM, TYPE.RewardModel.TERMINAL
FORM += 2, 2, False, False, False, False, {}  # players; strings and tensors that it provides
KIND = TYPE("hironaka", "Hironaka's polyhedral game", *FORM)


class Hironaka(pyspiel.Game):
    def __init__(self, params=None):
        # Actions, outcomes of chance, players, utility (least, greatest, sum), length.
        info = pyspiel.GameInfo(len(SETS), 0, 2, -1.0 * MOVES, 1.0 * MOVES, 0.0, 2 * MOVES)
        super().__init__(KIND, info, params or {})

    def new_initial_state(self, state=None):
        return Position(self)


class Position(pyspiel.State):
    def __init__(self, game):
        super().__init__(game)
        self.points, self.axes, self.moves = RULE.start(START), None, 0

    def current_player(self):
        seat = 0 if self.axes is None else 1  # the host chooses axes, the agent one of them
        return pyspiel.PlayerId.TERMINAL if self.is_terminal() else seat

    def _legal_actions(self, player):
        return list(range(len(SETS))) if self.axes is None else list(self.axes)

    def _apply_action(self, action):
        if self.axes is None:
            self.axes = SETS[action]
        else:
            self.points = RULE.after(self.points, self.axes, action)
            self.axes, self.moves = None, self.moves + 1

    def _action_to_string(self, player, action):
        return str(SETS[action] if player == 0 else action)

    def is_terminal(self):
        return len(self.points) == 1 or self.moves == MOVES

    def returns(self):
        moves = float(self.moves) if self.is_terminal() else 0.0
        return [-moves, moves]

    def __str__(self):
        return f"{self.points} {self.axes} {self.moves}"


pyspiel.register_game(KIND, Hironaka)
value, _ = alpha_beta_search(pyspiel.load_game("hironaka"), maximum_depth=2 * MOVES)
assert -value == resgym.solve(START).value == 3
print(value)
