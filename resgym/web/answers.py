"""Answers to questions: the replay of a game, hints, trees. Runs in the server's processes."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from math import gcd
from pathlib import Path
from typing import Any

import torch

from resgym.game.actions import action_axes
from resgym.game.plain import Position, moved
from resgym.game.rng import RowRandom, Stream
from resgym.game.spec import GameSpec, Role
from resgym.game.state import state_from_points
from resgym.players import Player, resolve_player
from resgym.players.ordered import OrderedRule
from resgym.players.seats import Seat
from resgym.polynomials.monomials import (
    Exponents,
    monomial_pretty,
    position_pretty,
    variable_pretty,
)
from resgym.polynomials.parse import parse_text
from resgym.render.positions import format_axes, format_move, picture_of
from resgym.render.scene import space_scene
from resgym.render.shapes import picture_to_svg
from resgym.terminal.play import agent_hint, host_hint
from resgym.trees.data import Chart, ChartTree
from resgym.trees.fan import chart_rays
from resgym.trees.growth import resolution_tree
from resgym.web.questions import (
    MAX_CHARTS,
    MAX_MOVES,
    MAX_POINTS,
    MAX_TERMS,
    Move,
    Question,
    axes_code,
    model_name,
)

ROWS = 20
TREE_DEPTH = 60
LISTED_SETS = 11
"""Sets of axes that an answer lists, those of 4 axes; beyond, the page lets one mark axes."""

Models = Mapping[str, Path]
"""The models that may be played, by the name that a link has for them."""


class Game:
    """A question replayed: every position of the game, and whose move it is.

    Raises:
        ValueError: the start is none, or too large, or a move is illegal.
    """

    def __init__(self, question: Question, models: Models) -> None:
        start, self.notices = _read(question.start)
        if len(start) > MAX_TERMS:
            raise ValueError(f"start must have at most {MAX_TERMS} monomials, got {len(start)}")
        self.question, self.variables = question, start.variables
        self.names = [variable_pretty(name) for name in start.variables]
        self.rule = OrderedRule(GameSpec(start.dimension))
        self.positions: list[Position] = [self.rule.start(start)]
        if len(self.points) > MAX_POINTS:
            raise ValueError(
                f"start must have at most {MAX_POINTS} monomials that no other divides, "
                f"got {len(self.points)}"
            )
        self.moves: list[Move] = []
        self.named: tuple[int, ...] = ()
        self.overflowed = False
        self._seat = self._opponent(question, models)
        for move in question.moves:
            self._play(move)
        self._go_on()

    @property
    def points(self) -> Position:
        """The position now."""
        return self.positions[-1]

    @property
    def ending(self) -> str | None:
        """Why the game is over: ``resolved``, ``cut`` or ``overflow``; None while it goes on."""
        if self.overflowed:
            return "overflow"
        cut = "cut" if len(self.moves) >= MAX_MOVES else None
        return self.rule.ending(self.points) or cut

    def _opponent(self, question: Question, models: Models) -> Seat | None:
        role = question.opponent_role
        if role is None:
            return None
        rows = max(ROWS, len(self.points))
        spec = GameSpec(len(self.variables), rows)
        player = find_player(question.opponent, role, spec, models)
        return Seat(player, role, Exponents(self.points, self.variables))

    def _random(self, stream: int) -> RowRandom:
        zero = torch.zeros(1, dtype=torch.int64)
        step = 2 * len(self.moves) + (stream == Stream.AGENT)
        return RowRandom.for_episode(zero + self.question.seed, zero).at(step, stream)

    def _named_by_opponent(self) -> tuple[int, ...]:
        assert self._seat is not None
        return self._seat.host_sets([self.points], self._random(Stream.HOST))[0]

    def _answer_of_opponent(self, axes: tuple[int, ...]) -> int:
        assert self._seat is not None
        return self._seat.agent_axes([self.points], [axes], self._random(Stream.AGENT))[0]

    def _play(self, move: Move) -> None:
        where = f"move {len(self.moves) + 1} ({move})"
        if self.ending:
            raise ValueError(f"moves: {where} comes after the end of the game")
        self._check_axes(where, move.axes)
        if move.axis not in move.axes:
            raise ValueError(f"moves: {where} must choose one of its axes, got {move.axis}")
        if self._seat is not None and getattr(self._seat.player, "remembers", False):
            # What it would say now is not asked for, but it has to see the game.
            if self.question.seat == "agent":
                self._named_by_opponent()
            else:
                self._answer_of_opponent(move.axes)
        after = self.rule.after(self.points, *move)
        if after is None:
            self.overflowed = True
            return
        self.moves.append(move)
        self.positions.append(after)

    def _check_axes(self, where: str, axes: tuple[int, ...]) -> None:
        if axes[-1] >= len(self.variables):
            most = len(self.variables) - 1
            raise ValueError(f"moves: {where} must name axes from 0 to {most}, got {axes[-1]}")

    def _go_on(self) -> None:
        """What the opponent does before it is the person's turn."""
        question = self.question
        if question.seat != "agent" and question.named:
            self._check_axes("the set named", question.named)
        if self.ending:
            return
        if question.seat == "agent":
            self.named = self._named_by_opponent()
        elif question.seat == "both":
            self.named = question.named
        elif question.named:
            axis = self._answer_of_opponent(question.named)
            # One that remembers has answered for this move already.
            after = self.rule.after(self.points, question.named, axis)
            if after is None:
                self.overflowed = True
            else:
                self.moves.append(Move(question.named, axis))
                self.positions.append(after)

    def to_dict(self) -> dict[str, Any]:
        """Everything that the page shows of a game."""
        ending, dimension = self.ending, len(self.variables)
        to_play = None if ending else "agent" if self.named else "host"
        sets = action_axes(dimension)
        choices = [(axis,) for axis in self.named] or (sets if len(sets) <= LISTED_SETS else ())
        question = self.question
        return {
            "start": question.start,
            "seat": question.seat,
            "opponent": question.opponent,
            "seed": question.seed,
            "moves": ",".join(map(str, self.moves)),
            "named": axes_code(self.named),
            "variables": self.names,
            "notices": self.notices,
            "history": [
                {"move": format_move(*move, self.names), "position": self._shown(points)}
                for move, points in zip(self.moves, self.positions[1:], strict=True)
            ],
            "first": self._shown(self.positions[0]),
            "to_play": to_play,
            "ending": ending,
            "choices": [
                {"code": axes_code(axes), "text": self._choice(axes)} for axes in choices if to_play
            ],
            "monomials": [monomial_pretty(point, self.names) for point in self.points],
            # As text: a browser's numbers are exact up to 2^53 only.
            "exponents": [[str(value) for value in point] for point in self.points],
            "chart": chart_facts(self.points, self.rays(), self.names),
            "picture": self.picture() if dimension == 2 else None,
            "scene": space_scene(self.points, self.names) if dimension == 3 else None,
        }

    def _choice(self, axes: tuple[int, ...]) -> str:
        return self.names[axes[0]] if self.named else format_axes(axes, self.names)

    def _shown(self, points: Position) -> str:
        return position_pretty(points, self.names)

    def rays(self) -> tuple[tuple[int, ...], ...]:
        """Those of the cone of the chart that the game has led to, a tree with one branch."""
        charts = [Chart(1, None, None, 0, self.positions[0])]
        for number, (move, points) in enumerate(
            zip(self.moves, self.positions[1:], strict=True), 2
        ):
            charts[-1] = replace(charts[-1], axes=move.axes, children=(number,))
            charts.append(Chart(number, number - 1, move.axis, number - 1, points))
        return chart_rays(ChartTree(charts, self.variables))[-1]

    def picture(self) -> str:
        """The position as SVG; a ValueError unless there are 2 or 3 axes."""
        return picture_to_svg(
            picture_of(self.points, self.named, len(self.moves), None, self.names)
        )


