"""A league: several two-player runs whose players meet each other's earlier versions.

In a round every member trains; its new host and agent then play all versions of the other role,
all are rated by Elo, and versions that no rule keeps are deleted. A checkpoint
holds what the next round begins with, so a killed run repeats its round with the same result.
"""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Annotated, Any, ClassVar, NamedTuple, cast

import numpy as np
from annotated_types import Ge, Le
from filelock import FileLock
from pydantic import model_validator

from resgym.game.spec import Role
from resgym.texts import text_table
from sb3_ext.checkpoints.models import save_player
from sb3_ext.cluster.connection import Spread, spreading
from sb3_ext.config.checks import ConfigError, check_count, shown
from sb3_ext.config.sections import (
    ConfigFile,
    Count,
    Fraction,
    Name,
    NonNegative,
    PositiveCount,
    Size,
    Whole,
    read_as,
)
from sb3_ext.runs.checkpoint import (
    checkpoint_errors,
    checkpoint_name,
    is_checkpoint,
    list_checkpoints,
    load_checkpoint,
    prune_checkpoints,
    save_checkpoint,
)
from sb3_ext.runs.command import starts_setting, torch_threads
from sb3_ext.runs.driver import Job, Pulse, Run, Used, beat, drive
from sb3_ext.runs.files import LOCK, write_json
from sb3_ext.two_player.config import TrainerConfig
from sb3_ext.two_player.hironaka import ROLES, Game, other_role
from sb3_ext.two_player.pool import Standings, Version, pfsp_weights
from sb3_ext.two_player.trainer import HostAgentTrainer


class LeagueConfig(ConfigFile):
    """The configuration of a league; every key must be present."""

    folder: ClassVar[str] = "population"

    name: Name
    """name of the experiment, part of its folder's name"""
    seed: Count
    """seed of everything random; member m trains with seed + m"""
    members: Annotated[int, Whole, Ge(1), Le(10_000)]
    """number of members; each trains one host and one agent"""
    rounds: PositiveCount
    """number of rounds; in each, all members train and then play each other"""
    steps_per_round: PositiveCount
    """steps of each member's two-player trainer in a round"""
    two_player: Any
    """each member's configuration of the two-player trainer"""
    settings: list[str]
    """changes of that configuration, such as roles.host.gamma=0.9"""
    games: Size
    """games of each pairing of a host and an agent"""
    keep: PositiveCount
    """number of newest versions kept of each role, and number of highest rated ones; each member's
    newest and best version are kept too"""
    power: NonNegative
    """preference for hard opponents: one beaten with probability p has weight (1 - p)^power; 0:
    all opponents have the same weight"""
    draws: PositiveCount
    """opponents drawn for each role of a member in a round"""
    latest_share: Fraction
    """share of the games against the member's own other role as it is now; 1: all games"""

    @model_validator(mode="after")
    def _roles_learn(self) -> LeagueConfig:
        for role, section in self.member(0).roles:
            given = getattr(section, "opponent", section.player)
            if given != "latest":
                raise ConfigError(
                    f"two_player: roles.{role}: got {given}; expected a role that learns with the "
                    "opponent latest, since the league draws the others"
                )
        return self

    def member(self, number: int) -> TrainerConfig:
        """The configuration of a member."""
        try:
            settings = [*self.settings, f"seed={self.seed + number}"]
            return TrainerConfig.read(self.two_player, settings)
        except ConfigError as error:
            raise ConfigError(f"two_player: {error}") from None


