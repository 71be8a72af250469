"""A league: several two-player runs whose players meet each other's earlier versions.

In a round every member trains; its new host and agent then play all versions of the other role,
all are rated by Elo, and versions that no rule keeps are deleted. `league.json` holds what the
next round begins with and is replaced as a whole, so a killed run repeats its round with the same
result.
"""

from __future__ import annotations

import argparse
import json
import shutil
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from annotated_types import Ge, Le
from filelock import FileLock
from pydantic import model_validator

from resgym.tables import text_table
from resgym.trust import regular_file
from sb3_ext.adapter.sb3_private import UPDATES
from sb3_ext.checkpoints.best import save_player
from sb3_ext.checkpoints.model_state import load_policy_weights
from sb3_ext.cluster.pieces import Spread, spreading
from sb3_ext.config.checks import check_count
from sb3_ext.config.reading import ConfigFile, shipped_configs
from sb3_ext.config.sections import (
    ConfigError,
    Count,
    Fraction,
    Name,
    Number,
    PositiveCount,
    Size,
    Whole,
)
from sb3_ext.runs.checkpoint import (
    checkpoint_name,
    is_checkpoint,
    list_checkpoints,
    load_checkpoint,
    prune_checkpoints,
    save_checkpoint,
)
from sb3_ext.runs.checkpoint_format import errors_named
from sb3_ext.runs.command_line import add_options, starts_setting, torch_threads
from sb3_ext.runs.driver import Job, Pulse, Run, Used, drive, refuse_another
from sb3_ext.runs.files import write_json
from sb3_ext.runs.folder import LOCK
from sb3_ext.runs.stopping import Ended
from sb3_ext.two_player.config import TrainerConfig
from sb3_ext.two_player.games import GAMES, Game
from sb3_ext.two_player.learner import TrainedRole
from sb3_ext.two_player.standings import Standings, Version, pfsp_weights
from sb3_ext.two_player.trainer import HostAgentTrainer


