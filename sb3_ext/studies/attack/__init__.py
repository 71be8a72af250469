"""A fair attack on a frozen player: the worst responder found with a stated budget."""

from __future__ import annotations

from sb3_ext.config.sections import ConfigError
from sb3_ext.studies.attack.exact import exact_worst_case
from sb3_ext.studies.attack.exploitation import exploit
from sb3_ext.studies.attack.result import AttackResult, ExactResult, SeedResult
from sb3_ext.studies.attack.settings import AttackBudget, read_budget, shipped_budgets

__all__ = [
    "AttackBudget",
    "AttackResult",
    "ConfigError",
    "ExactResult",
    "SeedResult",
    "exact_worst_case",
    "exploit",
    "read_budget",
    "shipped_budgets",
]
