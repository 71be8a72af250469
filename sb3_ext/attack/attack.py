"""An attack: trained and scripted opponents of a frozen player, and the exact worst case.

The result is the worst rho over all of them, so a failed training cannot make a player look strong.
A checkpoint holds every finished part, which is not repeated.
"""

from __future__ import annotations

import argparse
import copy
import hashlib
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

import gymnasium
import torch

from resgym import GameSpec, Player, RowRandom, rho
from resgym.game.spec import Role, host_action_table
from resgym.measure.games import Ahead
from resgym.measure.rho import rho_starts
from resgym.players import ask_exactly, ask_player, player_name, resolve_player
from resgym.players.asking import InexactPlayerError
from resgym.texts import text_table
from sb3_ext.adapter.seam import num_updates
from sb3_ext.attack.config import AttackConfig, Exact
from sb3_ext.attack.exact import exact, exact_line
from sb3_ext.callbacks.base import Every
from sb3_ext.callbacks.evaluation import RhoEvaluation, player_of
from sb3_ext.checkpoints.models import save_player
from sb3_ext.cluster.connection import Spread, spreading
from sb3_ext.config.checks import ConfigError, errors_named, errors_of, unknown_word
from sb3_ext.ddqn import DDQN
from sb3_ext.runs.driver import Job, Pulse, Run, Used, beat, drive, go
from sb3_ext.runs.files import write_json
from sb3_ext.train.config_files import transitions_for
from sb3_ext.types import Data, StateDict

PARTS = ("exact", "scripted", "trained")
_PROBES = 256