class LeagueConfig(ConfigFile):
    """The configuration of a league; every key must be present."""

    folder: ClassVar[str] = "population"

    name: Name
    """name of the experiment, part of its folder's name"""
    seed: Count
    """fixes everything random; member m trains with seed + m"""
    members: Annotated[int, Whole, Ge(1), Le(10_000)]
    """runs side by side"""
    rounds: PositiveCount
    """times that all train and play each other"""
    steps_per_round: PositiveCount
    """steps of the two-player trainer a round"""
    two_player: Any
    """each member's configuration of the two-player trainer"""
    settings: list[str]
    """changes of it, such as roles.host.gamma=0.9"""
    games: Size
    """games of each pairing of a host and an agent"""
    keep: PositiveCount
    """versions of each role kept for being newest, and as many for the highest Elo; every member's
    newest and best are kept too"""
    power: Annotated[float, Number, Ge(0)]
    """an opponent beaten with probability p is drawn with the weight (1 - p)^power; 0: all alike"""
    draws: PositiveCount
    """opponents drawn for each role of a member in a round"""
    latest_share: Fraction
    """share of the games that meet the member's own other role as it is now; 1: all"""

    @model_validator(mode="after")
    def _parts_fit(self) -> LeagueConfig:
        base = self.member(0)
        if base.collector is not None and base.collector.actors:
            raise ConfigError(
                f"two_player: collector.actors: got {base.collector.actors}; expected 0, since "
                "members take turns on the processes of --actors"
            )
        for role, section in base.roles.items():
            learns = isinstance(section, TrainedRole)
            given = section.opponent if learns else section.player
            if not learns or given != "latest":
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
    about = "Trains several hosts and agents, which play each other's earlier versions."
    Config = LeagueConfig
    shared = ("--set", "--stop", "--no-progress")
    may_change = frozenset({"rounds"})
    resumes = True

    def __init__(self, config: LeagueConfig, run: Run) -> None:
        super().__init__(config, run)
        assert run.folder is not None
        self.folder: Path = run.folder
        base = config.member(0)
        HostAgentTrainer(base).close()  # what an algorithm refuses leaves no folder behind
        self.roles = GAMES.resolve(base.game.name).roles
        self.metrics = {"rounds", *(f"{r}/{n}" for r in self.roles for n in ("elo", "fitness"))}
        self.round, self.standings, self.used = 0, Standings(self.roles), Used()
        self._file = self.folder / "league" / "league.json"
        if self._file.exists():
            with errors_named(f"{self._file}: is damaged", ConfigError):
                self._load()

    def _load(self) -> None:
        state = json.loads(regular_file(self._file, "league").read_text(encoding="utf-8"))
        what = f"--resume: {self.folder}/config.yml was changed: the league has"
        refuse_another(state["config"], self.identity(), self.may_change, what)
        versions = {name: Version(**each) for name, each in state["versions"].items()}
        self.standings = Standings(self.roles, versions, dict(state["scores"]))
        self.round = check_count("round", state["round"])
        for member in range(self.config.members):
            for role in self.roles:  # the newest version has played all others
                self.standings.fitness(self._version(role, self.round, member))
        self._count()

    @classmethod
    def options(cls, parser: argparse.ArgumentParser) -> None:
        """Adds the configuration and processes."""
        known = ", ".join(shipped_configs(cls.Config.folder))
        parser.add_argument("--config", help=f"a YAML file, or one of {known}")
        add_options(parser, "--actors", "--starts")

    @classmethod
    def read(cls, given: argparse.Namespace) -> LeagueConfig:
        """The configuration of a command line, or of the folder that it goes on with."""
        check_count("--actors", given.actors, low=0)
        file = given.config if given.resume is None else given.resume / "config.yml"
        if file is None:
            raise ConfigError("--config: is missing; expected a file")
        config = LeagueConfig.read(file, given.settings)
        starts = starts_setting(given.starts, "game.starts")
        return config.model_copy(update={"settings": [*config.settings, *starts]})

    @classmethod
    def place(cls, given: argparse.Namespace, config: LeagueConfig) -> Path:
        """A folder for each name."""
        return Path("runs/population", config.name)

    def identity(self) -> dict[str, Any]:
        """Plain data that no longer depends on other files."""
        return self.config.to_dict() | {
            "two_player": self.config.member(0).to_dict(),
            "settings": [],
        }

    def run(self, pulse: Pulse) -> None:
        """Plays the rounds that are left."""

        def beat() -> None:
            if not pulse(self.used, exact=False):
                raise Ended

        given = vars(self.run_of.given)
        self._remove()
        try:
            with spreading(given.get("actors", 0), beat) as spread:
                while pulse(self.used, exact=False, **self._measured()) and (
                    self.round < self.config.rounds
                ):
                    self.play_round(spread)
        except Ended:
            pass

    def _measured(self) -> Any:
        found = {"rounds": float(self.round)}
        for role in self.roles if self.round else ():
            best = self.standings.best(self.standings.present(role))
            found[f"{role}/elo"] = self.standings.versions[best].elo
            found[f"{role}/fitness"] = self.standings.fitness(best)
        return found

    def play_round(self, spread: Spread) -> None:
        """All train, then new versions play all others."""
        number, standings, config = self.round + 1, self.standings, self.config
        turns = [self._turn(number, member) for member in range(config.members)]
        list(spread(train_member, turns))
        for turn in turns:
            for role in self.roles:
                met = [Path(path).name for path in turn.opponents[role]]
                version = Version(role, turn.member, number, met)
                standings.add(turn.versions[role].name, version)
        missing, base = standings.missing(), config.member(0).to_dict()
        pieces = [[str(self._path(each)) for each in (n, *others)] for n, others in missing.items()]
        played = spread(partial(play_matches, base, config.games), pieces)
        for (name, others), scores in zip(missing.items(), played, strict=True):
            for other, score in zip(others, scores, strict=True):
                standings.enter(name, other, score)
        standings.rate(config.games)
        standings.prune(config.keep)
        state = {"config": self.identity(), "round": number, **asdict(standings)}
        write_json(self._file, state)
        self.round = number
        self._count()
        self._remove()
        best = [standings.best(standings.present(role)) for role in self.roles]
        self.run_of.say(f"round {number} of {config.rounds}: best are {' and '.join(best)}")

    def _path(self, name: str) -> Path:
        return self._file.with_name(name)

    def _version(self, role: str, number: int, member: int) -> str:
        return f"{role}-{(number - 1) * self.config.members + member:06d}"

    def _turn(self, number: int, member: int) -> Turn:
        config, opponents = self.config, dict[str, list[str]]()
        for place, role in enumerate(self.roles):
            others = self.standings.present(self.roles[1 - place])
            opponents[role] = []
            if others and config.latest_share < 1:
                own = self._version(role, self.round, member)
                wins = [self.standings.scores[own][other] for other in others]
                weights = pfsp_weights(wins, config.power)
                # A generator for each draw, so that nothing depends on what was drawn before.
                generator = np.random.default_rng([config.seed, number, member, place, 2])
                drawn = generator.choice(len(others), size=config.draws, p=weights)
                opponents[role] = [str(self._path(others[index])) for index in drawn]
        return Turn(
            folder=self.folder / "members" / str(member),
            member=member,
            round=number,
            steps=config.steps_per_round,
            config=config.member(member).to_dict(),
            opponents=opponents,
            latest_share=config.latest_share,
            versions={r: self._path(self._version(r, number, member)) for r in self.roles},
        )

    def _count(self) -> None:
        """Updates and transitions of all members and roles, as of the last round that is over."""
        parts = [f"{role}.training" for role in self.roles]
        updates = timesteps = 0
        for member in range(self.config.members):
            path = self.folder / "members" / str(member) / checkpoint_name(self.round)
            for part in load_checkpoint(path, parts).values():
                updates += part["counters"][UPDATES]
                timesteps += part["counters"]["num_timesteps"]
        self.used = Used(updates, timesteps)

    def _remove(self) -> None:
        """Deletes versions that no rule keeps, and checkpoints that no round will read."""
        for name, version in self.standings.versions.items():
            if not version.present and self._path(name).exists():
                shutil.rmtree(self._path(name))
        for folder in self.folder.glob("members/*"):
            with FileLock(folder / LOCK):
                last = checkpoint_name(self.round)
                kept = [path for path in list_checkpoints(folder) if path.name >= last]
                prune_checkpoints(folder, max(1, len(kept)))

    def report(self) -> str:
        """Writes the best model of each role; a table of the newest versions and the best."""
        rows = [("version", "member", "round", "Elo", "fitness")]
        standings = self.standings
        for role in self.roles if self.round else ():
            best = standings.best(standings.present(role))
            self._save(role, best)
            newest = [self._version(role, self.round, m) for m in range(self.config.members)]
            for name in dict.fromkeys([*newest, best]):
                each = standings.versions[name]
                figures = f"{each.elo:.0f}", f"{standings.fitness(name):.4f}"
                mark = "*" * (name == best)
                rows.append((name + mark, str(each.member), str(each.round), *figures))
        return f"{text_table(rows)}\n* highest Elo, in models/\nresults are in {self.folder}"

    def _save(self, role: str, name: str) -> None:
        version = self.standings.versions[name]
        trainer = HostAgentTrainer(self.config.member(version.member))
        model = trainer.roles[role].model
        weights = load_checkpoint(self._path(name), ["policy"])["policy"]
        load_policy_weights(model.policy, weights, name)
        save_player(self.folder / "models" / role, model, asdict(version))
        trainer.close()


