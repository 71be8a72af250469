"""A population: rounds of training, cross-play and selection in a folder; `docs/population.md`.

What a round begins with is one file, `league/league.json`, which is replaced as a whole when the
round is over: a run that was killed goes on from there, and does the same again.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from filelock import FileLock

from resgym.trust import regular_file
from sb3_ext.adapter.sb3_private import UPDATES
from sb3_ext.checkpoints.checkpoint import (
    checkpoint_name,
    list_checkpoints,
    load_checkpoint,
    prune_checkpoints,
)
from sb3_ext.checkpoints.durable_files import write_text_durably
from sb3_ext.checkpoints.format import errors_named
from sb3_ext.checkpoints.model_state import load_policy_weights
from sb3_ext.cluster.pieces import Spread
from sb3_ext.config.checks import check_count
from sb3_ext.config.sections import ConfigError
from sb3_ext.population.config import PopulationConfig, value_of
from sb3_ext.population.league import League, Version
from sb3_ext.population.member import MemberRound, Pairings, play_pairings, train_member
from sb3_ext.population.selection import copied_from, explored, random_of
from sb3_ext.runs.best import save_player
from sb3_ext.runs.folder import LOCK, RunFolder
from sb3_ext.two_player.games import GAMES
from sb3_ext.two_player.trainer import HostAgentTrainer

DECISIONS = "decisions.jsonl"
STATE = "league/league.json"


class Population:
    """A run in a folder; one that is there goes on.

    Args:
        config: what is run.
        folder: entered.
        report: called with a line after each round.

    Attributes:
        round: rounds that are over.
        league: all versions there have been.
        members: by number and role, ``source``, the member whose checkpoint of the last round the
            next one goes on from, and ``hyperparameters``, by name.
    """

    def __init__(
        self,
        config: PopulationConfig,
        folder: RunFolder,
        report: Callable[[str], None] = lambda line: None,
    ) -> None:
        self.config, self.folder, self.report = config, folder, report
        self.base = config.base()
        self.roles = GAMES.resolve(self.base.game.name).roles
        self.round, self.league = 0, League(self.roles)
        plain = self.base.to_dict()
        self.members: list[dict[str, dict[str, Any]]] = []
        for member in range(config.members):
            self.members.append({})
            for role in self.roles:
                names = [name for name in config.explore if name.startswith(f"roles.{role}.")]
                values = {name: value_of(plain, name) for name in names}
                self.members[member][role] = {"source": member, "hyperparameters": values}
                if member:  # the first begins with the configuration's
                    self._explore(member, role)
        file = folder.path / STATE
        if file.exists():
            with errors_named(f"{file}: is damaged, or of another config.yml", ConfigError):
                state = json.loads(regular_file(file, STATE).read_text(encoding="utf-8"))
                self._go_on_from(state)
        folder.keep_lines_until(DECISIONS, self.round)
        self._remove_what_is_gone()

    def _go_on_from(self, state: dict[str, Any]) -> None:
        self.round, self.members = check_count("round", state["round"]), state["members"]
        self.league = League.from_dict(self.roles, state)
        if len(self.members) != self.config.members:
            raise ValueError(f"members: {len(self.members)}, need {self.config.members}")
        for member in self.members:
            for role in self.roles:  # whose newest version has played all others
                self.league.fitness(self.newest(member[role]["source"], role))

    def run(
        self, spread: Spread, before_round: Callable[[Population], None] = lambda population: None
    ) -> None:
        """Plays the rounds that are left, then writes the best models.

        What ``before_round`` raises ends it.
        """
        while self.round < self.config.rounds:
            before_round(self)
            self.play_round(spread)
        self.save_best()

    def save_best(self) -> None:
        """Writes the best model of each role; there was a round."""
        for role in self.roles:
            self._save_best(role)

    def counts(self) -> dict[str, float]:
        """Updates and transitions of all members and roles, as of the last round that is over."""
        found = {"max_updates": 0.0, "max_timesteps": 0.0}
        parts = [f"{role}.training" for role in self.roles]
        for member in range(self.config.members if self.round else 0):
            path = self.folder.path / "members" / str(member) / checkpoint_name(self.round)
            for part in load_checkpoint(path, parts).values():
                found["max_updates"] += part["counters"][UPDATES]
                found["max_timesteps"] += part["counters"]["num_timesteps"]
        return found

    def play_round(self, spread: Spread) -> None:
        """All train, then new versions play all others, then the worst copy the best."""
        began, number, log = time.monotonic(), self.round + 1, list[dict[str, Any]]()
        plans = [self._plan(number, member, log) for member in range(self.config.members)]
        list(spread(train_member, plans))
        for member, plan in enumerate(plans):
            for role, path in plan.snapshots.items():
                values = self.members[member][role]["hyperparameters"]
                self.league.add(path.name, Version(role, member, number, dict(values)))
        self._play(spread)
        self.league.rate(self.config.league.games)
        for role in self.roles:
            self._select(number, role, log)
        removed = self.league.collect(self.config.league.keep)
        log.append({"decision": "collect", "removed": removed})
        for line in log:
            self.folder.append(DECISIONS, {"step": number, **line})
        state = {"round": number, "members": self.members, **self.league.to_dict()}
        write_text_durably(self.folder.path / STATE, json.dumps(state, indent=1) + "\n")
        self.round = number
        self._remove_what_is_gone()
        self.report(self._line(log, time.monotonic() - began))

    def path_of(self, name: str) -> Path:
        """Where a version lies."""
        return self.folder.path / "league" / name

    def newest(self, member: int, role: str) -> str:
        """The version that a member wrote in the last round."""
        return self._version(role, self.round, member)

    def _version(self, role: str, number: int, member: int) -> str:
        return f"{role}-{(number - 1) * self.config.members + member:06d}"

    def _plan(self, number: int, member: int, log: list[dict[str, Any]]) -> MemberRound:
        league, now = self.config.league, self.members[member]
        opponents: dict[str, list[str]] = {}
        seeds: dict[str, int] = {}
        for place, role in enumerate(self.roles):
            opponents[role] = []
            there = self.league.present(self.roles[1 - place])
            if there and league.latest_share < 1:
                power = league.power if league.opponents == "pfsp" else None
                begins = self.newest(now[role]["source"], role)
                weights = self.league.weights(begins, there, power)
                source = random_of(self.config.seed, number, member, place, "opponents")
                drawn = source.choice(len(there), size=league.draws, p=weights)
                opponents[role] = [there[index] for index in drawn]
                line = {"member": member, "role": role, "drawn": opponents[role]}
                line["weights"] = dict(zip(there, weights, strict=True))
                log.append({"decision": "opponents", **line})
            if now[role]["source"] != member:
                source = random_of(self.config.seed, number, member, place, "training")
                seeds[role] = int(source.integers(2**31))
        values = {k: v for role in self.roles for k, v in now[role]["hyperparameters"].items()}
        return MemberRound(
            members=self.folder.path / "members",
            member=member,
            round=number,
            steps=self.config.steps_per_round,
            config=self.config.base(values, member).to_dict(),
            sources={role: now[role]["source"] for role in self.roles},
            seeds=seeds,
            opponents={r: [str(self.path_of(n)) for n in names] for r, names in opponents.items()},
            latest_share=league.latest_share,
            snapshots={r: self.path_of(self._version(r, number, member)) for r in self.roles},
        )

    def _play(self, spread: Spread) -> None:
        """All pairings of those present that were not played yet."""
        missing, config = self.league.missing(), self.base.to_dict()
        plans = [
            Pairings(
                config,
                self.config.league.games,
                str(self.path_of(name)),
                [str(self.path_of(other)) for other in others],
            )
            for name, others in missing.items()
        ]
        played = spread(play_pairings, plans)
        for (name, others), scores in zip(missing.items(), played, strict=True):
            self.league.payoffs[name] |= dict(zip(others, scores, strict=True))

    def _select(self, number: int, role: str, log: list[dict[str, Any]]) -> None:
        """Decides for a role from whose checkpoint, and with which values, each member goes on."""
        count, place = self.config.members, self.roles.index(role)
        names = [self._version(role, number, member) for member in range(count)]
        fitness = [self.league.fitness(name) for name in names]
        elo = [self.league.versions[name].elo for name in names]
        log.append({"decision": "fitness", "role": role, "fitness": fitness, "elo": elo})
        draws = [random_of(self.config.seed, number, m, place, "exploit") for m in range(count)]
        copies = copied_from(fitness, self.config.exploit.share, draws)
        before = {member: self.members[member][role]["hyperparameters"] for member in range(count)}
        for member in range(count):
            source = copies.get(member, member)
            self.members[member][role] = {"source": source, "hyperparameters": dict(before[source])}
            if member in copies:
                about = {"role": role, "member": member}
                log.append({"decision": "exploit", **about, "copies": source})
                changed = self._explore(member, role, number)
                log += [{"decision": "explore", **about, **change} for change in changed]

    def _explore(self, member: int, role: str, number: int = 0) -> list[dict[str, Any]]:
        """Changes the hyperparameters of a member's role; says how."""
        values, changes = self.members[member][role]["hyperparameters"], []
        place = self.roles.index(role)
        source = random_of(self.config.seed, number, member, place, "explore")
        for name, value in values.items():
            values[name] = explored(value, self.config.explore[name], source)
            changes.append({"name": name, "from": value, "to": values[name]})
        return changes

    def _remove_what_is_gone(self) -> None:
        """Versions that are not in the league, and checkpoints that no round will read."""
        for name, version in self.league.versions.items():
            if not version.present and self.path_of(name).exists():
                shutil.rmtree(self.path_of(name))
        for folder in self.folder.path.glob("members/*"):
            with FileLock(folder / LOCK):
                last = checkpoint_name(self.round)
                kept = [path for path in list_checkpoints(folder) if path.name >= last]
                prune_checkpoints(folder, max(1, len(kept)))

    def _line(self, log: list[dict[str, Any]], seconds: float) -> str:
        parts = [f"round {self.round} of {self.config.rounds}, {seconds:.1f} s"]
        for role in self.roles:
            name = self.league.strongest(self.league.present(role))
            parts.append(f"best {role} {name}, Elo {self.league.versions[name].elo:.0f}")
        copies = [
            f"{line['role']} {line['member']} copies {line['copies']}"
            for line in log
            if line["decision"] == "exploit"
        ]
        return "; ".join([*parts, *copies])

    def _save_best(self, role: str) -> None:
        """SB3's file of the version with the highest Elo."""
        name = self.league.strongest(self.league.present(role))
        version = self.league.versions[name]
        trainer = HostAgentTrainer(self.config.base(version.hyperparameters, version.member))
        model = trainer.roles[role].model
        weights = load_checkpoint(self.path_of(name), ["policy"])["policy"]
        load_policy_weights(model.policy, weights, name)
        save_player(self.folder.path / "models" / role, model, asdict(version))
        trainer.close()
