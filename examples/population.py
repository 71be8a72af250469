"""A league: hosts and agents of several runs that play each other's earlier versions.

    python examples/population.py runs/league --rounds 12 --actors 2

The same command with more rounds, or after a kill, continues. In a round all members train, against
their own other role and against versions of all members; then every host plays every agent. A
version is a checkpoint of its member, and a player: `resgym rho
runs/league/0/checkpoint-000000000012 random --max-num-points 5`.
"""

import argparse
import shutil
from functools import partial
from pathlib import Path
from statistics import fmean

import numpy as np

from resgym.files import read_json
from sb3_ext.cluster.connection import spreading
from sb3_ext.runs.checkpoint import checkpoint_name, is_checkpoint
from sb3_ext.runs.files import write_json
from sb3_ext.two_player import HostAgentTrainer, TrainerConfig, read_config
from sb3_ext.two_player.hironaka import Game

OTHER = {"host": "agent", "agent": "host"}
DRAWN, LATEST_SHARE = 2, 0.5  # versions that a role meets in a round; games against its own other
POWER = 2.0  # an opponent that is beaten with probability p has the weight (1 - p)^POWER
KEPT = 4  # newest versions of each member that stay; so do the best ones
SETTINGS = [
    *("game.max_num_points=5", "evaluation.games=100", "evaluation.every_steps=1000000"),
    *("roles.host.learning_rate.steps=6000", "roles.agent.learning_rate.steps=6000"),
]
Scores = dict[str, dict[str, float]]  # of hosts in 0..1, against agents


def version(member: int, number: int) -> str:
    """The place of a member's version after this many rounds."""
    return f"{member}/{checkpoint_name(number)}"


def train(folder: Path, number: int, steps: int, turn: tuple[TrainerConfig, int, Scores]) -> None:
    """Plays a round of a member, and writes its version if that is not there."""
    config, member, scores = turn
    if is_checkpoint(folder / version(member, number)):  # of a round that was killed
        return
    before = version(member, number - 1)
    trainer = HostAgentTrainer.load(folder / before) if scores else HostAgentTrainer(config)
    for role, learner in trainer.roles.items() if scores else ():
        draw = np.random.default_rng([number, member, len(role)])
        met = draw.choice([*scores], DRAWN, p=weights(scores, role, before))
        others = [trainer.game.named_player(OTHER[role], str(folder / each)) for each in met]
        learner.seat(trainer.players[OTHER[role]], others, LATEST_SHARE)
    trainer.train(steps)
    trainer.save(folder / version(member, number))


def weights(scores: Scores, role: str, mine: str) -> np.ndarray:
    """How likely a role meets each version: prioritised fictitious self-play, hard ones most.

    Vinyals et al. 2019, "Grandmaster level in StarCraft II".
    """
    hosts = [scores[mine][each] if role == "host" else scores[each][mine] for each in scores]
    lost = 1.0 - np.array(hosts) if role == "host" else np.array(hosts)
    found = lost**POWER + 1e-9
    return found / found.sum()


def play(folder: Path, config: TrainerConfig, games: int, pairs: tuple[str, list[str]]) -> Scores:
    """The scores of a host against agents."""
    game = Game(config.game, config.evaluation.seed, config.evaluation.max_moves)
    host, scores = game.named_player("host", str(folder / pairs[0])), {}
    for each in pairs[1]:
        players = {"host": host, "agent": game.named_player("agent", str(folder / each))}
        scores[each] = game.match(players, games)
    return {pairs[0]: scores}


def best(scores: Scores) -> dict[str, str]:
    """The version with the best mean score, by role."""
    hosts = {each: fmean(scores[each].values()) for each in scores}
    agents = {each: fmean(1.0 - row[each] for row in scores.values()) for each in scores}
    return {"host": max(hosts, key=hosts.__getitem__), "agent": max(agents, key=agents.__getitem__)}


def main(
    folder: Path, rounds: int = 12, members: int = 4, actors: int = 0, steps: int = 500
) -> Scores:
    """Plays the rounds that are left; returns the scores of the versions that stay."""
    file = folder / "league.json"
    number, scores = read_json(file, "league") if file.exists() else (0, {})
    configs = [read_config("small", [*SETTINGS, f"seed={member}"]) for member in range(members)]
    with spreading(actors) as spread:
        while number < rounds:
            number += 1
            turns = [(config, member, scores) for member, config in enumerate(configs)]
            list(spread(partial(train, folder, number, steps), turns))
            scores |= {version(member, number): {} for member in range(members)}
            left = [(host, sorted(scores.keys() - row)) for host, row in scores.items()]
            for found in spread(partial(play, folder, configs[0], 100), left):
                scores |= {host: scores[host] | row for host, row in found.items()}
            newest = {version(m, number - back) for m in range(members) for back in range(KEPT)}
            stay = [each for each in scores if each in newest | {*best(scores).values()}]
            scores = {host: {agent: scores[host][agent] for agent in stay} for host in stay}
            write_json(file, [number, scores])
            for path in folder.glob("*/checkpoint-*"):  # now that no round needs them
                if f"{path.parent.name}/{path.name}" not in scores:
                    shutil.rmtree(path)
            print(f"round {number} of {rounds}: {best(scores)}")
    return scores


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--members", type=int, default=4)
    parser.add_argument("--actors", type=int, default=0)
    main(**vars(parser.parse_args()))
