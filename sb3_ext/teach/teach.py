"""Teaches a network the moves that the solver proved to be best, in rounds.

Each round solves new positions, of which those of later rounds come from games of the player so
far, and goes on learning from all. The folder is a player, and a start for ``train --init-from``.
"""

from __future__ import annotations

import argparse
import math
import shutil
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import gymnasium
import torch
from stable_baselines3.common.utils import update_learning_rate
from torch.nn.utils import clip_grad_norm_

import resgym  # noqa: F401  registers the environments
from sb3_ext.adapter.tensor_vec_env import TensorVecEnv
from sb3_ext.callbacks.rho_evaluation import player_of
from sb3_ext.checkpoints.model_state import (
    load_optimizer_state,
    load_policy_weights,
    network_description,
)
from sb3_ext.cluster.pieces import spreading
from sb3_ext.config.reading import find_config, shipped_configs
from sb3_ext.config.sections import ConfigError
from sb3_ext.ddqn import DDQN
from sb3_ext.networks.policy_scores import seat_of
from sb3_ext.runs.checkpoint_format import errors_named
from sb3_ext.runs.command_line import add_options
from sb3_ext.runs.driver import Job, Pulse, Run, Used, beat, drive
from sb3_ext.runs.files import digest_of, write_json
from sb3_ext.schedules.schedules import parse_schedule
from sb3_ext.teach.config import TeachConfig
from sb3_ext.teach.fit import model_losses
from sb3_ext.teach.positions import draw
from sb3_ext.teach.solved import Solved, joined, solve
from sb3_ext.train.config_files import ZOO_KEYS, check_hyperparameters, read_sections

PIECE = 1024
"""Positions solved with one table, and lost at most when the command is killed."""


