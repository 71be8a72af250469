"""The stages of a round: sample, score, export, wait, evaluate.

Each stage leaves one file in the folder of its round, written as a whole, and is done when the file
is there: a run that was killed goes on with the first file that is missing.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from time import monotonic, sleep
from typing import Any

from pydantic import Field

from resgym.game.rng import derive_seed
from resgym.players.trust import named_object
from resgym.render.games import GameRecord
from resgym.text import Decision, TextPlayer, decisions_of, record_games, score_decisions
from resgym.text.wording import Chat
from sb3_ext.checkpoints.durable_files import write_text_durably
from sb3_ext.config.sections import ConfigError, Section, read_section
from sb3_ext.runs.folder import RunFolder
from sb3_ext.studies.attack.exact import exact_worst_case, scripted_rho
from sb3_ext.studies.text.config import TextConfig

GAMES, SCORES, LINES, MODEL, EVALUATION = (
    *("games.json", "scores.json", "train.jsonl", "model.json", "evaluation.json"),
)
"""What the stages leave; ``model.json`` comes from the outside."""


class NextModel(Section):
    """What the outside training writes when it is done."""

    ask: str | None = Field(default=None, description="module:name; null: the one before")
    arguments: dict[str, Any] = Field(default={}, description="what it is called with by name")


class TextRun:
    """The rounds of one folder.

    Args:
        config: what is to be done.
        folder: this process alone writes to it.
        report: called with a line after every stage.
    """

    def __init__(
        self, config: TextConfig, folder: RunFolder, report: Callable[[str], None]
    ) -> None:
        self.config, self.folder, self.report = config, folder, report
        self.budget = config.measures()

    def run(self) -> list[dict[str, Any]]:
        """Does what is missing, and returns what the rounds came to, see `summary`.

        Raises:
            TimeoutError: the model of a round did not come in time.
            ConfigError: it cannot be read, or names nothing that can be imported.
        """
        stages = {
            GAMES: self._sample,
            SCORES: self._score,
            LINES: self._export,
            MODEL: self._wait,
            EVALUATION: self._evaluate,
        }
        for number in range(self.config.rounds):
            place = self.place(number)
            place.mkdir(exist_ok=True)
            for name, stage in stages.items():
                if not (place / name).exists() or name == MODEL:
                    self.report(f"round {number}: {stage(number)}")
        return [self.summary(number) for number in range(self.config.rounds)]

    def place(self, number: int) -> Path:
        """The folder of a round."""
        return self.folder.path / f"round-{number:04d}"

    def model(self, number: int) -> tuple[str, dict[str, Any]]:
        """Whom the player of a round asks, and the arguments by name."""
        ask, arguments = self.config.model.ask, self.config.model.arguments
        for earlier in range(number):
            found = self._next_model(earlier)
            ask, arguments = found.ask or ask, found.arguments
        return ask, arguments

    def _next_model(self, number: int) -> NextModel:
        return read_section(NextModel, self._read(number, MODEL), str(self.place(number) / MODEL))

    def player(self, number: int) -> TextPlayer:
        """The player of a round; that of the round after the last is what was trained last."""
        name, arguments = self.model(number)
        function = named_object(name, "model.ask")
        if not callable(function):
            raise ConfigError(f"model.ask: {name!r} must be a function, got {function!r}")

        def ask(chats: list[Chat]) -> Any:
            try:
                return function(chats, **arguments)
            except Exception as error:  # whatever a function of the user's may raise
                raise RuntimeError(f"model.ask: {name}: {type(error).__name__}: {error}") from error

        about = self.config.player
        return TextPlayer(
            self.config.role, ask, retries=about.retries, on_unreadable=about.on_unreadable
        )

    def summary(self, number: int) -> dict[str, Any]:
        """The figures of a finished round: of the games, and of the player that came of them."""
        sampled = self._read(number, SCORES)
        return {"round": number, "sampled": sampled["statistics"], **self._read(number, EVALUATION)}

    def _read(self, number: int, name: str) -> Any:
        try:
            return json.loads((self.place(number) / name).read_text(encoding="utf-8"))
        except ValueError as error:
            raise ConfigError(f"{self.place(number) / name}: cannot be read: {error}") from None

    def _write(self, number: int, name: str, data: Any) -> None:
        RunFolder(self.place(number)).write_json(name, data)

    def _sample(self, number: int) -> str:
        player, about, game = self.player(number), self.config.sample, self.budget.game
        seats = {"host": about.opponent, "agent": about.opponent, self.config.role: player}
        records = record_games(
            *(seats["host"], seats["agent"], game.spec(), about.games),
            seed=derive_seed(self.config.seed, number),
            max_moves=game.max_moves,
            starts=game.starts,
        )
        counts = dict(player.counts)
        games = [record.to_dict() for record in records]
        self._write(number, GAMES, {"counts": counts, "games": games})
        return f"{len(games)} games sampled, {_told(counts)}"

    def _score(self, number: int) -> str:
        sampled = self._read(number, GAMES)
        records = [_record(game) for game in sampled["games"]]
        decisions = decisions_of(records, self.config.role)
        scored = score_decisions(decisions, budget=self.config.export.label_budget)
        labelled = [each for each in scored if each.optimal]
        optimal = sum(each.played in each.optimal for each in labelled)
        statistics = {
            "games": len(records),
            "finished": sum(record.finished for record in records),
            "mean_length": sum(len(record.axes) for record in records) / len(records),
            "decisions": len(scored),
            "labelled": len(labelled),
            "optimal": optimal,
            **{name: sampled["counts"][name] for name in ("unreadable", "illegal", "given_up")},
        }
        data = {"statistics": statistics, "decisions": [asdict(each) for each in scored]}
        self._write(number, SCORES, data)
        return f"{optimal} of {len(labelled)} labelled answers are optimal"

    def _export(self, number: int) -> str:
        scored = map(Decision.from_dict, self._read(number, SCORES)["decisions"])
        lines = []
        for each in scored:
            if each.played in each.optimal:
                lines.append(each.chat(each.played))
            elif each.optimal and self.config.export.answers == "optimal":
                lines.append(each.chat(each.optimal[0]))
        text = "".join(json.dumps(line) + "\n" for line in lines)
        write_text_durably(self.place(number) / LINES, text)
        return f"{len(lines)} lines to learn from are in {self.place(number) / LINES}"

    def _wait(self, number: int) -> str:
        file, about = self.place(number) / MODEL, self.config.wait
        end = monotonic() + about.seconds
        while True:
            try:
                ask, arguments = self.model(number + 1)
                return f"the next model is {ask} with {json.dumps(arguments)}"
            except FileNotFoundError:
                problem: Exception = TimeoutError(
                    f"{file}: did not come within {about.seconds:g} s; the same command goes on "
                    "waiting"
                )
            except ConfigError as error:  # it may be half written
                problem = error
            left = end - monotonic()
            if left <= 0:
                raise problem
            sleep(min(about.look_every_seconds, left))

    def _evaluate(self, number: int) -> str:
        player = self.player(number + 1)
        measured = scripted_rho(player, self.config.role, self.budget)
        exact = None if self.budget.exact is None else exact_worst_case(player, self.budget)
        ask, arguments = self.model(number + 1)
        data = {
            "model": {"ask": ask, "arguments": arguments},
            "counts": dict(player.counts),
            "rho": {name: each.to_dict() for name, each in measured.items()},
            "exact": None if exact is None else exact.to_dict(),
        }
        self._write(number, EVALUATION, data)
        shown = ", ".join(f"{name} {each.rho:.4f}" for name, each in measured.items())
        return f"rho against {shown}; {'' if exact is None else f'{exact}; '}{_told(player.counts)}"


def _told(counts: dict[str, int]) -> str:
    wrong = {name: counts[name] for name in ("unreadable", "illegal", "given_up")}
    told = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in wrong.items())
    return f"{counts['replies']} replies, {told}"


def _record(game: dict[str, Any]) -> GameRecord:
    positions = [[tuple(point) for point in points] for points in game["positions"]]
    return GameRecord(positions, list(map(tuple, game["host"])), game["agent"], game["finished"])