class Turn(NamedTuple):
    """A round of one member in its folder.

    Per role it meets the versions whose paths are ``opponents``, and writes one of ``versions``.
    """

    folder: Path
    member: int
    round: int
    steps: int
    config: dict[str, Any]
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
                trainer.load_state_dict(load_checkpoint(before))
            for role, learner in trainer.roles.items():
                other = trainer.game.other(role)
                players = [trainer.game.named_player(other, path) for path in turn.opponents[role]]
                rows = seats(learner.env.num_envs, turn.latest_share, len(players))
                learner.set_opponents([trainer.players[other], *players], rows)
            trainer.train(turn.steps)
            state = trainer.state_dict()
            for role, path in turn.versions.items():
                about = {"member": turn.member, "round": turn.round}
                save_player(path, trainer.roles[role].model, about, archive=False)
            save_checkpoint(target, state, latest=False)
        except FloatingPointError as error:
            raise FloatingPointError(f"member {turn.member}: {error}") from None
        finally:
            trainer.close()


def seats(rows: int, latest_share: float, drawn: int) -> list[int]:
    """Who answers in each of the rows: 0 the newest opponent, 1, 2, ... those drawn, by turns."""
    latest = round(latest_share * rows) if drawn else rows
    return [0] * latest + [1 + number % drawn for number in range(rows - latest)]


def play_matches(plain: dict[str, Any], games: int, paths: Sequence[str]) -> list[float]:
    """Scores in 0..1 of the first version against the others, see `Game.match`.

    Args:
        plain: the members' configuration.
        games: of each pairing, from the same starts.
        paths: of a version of the first role, and of versions of the second.
    """
    config = TrainerConfig.read(plain)
    game: Game = GAMES.resolve(config.game.name)(config.game)
    about = games, config.evaluation.seed, config.evaluation.max_moves
    first, second = game.roles
    with torch_threads(1):
        player = game.named_player(first, paths[0])
        others = [game.named_player(second, path) for path in paths[1:]]
        return [game.match({first: player, second: other}, *about) for other in others]


main = partial(drive, League)
