"""An algorithm of one's own in the two-player trainer: DDQN with a bonus for confident actions.

The bonus is the clipped log-probability of Munchausen RL (Vieillard, Pietquin, Geist 2020).
"""

import torch

from sb3_ext.ddqn import DDQN
from sb3_ext.two_player import ALGORITHMS, HostAgentTrainer, read_config


@ALGORITHMS.register("munchausen")
class Munchausen(DDQN):
    def __init__(self, *args, alpha: float = 0.9, temperature: float = 0.03, **kwargs) -> None:
        self.alpha, self.temperature = alpha, temperature
        super().__init__(*args, **kwargs)

    def compute_target(self, batch):
        """float32 [B]: the target of DDQN plus the clipped bonus."""
        values = self.q_net_target(batch.observations)
        legal = self.legal_actions.of_observation(batch.observations)
        if legal is not None:
            values = values.masked_fill(~legal, -torch.inf)
        log_policy = torch.log_softmax(values / self.temperature, dim=1)
        chosen = log_policy.gather(1, batch.actions)[:, 0]
        bonus = (self.temperature * chosen).clamp(min=-1.0)
        return super().compute_target(batch) + self.alpha * bonus


def main(steps: int = 4_000, games: int = 1_000) -> HostAgentTrainer:
    settings = [f"evaluation.games={games}"]
    for role in ("host", "agent"):
        settings.append(f"roles.{role}.algorithm=munchausen")
        settings.append(f"roles.{role}.algorithm_arguments={{alpha: 0.5}}")
    trainer = HostAgentTrainer(read_config("small", settings))
    trainer.train(steps, evaluation_interval=steps)
    print(trainer.history[-1].values)
    return trainer


if __name__ == "__main__":
    main()