class Teach(Job[TeachConfig]):
    """Solves and teaches, round by round."""

    name = "teach"
    about = __doc__ or ""
    examples = """\
examples:
  python -m sb3_ext.teach --config host --out runs/host
  python -m sb3_ext.teach --config small --set updates=0 --out runs/data    positions alone
  python -m sb3_ext.teach --config agent --actors 8                         labels on a cluster
"""
    Config = TeachConfig
    rules = ("max_updates", "max_seconds", "until")
    metrics = ("teach/right", "teach/choice", "teach/value")

    def __init__(self, config: TeachConfig, run: Run) -> None:
        super().__init__(config, run)
        self.model = _learner(config)
        rows = seat_of(self.model)[1].shape[0]
        for number, families in enumerate(config.rounds):
            most = max(family.most(config.dimension)[1] for family in families)
            if most > rows:
                raise ConfigError(f"rounds[{number}]: got {most} points; expected at most {rows}")
        policy: Any = self.model.policy
        # One of its own: the model's may follow the learning rate of its reinforcement learning.
        self.optimizer = policy.optimizer_class(
            policy.q_net.parameters(), lr=self._rate(0), **policy.optimizer_kwargs
        )
        self.update, self.history, self._known = 0, list[dict[str, float]](), list[str]()
        self._sums = torch.zeros(3)  # choice, value, updates
        self.data: list[Solved] = []

    @classmethod
    def options(cls, parser: argparse.ArgumentParser) -> None:
        """Adds the file, and who solves."""
        known = f"a YAML file, or one of {', '.join(shipped_configs('teach'))} (default host)"
        parser.add_argument("--config", default="host", metavar="FILE", help=known)
        add_options(parser, "--actors")

    @property
    def state(self) -> dict[str, Any]:
        """Networks that play and can be taken over, and what goes on."""
        policy: Any = self.model.policy
        policy.q_net_target.load_state_dict(policy.q_net.state_dict())
        own = {"data": [each.digest() for each in self.data], "history": self.history}
        return {
            "network": network_description(policy),
            "policy": dict(policy.state_dict()),
            "optimizer": self.optimizer.state_dict(),
            "teach": {**own, "sums": self._sums, "update": self.update},
        }

    @state.setter
    def state(self, parts: Mapping[str, Any]) -> None:
        load_policy_weights(self.model.policy, parts["policy"], "policy")
        with errors_named("optimizer"):
            load_optimizer_state(self.optimizer, parts["optimizer"])
        own = parts["teach"]
        self.update, self._sums = own["update"], own["sums"]
        self._known, self.history = own["data"], own["history"]

    def run(self, pulse: Pulse) -> None:
        """Makes the positions that are not there, and learns from them."""
        config = self.config
        for number in range(len(config.rounds) if config.updates else 1):
            self._add_round(number, lambda: beat(pulse, Used(self.update)))
            data = joined(self.data)
            learnt, measured = data.select(~data.held_out), data.select(data.held_out)
            end = config.updates * (number + 1)
            while self.update < end:
                self._learn(learnt)
                due = self.update % config.every == 0 or self.update == end
                found: dict[str, Any] = self._measure(measured) if due else {}
                if not pulse(Used(self.update), **found):
                    return

    def _rate(self, update: int) -> float:
        schedule = parse_schedule(self.config.learning_rate, "learning_rate")
        whole = max(self.config.updates, 1)
        return schedule(update % whole / whole if schedule.unit == "progress" else update % whole)

    def _learn(self, data: Solved) -> None:
        config, policy = self.config, self.model.policy
        update_learning_rate(self.optimizer, self._rate(self.update))
        policy.set_training_mode(True)
        batch = data.drawn(config.batch_size, (config.seed, self.update), config.augment)
        choice, value = model_losses(self.model, batch, config.temperature)
        self.optimizer.zero_grad()
        (choice + config.value_weight * value if config.value_weight else choice).backward()
        clip_grad_norm_(policy.q_net.parameters(), config.max_grad_norm)
        self.optimizer.step()
        policy.set_training_mode(False)
        self._sums += torch.stack([choice.detach(), value.detach(), torch.ones_like(value)]).cpu()
        self.update += 1

    def _measure(self, data: Solved) -> dict[str, float]:
        choice, value, _ = (self._sums / self._sums[2]).tolist()
        if not math.isfinite(choice + value):
            raise FloatingPointError(
                f"loss: is no number after {self.update} updates; lower learning_rate or "
                "max_grad_norm"
            )
        self._sums = torch.zeros(3)
        right = float(data.right(player_of(self.model)).double().mean()) if len(data) else 0.0
        found = {"teach/right": right, "teach/choice": choice, "teach/value": value}
        self.history.append({"update": self.update, **found})
        said = f"choice {choice:.4f}, value {value:.4f}, {100 * right:.2f} % best moves"
        self.run_of.say(f"update {self.update}: {said}")
        return found

    def _add_round(self, number: int, check: Callable[[], None]) -> None:
        """Reads the positions of a round, or makes them first."""
        folder, name, config = self.run_of.folder, f"solved-{number}", self.config
        if folder is None and number == 0:  # trials share what does not depend on the player
            folder = self.run_of.common
            kept = ("seat", "dimension", "objective", "budget", "rounds", "seed")
            name = f"solved-{digest_of(config.model_dump(include=set(kept)))[:12]}"
        with TemporaryDirectory() as place:
            file = Path(folder or place, f"{name}.safetensors")
            if not file.exists():
                self._make_round(number, file, check)
            data = Solved.load(file)
        if self._known[number : number + 1] not in ([], [data.digest()]):
            raise ConfigError(f"out: {file} holds other positions than the run has learned from")
        self.data.append(data)
        held = int(data.held_out.sum())
        self.run_of.say(f"{name}: {len(data) - held} positions to learn from, {held} to measure")

    def _make_round(self, number: int, file: Path, check: Callable[[], None]) -> None:
        config, given = self.config, vars(self.run_of.given)
        families, student = config.rounds[number], player_of(self.model)
        drawn = draw(families, config.seat, config.dimension, config.seed + number, student, check)
        self.run_of.say(f"{file.stem}: {len(drawn)} positions to be solved")
        aside = file.with_suffix("")
        rows = torch.arange(len(drawn)).split(PIECE)
        files = [aside / f"{place:05d}.safetensors" for place in range(len(rows))]
        left = [place for place, each in enumerate(files) if not each.exists()]
        pieces = (drawn.select(rows[place]) for place in left)
        with spreading(given.get("actors", 0), check) as spread:
            found = spread(partial(solve, config.objective, config.budget), pieces)
            for place, each in zip(left, found, strict=True):
                each.save(files[place])
        joined([Solved.load(each) for each in files]).save(file)
        shutil.rmtree(aside)

    def report(self) -> str:
        """Writes ``results.json``."""
        if self.run_of.folder:
            found = {"updates": self.update, "history": self.history}
            write_json(self.run_of.folder / "results.json", found)
        lines = [f"{self.update} updates on {sum(map(len, self.data))} solved positions"]
        if self.history:
            right = f"{100 * self.history[-1]['teach/right']:.2f} %"
            lines.append(f"best moves in positions that were not taught: {right}")
        return "\n".join(lines)


def _learner(config: TeachConfig) -> DDQN:
    """A DDQN with fresh networks, from a file in rl_zoo3's form."""
    env_id = f"resgym/Hironaka{config.seat.title()}-v0"
    file = find_config(config.algorithm, field="algorithm")
    sections = read_sections(file)
    section = sections.get(env_id, sections.get("default"))
    if section is None:
        raise ConfigError(f"algorithm: {file} has no section {env_id} and no 'default'")
    check_hyperparameters(section, DDQN, f"{file}, {env_id}")
    game = {**section.get("env_kwargs", {}), "dimension": config.dimension}
    # What is the reinforcement learning's, whose games never begin.
    left_out = (*ZOO_KEYS, "exploration_rate", "learning_rate")
    arguments = {key: each for key, each in section.items() if key not in left_out}
    if config.value_weight and game.get("reward") != "step":
        raise ConfigError(
            f"value_weight: got {config.value_weight}; expected 0, or a reward 'step'"
        )
    with errors_named("algorithm", ConfigError):
        env = gymnasium.make_vec(env_id, vectorization_mode="vector_entry_point", **game)
        arguments = {"device": "cpu", **arguments, "buffer_size": 1, "seed": config.seed}
        return DDQN(section["policy"], TensorVecEnv(env), **arguments)


main = partial(drive, Teach)
