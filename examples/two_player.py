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
    last = trainer.train(steps, evaluation_interval=steps)
    assert last is not None
    for pair, rho in last.values.items():
        print(f"{pair:20} rho {before[pair]:.4f} -> {rho:.4f}")
    with tempfile.TemporaryDirectory() as folder:
        trainer.save(Path(folder) / "players")
        copy = HostAgentTrainer.load(Path(folder) / "players")
    host = copy.players["host"]
    result = resgym.rho(host, "random", games=games, max_num_points=10, max_value=10)
    print("against a random agent:", result)
    return result.rho


if __name__ == "__main__":
    main()
