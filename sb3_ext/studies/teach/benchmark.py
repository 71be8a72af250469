"""What a host in three axes is measured by: singularities, held-out and larger positions, rho."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from itertools import combinations_with_replacement
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

import resgym
from resgym.players import Player
from resgym.solver.labels import SOLVED, Labeller
from sb3_ext.studies.teach.drawing import Plan, held_out_shares
from sb3_ext.studies.teach.examples import Examples
from sb3_ext.studies.teach.families import draw_batch
from sb3_ext.studies.teach.measures import optimal_choices, worst_case_depths

__all__ = ["AGENTS", "host_summary", "host_test", "measure_host", "singularity_depths"]

AGENTS = ("choose_first", "choose_last", "random")

DRAWN_BATCHES = 40
"""Times that 8192 positions are drawn for `held_out_draws`."""

DRAWN_BUDGET = 20_000
"""Positions expanded for the label of one of these."""


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
    labeller = Labeller(config.dimension, config.max_num_points, budget=DRAWN_BUDGET)
    points, counts = [], []
    for batch in range(DRAWN_BATCHES):
        draws = draw_batch(config, 0, batch, plan.seed + 1)
        rows, count = np.asarray(draws.points), np.asarray(draws.count)
        chosen = held_out_shares(labeller.canonical(rows, count).digests) < plan.held_out
        points.append(rows[chosen])
        counts.append(count[chosen])
    rows, count = np.concatenate(points), np.concatenate(counts)
    labels = labeller.host(rows, count)
    good = labels.status == SOLVED
    fields = (rows[good], count[good], labels.optimal[good], labels.value[good])
    found, count_of, optimal, value = map(torch.from_numpy, fields)
    return Examples(found, count_of, None, optimal, value), int((~good).sum())


def brieskorn_pham_starts(highest: int) -> list[tuple[tuple[int, int, int], ...]]:
    """The positions of x^a + y^b + z^c with 2 <= a <= b <= c <= highest."""
    return [
        ((a, 0, 0), (0, b, 0), (0, 0, c))
        for a, b, c in combinations_with_replacement(range(2, highest + 1), 3)
    ]


def _compared_depths(
    host: Player, starts: Sequence[Any], least: Sequence[int | None], max_depth: int
) -> dict[str, Any]:
    """Depths beside the optimum; positions whose optimum is not proved are counted and left out."""
    known = [number for number, value in enumerate(least) if value is not None]
    depths = worst_case_depths(host, [starts[n] for n in known], max_depth=max_depth)
    excess = [
        None if depth is None else depth - int(least[number] or 0)
        for number, depth in zip(known, depths, strict=True)
    ]
    return {
        "positions": len(known),
        "not_proved": len(least) - len(known),
        "optimal": sum(value == 0 for value in excess),
        "within_one": sum(value is not None and value <= 1 for value in excess),
        "not_finished": sum(value is None for value in excess),
        "worst_excess": max((value for value in excess if value is not None), default=None),
    }


@cache
def _least_depth(name: str) -> int:
    value = resgym.solve(resgym.singularity(name), "depth").value
    assert isinstance(value, int)
    return value


def singularity_depths(host: Player, max_depth: int) -> dict[str, Any]:
    """Depth in the worst case and proved least depth of the sixteen singularities, by name."""
    names = resgym.singularity_names()
    starts = [[tuple(p) for p in resgym.singularity(name)] for name in names]
    depths = worst_case_depths(host, starts, max_depth=max_depth)
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
        powers: the positions of x^a + y^b + z^c.
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

    ``brieskorn_pham`` is the highest exponent of x^a + y^b + z^c, below 2 there is none;
    ``label_budget`` positions are expanded to prove the least depth of one of these.
    """
    powers = brieskorn_pham_starts(brieskorn_pham)
    least: list[int | None] = []
    if powers:
        count = np.full(len(powers), 3)
        labels = Labeller(3, 3, budget=label_budget).host(np.array(powers), count)
        solved = labels.status == SOLVED
        least = [int(v) if good else None for v, good in zip(labels.value, solved, strict=True)]
    family = plan.config.families[0].name
    return HostTest(held_out, family, *held_out_draws(plan), powers, least)


def measure_host(
    host: Player, test: HostTest, *, larger: int, games: int, max_depth: int
) -> dict[str, Any]:
    """Everything that is measured of a host beside its trees.

    Args:
        host: one in three axes that was not taught the held-out positions.
        test: the positions.
        larger: how many held-out positions of 6 to 8 points to grow trees from.
        games: games of each rho, from 20 points; 0 leaves them out.
        max_depth: trees with a longer branch are given up.

    Returns:
        ``points_6_to_8``, ``brieskorn_pham`` and ``rho`` are missing without anything to measure.
    """
    examples, drawn = test.held_out, optimal_choices(host, test.drawn)
    right = optimal_choices(host, examples)
    small = examples.count <= 5

    def share(chosen: Tensor) -> dict[str, Any]:
        return {"positions": int(chosen.sum()), "optimal": int(right[chosen].sum())}

    results: dict[str, Any] = {
        "held_out": {
            "up_to_5_points": share(small),
            "as_drawn": {
                "family": test.family,
                "left_out": test.left_out,
                "optimal": int(drawn.sum()),
                "positions": len(drawn),
            },
            "by_points": {
                number: share(examples.count == number)
                for number in examples.count.unique().tolist()
            },
            "by_least_depth": {
                number: share(small & (examples.value == number))
                for number in examples.value[small].unique().tolist()
            },
        }
    }
    large = ((examples.count >= 6) & (examples.count <= 8)).nonzero()[:larger, 0]
    if len(large):
        chosen = examples.select(large)
        starts = [
            rows[:count].tolist()
            for rows, count in zip(chosen.points, chosen.count.tolist(), strict=True)
        ]
        results["points_6_to_8"] = _compared_depths(host, starts, chosen.value.tolist(), max_depth)
    if test.powers:
        results["brieskorn_pham"] = _compared_depths(host, test.powers, test.least, max_depth)
    if games:
        results["rho"] = {
            agent: resgym.rho(host, agent, games=games, seed=0).rho for agent in AGENTS
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
        ("brieskorn_pham", "x^a + y^b + z^c"),
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
