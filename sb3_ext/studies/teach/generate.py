"""Draws positions from families, labels them with the solver and writes a dataset.

Every position gets the set of all optimal moves of a seat, and its value. Positions that differ
only by a shift, a factor or an order of axes and points are one, and stand on one side of the split
into training and held-out part. A position for which the solver's budget is not enough is left out
and counted. Finished shards stay when the command is stopped or killed: the same command goes on
with the rest. The result depends on the options but not on --workers.

  python -m sb3_ext.teach generate --out runs/teach/small --config small --positions 2000
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import lru_cache
from multiprocessing import get_context, parent_process
from multiprocessing.connection import wait as wait_for
from pathlib import Path
from typing import Any, NamedTuple, get_args

import numpy as np
import torch

from resgym.game.actions import host_action_table
from resgym.game.rng import RowRandom, derive_seed
from resgym.solver.labels import OUT_OF_BUDGET, SOLVED, SOLVER_VERSION, TOO_LARGE, Labeller
from resgym.solver.solve import Objective
from sb3_ext.checkpoints.durable_files import file_digest, write_text_durably
from sb3_ext.checkpoints.folder_lock import sole_writer
from sb3_ext.checkpoints.provenance import provenance
from sb3_ext.config.sections import ConfigError
from sb3_ext.studies.teach.dataset import (
    MANIFEST,
    PLAN,
    SCHEMA,
    SEATS,
    digest_of,
    manifest_text,
    read_shard_notes,
    shard_name,
    write_json,
    write_shard,
)
from sb3_ext.studies.teach.families import (
    BATCH_ROWS,
    TeachConfig,
    draw_batch,
    excluded_forms,
    read_teach_config,
)

__all__ = ["HELP", "Plan", "add_arguments", "check_plan", "generate", "held_out_shares", "run"]

HELP = "draw positions, label them with the solver, write a dataset"

SHARD_ROWS = 4096
"""Positions labelled with one table, and lost at most when the command is killed."""

MAX_POSITIONS = 10**8
IDLE_BATCHES = 20
"""A family has no more to give once so many draws in a row brought nothing new."""

_SET_WORD, _ORDER_WORD = 0x73657473, 0x6F72646572


class Plan(NamedTuple):
    """What determines a dataset.

    Attributes:
        config: families, exclusions, budget.
        positions: how many to draw.
        seat: ``host`` or ``agent``.
        objective: ``depth`` or ``nodes``.
        seed: 0 or more.
        held_out: share of the canonical forms that are held out, 0 to 1 (exclusive).
    """

    config: TeachConfig
    positions: int
    seat: str = "host"
    objective: str = "depth"
    seed: int = 0
    held_out: float = 0.05

    def to_dict(self) -> dict[str, Any]:
        """Plain data that names everything the content depends on."""
        return {
            **self._asdict(),
            "config": self.config.to_dict(),
            "dimension": self.config.dimension,
            "max_num_points": self.config.max_num_points,
            "schema": SCHEMA,
            "shard_rows": SHARD_ROWS,
            "solver": SOLVER_VERSION,
        }


@dataclass(frozen=True)
class _Positions:
    """Distinct positions, N rows of numpy arrays; see `dataset.Split`."""

    points: np.ndarray
    count: np.ndarray
    family: np.ndarray
    held_out: np.ndarray
    coords: np.ndarray

    def rows(self, rows: slice) -> _Positions:
        """Some of them."""
        return _Positions(**{name: array[rows] for name, array in vars(self).items()})


class _Job(NamedTuple):
    """One shard to be labelled."""

    file: Path
    plan: dict[str, Any]
    digest: str
    positions: _Positions


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument("--out", type=Path, required=True, help="folder of the dataset")
    parser.add_argument(
        "--config",
        default="default",
        help="families: a YAML file, or one of configs/teach by its name (default default)",
    )
    parser.add_argument(
        "--positions", type=int, default=100_000, help="positions to draw (default 100000)"
    )
    parser.add_argument("--seat", default="host", help="whose moves: host (default) or agent")
    parser.add_argument(
        "--objective", default="depth", help="what is optimal: depth (default) or nodes"
    )
    parser.add_argument("--seed", type=int, default=0, help="fixes the dataset (default 0)")
    parser.add_argument(
        "--workers", type=int, default=2, help="processes that label (default 2); changes no result"
    )
    parser.add_argument(
        "--held-out",
        type=float,
        default=0.05,
        help="share of the positions, by canonical form, for measuring only (default 0.05)",
    )
    parser.add_argument("--no-progress", action="store_true", help="no progress bar")


def run(args: argparse.Namespace, command: Sequence[str]) -> int:
    """Runs the command; see `sb3_ext.studies.teach.cli.main`."""
    plan = Plan(
        read_teach_config(args.config),
        args.positions,
        args.seat,
        args.objective,
        args.seed,
        args.held_out,
    )
    manifest = generate(
        plan, args.out, workers=args.workers, progress=not args.no_progress, command=command
    )
    print(_report(manifest, args.out))
    return 0


def generate(
    plan: Plan,
    out: str | Path,
    *,
    workers: int = 1,
    progress: bool = False,
    command: Sequence[str] = (),
) -> dict[str, Any]:
    """Makes a dataset, or what is missing of it.

    Args:
        plan: what to make.
        out: the folder; one with another dataset is refused.
        workers: processes; 1 labels in this one.
        progress: show a progress bar on stderr.
        command: for ``provenance.json``.

    Returns:
        the manifest.

    Raises:
        ValueError: an option is out of range, a family yields no position, the folder holds
            something else, or another process is at work in it.
        OSError: it could not be written.
        RuntimeError: a process died.
    """
    out, begin = Path(out), time.perf_counter()
    check_plan(plan, workers)
    _open_folder(out, plan.to_dict())
    with sole_writer(out):
        return _complete(plan, out, workers, progress, command, begin)


def _complete(
    plan: Plan, out: Path, workers: int, progress: bool, command: Sequence[str], begin: float
) -> dict[str, Any]:
    """Labels and writes what is missing in the folder of a plan; returns the manifest."""
    content = plan.to_dict()
    digest = digest_of(content)
    positions, families = _draw(plan)
    jobs = [
        _Job(
            out / shard_name(number),
            content,
            digest,
            positions.rows(slice(first, first + SHARD_ROWS)),
        )
        for number, first in enumerate(range(0, len(positions.count), SHARD_ROWS))
    ]
    notes: dict[Path, dict[str, Any]] = {}
    for job in jobs:
        found = read_shard_notes(job.file)
        if found is not None and found.get("job") == _job_digest(job):
            notes[job.file] = found
    open_jobs = [job for job in jobs if job.file not in notes]
    kept = len(positions.count) - sum(len(job.positions.count) for job in open_jobs)
    with _bar(len(positions.count), kept, progress) as bar:
        for job, found in _labelled(open_jobs, workers):
            notes[job.file] = found
            bar.update(len(job.positions.count))
    manifest = _manifest(content, [job.file for job in jobs], notes, families)
    write_json(
        out / "provenance.json",
        {
            **provenance(plan.seed, command),
            "seconds": round(time.perf_counter() - begin, 2),
            "shards_kept": len(jobs) - len(open_jobs),
            "workers": workers,
        },
    )
    _drop_leftovers(out, len(jobs))
    write_text_durably(out / MANIFEST, manifest_text(manifest))
    return manifest


def check_plan(plan: Plan, workers: int) -> None:
    """Refuses what is out of range, in one line."""
    if plan.seat not in SEATS:
        raise ConfigError(f"seat must be one of {', '.join(SEATS)}, got {plan.seat!r}")
    if plan.objective not in get_args(Objective):
        raise ConfigError(f"objective must be 'depth' or 'nodes', got {plan.objective!r}")
    if not 1 <= plan.positions <= MAX_POSITIONS:
        raise ConfigError(f"positions must be in 1..{MAX_POSITIONS}, got {plan.positions}")
    if not 0 <= plan.seed < 2**62:
        raise ConfigError(f"seed must be in 0..2^62-1, got {plan.seed}")
    if not 0 <= plan.held_out < 1:
        raise ConfigError(f"held-out must be at least 0 and below 1, got {plan.held_out}")
    if not 1 <= workers <= 256:
        raise ConfigError(f"workers must be in 1..256, got {workers}")


def _open_folder(out: Path, content: Mapping[str, Any]) -> None:
    """Writes the plan, or makes sure that it is the one that is there."""
    if out.exists() and not out.is_dir():
        raise ConfigError(f"out: must be a folder, {out} is a file")
    file = out / PLAN
    if file.is_file():
        try:
            found = json.loads(file.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise ConfigError(f"{file}: cannot be read: {error}") from None
        if found != json.loads(json.dumps(content)):
            names = [
                key
                for key in content
                if not isinstance(found, dict)
                or found.get(key) != json.loads(json.dumps(content[key]))
            ]
            raise ConfigError(
                f"out: {out} holds a dataset with another {', '.join(names)}; take another folder"
            )
        return
    if out.is_dir() and any(out.iterdir()):
        raise ConfigError(f"out: {out} is not empty and holds no dataset; take another folder")
    out.mkdir(parents=True, exist_ok=True)
    write_json(file, content)


def _draw(plan: Plan) -> tuple[_Positions, list[dict[str, Any]]]:
    """The positions, without doubles, and what became of the families."""
    from resgym.solver.label_kernels import new_members

    config = plan.config
    labeller = _labeller(config.dimension, config.max_num_points, "depth", 1)
    barred = _barred_digests(config)
    slots = _with_room(np.zeros((1024, 2), np.int64), len(barred))
    new_members(slots, barred, np.empty(len(barred), np.bool_))
    points, counts, family_of, digests, families = [], [], [], [], []
    for place, target in enumerate(_shares(plan)):
        family = config.families[place]
        found = drawn = idle = batch = 0
        while found < target and idle < IDLE_BATCHES:
            draws = draw_batch(config, place, batch, plan.seed)
            batch += 1
            rows = np.asarray(draws.count)
            # In any order: the positions of a game must not come before those of later moves.
            order = np.argsort(
                RowRandom.for_episode(
                    torch.full((len(rows),), derive_seed(plan.seed, _ORDER_WORD, place, batch)),
                    torch.arange(len(rows)),
                )
                .words()
                .numpy(),
                kind="stable",
            )
            some, rows = np.asarray(draws.points)[order], rows[order]
            codes = labeller.canonical(some, rows).digests
            new = np.empty(len(rows), np.bool_)
            # A whole batch is put in, however few of it are wanted.
            slots = _with_room(slots, len(codes))
            new_members(slots, codes, new)
            index = np.flatnonzero(new)
            drawn += len(rows)
            # The rest of the last batch stays marked as met: the next families draw others.
            index = index[: target - found]
            idle = 0 if len(index) else idle + 1
            found += len(index)
            points.append(some[index])
            counts.append(rows[index])
            digests.append(codes[index])
            family_of.append(np.full(len(index), place))
        if found == 0 and target > 0:
            raise ConfigError(
                f"families[{family.name}]: no position that fits and is new in {batch} times "
                f"{BATCH_ROWS} draws; take other points, values, alive or exclude"
            )
        families.append(
            {"name": family.name, "wanted": target, "positions": found, "looked_at": drawn}
        )
    codes = np.concatenate(digests)
    number = np.arange(len(codes))
    return _Positions(
        np.concatenate(points),
        np.concatenate(counts),
        np.concatenate(family_of),
        held_out_shares(codes) < plan.held_out,
        _sets(plan, number),
    ), families


def held_out_shares(digests: np.ndarray) -> np.ndarray:
    """A number from 0 to 1 for each digest; positions with less than ``held_out`` are held out.

    Args:
        digests: int64 [N, 2], of canonical forms.
    """
    # Of the second half, so that the order in the hash table plays no part.
    return np.asarray((digests[:, 1].copy().view(np.uint64) >> np.uint64(11)) * 2.0**-53)


def _with_room(slots: np.ndarray, more: int) -> np.ndarray:
    """The set of `new_members`, or a larger copy if it would be more than half full."""
    from resgym.solver.label_kernels import new_members

    held = slots[slots.any(1)]
    size = 1 << (2 * (len(held) + more)).bit_length()
    if size <= len(slots):
        return slots
    larger = np.zeros((2 * size, 2), np.int64)
    new_members(larger, held, np.empty(len(held), np.bool_))
    return larger


def _shares(plan: Plan) -> list[int]:
    """Positions of each family: proportional to the weights, the largest remainders rounded up."""
    weights = [family.weight for family in plan.config.families]
    exact = [plan.positions * weight / sum(weights) for weight in weights]
    shares = [int(value) for value in exact]
    by_remainder = sorted(range(len(exact)), key=lambda k: (shares[k] - exact[k], k))
    for k in by_remainder[: plan.positions - sum(shares)]:
        shares[k] += 1
    return shares


def _barred_digests(config: TeachConfig) -> np.ndarray:
    forms = sorted(excluded_forms(config.exclude, config.dimension))
    size = max([2, *map(len, forms)])
    labeller = _labeller(config.dimension, size, "depth", 1)
    points = np.full((len(forms), size, config.dimension), -1)
    for row, form in zip(points, forms, strict=True):
        row[: len(form)] = form
    return labeller.canonical(points, np.array([len(form) for form in forms], np.int64)).digests


def _sets(plan: Plan, number: np.ndarray) -> np.ndarray:
    """Bool [N, D]: the set that the agent is asked about, uniform; none for the host."""
    if plan.seat == "host":
        return np.zeros((len(number), 0), np.bool_)
    table = host_action_table(plan.config.dimension)
    seeds = torch.full((len(number),), derive_seed(plan.seed, _SET_WORD))
    rng = RowRandom.for_episode(seeds, torch.from_numpy(number))
    return table[rng.integers(len(table))].numpy()


@lru_cache(maxsize=4)
def _labeller(dimension: int, max_num_points: int, objective: Any, budget: int) -> Labeller:
    room = 2**20 if budget > 1 else 2**10
    return Labeller(dimension, max_num_points, objective, budget=budget, room=room)


def _job_digest(job: _Job) -> str:
    return digest_of(job.digest, job.file.name, *vars(job.positions).values())


def _label(job: _Job) -> dict[str, Any]:
    """Labels one shard and writes it; returns its notes."""
    plan, positions = job.plan, job.positions
    labeller = _labeller(
        plan["dimension"], plan["max_num_points"], plan["objective"], plan["config"]["budget"]
    )
    # What the budget is enough for must not depend on which shards came before.
    labeller.clear()
    if plan["seat"] == "host":
        labels = labeller.host(positions.points, positions.count)
    else:
        labels = labeller.agent(positions.points, positions.count, positions.coords)
    good = labels.status == SOLVED
    arrays = {name: field[good] for name, field in vars(positions).items()}
    if plan["seat"] == "host":
        del arrays["coords"]
    arrays |= {"optimal": labels.optimal[good], "value": labels.value[good]}
    left_out = [
        [
            int((positions.family[labels.status == status] == place).sum())
            for place in range(len(plan["config"]["families"]))
        ]
        for status in (OUT_OF_BUDGET, TOO_LARGE)
    ]
    notes = {
        "held_out": int(arrays["held_out"].sum()),
        "job": _job_digest(job),
        "out_of_budget": left_out[0],
        "rows": int(good.sum()),
        "too_large": left_out[1],
    }
    write_shard(job.file, arrays, notes)
    return notes


def _labelled(jobs: Sequence[_Job], workers: int) -> Iterator[tuple[_Job, dict[str, Any]]]:
    """Labels shards, in any order."""
    if workers == 1 or len(jobs) < 2:
        for job in jobs:
            yield job, _label(job)
        return
    # A fresh interpreter each: a fork of a process with threads of torch can hang.
    pool = ProcessPoolExecutor(
        min(workers, len(jobs)), mp_context=get_context("spawn"), initializer=_start_worker
    )
    try:
        waiting = list(reversed(jobs))
        running: dict[Future[dict[str, Any]], _Job] = {}
        while waiting or running:
            # Few at a time: what is queued is copied.
            while waiting and len(running) < 2 * workers:
                job = waiting.pop()
                running[pool.submit(_label, job)] = job
            done, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                yield running.pop(future), future.result()
    except BrokenProcessPool:
        raise RuntimeError(
            "a labelling process died (of too little memory?); finished shards are kept, the same "
            "command goes on, --workers 1 needs least memory"
        ) from None
    finally:
        pool.shutdown(cancel_futures=True)


def _start_worker() -> None:
    """Leaves interrupts to the main process, and ends with it even if that is killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    torch.set_num_threads(1)
    parent = parent_process()
    if parent is not None:

        def follow() -> None:
            wait_for([parent.sentinel])
            os._exit(1)

        threading.Thread(target=follow, daemon=True).start()


