"""Evaluate a model during training: by rewards as SB3 does, by rho, and by games to read."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any, ClassVar

from stable_baselines3.common import evaluation
from stable_baselines3.common.callbacks import EvalCallback
from stable_baselines3.common.vec_env import VecEnv

from resgym.measure.games import sample_games
from resgym.measure.rho import players_by_name, rho
from resgym.players import RecurrentPlayer, ScoringPlayer, resolve_player
from sb3_ext.adapter.seam import num_updates, walk_callbacks
from sb3_ext.callbacks.base import Period, PeriodicCallback
from sb3_ext.checkpoints.models import load_vec_env_state, save_model, save_player, vec_env_state
from sb3_ext.config.checks import check_arguments, check_count, shown
from sb3_ext.ddqn import DDQN
from sb3_ext.ddqn.legality import with_masks
from sb3_ext.networks.mlp import action_scores, recurrent_scores, seat_of, size_played
from sb3_ext.runs.files import going_on_without, rename_durably, write_durably, write_json
from sb3_ext.types import Data, StateDict, StrPath

_REMEMBERED = (
    "best_mean_reward",
    "evaluations_length",
    "evaluations_results",
    "evaluations_successes",
    "evaluations_timesteps",
    "last_mean_reward",
)


def evaluate_policy(model: Any, env: Any, *args: Any, **kwargs: Any) -> Any:
    """As SB3's function, with legal actions, in any environment that `DDQN` takes."""
    env = DDQN._wrap_env(env)
    return evaluation.evaluate_policy(with_masks(model, env), env, *args, **kwargs)


class Evaluation(EvalCallback):
    """Play episodes periodically; write ``evaluations.npz`` and ``best_model.zip``.

    As `EvalCallback`, but it plays legal actions, a resumed run continues with its measurements,
    best value and episodes, and files are replaced as a whole.

    Args:
        eval_env: the environment; its state is saved if it has one.
        folder: for the files.
        **arguments: of `EvalCallback`, without its paths.
    """

    def __init__(self, eval_env: VecEnv, folder: Path, **arguments: Any) -> None:
        self.folder = folder
        super().__init__(eval_env, log_path=str(folder), **arguments)
        self.log_path = str(folder / "evaluations.new")

    def _on_step(self) -> bool:
        before = self.best_mean_reward
        goes_on = True
        model = self.model
        self.model = with_masks(model, self.eval_env)
        with going_on_without("evaluation", self.folder):
            goes_on = super()._on_step()
            written = self.folder / "evaluations.new.npz"
            if written.exists():
                rename_durably(written, self.folder / "evaluations.npz")
        self.model = model
        if self.best_mean_reward > before:
            kept, self.best_mean_reward = self.best_mean_reward, before
            with going_on_without("best model", self.folder):
                save_model(self.folder / "best_model.zip", self.model)
                self.best_mean_reward = kept
        return goes_on

    def state_dict(self) -> StateDict:
        """Return the measurements so far, and the state of the environment."""
        values = {name: getattr(self, name) for name in _REMEMBERED}
        played = self.evaluations_timesteps
        return {"environment": vec_env_state(self.eval_env) if played else None, **values}

    def load_state_dict(self, state: StateDict) -> None:
        """Continue from a saved `state_dict`."""
        for name in _REMEMBERED:
            setattr(self, name, state[name])
        if state["environment"] is not None:
            load_vec_env_state(self.eval_env, state["environment"])


def player_of(model: Any, name: str = "trained") -> ScoringPlayer:
    """Return the greedy player of an SB3 model or policy; it follows the model's training.

    Raises:
        ValueError: the observations are not those of a one-seat environment.
    """
    policy = getattr(model, "policy", model)
    role, points = seat_of(policy)
    if len(getattr(points, "shape", None) or ()) != 2:
        raise ValueError(
            f"{name}: observes {policy.observation_space}, not the points [P, D] of a game"
        )
    about = {
        "scale_observation": float(points.high.max()) <= 1.0,
        "device": policy.device,
        "name": name,
    }
    if hasattr(policy, "lstm_actor"):
        return RecurrentPlayer(role, partial(recurrent_scores, policy), points.shape, **about)
    return ScoringPlayer(role, partial(action_scores, policy), size_played(policy), **about)


class GamesAgainst(PeriodicCallback):
    """Let the model play fixed opponents from the same starts every time, without exploring.

    It also acts at the end, unless that version has been played already.

    Args:
        opponents: players of the other seat, by name or as objects; see `players_by_name`.
        every: how often.
        game: as `resgym.rho`: ``games`` against each opponent, ``seed``, which fixes the starts
            (keep it apart from those of training), sizes; default: the model's own sizes.
    """

    remembered: ClassVar[tuple[str, ...]] = ("_played",)
    default_games = 2000

    def __init__(self, opponents: Sequence[Any], every: Period, **game: Any) -> None:
        super().__init__(every)
        if isinstance(opponents, str) or not opponents:
            raise ValueError(
                f"opponents must be a list of at least one player, got {shown(opponents)}"
            )
        self.opponents = players_by_name(opponents)
        self.game = {"games": self.default_games, "seed": 0, **game}
        check_arguments(partial(rho, None, None), self.game)
        check_count("games", self.game["games"])
        self._played: int | None = None  # updates of the version that has played last

    def _on_training_start(self) -> None:
        player_of(self.model)  # refuses other observations
        self._role, points = seat_of(self.model)
        other: Any = "agent" if self._role == "host" else "host"
        self._players = {
            name: resolve_player(opponent, other) for name, opponent in self.opponents.items()
        }
        rows, dimension = points.shape
        self._game = {"dimension": dimension, "max_num_points": rows, **self.game}

    def _pairs(self) -> Iterator[tuple[str, tuple[Any, Any]]]:
        """Each opponent's name, with the host and the agent of its games."""
        mine, self._played = player_of(self.model), num_updates(self.model)
        for name, other in self._players.items():
            yield name, (mine, other) if self._role == "host" else (other, mine)

    def _on_training_end(self) -> None:
        if self._played != num_updates(self.model):
            self.locals = {}  # conditions count no measurement of an end: a run may continue
            self.act()


