"""An attack: trainings against a frozen player, scripted opponents, and the exact answer.

The figure is the worst rho over all of them, so a training that fails makes no player look strong.
Every finished part is a sealed file of the run's folder, and is not done again.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

from resgym.files import check_seal, sealed
from resgym.game.spec import Role
from resgym.measure.rho import rho, rho_starts
from resgym.players import Player, player_name, resolve_player
from resgym.tables import text_table
from sb3_ext.attack.ahead import Ahead
from sb3_ext.attack.config import AttackConfig, Exact
from sb3_ext.attack.responder import fingerprint, seated, trained
from sb3_ext.attack.strength import strength
from sb3_ext.callbacks.rho_evaluation import player_of
from sb3_ext.checkpoints.best import save_player
from sb3_ext.cluster.pieces import Spread, spreading
from sb3_ext.config.reading import shipped_configs
from sb3_ext.config.sections import ConfigError
from sb3_ext.runs.checkpoint_format import errors_named
from sb3_ext.runs.command_line import add_options, starts_setting
from sb3_ext.runs.driver import Job, Pulse, Run, Used, beat, drive, go
from sb3_ext.runs.files import write_json
from sb3_ext.runs.folder import RunFolder

_PARTS = ("exact", "scripted", "trained")


class Attack(Job[AttackConfig]):
    """Attacks one player; ``player``, ``role`` and ``name`` come with the command line."""

    name = "attack"
    about = __doc__ or ""
    examples = """\
examples:
  python -m sb3_ext.attack zeillinger                   trained agents against a host
  python -m sb3_ext.attack choose_first                 trained hosts against an agent
  python -m sb3_ext.attack random --role host           a name that both seats know
  python -m sb3_ext.attack taught --role host --parts exact --actors 8
