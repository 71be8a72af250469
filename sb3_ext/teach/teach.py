"""Teaches a network the moves that the solver proved to be best, in rounds.

Each round solves new positions, of which those of later rounds come from games of the player so
far, and goes on learning from all. The folder is a player, and a start for ``train --init-from``.
"""

from __future__ import annotations

import argparse
import math
import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import gymnasium
import torch
from stable_baselines3.common.utils import update_learning_rate
from torch import nn

import resgym
from resgym.game.spec import GameSpec
from resgym.measure.rho import rho_starts
from sb3_ext.adapter.tensor_vec_env import TensorVecEnv
from sb3_ext.attack.attack import exact_line
from sb3_ext.attack.strength import strength
from sb3_ext.callbacks.rho_evaluation import player_of
from sb3_ext.checkpoints.format import errors_named
from sb3_ext.checkpoints.model_state import load_policy_weights, network_description
from sb3_ext.checkpoints.training_state import load_optimizer_state, optimizer_state
from sb3_ext.cluster.pieces import spreading
from sb3_ext.config.reading import find_config, shipped_configs
from sb3_ext.config.sections import ConfigError
from sb3_ext.ddqn import DDQN
from sb3_ext.networks.policy_scores import seat_of
from sb3_ext.runs.command_line import add_options
from sb3_ext.runs.driver import Job, Pulse, Run, Used, drive
from sb3_ext.runs.files import digest_of, write_json
from sb3_ext.runs.stopping import Ended
from sb3_ext.schedules.schedules import parse_schedule
from sb3_ext.teach.config import TeachConfig
from sb3_ext.teach.fit import RETURNS, check_seat, model_losses, seeded
from sb3_ext.teach.positions import draw
from sb3_ext.teach.solved import Solved, joined, solve
from sb3_ext.train.config_files import ZOO_KEYS, check_hyperparameters, read_sections

PIECE = 1024
"""Positions solved with one table, and lost at most when the command is killed."""

