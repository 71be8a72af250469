"""A host learns until it gets no better, then an agent against that host, and so on."""

from sb3_ext.two_player import HostAgentTrainer, read_config


def main(
    phases: int = 6, max_steps: int = 2_000, games: int = 1_000, fresh: bool = False
) -> list[tuple[str, float]]:
    settings = [
        f"training.updates.phases={phases}",
        f"training.updates.max_steps={max_steps}",
        # As the first script for this game: a role is a new one in each of its phases.
        f"training.updates.fresh={str(fresh).lower()}",
        f"training.steps={phases * max_steps}",
        f"evaluation.games={games}",
    ]
    trainer = HostAgentTrainer(read_config("alternating", settings))
    ends: list[tuple[str, float]] = []
    phase = 0

    def tell(trainer: HostAgentTrainer) -> None:
        nonlocal phase
        if trainer.turns.number > phase:
            role = ("host", "agent")[phase % 2]
            rho = trainer.history[-1].values["host-agent"]
            print(f"phase {phase + 1}, {role}: rho {rho:.4f} after step {trainer.total_steps}")
            ends.append((role, rho))
            phase = trainer.turns.number

    trainer.train(callback=tell)
    return ends


if __name__ == "__main__":
    main()
