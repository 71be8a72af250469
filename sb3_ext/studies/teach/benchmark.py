"""What a host in three axes is measured by: singularities, larger positions, rho at 20 points."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
import torch
from torch import Tensor

import resgym
from resgym.game.rng import RowRandom
from resgym.game.state import GameState
from resgym.players import Player, ask_player
from resgym.solver.labels import SOLVED, Labeller
from sb3_ext.callbacks.rho_evaluation import player_of
from sb3_ext.studies.teach.draws import Draws, held_out_draws
from sb3_ext.studies.teach.examples import Examples, examples_of
from sb3_ext.studies.teach.generate import Plan
from sb3_ext.studies.teach.measures import held_out_accuracy, worst_case_depths

__all__ = [
    "as_drawn",
    "brieskorn_pham_starts",
    "compared_depths",
    "draws_beside",
    "host_results",
    "host_summary",
    "least_depths",
    "right_choices",
    "singularity_depths",
    "singularity_summary",
]

AGENTS = ("choose_first", "choose_last", "random")


def brieskorn_pham_starts(highest: int) -> list[tuple[tuple[int, int, int], ...]]:
    """The positions of x^a + y^b + z^c with 2 <= a <= b <= c <= highest."""
    return [
        ((a, 0, 0), (0, b, 0), (0, 0, c))
        for a, b, c in combinations_with_replacement(range(2, highest + 1), 3)
    ]


def least_depths(starts: Sequence[Any], budget: int) -> list[int | None]:
    """Proved least depths of positions in three axes; None where the budget is not enough.

    Args:
        starts: lists of minimal points.
        budget: positions expanded for one.
    """
    rows = max(2, *(len(start) for start in starts))
    points = np.full((len(starts), rows, 3), -1)
    for number, start in enumerate(starts):
        points[number, : len(start)] = start
    count = np.array([len(start) for start in starts])
    labels = Labeller(3, rows, budget=budget).host(points, count)
    return [
        int(value) if status == SOLVED else None
        for value, status in zip(labels.value, labels.status, strict=True)
    ]


def compared_depths(
    host: Player, starts: Sequence[Any], least: Sequence[int | None], max_depth: int = 40
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


def right_choices(host: Player, examples: Examples) -> Tensor:
    """Bool [M]: whether a host's choice is one of the optimal ones.

    Args:
        host: any host.
        examples: M positions labelled for the host.
    """
    state = GameState(examples.points, examples.count)
    rng = RowRandom.for_episode(torch.zeros_like(state.count), torch.arange(len(examples)))
    return examples.optimal.gather(1, ask_player(host, state, None, rng)[:, None])[:, 0]


def draws_beside(plan: Plan) -> Draws:
    """Held-out positions of the first family of a dataset, drawn with the next seed."""
    return held_out_draws(plan.config, plan.seed + 1, plan.held_out)


def as_drawn(host: Player, draws: Draws) -> dict[str, Any]:
    """Optimal choices of a host in held-out positions as often as drawn."""
    right = right_choices(host, draws.examples)
    return {
        "family": draws.family,
        "left_out": draws.left_out,
        "optimal": int(right.sum()),
        "positions": len(right),
    }


def singularity_depths(host: Player, label_budget: int, max_depth: int) -> dict[str, Any]:
    """Depth in the worst case and proved least depth of the sixteen singularities, by name."""
    names = resgym.singularity_names()
    starts = [[tuple(p) for p in resgym.singularity(name)] for name in names]
    depths = worst_case_depths(host, starts, max_depth=max_depth)
    return {
        name: {"depth": depth, "least_depth": least}
        for name, depth, least in zip(
            names, depths, least_depths(starts, label_budget), strict=True
        )
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


def host_results(
    model: Any,
    data: Any,
    plan: Plan,
    *,
    larger: int = 300,
    brieskorn_pham: int = 9,
    label_budget: int = 300_000,
    games: int = 4000,
    max_depth: int = 40,
) -> dict[str, Any]:
    """All measures of a host.

    Args:
        model: the host's model, in three axes.
        data: the dataset; its held-out part is used, and must not have been taught.
        plan: what the dataset was made from.
        larger: how many held-out positions of 6 to 8 points to grow trees from.
        brieskorn_pham: highest exponent of x^a + y^b + z^c.
        label_budget: positions expanded to prove the least depth of one of these.
        games: games of each rho, from 20 points.
        max_depth: trees with a longer branch are given up.

    Returns:
        plain data; see `host_summary`.
    """
    host = player_of(model, "taught")
    held_out = examples_of(data.split("held_out"))
    small = held_out.select(held_out.count <= 5)
    large = held_out.select(held_out.count >= 6)
    large = large.select(large.count <= 8) if len(large) else large
    results: dict[str, Any] = {
        "singularities": singularity_depths(host, label_budget, max_depth),
        "held_out_up_to_5_points": held_out_accuracy(model.policy, small),
        "as_drawn": as_drawn(host, draws_beside(plan)),
    }
    if len(large) and larger:
        chosen = large.select(torch.arange(min(larger, len(large))))
        starts = [
            points[:count].tolist()
            for points, count in zip(chosen.points, chosen.count.tolist(), strict=True)
        ]
        results["points_6_to_8"] = compared_depths(host, starts, chosen.value.tolist(), max_depth)
    if brieskorn_pham >= 2:
        starts = brieskorn_pham_starts(brieskorn_pham)
        results["brieskorn_pham"] = compared_depths(
            host, starts, least_depths(starts, label_budget), max_depth
        )
    if games:
        results["rho_20_points"] = {
            agent: resgym.rho(host, agent, games=games, seed=0).rho for agent in AGENTS
        }
    return results


def host_summary(results: Mapping[str, Any]) -> str:
    """The measures as a few lines of text."""
    share = results["held_out_up_to_5_points"]
    drawn = results["as_drawn"]
    lines = [
        singularity_summary(results["singularities"]),
        f"optimal choices, held out, up to 5 points: {100 * share['accuracy']:.2f} % of "
        f"{share['positions']}",
        f"the same as often as drawn ({drawn['family']}): "
        f"{100 * drawn['optimal'] / max(drawn['positions'], 1):.2f} % of {drawn['positions']}, "
        f"{drawn['left_out']} without a proof",
    ]
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
    for agent, rho in results.get("rho_20_points", {}).items():
        lines.append(f"rho against {agent}, 20 points: {rho:.3f}")
    return "\n".join(lines)