class League(Job[LeagueConfig]):
    """All rounds of a league.

    Attributes:
        round: rounds that are over.
        standings: all versions so far.
    """

    name = "population"
    about = "Train several hosts and agents that play each other's earlier versions."
    Config = LeagueConfig
    rules = ("max_seconds", "until")
    shared = ("--set", "--stop", "--no-progress", "--actors", "--starts")
    metrics = ("rounds", *(f"{role}/elo" for role in ROLES))
    may_change = frozenset({"rounds"})
    resumes = True
    every = 1

    def __init__(self, config: LeagueConfig, run: Run) -> None:
        super().__init__(config, run)
        assert run.folder is not None
        self.folder: Path = run.folder
        HostAgentTrainer(config.member(0)).close()  # what an algorithm refuses leaves no folder
        self.round, self.standings = 0, Standings()

    @property
    def state(self) -> dict[str, Any]:
        """What the next round begins with."""
        return {"league": {"round": self.round, **asdict(self.standings)}}

    @state.setter
    def state(self, parts: Mapping[str, Any]) -> None:
        own = parts["league"]
        table = {"versions": own["versions"], "scores": own["scores"]}
        self.round, self.standings = int(own["round"]), read_as(Standings, table)
        for name, each in self.standings.versions.items():  # folders, which are deleted one day
            if name != self._version(each.role, each.round, each.member):
                raise ConfigError(f"versions: got {shown(name)} for {shown(each)}")
        self._elos()  # what the next round begins with
        for member in range(self.config.members):
            self._turn(self.round + 1, member)

    @classmethod
    def read(cls, given: argparse.Namespace) -> LeagueConfig:
        """With the starts of all members."""
        check_count("--actors", given.actors, low=0)
        config: LeagueConfig = super().read(given)
        starts = starts_setting(given.starts)
        return config.model_copy(update={"settings": [*config.settings, *starts]})

    def identity(self) -> dict[str, Any]:
        """Plain data that no longer depends on other files."""
        plain = self.config.member(0).to_dict()
        return self.config.to_dict() | {"two_player": plain, "settings": []}

    def run(self, pulse: Pulse) -> None:
        """Plays the rounds that are left."""
        actors = vars(self.run_of.given).get("actors", 0)
        with spreading(actors, lambda: beat(pulse, Used(steps=self.round))) as spread:
            while True:
                known = {"rounds": float(self.round), **self._elos()}
                beat(pulse, Used(steps=self.round), exact=True, **known)
                self._remove()
                if self.round >= self.config.rounds:
                    return
                self.play_round(spread)

    def _elos(self) -> dict[str, Any]:
        """The Elo of the best version of each role."""
        ranked = {role: self.standings.ranked(role) for role in ROLES if self.round}
        versions = self.standings.versions
        return {f"{role}/elo": versions[names[0]].elo for role, names in ranked.items()}

    def play_round(self, spread: Spread) -> None:
        """All train, then new versions play all others."""
        number, standings, config = self.round + 1, self.standings, self.config
        turns = [self._turn(number, member) for member in range(config.members)]
        list(spread(train_member, turns))
        for member, turn in enumerate(turns):
            for role in ROLES:
                met = [Path(path).name for path in turn.opponents[role]]
                standings.add(
                    turn.versions[role].name, Version(cast(Role, role), member, number, met)
                )
        missing = standings.missing()
        pieces = [[str(self._path(each)) for each in (n, *others)] for n, others in missing.items()]
        played = spread(partial(play_matches, config.member(0), config.games), pieces)
        for (name, others), scores in zip(missing.items(), played, strict=True):
            for other, score in zip(others, scores, strict=True):
                standings.enter(name, other, score)
        standings.rate(config.games)
        standings.prune(config.keep)
        self.round = number
        best = " and ".join(standings.ranked(role)[0] for role in ROLES)
        self.run_of.say(f"round {number} of {config.rounds}: best are {best}")

    def _path(self, name: str) -> Path:
        return self.folder / "league" / name

    def _version(self, role: str, number: int, member: int) -> str:
        return f"{role}-{(number - 1) * self.config.members + member:06d}"

    def _turn(self, number: int, member: int) -> Turn:
        config, opponents = self.config, dict[str, list[str]]()
        for place, role in enumerate(ROLES):
            others = self.standings.present(other_role(role))
            opponents[role] = []
            if others and config.latest_share < 1:
                scores = self.standings.scores[self._version(role, self.round, member)]
                weights = pfsp_weights([scores[other] for other in others], config.power)
                # A generator for each draw, so that nothing depends on what was drawn before.
                generator = np.random.default_rng([config.seed, number, member, place, 2])
                drawn = generator.choice(len(others), size=config.draws, p=weights)
                opponents[role] = [str(self._path(others[index])) for index in drawn]
        return Turn(
            folder=self.folder / "members" / str(member),
            round=number,
            steps=config.steps_per_round,
            config=config.member(member),
            opponents=opponents,
            latest_share=config.latest_share,
            versions={r: self._path(self._version(r, number, member)) for r in ROLES},
        )

    def _remove(self) -> None:
        """Deletes versions that no rule keeps, and checkpoints that no round will read."""
        for name, version in self.standings.versions.items():
            if not version.present:
                shutil.rmtree(self._path(name), ignore_errors=True)
        for folder in self.folder.glob("members/*"):
            with FileLock(folder / LOCK):
                last = checkpoint_name(self.round)
                kept = [path for path in list_checkpoints(folder) if path.name >= last]
                prune_checkpoints(folder, max(1, len(kept)))

    def report(self) -> str:
        """Copies the best version of each role; a table of the versions that stay."""
        rows = [("version", "member", "round", "Elo")]
        if self.round:
            write_json(self._path("league.json"), self.state["league"])
        for role in ROLES if self.round else ():
            names = self.standings.ranked(role)
            shutil.rmtree(self.folder / "models" / role, ignore_errors=True)
            shutil.copytree(self._path(names[0]), self.folder / "models" / role)
            for name in names:
                each = self.standings.versions[name]
                rows.append((name, str(each.member), str(each.round), f"{each.elo:.0f}"))
        return f"{text_table(rows)}\nthe first of each role are in models/, all in {self.folder}"