"""
    Config = AttackConfig
    metrics = ("rho/score", "rho/validation", "seeds")
    may_change = frozenset({"seeds", "name"})

    def __init__(self, config: AttackConfig, run: Run) -> None:
        super().__init__(config, run)
        given, self._spec = vars(run.given), config.game.spec()
        self._player = seated(given["player"], self._spec, given.get("role"))
        self._name = given.get("name") or player_name(given["player"])
        self._print = fingerprint(self._player, self._spec)
        self._parts = set(given.get("parts") or _PARTS)
        if "unless-proved" in self._parts:
            self._parts.update(_PARTS)
        self._actors = given.get("actors", 0)
        self._draws = self._print != fingerprint(self._player, self._spec, 1)
        if self._draws and self._parts == {"exact"}:
            raise ConfigError(f"player: got {self._name}; expected one that draws no numbers")
        self._worst = min if self._player.role == "host" else max
        self.used = Used()
        self.found: dict[str, Any] = {"exact": None, "scripted": {}, "trained": {}}

    @classmethod
    def options(cls, parser: argparse.ArgumentParser) -> None:
        """Adds the player and what is done to it."""
        add = parser.add_argument
        add("player", help="a name, or the path of a saved model")
        add("--role", choices=("host", "agent"), help="its seat, if it is not clear")
        add("--name", help="for the report")
        known = f"a YAML file, or one of {', '.join(shipped_configs('attack'))} (default points5)"
        add("--budget", dest="config", default="points5", metavar="FILE", help=known)
        add("--seeds", type=int, nargs="+", help="instead of those of the budget")
        parts = (
            "what is done (default: the first three); the last leaves out scripts and trainings "
            "where the search settles every start"
        )
        add("--parts", nargs="+", choices=(*_PARTS, "unless-proved"), help=parts)
        add_options(parser, "--starts", "--actors")

    @classmethod
    def read(cls, given: argparse.Namespace) -> AttackConfig:
        """The budget, with the seeds and starts of the command line."""
        if given.actors and given.threads != 1:
            raise ConfigError(f"threads: got {given.threads}; expected 1, as actors have")
        settings = [*given.settings, *starts_setting(given.starts, "game.starts")]
        settings += [f"seeds={given.seeds}"] if given.seeds else []
        return AttackConfig.read(given.config, settings)

    @classmethod
    def place(cls, given: argparse.Namespace, config: AttackConfig) -> Path:
        """A folder for each budget, player and seat."""
        seat = f"{given.role}-" if given.role else ""
        return Path("runs/attack", config.name, f"{seat}{given.name or player_name(given.player)}")

    def run(self, pulse: Pulse) -> None:
        """Does what is not in the folder yet, part by part."""
        self._check_player()
        with spreading(self._actors, lambda: beat(pulse, self.used)) as spread:
            if "exact" in self._parts and self.config.exact is not None:
                self.found["exact"] = self._exact(spread, self.config.exact)
            if self._settled:
                return
            if "scripted" in self._parts:
                self.found["scripted"] = self._part("scripted", lambda: self._scripted(spread))
            if "trained" in self._parts:
                self._trainings(pulse, spread)

    @property
    def _settled(self) -> bool:
        found = self.found["exact"]
        return "unless-proved" in self._parts and bool(found) and not found["given_up"]

    def _check_player(self) -> None:
        who = {"role": self._player.role, "fingerprint": self._print}
        if self._part("player", lambda: who) != who:
            raise ConfigError(
                f"out: got {self.run_of.folder}, which holds an attack on a player that answers "
                "differently; expected another folder"
            )

    def _part(self, name: str, make: Callable[[], Any]) -> Any:
        """What is in a file of the folder, or is made and put there."""
        folder = self.run_of.folder
        if folder is None:
            return make()
        file = folder / f"{name}.json"
        if file.is_file():
            with errors_named(f"out: {file} is damaged, delete it", ConfigError):
                return check_seal(json.loads(file.read_text(encoding="utf-8")))
        made = sealed(make())
        write_json(file, made)
        return check_seal(made)

    def _exact(self, spread: Spread, section: Exact) -> Any:
        """What a perfect responder reaches; None against a player that draws numbers."""
        if self._draws:
            self.run_of.say(f"no exact figure: {self._name} draws numbers")
            return None
        game = self.config.game
        starts = rho_starts(self._spec, section.starts, self.config.test.seed, game.starts)

        def make() -> dict[str, Any]:
            limits = (game.max_moves, section.positions)
            return strength(self._player, starts, self._spec, *limits, spread).summary()

        found = self._part("exact", make)
        self.run_of.say(exact_line(found))
        return found

    def _scripted(self, spread: Spread) -> dict[str, Any]:
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
        folder, seeds = self.run_of.folder, self.config.seeds
        done = [seed for seed in seeds if folder and (folder / f"seed-{seed}.json").is_file()]
        left = [seed for seed in seeds if seed not in done]

        def told(used: Used, *, exact: bool = True, **metrics: float) -> bool:
            if metrics:  # the mean over the seeds so far
                found = metrics["rho/validation"]
                self.run_of.say(f"update {used.updates}: worst so far {found:.4f}")
                rhos = [each["best"]["rho"] for each in self.found["trained"].values()]
                metrics["rho/validation"] = fmean([*rhos, found])
            return pulse(used, exact=exact, **metrics)

        work = partial(_trained, self._player, self.config)
        results: Iterator[Any] = (work(seed, told, self.used) for seed in left)
        if self._actors:  # of these only the ends are told
            results = iter(spread(work, left))

        def make(seed: int) -> dict[str, Any]:
            result, policy = next(results)
            if folder:  # the network first: its figures say that it is there
                save_player(folder / f"seed-{seed}", policy, result["best"], archive=False)
            return result

        for seed in [*done, *left]:
            found = self._part(f"seed-{seed}", partial(make, seed))
            self.found["trained"][str(seed)] = found
            updates, timesteps, _ = self.used
            self.used = Used(updates + found["updates"], timesteps + found["transitions"])
            rhos = [each["test"]["rho"] for each in self.found["trained"].values()]
            self.run_of.say(f"seed {seed}: {found['test']['rho']:.4f}")
            score = {"rho/score": self._worst(rhos), "seeds": float(len(rhos))}
            beat(pulse, self.used, **score)

    def result(self) -> dict[str, Any]:
        """Everything that was found, with the worst responder and whether all seeds are done."""
        rhos = dict(self.found["scripted"])
        for seed, each in self.found["trained"].items():
            rhos[f"seed {seed}"] = each["test"]
            if each["lookahead"]:
                rhos[f"seed {seed} with lookahead"] = each["lookahead"]
        if not rhos and self.found["exact"]:
            rhos["proof"] = self.found["exact"]["lowest"]
        worst = self._worst(rhos, key=lambda name: rhos[name]["rho"]) if rhos else None
        return {
            "player": self._name,
            "role": self._player.role,
            "fingerprint": self._print,
            "budget": self.config.to_dict(),
            "complete": self._settled or len(self.found["trained"]) == len(self.config.seeds),
            "worst_responder": worst,
            "worst": rhos[worst] if worst else None,
            "responders": rhos,
            **self.found,
        }

    def report(self) -> str:
        """Writes ``result.json``; a table of all responders, or the same as JSON."""
        result = self.result()
        if self.run_of.folder:
            write_json(self.run_of.folder / "result.json", sealed(result))
        rows = [("responder", "rho", "95 % interval", "moves", "unfinished")]
        for name, each in result["responders"].items():
            low, high = each["interval_95"]
            figures = (f"{each['rho']:.4f}", f"{low:.4f} to {high:.4f}")
            rows.append((name, *figures, f"{each['mean_length']:.2f}", str(each["unfinished"])))
        lines = [f"{result['role']} {self._name} under attack, {self.config.name}"]
        if result["worst"]:
            side = "lowest" if self._worst is min else "highest"
            figure = f"worst: {result['worst']['rho']:.4f} by {result['worst_responder']}"
            lines += ["", text_table(rows), "", f"{figure}, the {side} rho that was found"]
        if result["exact"]:
            lines.append(exact_line(result["exact"]))
        missing = len(self.config.seeds) - len(result["trained"])
        if not result["complete"]:
            lines.append(f"{missing} of {len(self.config.seeds)} seeds are not trained")
        return "\n".join(lines)


def exact_line(found: Mapping[str, Any]) -> str:
    """The exact figures as a line of text; a range where searches were given up."""
    ends = [found["lowest"], found["highest"]]
    rhos = " to ".join(dict.fromkeys(f"{each['rho']:.4f}" for each in ends))
    moves = " to ".join(dict.fromkeys(f"{each['mean_length']:.2f}" for each in ends[::-1]))
    least = "at least " if found["unproved"] else ""
    return (
        f"exact {rhos} on {found['starts']} starts, {moves} moves each, {found['cut']} cut, "
        f"{found['given_up']} searches given up; optimum {least}"
        f"{found['optimum']['mean_length']:.2f} moves, reached on {found['optimal']}, missed by at "
        f"most {found['largest_gap']}"
    )


def _rho(player: Player, config: AttackConfig, other: Player) -> dict[str, Any]:
    pair = (player, other) if player.role == "host" else (other, player)
    game: dict[str, Any] = {**config.test.to_dict(), **config.game.to_dict()}
    return rho(*pair, **game).to_dict()


def _trained(
    player: Player,
    config: AttackConfig,
    seed: int,
    pulse: Pulse = lambda used, **more: True,
    before: Used = Used(),  # noqa: B008
) -> tuple[dict[str, Any], Any]:
    """The figures of a trained responder, and its policy."""
    model, best = trained(player, config, seed, pulse, before)
    responder = player_of(model, f"seed {seed}")
    ahead = Ahead(responder, player, config.game.spec(), config.lookahead)
    history = [
        {"updates": each["updates"], "transitions": each["transitions"], "rho": each["score"]}
        for each in best.history
    ]
    return {
        "test": _rho(player, config, responder),
        "lookahead": _rho(player, config, ahead) if config.lookahead else None,
        "best": next(each for each in history if each["rho"] == best.best_score),
        "history": history,
        "updates": model.num_updates,
        "transitions": int(model.num_timesteps),
    }, model.policy


def exploit(
    player: Any,
    budget: Any = "points5",
    out: str | Path | None = None,
    *,
    role: str | None = None,
    settings: Sequence[str] = (),
    parts: Sequence[str] = (),
    say: Callable[[str], None] = lambda line: None,
) -> dict[str, Any]:
    """Attacks a player from Python.

    Args:
        player: a name, a `Player`, a function or the path of a saved model.
        budget: the name of a budget of this package, a YAML file, a dictionary or a config.
        out: folder for what is found; finished parts there are not done again.
        role: the player's seat where that is not clear.
        settings: changes of the budget, ``key=value`` each.
        parts: ``exact``, ``scripted``, ``trained``, ``unless-proved``; default: the first three.
        say: called with lines of progress.

    Returns:
        See `Attack.result`.

    Raises:
        ConfigError: the player, the budget or the folder is not valid.
    """
    given = argparse.Namespace(player=player, role=role, parts=parts)
    config = AttackConfig.read(budget, settings)
    with nullcontext() if out is None else RunFolder(out):
        job = Attack(config, Run(None if out is None else Path(out), say, given))
        go(job)
    return job.result()


main = partial(drive, Attack)