class Attack(Job[AttackConfig]):
    """Measure a player against the opponents that are hardest for it."""

    name = "attack"
    about = __doc__ or ""
    examples = """\
examples:
  python -m sb3_ext.attack zeillinger                   trained agents against a host
  python -m sb3_ext.attack choose_first                 trained hosts against an agent
  python -m sb3_ext.attack random --role host           a name that exists in both seats
  python -m sb3_ext.attack taught --role host --parts exact --actors 8
"""
    Config = AttackConfig
    file = ("--budget", "points5")
    shared = (*Job.shared, "--starts", "--actors")
    metrics = ("rho/score", "rho/validation", "seeds")
    may_change = frozenset({"seeds"})
    every = 1

    def __init__(self, config: AttackConfig, run: Run) -> None:
        super().__init__(config, run)
        self._spec = config.game.spec()
        self._parts = run.given.parts
        for part in self._parts:
            if part not in PARTS:
                raise ConfigError(f"parts: {unknown_word('part', part, PARTS)}")
        if "exact" in self._parts and config.exact and self._spec.polytope != "dominance":
            raise ConfigError(
                f"game.polytope: got {self._spec.polytope}; expected dominance for the part exact"
            )
        self._player = _seated(run.given.player, self._spec, run.given.role)
        self._worst = min if self._player.role == "host" else max
        self._digest, self._inexact = _fingerprint(self._player, self._spec)
        if self._inexact and self._parts == ["exact"]:
            raise ConfigError(f"player: {self._inexact}")
        self.found: Data = {"exact": None, "scripted": {}, "trained": {}}

    @classmethod
    def options(cls, parser: argparse.ArgumentParser) -> None:
        """Adds the player and what is done to it."""
        add = parser.add_argument
        add("player", help="a name, or the path of a saved model")
        add("--role", choices=("host", "agent"), help="seat of a player that exists in both")
        add(
            "--parts",
            nargs="+",
            default=PARTS,
            choices=PARTS,
            help="parts of the attack (default: all)",
        )

    @classmethod
    def place(cls, given: argparse.Namespace, config: AttackConfig) -> Path:
        """A folder for each budget, player and seat."""
        seat = f"{given.role}-" if given.role else ""
        return Path("runs/attack", config.name, f"{seat}{player_name(given.player)}")

    @property
    def used(self) -> Used:
        """What the finished trainings used; checkpoints count finished parts."""
        exact, scripted, trained = self.found.values()
        updates = sum(each["updates"] for each in trained.values())
        transitions = sum(each["transitions"] for each in trained.values())
        return Used(updates, transitions, bool(exact) + bool(scripted) + len(trained))

    @property
    def _bests(self) -> list[float]:
        return [each["best"]["rho"] for each in self.found["trained"].values()]

    @property
    def state(self) -> StateDict:
        """Who is attacked, and what was found."""
        return {"attack": {"player": self._digest, "found": self.found}}

    @state.setter
    def state(self, parts: StateDict) -> None:
        if parts["attack"]["player"] != self._digest:
            raise ConfigError(
                f"out: got {self.run_of.folder}, which belongs to an attack on another "
                "player; expected another folder"
            )
        self.found = parts["attack"]["found"]
        fmean([0.0, *self._bests, self.used.place])
        self.report()  # which reads all of it: what is malformed is refused now

    def run(self, pulse: Pulse) -> None:
        """Run the parts that were asked for and have no result yet."""
        found = self.found
        with spreading(self.run_of.given.actors, lambda: beat(pulse, self.used)) as spread:
            if "exact" in self._parts and self.config.exact and not found["exact"]:
                found["exact"] = self._exact(spread, self.config.exact)
                beat(pulse, self.used, exact=True)
            if "scripted" in self._parts and not found["scripted"]:
                found["scripted"] = self._scripted(spread)
                beat(pulse, self.used, exact=True)
            if "trained" in self._parts:
                self._trainings(pulse, spread)

    def _exact(self, spread: Spread, section: Exact) -> Any:
        """What a perfect responder reaches; None against a player that draws or remembers."""
        if self._inexact:
            self.run_of.say(f"no exact worst case: {self._inexact}")
            return None
        game = self.config.game
        starts = rho_starts(self._spec, section.starts, self.config.test.seed, game.starts)
        found = exact(self._player, starts, self._spec, game.max_moves, section.positions, spread)
        self.run_of.say(exact_line(found))
        return found

    def _scripted(self, spread: Spread) -> Data:
        """Rho against every script, and against the worst of them with lookahead."""
        seat: Role = "agent" if self._player.role == "host" else "host"
        names = getattr(self.config, f"{seat}s")
        players = {name: resolve_player(name, seat, self._spec) for name in names}
        measure = partial(_rho, self._player, self.config)
        found = dict(zip(players, spread(measure, players.values()), strict=True))
        if found and self.config.lookahead:
            worst = self._worst(found, key=lambda name: found[name]["rho"])
            ahead = Ahead(players[worst], self._player, self._spec, self.config.lookahead)
            found[f"{worst} with lookahead"] = measure(ahead)
        return found

    def _trainings(self, pulse: Pulse, spread: Spread) -> None:
        folder = self.run_of.folder
        found = self.found["trained"]
        left = [seed for seed in self.config.seeds if str(seed) not in found]
        # Trainings in other processes report only their results.
        alone = not self.run_of.given.actors
        report = partial(self._report_training, pulse) if alone else lambda *used: None
        results = spread(partial(_train_responder, self._player, self.config, report), left)
        for seed, (result, policy) in zip(left, results, strict=True):
            if folder:  # the network first: its figures say that it is there
                save_player(folder / f"seed-{seed}", policy, result["best"], archive=False)
            found[str(seed)] = result
            worst = self._worst(each["test"]["rho"] for each in found.values())
            known = {"rho/score": worst, "seeds": float(len(found))}
            beat(pulse, self.used, exact=True, **known)

    def _report_training(
        self, pulse: Pulse, updates: int, transitions: int, score: float | None = None
    ) -> None:
        """Report the progress of a training, in all counts since its start.

        Args:
            pulse: see `beat`.
            updates: updates of this training so far.
            transitions: transitions of this training so far.
            score: rho of a measurement that was just made, if one was.
        """
        metrics: dict[str, Any] = {}
        if score is not None:  # the mean over the seeds so far
            self.run_of.say(f"update {updates}: worst so far {score:.4f}")
            metrics["rho/validation"] = fmean([*self._bests, score])
        before = self.used
        used = Used(before.updates + updates, before.timesteps + transitions, before.steps)
        beat(pulse, used, **metrics)

    def result(self) -> Data:
        """Everything that was found, with the worst responder."""
        rhos = dict(self.found["scripted"])
        for seed, each in self.found["trained"].items():
            rhos[f"seed {seed}"] = each["test"]
            if each["lookahead"]:
                rhos[f"seed {seed} with lookahead"] = each["lookahead"]
        if not rhos and self.found["exact"]:
            rhos["proof"] = self.found["exact"]["lowest"]
        worst = self._worst(rhos, key=lambda name: rhos[name]["rho"], default=None)
        return {
            "player": player_name(self.run_of.given.player),
            "role": self._player.role,
            "budget": self.config.to_dict(),
            "worst_responder": worst,
            "worst": rhos.get(worst),
            "responders": rhos,
            **self.found,
        }

    def report(self) -> str:
        """Writes ``result.json``; a table of all responders."""
        result = self.result()
        rows = [("responder", "rho", "95 % interval", "moves", "unfinished")]
        for name, each in result["responders"].items():
            interval = "{:.4f} to {:.4f}".format(*each["interval_95"])
            length, unfinished = f"{each['mean_length']:.2f}", str(each["unfinished"])
            rows.append((name, f"{each['rho']:.4f}", interval, length, unfinished))
        lines = [f"{result['role']} {result['player']} under attack, {self.config.name}"]
        if result["worst"]:
            figure = f"worst: {result['worst']['rho']:.4f} by {result['worst_responder']}"
            lines += ["", text_table(rows), "", figure]
        if result["exact"]:
            lines.append(exact_line(result["exact"]))
        if self.run_of.folder:
            write_json(self.run_of.folder / "result.json", result)
        return "\n".join(lines)