class RhoEvaluation(GamesAgainst):
    """Measure the model's rho from the same starts every time, also at the end.

    Logs ``rho/<opponent>`` and ``rho/best``; ``win_rate/<opponent>``, the share of games that the
    host finished; and ``worst_length/<opponent>``, the moves of the game that was worst for the
    model (a host's longest, an agent's shortest).

    The score is the worst rho over the opponents (``best="worst"``), their mean, or the rho against
    a named opponent. The best model has the highest score for a host, the lowest for an agent.

    Starts, games and players use random numbers of their own, so a run with evaluations learns the
    same as one without.

    Arguments that are not told here are those of `GamesAgainst`.

    Args:
        best: ``worst``, ``mean`` or the name of an opponent.
        save_path: folder for ``rho.json`` and the best model, as ``best`` (a checkpoint of its
            policy, to play with) and as SB3's ``best_model.zip``; None keeps nothing.
        at_start: also evaluate the untrained model.

    Attributes:
        history: one dict per evaluation: updates, transitions, seconds, rho and its 95 % interval
            by opponent, score.
        best_score: the best score so far, None before the first evaluation.
    """

    remembered = (*GamesAgainst.remembered, "best_score", "history")

    def __init__(
        self,
        opponents: Sequence[Any],
        every: Period,
        *,
        best: str = "worst",
        save_path: str | Path | None = None,
        at_start: bool = False,
        **game: Any,
    ) -> None:
        super().__init__(opponents, every, **game)
        if best not in ("worst", "mean", *self.opponents):
            raise ValueError(
                f"best must be 'worst', 'mean' or one of {list(self.opponents)}, got {shown(best)}"
            )
        self.best = best
        self.at_start = at_start
        self.save_path = None if save_path is None else Path(save_path)
        self.history: list[Data] = []
        self.best_score: float | None = None

    def _on_training_start(self) -> None:
        super()._on_training_start()
        earlier = self.history[-1]["training_seconds"] if self.history else 0.0
        self._begin = time.monotonic() - earlier
        if self.at_start and not self.history:
            self.act()

    def act(self) -> None:
        """Evaluates now."""
        begin = time.monotonic()
        measured = {name: rho(*pair, **self._game) for name, pair in self._pairs()}
        results = {name: each.rho for name, each in measured.items()}
        sign = 1 if self._role == "host" else -1
        worst = (min if sign == 1 else max)(results.values())
        score = {**results, "mean": fmean(results.values()), "worst": worst}[self.best]
        entry = {
            "updates": num_updates(self.model),
            "transitions": self.num_timesteps,
            "training_seconds": begin - self._begin,
            "rho": results,
            "interval_95": {name: list(each.interval) for name, each in measured.items()},
            "score": score,
        }
        self.history.append(entry)
        better = self.best_score is None or sign * score > sign * self.best_score
        if better:
            self.best_score = score
        if folder := self.save_path:
            if better:
                with going_on_without("best model", folder):
                    save_player(folder / "best", self.model, entry)
            with going_on_without("history", folder):
                folder.mkdir(parents=True, exist_ok=True)
                write_json(folder / "rho.json", self.history)
        values: dict[str, Any] = {f"rho/{name}": value for name, value in results.items()}
        values["rho/best"] = self.best_score
        for each in walk_callbacks(self.locals.get("callback")):
            if hasattr(each, "observe"):
                each.observe({**values, "rho/score": score})
        for name, found in measured.items():
            values[f"win_rate/{name}"] = found.win_rate
            values[f"worst_length/{name}"] = found.longest if sign == 1 else found.shortest
        for key, value in values.items():
            self.logger.record(key, value)
        self._begin += time.monotonic() - begin  # only training counts


class SampleGames(GamesAgainst):
    """Play whole games without exploring and write them as text and JSON, also at the end.

    The folder ``<run_dir>/games/<updates>/`` gets ``<opponent>.txt`` to read and
    ``<opponent>.json``, a list of games with positions, the host's sets and the agent's axes. The
    starts are the same each time, so that versions can be compared.

    Arguments that are not told here are those of `GamesAgainst`; by default there are 3 games.

    Args:
        run_dir: the folder of the run.
    """

    default_games = 3

    def __init__(
        self,
        run_dir: StrPath,
        opponents: Sequence[Any],
        every: Period,
        **game: Any,
    ) -> None:
        super().__init__(opponents, every, **game)
        self.folder = Path(run_dir) / "games"

    def act(self) -> None:
        """Plays and writes."""
        updates = num_updates(self.model)
        folder = self.folder / f"{updates:09d}"
        folder.mkdir(parents=True, exist_ok=True)
        for name, pair in self._pairs():
            records = sample_games(*pair, **self._game)
            title = f"trained {self._role} against {name}, after {updates} updates"
            texts = [f"game {number}\n\n{record}" for number, record in enumerate(records, 1)]
            data = json.dumps([record.to_dict() for record in records])
            stem = re.sub(r"[^\w.-]", "_", name)
            write_durably(folder / f"{stem}.txt", "\n\n\n".join([title, *texts]) + "\n")
            write_durably(folder / f"{stem}.json", f"{data}\n")
