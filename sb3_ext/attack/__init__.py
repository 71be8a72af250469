"""A fair attack on a frozen player: the worst responder found with a stated budget."""

from __future__ import annotations

from sb3_ext.attack.exact import ExactResult, exact_worst_case
from sb3_ext.attack.exploitation import exploit
from sb3_ext.attack.result import AttackResult, SeedResult
from sb3_ext.attack.settings import AttackBudget, read_budget, shipped_budgets
from sb3_ext.two_player.sections import ConfigError

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
