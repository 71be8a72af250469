"""A schedule and a callback of one's own, named in a YAML file for ``--import custom_training``."""

from dataclasses import dataclass

from stable_baselines3.common.callbacks import BaseCallback

from sb3_ext.callbacks import CALLBACKS
from sb3_ext.schedules.schedules import SCHEDULES, Schedule


@SCHEDULES.register("halving")
@dataclass
class Halving(Schedule):
    """In a file: ``{schedule: halving, value: 1.0e-3, period: 100}``."""

    value: float
    period: float

    def _value(self, count: float) -> float:
        return self.value * 0.5 ** (count // self.period)

    def bounds(self) -> tuple[float, float]:
        return 0.0, self.value


@CALLBACKS.register("longest_game")
class LongestGame(BaseCallback):
    """In a file: ``callback: [longest_game]``."""

    longest = 0

    def _on_step(self) -> bool:
        ended = [info["episode"]["l"] for info in self.locals["infos"] if "episode" in info]
        self.longest = max([self.longest, *ended])
        return True

    def state_dict(self) -> dict[str, int]:
        """What a resumed run needs."""
        return {"longest": self.longest}

    def load_state_dict(self, state: dict[str, int]) -> None:
        self.longest = state["longest"]

    def _on_training_end(self) -> None:
        print(f"longest game: {self.longest} moves")


CONFIG = """
default:
  n_timesteps: 512
  n_envs: 8
  policy: AgentPolicy
  learning_starts: 64
  learning_rate: {schedule: halving, value: 1.0e-3, period: 10}
  callback: [longest_game]
"""


def main() -> float:
    rate = Halving(1e-3, 100)
    print([rate(count) for count in (0, 99, 100, 200)])
    return rate(200)


if __name__ == "__main__":
    main()
