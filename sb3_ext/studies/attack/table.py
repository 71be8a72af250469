"""The attack on many players as a table that grows."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

from resgym.files import check_seal, sealed
from resgym.game.spec import Role
from resgym.tables import markdown_table
from sb3_ext.checkpoints.format import errors_named
from sb3_ext.cluster.pieces import Spread
from sb3_ext.config.sections import ConfigError
from sb3_ext.runs.command_line import Report
from sb3_ext.studies.attack.exploitation import exploit
from sb3_ext.studies.attack.frozen import FrozenPlayer
from sb3_ext.studies.attack.result import AttackResult, ExactResult, between, picks_worst
from sb3_ext.studies.attack.settings import AttackBudget
from sb3_ext.studies.json_files import write_json

HOSTS = ("random", "all_coord", "random_pair", "zeillinger", "spivakovsky", "taught", "robust")
AGENTS = ("random", "choose_first", "choose_last", "greedy_points", "taught")

_HEADINGS = (
    *("worst rho", "95 % interval", "by", "trained, each seed", "exact", "moves", "optimum"),
    *("optimal", "largest gap", "cut", "not proved"),
)


class Results:
    """What was found: ``rows`` of plain data in one file, each sealed by a digest.

    Raises:
        ConfigError: the file holds something else, or was changed by another hand.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows: list[dict[str, Any]] = []
        if not path.is_file():
            return
        with errors_named(f"results: {path} holds no results that can be read", ConfigError):
            rows = json.loads(path.read_text(encoding="utf-8"))
            if not isinstance(rows, list):
                raise TypeError(f"must be a list, got {type(rows).__name__}")
            self.rows = [check_seal(row) for row in rows]

    def has(self, frozen: FrozenPlayer, budget: AttackBudget) -> bool:
        """Whether this player was attacked with this budget."""
        key = (frozen.role, frozen.fingerprint, budget.model_dump(mode="json"))
        return any((row["role"], row["fingerprint"], row["budget"]) == key for row in self.rows)

    def add(self, result: AttackResult) -> None:
        """Adds a row; an earlier one of that name, seat and setting is replaced."""
        row = json.loads(result.to_json(), object_pairs_hook=_shown)
        rows = {(each["player"], each["role"], each["setting"]): each for each in self.rows}
        rows[row["player"], row["role"], row["setting"]] = row
        self.rows = list(rows.values())
        self.path.parent.mkdir(parents=True, exist_ok=True)
        write_json(self.path, [sealed(row) for row in self.rows])


def _shown(entries: list[tuple[str, Any]]) -> dict[str, Any]:
    """A part of a result without its histogram or history, which a table does not show."""
    return {key: value for key, value in entries if key not in ("histogram", "history")}


def fill(
    results: Results,
    players: Sequence[tuple[Any, Role | None, str | None]],
    budgets: Sequence[AttackBudget],
    out: Path,
    say: Report = lambda line: None,
    spread: Spread = map,
) -> None:
    """Attacks every player that is not in the results yet, in ``<out>/<budget>/<role>-<player>``.

    Opponents are trained only against players whose worst case is not proved.
    Of each of ``players`` the seat is None if it is clear, the name None for the player's own.
    ``spread`` as in `exploit`.

    Raises:
        ConfigError: a player or a folder is not valid; found before any training.
    """
    work = [
        (FrozenPlayer.of(player, budget.game.spec(), role, name), budget)
        for budget in budgets
        for player, role, name in players
    ]
    for frozen, budget in work:
        if results.has(frozen, budget):
            say(f"{budget.name}: {frozen.role} {frozen.name} is in {results.path}")
            continue
        say(f"{budget.name}: {frozen.role} {frozen.name}")
        folder = out / budget.name / f"{frozen.role}-{frozen.name}"
        about: Any = {"unless_proved": True, "out": folder, "progress": say, "spread": spread}
        results.add(exploit(frozen, budget, **about))


def markdown(results: Results) -> str:
    """The tables: one for each setting and seat, the strongest player first."""
    parts = []
    settings = dict.fromkeys(row["setting"] for row in results.rows)
    for setting, (role, attacker) in product(settings, (("host", "agent"), ("agent", "host"))):
        rows = [row for row in results.rows if (row["setting"], row["role"]) == (setting, role)]
        if rows:
            rows.sort(key=lambda row: row["worst"]["rho"], reverse=role == "host")
            game = rows[0]["budget"]["game"]
            parts.append(
                f"**{setting}: {role}s under attack by {attacker}s**, d = {game['dimension']}, "
                f"{game['max_num_points']} points, values 0..{game['max_value']}"
            )
            parts.append(markdown_table((role, *_HEADINGS), map(_cells, rows)))
    return "\n\n".join(parts)


def _cells(row: dict[str, Any]) -> list[str]:
    pick, exact = picks_worst(row["role"]), ["-"] * 7
    if row["exact"]:
        exact = ExactResult.model_validate(row["exact"]).figures()
    return [
        row["player"] if row["complete"] else f"{row['player']} (incomplete)",
        f"{row['worst']['rho']:.4f}",
        between(*row["worst"]["interval_95"]),
        row["worst_responder"],
        " ".join(
            f"{pick(each[key]['rho'] for key in ('test', 'lookahead') if each[key]):.4f}"
            for each in row["trained"]
        )
        or "-",
        *exact,
    ]
