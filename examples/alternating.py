"""A host learns until it gets no better, then an agent against that host, and so on."""

from sb3_ext.runs.stopping import parse_conditions
from sb3_ext.two_player import HostAgentTrainer, read_config

FLAT = {"condition": "converged", "field": "rho/host-agent", "window": 4, "tolerance": 0.004}


def main(phases: int = 6, max_steps: int = 2_000, games: int = 1_000) -> list[tuple[str, float]]:
    settings = ["training.updates=null", f"evaluation.games={games}"]
    trainer = HostAgentTrainer(read_config("alternating", settings))
    ends: list[tuple[str, float]] = []
    for phase in range(phases):
        role = ("host", "agent")[phase % 2]
        (flat,) = parse_conditions(FLAT)

        def gets_better(trainer: HostAgentTrainer, flat=flat) -> bool:
            last = trainer.history[-1:]
            if last and last[0].step == trainer.total_steps:  # an evaluation was just made
                flat.observe(last[0].metrics)
            return not flat.met

        rho = trainer.train(max_steps, players=[role], callback=gets_better).values["host-agent"]
        print(f"phase {phase + 1}, {role}: rho {rho:.4f} after step {trainer.total_steps}")
        ends.append((role, rho))
    return ends


if __name__ == "__main__":
    main()
