"""Answers to requests: replayed games, hints, trees. Runs in the server's processes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Any

from resgym.app.play import HINT_SECONDS, Match, hint, other_seat, score
from resgym.app.questions import (
    MAX_CHARTS,
    MAX_MOVES,
    MAX_POINTS,
    MAX_TERMS,
    MODELS,
    Question,
    axes_code,
    list_models,
    moves_code,
    read_question,
)
from resgym.game.exact import corner, shifted
from resgym.game.spec import Axes, GameSpec, Point, Role, action_axes
from resgym.geometry.fan import (
    Cone,
    chart_rays,
    in_chart,
    old_coordinates,
    path_rays,
    strict_transform,
)
from resgym.measure.bench import load_search
from resgym.pictures.diagram import space_scene
from resgym.pictures.games import picture_of
from resgym.pictures.shapes import picture_to_svg
from resgym.players import agent_names, host_names, resolve_player
from resgym.polynomials.monomials import Exponents
from resgym.polynomials.parse import parse_text
from resgym.texts import (
    Data,
    Names,
    format_axes,
    format_move,
    monomial_pretty,
    position_pretty,
    variable_pretty,
)
from resgym.trees.growth import resolution_tree

TREE_DEPTH = 60
LISTED_SETS = 11
"""Sets of axes that an answer lists, those of 4 axes; for more axes the page offers checkboxes."""

EXAMPLES = (
    "E8",
    "D4",
    "A2",
    "x^13+x^6*y^4+y^9",
    "x^4*y+y^5*z+x*z^6",
    "random(dim=3,points=6,max=9)",
    "x^3+y^4+z^5+w^6",
)


_read = lru_cache(maxsize=256)(parse_text)
"""Caches a start; every move of a game asks for it again."""


def prepare_moves() -> None:
    """Load what a move needs."""
    answer("game", read_question({"start": "E8"}), None)


def prepare_search() -> None:
    """Load the compiled search, so that the time of a hint is search time."""
    with suppress(ImportError):
        load_search()


def answer(name: str, question: Question, models: Path | None) -> str:
    """Return JSON or SVG text of one of `ANSWERS`; ``models`` is the folder of the models.

    Raises:
        ValueError: the start is invalid or too large, or a move is illegal.
    """
    found = ANSWERS[name](question, models)
    return found if isinstance(found, str) else json.dumps(found)


def options(models: Path | None) -> str:
    """Return the choices as JSON text."""
    files = [MODELS + name for name in list_models(models)]
    return json.dumps(
        {
            "hosts": [*host_names(), *files],
            "agents": [*agent_names(), *files],
            "examples": EXAMPLES,
            "hint_seconds": HINT_SECONDS,
        }
    )


def _replayed(question: Question, models: Path | None) -> tuple[Match, Axes]:
    """Return the game after the moves of a request, and the set that was chosen."""
    start = _read(question.start)
    if len(start) > MAX_TERMS:
        raise ValueError(f"start must have at most {MAX_TERMS} monomials, got {len(start)}")
    opponent, role = None, other_seat(question.seat)
    if role:
        opponent = _player(question.opponent, role, start.dimension, models)
    match = Match(start, question.seat, opponent, question.seed, MAX_MOVES)
    if len(match.points) > MAX_POINTS:
        raise ValueError(
            f"start must have at most {MAX_POINTS} monomials that no other divides, "
            f"got {len(match.points)}"
        )
    for number, (axes, axis) in enumerate(question.moves, 1):
        where = f"moves: move {number} ({moves_code([(axes, axis)])})"
        if match.ending:
            raise ValueError(f"{where} comes after the end of the game")
        _check_axes(where, axes, start)
        if axis not in axes:
            raise ValueError(f"{where} must choose one of its axes, got {axis}")
        match.play(axes, axis)
    named = question.named
    if match.ending:
        return match, ()
    if question.seat == "agent":
        return match, match.ask_host()
    if named:
        _check_axes("named: the set", named, start)
        if question.seat == "host":
            match.play(named, match.ask_agent(named))
            named = ()
    return match, named


def _check_axes(where: str, axes: Axes, start: Exponents) -> None:
    most = start.dimension - 1
    if axes[-1] > most:
        raise ValueError(f"{where} must name axes from 0 to {most}, got {axes[-1]}")


def _player(name: str, role: Role, dimension: int, models: Path | None) -> Any:
    """Return a registered player or a listed model; ValueError for any other name."""
    source: str | Path = name
    stamp = 0
    if name.startswith(MODELS):
        found = list_models(models).get(name.removeprefix(MODELS))
        if found is None:
            raise ValueError(f"opponent must be a listed model, got {name[:80]!r}")
        source, stamp = found, found.stat().st_mtime_ns
    player = _known_player(source, role, dimension, stamp)
    if getattr(player, "remembers", False):
        raise ValueError(f"opponent must answer the position alone, got {name[:80]!r}")
    return player


@lru_cache(maxsize=32)
def _known_player(source: str | Path, role: Role, dimension: int, stamp: int) -> Any:
    return resolve_player(source, role, GameSpec(dimension, MAX_POINTS))


def _game(question: Question, models: Path | None) -> Data:
    """Return everything that the page shows of a game."""
    match, named = _replayed(question, models)
    start = _read(question.start)
    points, dimension = match.points, start.dimension
    names = _names(question)
    to_play = None if match.ending else "agent" if named else "host"
    choices = [(axis,) for axis in named] or action_axes(dimension)
    if not to_play or len(choices) > LISTED_SETS:
        choices = ()
    shown = [position_pretty(each, names) for each in match.positions]
    return {
        **question._asdict(),
        "moves": moves_code(match.moves),
        "named": axes_code(named),
        "variables": names,
        "notices": [notice.__doc__ for notice in start.notices],
        "history": [
            {"move": format_move(*move, names), "position": text}
            for move, text in zip(match.moves, shown[1:], strict=True)
        ],
        "first": shown[0],
        "to_play": to_play,
        "ending": match.ending,
        "choices": [
            {
                "code": axes_code(axes),
                "text": names[axes[0]] if named else format_axes(axes, names),
            }
            for axes in choices
        ],
        "monomials": [monomial_pretty(point, names) for point in points],
        # As text: numbers of a browser are exact only up to 2^53.
        "exponents": [[*map(str, point)] for point in points],
        "chart": chart_facts(start, path_rays(dimension, match.moves), names),
        "picture": picture_to_svg(picture_of(points, named, len(match.moves), names))
        if dimension == 2
        else None,
        "scene": space_scene(points, names) if dimension == 3 else None,
    }


def chart_facts(points: Sequence[Point], rays: Cone, names: Names) -> Data:
    """Describe a chart's coordinates, total transform and divisors.

    Args:
        points: all exponents of the start.
        rays: rays of the chart's cone, see `resgym.geometry.fan`.
        names: names of the variables.

    Returns:
        ``coordinates``: the variables of the start in those of the chart. ``factor`` and ``rest``:
        their product has the monomials of the total transform, ``rest`` those of the strict
        transform; ``factor`` is what all exceptional divisors take out. ``divisors``: the
        hyperplanes x_i = 0 of the chart, each with ``ray``, ``exceptional``, ``multiplicity`` N,
        ``log_discrepancy`` and candidate ``pole``.
    """
    places = [in_chart(point, rays) for point in points]
    least = corner(places)
    rest = strict_transform(points, rays)
    taken = shifted(places, rest[0])[0]
    divisors = [
        {
            "name": name,
            "ray": [*map(str, ray)],
            "exceptional": sum(ray) > 1,
            "multiplicity": str(order),
            "log_discrepancy": str(sum(ray)),
            "pole": f"−{Fraction(sum(ray), order)}" if order else None,
        }
        for name, ray, order in zip(names, rays, least, strict=True)
    ]
    return {
        "coordinates": old_coordinates(rays, names),
        "factor": monomial_pretty(taken, names) if any(taken) else "",
        "rest": position_pretty(rest, names),
        "divisors": divisors,
    }


def _hint(question: Question, models: Path | None) -> Data:
    match, named = _replayed(question, models)
    if match.ending:
        raise ValueError("the game is over: there is nothing to advise")
    return {"hint": hint(match.points, named, _names(question))}


def _tree(question: Question, models: Path | None) -> Any:
    """Return the tree of a host from the current position, as data or SVG, or its invariants."""
    match, _ = _replayed(question._replace(seat="both", named=()), models)
    start = _read(question.start)
    names, first = _names(question), path_rays(start.dimension, match.moves)
    moved = [{in_chart(p, first): c for p, c in terms.items()} for terms in start.generators]
    position = Exponents(match.points, start.variables, moved)
    tree = resolution_tree(
        position,
        _player(question.host, "host", position.dimension, models),
        max_depth=TREE_DEPTH,
        max_nodes=MAX_CHARTS,
        seed=question.seed,
    )
    if question.form == "svg":
        return tree.to_svg(MAX_CHARTS)
    if question.form == "invariants":
        return tree.invariants().table_rows()
    found = tree.to_dict()
    for rays, facts in zip(chart_rays(tree, first), found["charts"], strict=True):
        facts |= chart_facts(start, rays, names)
    return found | {"names": names}


def _names(question: Question) -> list[str]:
    return [*map(variable_pretty, _read(question.start).variables)]


ANSWERS = {
    "game": _game,
    "hint": _hint,
    "score": lambda question, models: score(*_replayed(question, models)),
    "tree": _tree,
}
