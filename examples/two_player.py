"""Trains a host and an agent against each other, saves them, and lets the host play."""

import tempfile
from pathlib import Path

import resgym
from sb3_ext.two_player import HostAgentTrainer, read_config


def main(steps: int = 4_000, games: int = 1_000) -> float:
    # Every key of configs/two_player/small.yml can be set here as on the command line.
    config = read_config("small", [f"evaluation.games={games}"])
    trainer = HostAgentTrainer(config)
    before = trainer.evaluate_rho()
    after = trainer.train(steps, evaluation_interval=steps).values
    for pair, rho in after.items():
        print(f"{pair:20} rho {before[pair]:.4f} -> {rho:.4f}")
    with tempfile.TemporaryDirectory() as folder:
        trainer.save(Path(folder) / "players")
        copy = HostAgentTrainer.load(Path(folder) / "players")
    sizes = {"max_num_points": 10, "max_value": 10}
    result = resgym.rho(copy.players["host"], "random", games=games, **sizes)
    print("against a random agent:", result)
    return result.rho


if __name__ == "__main__":
    main()