class _NoBar:
    def __enter__(self) -> _NoBar:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def update(self, number: int) -> None:
        pass


def _bar(total: int, initial: int, wanted: bool) -> Any:
    if wanted:
        try:
            from tqdm import tqdm
        except ImportError:
            return _NoBar()
        return tqdm(total=total, initial=initial, unit="position", dynamic_ncols=True)
    return _NoBar()


def _manifest(
    content: Mapping[str, Any],
    files: Sequence[Path],
    notes: Mapping[Path, Mapping[str, Any]],
    families: Sequence[Mapping[str, Any]],
) -> dict[str, Any]:
    rows = sum(notes[file]["rows"] for file in files)
    held_out = sum(notes[file]["held_out"] for file in files)
    counted = []
    for place, family in enumerate(families):
        left_out = {
            reason: sum(notes[file][reason][place] for file in files)
            for reason in ("out_of_budget", "too_large")
        }
        counted.append({**family, **left_out, "rows": family["positions"] - sum(left_out.values())})
    return {
        "families": counted,
        "plan": dict(content),
        "rows": {"held_out": held_out, "train": rows - held_out},
        "schema": SCHEMA,
        "shards": [
            {
                "bytes": file.stat().st_size,
                "name": file.name,
                "rows": notes[file]["rows"],
                "sha256": file_digest(file),
            }
            for file in files
        ],
    }


def _drop_leftovers(out: Path, shards: int) -> None:
    """Removes what killed processes left."""
    names = {shard_name(number) for number in range(shards)}
    for file in out.glob("shard-*"):
        if file.name not in names:
            file.unlink(missing_ok=True)


def _report(manifest: Mapping[str, Any], out: Path) -> str:
    rows = manifest["rows"]
    lines = [f"{out}: {rows['train']} positions to learn from, {rows['held_out']} held out"]
    for family in manifest["families"]:
        line = f"  {family['name']}: {family['rows']}"
        if family["out_of_budget"]:
            line += f", {family['out_of_budget']} left out for budget"
        if family["too_large"]:
            line += f", {family['too_large']} left out for coordinates above 2^55"
        if family["positions"] < family["wanted"]:
            line += f" (no more than {family['positions']} of {family['wanted']} found)"
        lines.append(line)
    return "\n".join(lines)
