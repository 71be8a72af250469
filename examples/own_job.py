"""A job of one's own: train a host against several agents in turn.

    echo "{agents: [choose_first, random], updates: 50}" > turns.yml
    python examples/own_job.py --config turns.yml --out runs/turns
    python examples/own_job.py --resume runs/turns

`Job` gives it a checked configuration, `--set`, `--stop`, a run folder, checkpoints, resuming.
"""

from collections.abc import Sequence
from typing import Any

from sb3_ext.config.sections import ConfigFile, PositiveCount
from sb3_ext.runs.driver import Job, Pulse, Run, Used, drive
from sb3_ext.two_player import HostAgentTrainer


class TurnsConfig(ConfigFile):
    """A whole file; the text below a key is its description."""

    agents: list[str]
    """agents that the host meets, in this order"""
    updates: PositiveCount
    """updates of the host against each"""


class Turns(Job[TurnsConfig]):
    """One agent after the other."""

    name = "turns"
    about = "Train a host against several agents in turn."
    Config = TurnsConfig
    resumes = True

    def __init__(self, config: TurnsConfig, run: Run) -> None:
        super().__init__(config, run)
        self.trainer = HostAgentTrainer("small")
        for agent in config.agents:  # an unknown one is refused now
            self.trainer.set_opponent("host", agent)

    @property
    def state(self) -> dict[str, Any]:
        """What a checkpoint holds."""
        return self.trainer.state_dict()

    @state.setter
    def state(self, parts: dict[str, Any]) -> None:
        self.trainer.load_state_dict(parts)

    def run(self, pulse: Pulse) -> None:
        """Trains until all agents had their turn, or the pulse says that it has to end."""
        host = self.trainer.roles["host"]
        for turn, agent in enumerate(self.config.agents, 1):
            if host.updates < turn * self.config.updates:
                self.trainer.set_opponent("host", agent)
            while host.updates < turn * self.config.updates:
                self.trainer.train(1, players=["host"])
                if not pulse(Used(host.updates, host.transitions)):
                    return

    def report(self) -> str:
        """The last lines that are printed."""
        return f"{self.trainer.roles['host'].updates} updates; rho: {self.trainer.evaluate_rho()}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the job; returns the exit code."""
    return drive(Turns, arguments)


if __name__ == "__main__":
    raise SystemExit(main())