@lru_cache(maxsize=256)
def _read(text: str) -> tuple[Exponents, list[str]]:
    """A start and what is to be said of it; every move of a game asks for it again."""
    with warnings.catch_warnings(record=True) as notices:
        warnings.simplefilter("always")
        start = parse_text(text)
    return start, [str(notice.message) for notice in notices]


def chart_facts(
    points: Sequence[tuple[int, ...]], rays: Sequence[tuple[int, ...]], names: Sequence[str]
) -> dict[str, Any]:
    """A chart's coordinates, equation and divisors, in words.

    Args:
        points: the monomials of the chart.
        rays: those of its cone, see `resgym.trees.fan`.
        names: of the variables.

    Returns:
        ``coordinates``: what the variables of the start are in those of the chart; ``factor`` and
        ``rest``, whose product is the equation: all of the exceptional divisors that can be taken
        out, and what remains; ``divisors``: the hyperplanes x_i = 0 of the chart, each with
        ``ray``, ``exceptional``, ``multiplicity`` N, ``log_discrepancy`` and candidate ``pole``.
    """
    columns = list(zip(*rays, strict=True))
    least = tuple(map(min, zip(*points, strict=True)))
    taken = tuple(0 if sum(ray) == 1 else low for ray, low in zip(rays, least, strict=True))
    rest = [tuple(a - b for a, b in zip(point, taken, strict=True)) for point in points]
    divisors = []
    for name, ray, order in zip(names, rays, least, strict=True):
        total = sum(ray)
        common = gcd(total, order)
        bottom = "" if order == common else f"/{order // common}"
        divisors.append(
            {
                "name": name,
                "ray": [str(entry) for entry in ray],
                "exceptional": total > 1,
                "multiplicity": str(order),
                "log_discrepancy": str(total),
                "pole": f"−{total // common}{bottom}" if order else None,
            }
        )
    return {
        "coordinates": [
            f"{name} = {monomial_pretty(column, names)}"
            for name, column in zip(names, columns, strict=True)
        ],
        "factor": monomial_pretty(taken, names) if any(taken) else "",
        "rest": position_pretty(rest, names),
        "divisors": divisors,
    }


