"""How good a player is: optimal moves in labelled positions, depths in the worst case, rho."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

import resgym
from resgym.game.rng import RowRandom
from resgym.game.spec import GameSpec
from resgym.game.state import GameState, state_from_points
from resgym.measure.rho import rho_starts
from resgym.measure.worst_case import worst_case_moves
from resgym.players import Player, ask_player, make_host
from resgym.solver.labels import SOLVED, Labeller
from sb3_ext.studies.teach.drawing import Plan, held_out_shares
from sb3_ext.studies.teach.examples import Examples
from sb3_ext.studies.teach.families import brieskorn_pham_starts, draw_batch

AGENTS = ("choose_first", "choose_last", "random")

HELD_UP = ("optimal", "taught", "zeillinger", "spivakovsky", "random")
COMPARED = ("greedy_points", "choose_first", "random")
"""Hosts that an agent is measured against, and agents that it is compared with."""

DRAWN_BATCHES = 40
"""Times that 8192 positions are drawn for `held_out_draws`."""

_ROWS_AT_ONCE = 8192


def chosen_moves(player: Player, examples: Examples) -> Tensor:
    """What a player of the labelled seat chooses, int64 [M]: host actions or axes."""
    result = []
    for rows in torch.arange(len(examples)).split(_ROWS_AT_ONCE):
        batch = examples.select(rows)
        rng = RowRandom.for_episode(torch.zeros_like(rows), rows)
        state = GameState(batch.points, batch.count)
        result.append(ask_player(player, state, batch.coords, rng))
    return torch.cat(result)


def optimal_choices(player: Player, examples: Examples) -> Tensor:
    """Bool [M]: whether the move that a player chooses is an optimal one."""
    return examples.optimal.gather(1, chosen_moves(player, examples)[:, None])[:, 0]


def held_out_accuracy(player: Player, examples: Examples) -> dict[str, Any]:
    """The share of positions, which were not taught, in which a player's move is an optimal one.

    Returns:
        ``positions``, ``accuracy``, and the same two ``by_count`` (of points) and ``by_value`` (the
        moves or nodes under optimal play), each a dict by number.
    """

    def accuracy(right: Tensor) -> dict[str, Any]:
        return {"positions": len(right), "accuracy": float(right.double().mean())}

    right = optimal_choices(player, examples)
    numbers = {"by_count": examples.count, "by_value": examples.value}
    parts = {name: _by_number(accuracy, right, each) for name, each in numbers.items()}
    return {**accuracy(right), **parts}


def _by_number(
    measure: Callable[[Tensor], dict[str, Any]], right: Tensor, numbers: Tensor
) -> dict[int, dict[str, Any]]:
    """What is measured of the choices ``right``, bool [M], for each of ``numbers``, int64 [M]."""
    return {number: measure(right[numbers == number]) for number in numbers.unique().tolist()}


def worst_case_depths(host: Player, starts: Sequence[Any], max_depth: int = 40) -> list[int | None]:
    """Moves on the longest branch of a host's tree, for lists of points in equally many axes.

    Returns:
        A number per start; None where the tree is deeper or was given up, see `worst_case_moves`.
    """
    spec = GameSpec(len(starts[0][0]) if starts else 3, max([2, *map(len, starts)]))
    state = state_from_points(starts, spec)
    moves, given_up = worst_case_moves(host, state, spec, max_depth, 100_000)
    moves[given_up] = max_depth + 1
    return [depth if depth <= max_depth else None for depth in moves.tolist()]


def held_out_draws(plan: Plan) -> tuple[Examples, int]:
    """Held-out positions of a plan's first family, each as often as it is drawn.

    A dataset holds every position once, so rare and difficult ones prevail in it. Here the common
    ones count as often as they come. The draws are those of the next seed. Whether a position is
    held out is decided by its canonical form alone, so no dataset with the plan's share of held-out
    positions has taught any of them.

    Returns:
        The positions, labelled for the host by depth, and the number of those that were left out
        because the solver's budget was not enough.
    """
    config = plan.config
    labeller = Labeller(config.dimension, config.max_num_points, budget=config.budget)
    kept, student = [], plan.student_player()
    for batch in range(DRAWN_BATCHES):
        draws = draw_batch(config, 0, batch, plan.seed + 1, student)
        digests = labeller.digests(draws.points.numpy(), draws.count.numpy())
        kept.append(draws.select(torch.from_numpy(held_out_shares(digests) < plan.held_out)))
    points, count = torch.cat([d.points for d in kept]), torch.cat([d.count for d in kept])
    optimal, value, status = map(torch.from_numpy, labeller.host(points.numpy(), count.numpy()))
    solved = status == SOLVED
    examples = Examples(points, count, None, optimal, value).select(solved)
    return examples, int((~solved).sum())


def _compared_depths(
    host: Player, starts: Sequence[Any], least: Sequence[int | None], max_depth: int
) -> dict[str, Any]:
    """Depths beside the optimum; positions whose optimum is not proved are counted and left out."""
    proved = [(start, value) for start, value in zip(starts, least, strict=True) if value]
    depths = worst_case_depths(host, [start for start, _ in proved], max_depth=max_depth)
    excess = [
        depth - value for depth, (_, value) in zip(depths, proved, strict=True) if depth is not None
    ]
    return {
        "positions": len(proved),
        "not_proved": len(least) - len(proved),
        "optimal": excess.count(0),
        "within_one": sum(value <= 1 for value in excess),
        "not_finished": len(proved) - len(excess),
        "worst_excess": max(excess, default=None),
    }


@cache
def _least_depth(name: str) -> int:
    value = resgym.solve(resgym.singularity(name), "depth").value
    assert isinstance(value, int)
    return value


def singularity_depths(host: Player, max_depth: int) -> dict[str, Any]:
    """Depth in the worst case and proved least depth of the sixteen singularities, by name."""
    names = resgym.singularity_names()
    depths = worst_case_depths(host, list(map(resgym.singularity, names)), max_depth=max_depth)
    return {
        name: {"depth": depth, "least_depth": _least_depth(name)}
        for name, depth in zip(names, depths, strict=True)
    }


def singularity_summary(singularities: Mapping[str, Any]) -> str:
    """The result of `singularity_depths` as a line of text."""
    deeper = [
        f"{name} {row['depth']} (least {row['least_depth']})"
        for name, row in singularities.items()
        if row["depth"] != row["least_depth"]
    ]
    least = len(singularities) - len(deeper)
    others = f"; others: {', '.join(deeper)}" if deeper else ""
    return f"singularities in the least depth: {least} of {len(singularities)}{others}"


class HostTest(NamedTuple):
    """The positions that a host is measured on; the same for all hosts that are compared.

    Attributes:
        held_out: distinct held-out positions, labelled.
        family: name of the family of ``drawn``.
        drawn: held-out positions with repetition, see `held_out_draws`.
        left_out: drawn positions without a label.
        powers: the positions of x^a + y^b + ...
        least: their proved least depths, None without a proof.
    """

    held_out: Examples
    family: str
    drawn: Examples
    left_out: int
    powers: list[Any]
    least: list[int | None]


def host_test(held_out: Examples, plan: Plan, brieskorn_pham: int, label_budget: int) -> HostTest:
    """Draws and labels what hosts are measured on, beside the held-out part of a plan's dataset.

    ``brieskorn_pham`` is the highest exponent of x^a + y^b + ..., below 2 there is none;
    ``label_budget`` positions are expanded to prove the least depth of one of these.
    """
    axes = plan.config.dimension
    powers = brieskorn_pham_starts(2, brieskorn_pham, axes)
    points = np.array(powers, np.int64).reshape(-1, axes, axes)
    labels = Labeller(axes, axes, budget=label_budget).host(points, np.full(len(powers), axes))
    least = [value or None for value in labels.value.tolist()]  # 0 where there is no label
    family = plan.config.families[0].name
    return HostTest(held_out, family, *held_out_draws(plan), powers, least)


def measure_host(
    host: Player, test: HostTest, *, larger: int, games: int, max_depth: int, starts: Any = None
) -> dict[str, Any]:
    """Everything that is measured of a host beside its trees.

    Args:
        host: one that was not taught the held-out positions.
        test: the positions.
        larger: how many held-out positions of 6 to 8 points to grow trees from.
        games: games of each rho, from 20 points; 0 leaves them out.
        max_depth: trees with a longer branch are given up.
        starts: the set that the starts of the games are drawn from, see `resgym.rho`.

    Returns:
        ``points_6_to_8``, ``brieskorn_pham`` and ``rho`` are missing without anything to measure.
    """
    examples, drawn = test.held_out, optimal_choices(host, test.drawn)
    right = optimal_choices(host, examples)
    small = examples.count <= 5

    def share(right: Tensor) -> dict[str, Any]:
        return {"positions": len(right), "optimal": int(right.sum())}

    held_out = {
        "up_to_5_points": share(right[small]),
        "as_drawn": {"family": test.family, "left_out": test.left_out, **share(drawn)},
        "by_points": _by_number(share, right, examples.count),
        "by_least_depth": _by_number(share, right[small], examples.value[small]),
    }
    results: dict[str, Any] = {"held_out": held_out}
    large = ((examples.count >= 6) & (examples.count <= 8)).nonzero()[:larger, 0]
    if len(large):
        chosen = examples.select(large)
        trees = GameState(chosen.points, chosen.count).point_lists()
        results["points_6_to_8"] = _compared_depths(host, trees, chosen.value.tolist(), max_depth)
    if test.powers:
        results["brieskorn_pham"] = _compared_depths(host, test.powers, test.least, max_depth)
    if games:
        axes = examples.points.shape[2]
        results["rho"] = {
            agent: resgym.rho(host, agent, games=games, seed=0, dimension=axes, starts=starts).rho
            for agent in AGENTS
        }
    return results


def host_summary(results: Mapping[str, Any]) -> str:
    """The result of `measure_host` as a few lines of text."""
    lines = []
    for part, text in (("up_to_5_points", "distinct"), ("as_drawn", "with repetition")):
        share = results["held_out"][part]
        percent = 100 * share["optimal"] / max(share["positions"], 1)
        lines.append(
            f"optimal choices, held out, up to 5 points, {text}: {percent:.2f} % of "
            f"{share['positions']}"
        )
    for key, title in (
        ("points_6_to_8", "held-out positions of 6 to 8 points"),
        ("brieskorn_pham", "x^a + y^b + ..."),
    ):
        if key in results:
            row = results[key]
            total = max(row["positions"], 1)
            lines.append(
                f"{title}: {100 * row['optimal'] / total:.1f} % in the least depth, "
                f"{100 * row['within_one'] / total:.1f} % within one of it ({row['positions']}, "
                f"{row['not_proved']} without a proof, {row['not_finished']} not finished)"
            )
    for agent, rho in results.get("rho", {}).items():
        lines.append(f"rho against {agent}, 20 points: {rho:.3f}")
    return "\n".join(lines)


def measure_agent(
    agent: Player, *, games: int, dimension: int, starts: Any = None
) -> dict[str, Any]:
    """For how many moves an agent holds up hosts, beside other agents and the longest games.

    Args:
        agent: one in so many axes.
        games: games with each host, all from the same random starts of 20 points.
        dimension: number of axes.
        starts: the set that starts are drawn from instead of random ones, see `resgym.rho`.

    Returns:
        By host: ``moves``, the mean number of moves by agent, and ``longest``, that of the longest
        games that any agent reaches; None where that is not known. Games are cut after 200 moves.
    """
    spec, most = GameSpec(dimension), 200
    begin = rho_starts(spec, games, starts=starts)

    def moves(host: str, agent: Any) -> float:
        found = resgym.rho(
            host, agent, games=games, dimension=dimension, max_moves=most, starts=starts
        )
        return found.mean_length

    results = {}
    for host in HELD_UP:
        longest: float | None = None
        if host == "optimal":
            longest = moves(host, "optimal")
        elif host != "random":
            length, given_up = worst_case_moves(make_host(host), begin, spec, most, 20_000)
            if not given_up.any():
                longest = float(length.clamp(max=most).double().mean())
        held = {"trained": moves(host, agent), **{name: moves(host, name) for name in COMPARED}}
        results[host] = {"moves": held, "longest": longest}
    return results


def agent_summary(results: Mapping[str, Any]) -> str:
    """The result of `measure_agent` as a few lines of text."""
    lines = ["moves for which hosts are held up, 20 points:"]
    for host, row in results.items():
        moves = ", ".join(f"{name} {mean:.2f}" for name, mean in row["moves"].items())
        longest = "" if row["longest"] is None else f"; longest {row['longest']:.2f}"
        lines.append(f"  {host}: {moves}{longest}")
    return "\n".join(lines)
