"""The work of a population: a round of one member, and the pairings of one version.

Both are functions of plain data and of files, so that whoever does them, and how often, changes
nothing. Everything written is complete or not there.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock

from sb3_ext.adapter.sb3_private import restart_episodes
from sb3_ext.checkpoints.checkpoint import (
    checkpoint_name,
    is_checkpoint,
    load_checkpoint,
    save_checkpoint,
)
from sb3_ext.runs.best import save_player
from sb3_ext.runs.command_line import torch_threads
from sb3_ext.runs.folder import LOCK
from sb3_ext.two_player.config import TrainerConfig
from sb3_ext.two_player.games import GAMES, Game
from sb3_ext.two_player.trainer import HostAgentTrainer


@dataclass(frozen=True)
class MemberRound:
    """A round of one member.

    Attributes:
        members: folder of all members, each of which has one named by its number.
        member: its number.
        round: the round's number, from 1.
        steps: of the two-player trainer.
        config: of the two-player trainer, with this member's hyperparameters.
        sources: per role the member whose last checkpoint it goes on from; in the first round
            nobody's is read.
        seeds: per role that was copied from another member, what its random numbers follow from.
        opponents: per role paths of versions that it meets.
        latest_share: part of the games against the own other role.
        snapshots: per role the path of the version to be written.
    """

    members: Path
    member: int
    round: int
    steps: int
    config: dict[str, Any]
    sources: dict[str, int]
    seeds: dict[str, int]
    opponents: dict[str, list[str]]
    latest_share: float
    snapshots: dict[str, Path]


def train_member(plan: MemberRound) -> None:
    """Plays a round of a member and writes its versions and its checkpoint, if it is not there.

    Raises:
        FloatingPointError: a loss or a weight became NaN or infinite; names the member.
    """
    folder = plan.members / str(plan.member)
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / checkpoint_name(plan.round)
    # Somebody else may be at it: the process of a run that was killed, which Ray ends later.
    with FileLock(folder / LOCK), torch_threads(1):
        if is_checkpoint(target):
            return
        trainer = HostAgentTrainer(plan.config)
        try:
            if plan.round > 1:
                trainer.load_state_dict(_begin(plan))
            for role, learner in trainer.roles.items():
                if role in plan.seeds:  # or it would play its model's games once more
                    learner.model.set_random_seed(plan.seeds[role])
                    restart_episodes(learner.model)
                other = trainer.game.other(role)
                players = [trainer.game.named_player(other, path) for path in plan.opponents[role]]
                rows = seats(learner.env.num_envs, plan.latest_share, len(players))
                learner.set_opponents([trainer.players[other], *players], rows)
            trainer.train(plan.steps)
            state = trainer.state_dict()
            for role, path in plan.snapshots.items():
                about = {"member": plan.member, "round": plan.round}
                save_player(path, trainer.roles[role].model, about, archive=False)
            save_checkpoint(target, state, latest=False)
        except FloatingPointError as error:
            raise FloatingPointError(f"member {plan.member}: {error}") from None
        finally:
            trainer.close()


def _begin(plan: MemberRound) -> dict[str, Any]:
    """The state that a member goes on from: its own, with the roles of others that it copies."""

    def last(member: int, role: str | None = None) -> dict[str, Any]:
        path = plan.members / str(member) / checkpoint_name(plan.round - 1)
        return load_checkpoint(
            path, role and (lambda names: [each for each in names if each.startswith(f"{role}.")])
        )

    state = last(plan.member)
    for role, source in plan.sources.items():
        if source != plan.member:
            state = {name: part for name, part in state.items() if not name.startswith(f"{role}.")}
            state |= last(source, role)
    return state


def seats(rows: int, latest_share: float, drawn: int) -> list[int]:
    """Who answers in each of the rows: 0 the newest opponent, 1, 2, ... those drawn, by turns."""
    latest = round(latest_share * rows) if drawn else rows
    return [0] * latest + [1 + number % drawn for number in range(rows - latest)]


@dataclass(frozen=True)
class Pairings:
    """What a version of the first role has to play.

    Attributes:
        config: of the two-player trainer; its game and its evaluation count.
        games: of each pairing.
        path: the version.
        others: versions of the second role.
    """

    config: dict[str, Any]
    games: int
    path: str
    others: list[str]


def play_pairings(plan: Pairings) -> list[float]:
    """The version's scores in 0..1, see `Game.match`, from the same starts against each."""
    config = TrainerConfig.read(plan.config)
    game: Game = GAMES.resolve(config.game.name)(config.game)
    seed, max_moves = config.evaluation.seed, config.evaluation.max_moves
    first, second = game.roles
    with torch_threads(1):
        player = game.named_player(first, plan.path)
        pairs = [{first: player, second: game.named_player(second, path)} for path in plan.others]
        return [game.match(pair, plan.games, seed, max_moves) for pair in pairs]