def _seated(player: Any, spec: GameSpec, role: Role | None) -> Player:
    """What a caller means by a player, in the seat that it has or that is given."""
    found: list[Player] = []
    reasons: list[str] = []
    seats: tuple[Role, ...] = ("host", "agent") if role is None else (role,)
    for seat in seats:  # a saved model plays the seat that it was trained for
        try:
            found.append(resolve_player(player, seat, spec, "player"))
        except ValueError as error:
            reasons.append(str(error))
    if not found:
        raise ConfigError(min(reasons, key=lambda reason: "unknown" in reason))
    if len(found) == 2:
        raise ConfigError(f"role: got none; expected host or agent, {player!r} is both")
    return found[0]


def _fingerprint(player: Player, spec: GameSpec) -> tuple[str, str]:
    """A digest of what a player answers in 256 first positions, which tells players apart.

    Also why it has no exact worst case, empty if it has one.
    """
    row = torch.arange(_PROBES)
    sets = host_action_table(spec.dimension)
    coords = sets[row % len(sets)] if player.role == "agent" else None
    starts, inexact = rho_starts(spec, _PROBES), ""
    with errors_of("player"):  # a model of another dimension, or of fewer points
        answers = ask_player(player, starts, coords, RowRandom.for_episode(row, 0 * row))
    try:
        ask_exactly(player, starts, coords)
    except InexactPlayerError as error:
        inexact = str(error)
    words = answers.cpu().numpy().tobytes()
    return hashlib.sha256(player.role.encode() + words).hexdigest(), inexact


def _rho(player: Player, config: AttackConfig, other: Player) -> Data:
    pair = (player, other) if player.role == "host" else (other, player)
    return rho(*pair, **config.test.to_dict() | config.game.to_dict()).to_dict()


class _BestVersion(RhoEvaluation):
    """Keep the weights of the best version in memory, and report every step."""

    def __init__(self, report: Callable[..., object], player: Player, config: AttackConfig) -> None:
        super().__init__(
            [player],
            Every(updates=config.every),
            at_start=True,
            **config.game.to_dict(),
            **config.validation.to_dict(),
        )
        self._report = report
        self.weights: dict[str, Any] = {}

    def _on_step(self) -> bool:
        self._report(num_updates(self.model), self.num_timesteps)
        return super()._on_step()

    def act(self) -> None:
        """Measure, keep the weights if they are the best so far, and report the best score."""
        before = self.best_score
        super().act()
        if self.best_score != before:
            self.weights = copy.deepcopy(self.model.policy.state_dict())
        self._report(num_updates(self.model), self.num_timesteps, self.best_score)


def _train_responder(
    player: Player, config: AttackConfig, report: Callable[..., object], seed: int
) -> tuple[Data, Any]:
    """Train an opponent of a player from random starts; keep its best version.

    The versions before the first update and after every ``config.every`` updates play from the
    validation starts, and the one with the best rho is kept.

    Args:
        player: the player under attack, which does not learn.
        config: the budget.
        report: called after every step with the numbers of updates and transitions, and after a
            measurement with the best rho so far, too.
        seed: seed of the networks and the games.

    Returns:
        The figures of the best version as plain data, and its policy.
    """
    game = config.game.to_dict()
    section = dict(config.learner)
    seat = "Agent" if player.role == "host" else "Host"
    with errors_named("learner"):
        games = gymnasium.make_vec(
            f"resgym/Hironaka{seat}-v0",
            num_envs=section.pop("n_envs", 1),
            opponent=player,
            reward=config.reward,
            max_episode_steps=game.pop("max_moves"),
            **game,
        )
        model = DDQN(f"{seat}Policy", games, **section, seed=seed, device="cpu")
    best = _BestVersion(report, player, config)
    model.learn(transitions_for(model, config.updates), best, log_interval=None)
    model.policy.load_state_dict(best.weights)
    responder = player_of(model, f"seed {seed}")
    ahead = Ahead(responder, player, config.game.spec(), config.lookahead)
    history = [
        {"updates": entry["updates"], "transitions": entry["transitions"], "rho": entry["score"]}
        for entry in best.history
    ]
    figures = {
        "test": _rho(player, config, responder),
        "lookahead": _rho(player, config, ahead) if config.lookahead else None,
        "best": next(entry for entry in history if entry["rho"] == best.best_score),
        "history": history,
        "updates": model.num_updates,
        "transitions": model.num_timesteps,
    }
    return figures, model.policy


def exploit(
    player: Any,
    budget: Any = "points5",
    *,
    role: str | None = None,
    settings: Sequence[str] = (),
    parts: Sequence[str] = PARTS,
    say: Callable[[str], None] = lambda line: None,
) -> Data:
    """Attack a player from Python; no files are kept.

    Args:
        player: a name, a `Player`, a function or the path of a saved model.
        budget: the name of a budget of this package, a YAML file, a dictionary or a config.
        role: seat of the player, if both seats have its name.
        settings: changes of the budget, ``key=value`` each.
        parts: of ``exact``, ``scripted``, ``trained``.
        say: called with lines of progress.

    Returns:
        See `Attack.result`.

    Raises:
        ConfigError: the player or the budget is not valid.
    """
    given = argparse.Namespace(player=player, role=role, parts=[*parts], actors=0)
    job = Attack(AttackConfig.read(budget, settings), Run(None, say, given))
    go(job)
    return job.result()


main = partial(drive, Attack)
