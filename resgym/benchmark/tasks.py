"""The tasks, and a player's result in one, between proved optimal play (1) and none (0).

docs/scoreboard.md describes them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any, NamedTuple

import torch
from torch import Tensor

import resgym
from resgym.benchmark.solved import GAMES, Solved, load
from resgym.envs.environments import HironakaEnv, HironakaVectorEnv
from resgym.game.rng import RowRandom
from resgym.game.spec import Role, check_choice
from resgym.measure.games import play_lengths
from resgym.measure.optimum import optimum
from resgym.measure.rho import rho_of_games
from resgym.players import Player, make_agent, player_name, resolve_player
from resgym.solver.responses import worst_cases
from resgym.texts import spread

MAX_MOVES = 200
"""Games are cut after this many moves."""
POSITIONS = 20_000
"""Positions that are looked at from a start before its search is given up."""
MAX_REGRET = 10
"""Moves; a larger regret counts as this one."""


Figures = tuple[Tensor, Tensor, Tensor, dict[str, float]]
"""What is measured on N positions: counts int64 [N], moves of games or regrets; scores float64 [N]
with the result as their mean, the lower and the upper ends where a range is known; and further
figures."""


def _worst(player: Player, data: Solved, task: Task) -> Figures:
    """Least depths as shares of the longest games that an agent can force."""
    moves, most = worst_cases(player, data.state, GAMES[task.part], MAX_MOVES, POSITIONS)
    given_up = moves < most
    cut, gap = moves > MAX_MOVES, moves.clamp(max=MAX_MOVES) - data.value
    highest = torch.where(cut, 0.0, data.value / moves)
    details = {
        "moves": float((data.value + gap).double().mean()),
        "exploitability": float(gap.double().mean()),
        "optimal": int((highest == 1).sum()),
        "cut": int(cut.sum()),
        "given_up": int(given_up.sum()),
    }
    # Of a search that was given up the moves are a lower bound, which has a minus.
    moves = torch.where(given_up, -moves, moves)
    return moves, highest.where(~given_up, 0.0), highest, details


def _regret(player: Player, data: Solved, task: Task) -> Figures:
    """How much less a player loses by its moves than one that plays any move."""
    asked = data.asked(task.seat)
    legal, capped = asked.regret >= 0, asked.regret.clamp(max=MAX_REGRET)
    found = asked.chosen(player).clamp(max=MAX_REGRET)
    uniform = float(((capped * legal).sum(1) / legal.sum(1)).mean())
    scores = 1 - found / uniform
    details = {
        "regret": float(found.double().mean()),
        "right": float((found == 0).double().mean()),
        "uniform_right": float(((capped == 0).sum(1) / legal.sum(1)).mean()),
        "constant_right": float((capped == 0).double().mean(0).max()),
    }
    return found, scores, scores, details


def _against(player: Player, data: Solved, task: Task) -> Figures:
    """Rho as a share of the optimum, or rho itself against an agent whose optimum is unknown."""
    spec, row = GAMES[task.part], torch.arange(len(data))
    rng = RowRandom.for_episode(0 * row, row)
    played = play_lengths(player, make_agent(task.opponent), data.state, spec, rng, MAX_MOVES)
    moves, rho = played.moves.double(), rho_of_games(*played).rho
    # Linear about the ratio of the sums, so that mean and deviation are those of rho.
    scores = rho + (played.finished.double() - rho * moves) / moves.mean()
    least, greatest = _optimum(task.part, task.opponent) or (1.0, 1.0)
    found = played.moves, scores / greatest, scores / least
    return *found, {"moves": float(moves.mean()), "rho": rho}


@cache
def _optimum(part: str, opponent: str) -> tuple[float, float] | None:
    return optimum(make_agent(opponent), load(part).state, GAMES[part], MAX_MOVES)


class Task(NamedTuple):
    """What is measured, on the test positions of a part of the data.

    Attributes:
        part: name of the part.
        measure: measures a player.
        opponent: the player of the other seat, where there is one.
        seat: seat of the player.
    """

    part: str
    measure: Callable[[Player, Solved, Task], Figures]
    opponent: str = "optimal(budget=200)"
    seat: Role = "host"


TASKS = {
    "worst-5": Task("worst-5", _worst),
    "worst-20": Task("worst-20", _worst),
    "axes4": Task("axes4", _worst),
    "moves-20": Task("moves-20", _regret),
    "scale-100": Task("scale-100", _regret),
    "family": Task("family", _regret),
    "answers-20": Task("moves-20", _regret, seat="agent"),
    "greedy-20": Task("worst-20", _against, "greedy_points"),
    "first-20": Task("worst-20", _against, "choose_first"),
    "random-20": Task("worst-20", _against, "random"),
}


def task_named(name: str) -> Task:
    """Return a task of `TASKS`; the ValueError lists them."""
    return TASKS[check_choice("task", name, TASKS)]


@dataclass(frozen=True)
class Result:
    """A player's result in a task.

    Attributes:
        name: name of the player in tables.
        player: its registered name, or the path of a saved model.
        task: a name of `TASKS`.
        value: the result; where only a range is known its lower end, which is ranked.
        highest: the upper end of the range.
        interval_95: 95 % interval of value and highest over positions, normal approximation.
        details: further figures of the task.
        counts: by position, the moves of games or the regrets.
        data_sha256: digest of the positions.
        version: version of this package.
        track: how the player was made: play, labels, search, script, or None.
        steps: steps of environments in training, if known.
        reproduced: it was measured again with the same counts.
    """

    name: str
    player: str
    task: str
    value: float
    highest: float
    interval_95: tuple[float, float]
    details: dict[str, float]
    counts: list[int]
    data_sha256: str
    version: str
    track: str | None = None
    steps: int | None = None
    reproduced: bool = False

    def __str__(self) -> str:
        return f"{spread((self.value, self.highest), 3)} ± {self.interval_95[1] - self.highest:.3f}"


def evaluate(player: Any, task: str, *, name: str | None = None, **about: Any) -> Result:
    """Measure a player in a task, on fixed positions and without training it.

    Args:
        player: a player's name, a `Player`, a callable or a saved model's path.
        task: a name of `TASKS`.
        name: name in tables, by default the player's own.
        about: ``track`` and ``steps`` of the `Result`.

    Raises:
        ValueError, TypeError: there is no such task or player, or it cannot play these positions;
            for ``worst-5``, ``worst-20`` and ``axes4``: it answers a position not always alike.
    """
    part, measure, _, seat = asked = task_named(task)
    seated = resolve_player(player, seat, GAMES[part], "player")
    data = load(part)
    counts, scores, highest, details = measure(seated, data, asked)
    low, high = float(scores.mean()), float(highest.mean())
    half = 1.96 * float(scores.std()) / len(scores) ** 0.5
    shown = player_name(player)
    return Result(
        name or shown,
        player if isinstance(player, str) else shown,
        task,
        low,
        high,
        (low - half, high + half),
        details,
        counts.tolist(),
        data.digest(),
        resgym.__version__,
        **about,
    )


def make(task: str, num_envs: int = 1, **arguments: Any) -> HironakaVectorEnv:
    """Make the environments of a task's game, with random starts.

    Args:
        task: a name of `TASKS`.
        num_envs: number of games.
        arguments: further arguments of `HironakaVectorEnv`, such as ``opponent`` or ``device``,
            which replace those of the task's game; not ``seat``.

    Raises:
        ValueError, TypeError: an argument is unknown or out of range; the message names it.
    """
    definition = task_named(task)
    game = asdict(GAMES[definition.part]) | arguments
    return HironakaVectorEnv(num_envs, seat=definition.seat, **game)


def task_env(task: str, **arguments: Any) -> HironakaEnv:
    """Make what an id such as ``resgym/Worst20-v0`` names: a game that starts from the positions.

    The opponent is the task's own, or plays its best; a move costs a host 1 and pays an agent 1.

    Args:
        task: a name of `TASKS`.
        arguments: of `HironakaEnv`, in place of these.
    """
    part, _, opponent, seat = task_named(task)
    own = {"seat": seat, "opponent": opponent, "reward": "step", "starts": load(part).state}
    return HironakaEnv(**asdict(GAMES[part]) | own | arguments)