class Turn(NamedTuple):
    """A round of one member in its folder.

    Per role it meets the versions whose paths are ``opponents``, and writes one of ``versions``.
    """

    folder: Path
    round: int
    steps: int
    config: TrainerConfig
    opponents: dict[str, list[str]]
    latest_share: float
    versions: dict[str, Path]


def train_member(turn: Turn) -> None:
    """Plays a round of a member and writes its versions and its checkpoint, if it is not there.

    Raises:
        FloatingPointError: a loss or a weight became NaN or infinite; names the member.
    """
    turn.folder.mkdir(parents=True, exist_ok=True)
    target = turn.folder / checkpoint_name(turn.round)
    # The process of a run that was killed, which Ray ends later, may still be at it.
    with FileLock(turn.folder / LOCK), torch_threads(1):
        if is_checkpoint(target):
            return
        trainer = HostAgentTrainer(turn.config)
        try:
            if turn.round > 1:
                before = turn.folder / checkpoint_name(turn.round - 1)
                state = load_checkpoint(before)
                with checkpoint_errors(str(before)):
                    trainer.load_state_dict(state)
            for role, learner in trainer.roles.items():
                other = other_role(role)
                drawn = [trainer.game.named_player(other, path) for path in turn.opponents[role]]
                learner.seat(trainer.players[other], drawn, turn.latest_share)
            trainer.train(turn.steps)
            state = trainer.state_dict()
            for role, path in turn.versions.items():
                save_player(path, trainer.roles[role].model, {"round": turn.round}, archive=False)
            save_checkpoint(target, state)
        except FloatingPointError as error:
            raise FloatingPointError(f"member {turn.folder.name}: {error}") from None
        finally:
            trainer.close()


def play_matches(config: TrainerConfig, games: int, paths: Sequence[str]) -> list[float]:
    """Scores in 0..1 of the host at the first path against the agents at the others."""
    game, about = Game(config.game), (games, config.evaluation.seed, config.evaluation.max_moves)
    with torch_threads(1):
        host = game.named_player("host", paths[0])
        agents = [game.named_player("agent", path) for path in paths[1:]]
        return [game.match({"host": host, "agent": agent}, *about) for agent in agents]


main = partial(drive, League)