_HOSTS = ("taught", "zeillinger", "spivakovsky")  # that an agent has to hold up


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
        self.model, self._reward = _learner(config)
        if config.value_weight and self._reward not in RETURNS:
            raise ConfigError(
                f"value_weight: got {config.value_weight}; expected 0 with the reward "
                f"{self._reward!r}, or one of {', '.join(RETURNS)}"
            )
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
        self.update, self._known = 0, list[str]()
        self._sums, self._summed = torch.zeros(2), 0
        self.history: list[dict[str, float]] = []
        self.data: list[Solved] = []

    @classmethod
    def options(cls, parser: argparse.ArgumentParser) -> None:
        """Adds the file, and who solves."""
        known = f"a YAML file, or one of {', '.join(shipped_configs('teach'))} (default host)"
        parser.add_argument("--config", default="host", metavar="FILE", help=known)
        add_options(parser, "--actors", "--timeout-s")

    @property
    def state(self) -> dict[str, Any]:
        """Networks that play and can be taken over, and what goes on."""
        policy: Any = self.model.policy
        policy.q_net_target.load_state_dict(policy.q_net.state_dict())
        return {
            "network": network_description(policy),
            "policy": dict(policy.state_dict()),
            "optimizer": optimizer_state(self.optimizer),
            "teach": {
                "data": [each.digest() for each in self.data],
                "history": self.history,
                "summed": self._summed,
                "sums": self._sums,
                "update": self.update,
            },
        }

    @state.setter
    def state(self, parts: Mapping[str, Any]) -> None:
        load_policy_weights(self.model.policy, parts["policy"], "policy")
        with errors_named("optimizer"):
            load_optimizer_state(self.optimizer, parts["optimizer"])
        own = parts["teach"]
        self.update, self._known, self.history = own["update"], own["data"], own["history"]
        self._sums, self._summed = own["sums"], own["summed"]

    def run(self, pulse: Pulse) -> None:
        """Makes the positions that are not there, and learns from them."""

        def beat() -> None:
            if not pulse(Used(self.update), exact=False):
                raise Ended

        with suppress(Ended):
            for number in range(len(self.config.rounds)):
                self._add_round(number, beat)
                data = joined(self.data)
                learnt, measured = data.select(~data.held_out), data.select(data.held_out)
                check_seat(learnt, self.model)
                end = self.config.updates * (number + 1)
                while self.update < end:
                    self._learn(learnt)
                    due = self.update % self.config.every == 0 or self.update == end
                    found: dict[str, Any] = self._measure(measured) if due else {}
                    if not pulse(Used(self.update), **found):
                        return
                if not self.config.updates:
                    return
        self.model.policy.set_training_mode(False)

    def _rate(self, update: int) -> float:
        schedule = parse_schedule(self.config.learning_rate, "learning_rate")
        whole = max(self.config.updates, 1)
        return schedule(update % whole / whole if schedule.unit == "progress" else update % whole)

    def _learn(self, data: Solved) -> None:
        config, policy = self.config, self.model.policy
        update_learning_rate(self.optimizer, self._rate(self.update))
        policy.set_training_mode(True)
        batch = data.drawn(config.batch_size, seeded(config.seed, self.update), config.augment)
        choice, value = model_losses(self.model, batch, self._reward, config.temperature)
        self.optimizer.zero_grad()
        (choice + config.value_weight * value if config.value_weight else choice).backward()
        nn.utils.clip_grad_norm_(policy.q_net.parameters(), config.max_grad_norm)
        self.optimizer.step()
        self._sums += torch.stack([choice.detach(), value.detach()]).cpu()
        self._summed, self.update = self._summed + 1, self.update + 1

    def _measure(self, data: Solved) -> dict[str, float]:
        choice, value = (self._sums / self._summed).tolist()
        if not math.isfinite(choice + value):
            raise FloatingPointError(
                f"loss: is no number after {self.update} updates; lower learning_rate or "
                "max_grad_norm"
            )
        self._sums, self._summed = torch.zeros(2), 0
        right = float(data.right(player_of(self.model)).double().mean()) if len(data) else 0.0
        found = {"teach/right": right, "teach/choice": choice, "teach/value": value}
        self.history.append({"update": self.update, **found})
        said = f"choice {choice:.4f}, value {value:.4f}, {100 * right:.2f} % best moves"
        self.run_of.say(f"update {self.update}: {said}")
        return found

    def _add_round(self, number: int, beat: Callable[[], None]) -> None:
        """Reads the positions of a round, or makes them first."""
        folder, name, config = self.run_of.folder, f"solved-{number}", self.config
        if folder is None and number == 0:  # trials share what does not depend on the player
            folder = self.run_of.common
            kept = ("seat", "dimension", "objective", "budget", "rounds", "seed")
            name = f"solved-{digest_of({key: config.to_dict()[key] for key in kept})[:12]}"
        with TemporaryDirectory() as place:
            file = Path(folder or place, f"{name}.safetensors")
            if not file.exists():
                if len(self._known) > number:
                    raise ConfigError(f"out: {file} is missing; the run has learned from it")
                self._make_round(number, file, beat)
            data = Solved.load(file)
        if self._known[number : number + 1] not in ([], [data.digest()]):
            raise ConfigError(f"out: {file} holds other positions than the run has learned from")
        self.data.append(data)
        held = int(data.held_out.sum())
        self.run_of.say(f"{name}: {len(data) - held} positions to learn from, {held} to measure")

    def _make_round(self, number: int, file: Path, beat: Callable[[], None]) -> None:
        config, given = self.config, self.run_of.given
        families, seed = config.rounds[number], config.seed + number
        student = player_of(self.model)
        drawn = draw(families, config.seat, config.dimension, seed, student, beat)
        self.run_of.say(f"{file.stem}: {len(drawn)} positions to be solved")
        rows = torch.arange(len(drawn)).split(PIECE)
        aside = file.with_suffix("")
        files = [aside / f"{place:05d}.safetensors" for place in range(len(rows))]
        left = [place for place, each in enumerate(files) if not each.exists()]
        pieces = (drawn.select(rows[place]) for place in left)
        how = (getattr(given, "actors", 0), beat, getattr(given, "timeout_s", 86_400.0))
        with spreading(*how) as spread:
            found = spread(partial(solve, config.objective, config.budget), pieces)
            for place, each in zip(left, found, strict=True):
                each.save(files[place])
        joined([Solved.load(each) for each in files]).save(file)
        shutil.rmtree(aside)

    def result(self) -> dict[str, Any]:
        """What was learned, and how good the player is."""
        result: dict[str, Any] = {"updates": self.update, "history": self.history}
        if not self.data or not self.update:
            return result
        data, player = joined(self.data), player_of(self.model, "taught")
        held_out = data.select(data.held_out)
        if len(held_out):
            right = held_out.right(player).double()
            parts = {"points": held_out.count, "value": held_out.value}
            result["right"] = {
                "positions": len(right),
                "share": float(right.mean()),
                **{
                    name: {n: float(right[of == n].mean()) for n in of.unique().tolist()}
                    for name, of in parts.items()
                },
            }
        test, axes = self.config.test, self.config.dimension
        if not test.starts:
            return result
        game: dict[str, Any] = {
            "dimension": axes,
            "max_num_points": test.points,
            "max_value": test.max_value,
        }
        if self.config.seat == "host":
            spec = GameSpec(**game)
            starts = rho_starts(spec, test.starts, 1)
            found = strength(player, starts, spec, positions=test.positions)
            return {**result, "strength": found.value, "exact": found.summary()}
        game |= {"games": test.starts, "seed": 1}
        lengths = {host: resgym.rho(host, player, **game).mean_length for host in _HOSTS}
        return {**result, "moves": lengths}

    def report(self) -> str:
        """Writes ``results.json``."""
        result = self.result()
        if self.run_of.folder:
            write_json(self.run_of.folder / "results.json", result)
        lines = [f"{self.update} updates on {sum(map(len, self.data))} solved positions"]
        if "right" in result:
            right = result["right"]
            share = f"{100 * right['share']:.2f} % of {right['positions']}"
            lines.append(f"best moves in positions that were not taught: {share}")
        if "exact" in result:
            lines += [f"strength {result['strength']:.4f}", exact_line(result["exact"])]
        lines += [
            f"holds {host} up for {n:.2f} moves" for host, n in result.get("moves", {}).items()
        ]
        return "\n".join(lines)


def _learner(config: TeachConfig) -> tuple[DDQN, str]:
    """A DDQN with fresh networks, from a file in rl_zoo3's form, and its environment's reward."""
    env_id = f"resgym/Hironaka{config.seat.title()}-v0"
    file = find_config(config.algorithm, field="algorithm")
    sections = read_sections(file)
    section = sections.get(env_id, sections.get("default"))
    if section is None:
        raise ConfigError(f"algorithm: {file} has no section {env_id} and no 'default'")
    check_hyperparameters(section, DDQN, f"{file}, {env_id}")
    game = {**section.get("env_kwargs", {}), "dimension": config.dimension}
    left_out = (*ZOO_KEYS, "learning_rate")  # the reinforcement learning's, whose games never begin
    arguments = {key: each for key, each in section.items() if key not in left_out}
    with errors_named("algorithm", ConfigError):
        env = gymnasium.make_vec(
            env_id, num_envs=1, vectorization_mode="vector_entry_point", **game
        )
        arguments = {"device": "cpu", **arguments, "buffer_size": 1, "seed": config.seed}
        model = DDQN(section["policy"], TensorVecEnv(env), **arguments)
    return model, game.get("reward", "terminal")


main = partial(drive, Teach)