def _seen_from(first: Sequence[tuple[int, ...]], ray: tuple[int, ...]) -> tuple[int, ...]:
    """A ray of a chart over the chart with the rays ``first``, in the coordinates of the start."""
    return tuple(
        sum(weight * entry for weight, entry in zip(ray, column, strict=True))
        for column in zip(*first, strict=True)
    )


def find_player(name: str, role: Role, spec: GameSpec, models: Models) -> Player:
    """A registered player, or a listed model; ValueError for any other name."""
    file = model_name(name)
    if file is None:
        source: str | Path = name
    elif file in models:
        source = models[file]
    else:
        raise ValueError(f"opponent must be a listed model, got {name[:80]!r}")
    stamp = source.stat().st_mtime_ns if isinstance(source, Path) else 0
    player = _known_player(source, role, spec, stamp)
    if getattr(player, "remembers", False):
        # It has seen somebody's game.
        return resolve_player(source, role, spec)
    return player


@lru_cache(maxsize=32)
def _known_player(source: str | Path, role: Role, spec: GameSpec, stamp: int) -> Player:
    return resolve_player(source, role, spec)


def game_answer(question: Question, models: Models) -> str:
    """The game as JSON text; arguments and errors as of `Game`."""
    return json.dumps(Game(question, models).to_dict())


def picture_answer(question: Question, models: Models) -> str:
    """The position as SVG text."""
    return Game(question, models).picture()


def hint_answer(question: Question, models: Models, seconds: float, positions: int) -> str:
    """What the solver advises who is to play, as JSON text, within so many seconds and positions.

    Raises:
        ValueError: the game is over.
    """
    game = Game(question, models)
    if game.ending:
        raise ValueError("the game is over: there is nothing to advise")
    if game.named:
        after = {axis: moved(game.points, game.named, axis) for axis in game.named}
        hint = agent_hint(after, game.names, seconds, positions)
    else:
        spec = GameSpec(len(game.variables), max(ROWS, len(game.points)))
        state = state_from_points([list(game.points)], spec)
        hint = host_hint(state, game.names, seconds, positions)
    return json.dumps({"hint": hint.removeprefix("hint: ")})


def tree_answer(question: Question, models: Models) -> str:
    """The tree of a host from the position now, as JSON or SVG text."""
    game = Game(replace(question, seat="both", named=()), models)
    position = Exponents(game.points, game.variables)
    spec = GameSpec(position.dimension, max(ROWS, len(position)))
    tree = resolution_tree(
        position,
        find_player(question.host, "host", spec, models),
        max_depth=TREE_DEPTH,
        max_nodes=MAX_CHARTS,
        seed=question.seed,
    )
    if question.form == "growing":
        return tree.to_growing_svg(MAX_CHARTS)
    if question.form != "json":
        layout = "tree" if question.form == "svg" else "outline"
        return tree.to_svg(MAX_CHARTS, layout=layout)  # type: ignore[arg-type]
    found = tree.to_dict()
    first = game.rays()
    for chart, rays, facts in zip(tree, chart_rays(tree), found["charts"], strict=True):
        facts |= chart_facts(chart.points, [_seen_from(first, ray) for ray in rays], game.names)
    threshold = tree.complete and str(tree.log_canonical_threshold())
    return json.dumps({**found, "names": game.names, "log_canonical_threshold": threshold or None})
