"""Who copies whom, and what hyperparameters become: population-based training's two decisions.

After Jaderberg et al. 2017, "Population Based Training of Neural Networks". Every draw has a
generator of its own, made from what it is for, so that nothing depends on what was drawn before.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sb3_ext.population.config import ExploreRule

PURPOSES = ("exploit", "explore", "opponents", "training")


def random_of(seed: int, number: int, member: int, role: int, purpose: str) -> np.random.Generator:
    """The generator of a decision.

    Args:
        seed: of the population.
        number: of the round, from 1; 0 for how members begin.
        member: its number.
        role: 0 or 1.
        purpose: one of `PURPOSES`.
    """
    return np.random.default_rng([seed, number, member, role, PURPOSES.index(purpose)])


def copied_from(
    fitness: Sequence[float], share: float, sources: Sequence[np.random.Generator]
) -> dict[int, int]:
    """Truncation selection: each of the worst takes over one of the best, drawn uniformly.

    Args:
        fitness: of the members, higher is better; of equal ones the later are better.
        share: part of the members that copy, 0..0.5: none for 0, else at least one.
        sources: a generator for each member.

    Returns:
        Who copies, and whom.
    """
    ranked = sorted(range(len(fitness)), key=lambda member: (fitness[member], member))
    count = max(1, int(share * len(ranked))) if share > 0 and len(ranked) > 1 else 0
    best = ranked[len(ranked) - count :]
    return {member: best[int(sources[member].integers(count))] for member in ranked[:count]}


def explored(value: int | float, rule: ExploreRule, source: np.random.Generator) -> int | float:
    """A value times one of the factors, kept within its bounds; a whole number stays one."""
    changed = value * rule.factors[int(source.integers(len(rule.factors)))]
    changed = min(max(changed, rule.low), rule.high)
    return round(changed) if isinstance(value, int) else changed
