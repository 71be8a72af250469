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
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context, parent_process
from multiprocessing.connection import wait as wait_for
from pathlib import Path
from typing import Any, NamedTuple, get_args

import numpy as np
import torch
from tqdm import tqdm

from resgym.solver.labels import OUT_OF_BUDGET, SOLVED, TOO_LARGE
from resgym.solver.solution import Objective
from sb3_ext.checkpoints.durable_files import file_digest, write_text_durably
from sb3_ext.config.sections import ConfigError
from sb3_ext.runs.folder import RunFolder
from sb3_ext.runs.provenance import provenance
from sb3_ext.studies.json_files import digest_of, write_json
from sb3_ext.studies.teach import dataset, drawing
from sb3_ext.studies.teach.dataset import MANIFEST, PLAN, SEATS, Dataset, load_dataset, shard_name
from sb3_ext.studies.teach.drawing import Plan, Positions, draw_positions, labeller_of
from sb3_ext.studies.teach.families import read_teach_config
from sb3_ext.training.command_line import add_options

__all__ = ["Plan", "add_arguments", "check_plan", "generate", "prepared", "run"]

MAX_POSITIONS = 10**8


class _Job(NamedTuple):
    """One shard to be labelled."""

    file: Path
    plan: dict[str, Any]
    positions: Positions

    def digest(self) -> str:
        """Equal for equal content."""
        return digest_of(digest_of(self.plan), self.file.name, *vars(self.positions).values())


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
        "--held-out",
        type=float,
        default=0.05,
        help="share of the positions, by canonical form, for measuring only (default 0.05)",
    )
    add_options(parser, "--workers", "--no-progress")


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
    """Makes a dataset in the folder ``out``, or what is missing of it; returns the manifest.

    Raises:
        ValueError: an option is out of range, a family yields no position, the folder holds
            something else, or another process is at work in it.
        OSError: it could not be written.
        RuntimeError: a process died.
    """
    out, begin = Path(out), time.perf_counter()
    check_plan(plan, workers)
    content, size = plan.to_dict(), drawing.SHARD_ROWS
    _open_folder(out, content)
    with RunFolder(out) as folder:
        drawn, families = draw_positions(plan)
        jobs = [
            _Job(out / shard_name(number), content, drawn.rows(slice(first, first + size)))
            for number, first in enumerate(range(0, len(drawn.count), size))
        ]
        notes: dict[Path, dict[str, Any]] = {}
        for job in jobs:
            found = dataset.read_shard_notes(job.file)
            if found is not None and found.get("job") == job.digest():
                notes[job.file] = found
        open_jobs = [job for job in jobs if job.file not in notes]
        kept = len(drawn.count) - sum(len(job.positions.count) for job in open_jobs)
        with tqdm(
            total=len(drawn.count), initial=kept, unit="position", disable=not progress
        ) as bar:
            for job, found in _labelled(open_jobs, workers):
                notes[job.file] = found
                bar.update(len(job.positions.count))
        files = [job.file for job in jobs]
        manifest = _manifest(content, files, [notes[file] for file in files], families)
        about = {
            "seconds": round(time.perf_counter() - begin, 2),
            "shards_kept": len(jobs) - len(open_jobs),
            "workers": workers,
        }
        folder.write_json("provenance.json", {**provenance(plan.seed, command), **about})
        for leftover in set(out.glob("shard-*")) - set(files):  # of processes that were killed
            leftover.unlink(missing_ok=True)
        write_text_durably(out / MANIFEST, dataset.manifest_text(manifest))
        return manifest


def prepared(
    plan: Plan,
    out: Path,
    *,
    workers: int = 1,
    progress: bool = False,
    command: Sequence[str] = (),
) -> Dataset:
    """The dataset of a plan: read if it is finished, otherwise generated first.

    Raises:
        ValueError, OSError, RuntimeError: as for `generate`; the folder of another plan is refused.
    """
    if (out / MANIFEST).is_file():
        _open_folder(out, plan.to_dict())
    else:
        generate(plan, out, workers=workers, progress=progress, command=command)
    return load_dataset(out, dimension=plan.config.dimension, seat=plan.seat)


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
        wanted = json.loads(json.dumps(content))
        if found != wanted:
            found = found if isinstance(found, dict) else {}
            names = [key for key in wanted if found.get(key) != wanted[key]]
            raise ConfigError(
                f"out: {out} holds a dataset with another {', '.join(names)}; take another folder"
            )
        return
    if out.is_dir() and any(out.iterdir()):
        raise ConfigError(f"out: {out} is not empty and holds no dataset; take another folder")
    out.mkdir(parents=True, exist_ok=True)
    write_json(file, content)


def _label(job: _Job) -> dict[str, Any]:
    """Labels one shard and writes it; returns its notes."""
    plan, positions = job.plan, job.positions
    labeller = labeller_of(
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

    def left_out(status: int) -> list[int]:
        """How many positions of each family have this status."""
        family = positions.family[labels.status == status]
        return np.bincount(family, minlength=len(plan["config"]["families"])).tolist()

    notes = {
        "held_out": int(arrays["held_out"].sum()),
        "job": job.digest(),
        "out_of_budget": left_out(OUT_OF_BUDGET),
        "rows": int(good.sum()),
        "too_large": left_out(TOO_LARGE),
    }
    dataset.write_shard(job.file, arrays, notes)
    return notes


def _labelled(jobs: Sequence[_Job], workers: int) -> Iterator[tuple[_Job, dict[str, Any]]]:
    """Labels shards; gives their notes."""
    if workers == 1 or len(jobs) < 2:
        yield from ((job, _label(job)) for job in jobs)
        return
    # A fresh interpreter each: a fork of a process with threads of torch can hang.
    pool = ProcessPoolExecutor(
        min(workers, len(jobs)), mp_context=get_context("spawn"), initializer=_start_worker
    )
    try:
        yield from zip(jobs, pool.map(_label, jobs), strict=True)
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
    assert parent is not None

    def follow() -> None:
        wait_for([parent.sentinel])
        os._exit(1)

    threading.Thread(target=follow, daemon=True).start()


def _manifest(
    content: Mapping[str, Any],
    files: Sequence[Path],
    notes: Sequence[Mapping[str, Any]],
    families: Sequence[Mapping[str, Any]],
) -> dict[str, Any]:
    rows = sum(each["rows"] for each in notes)
    held_out = sum(each["held_out"] for each in notes)
    counted = []
    for place, family in enumerate(families):
        left_out = {
            reason: sum(each[reason][place] for each in notes)
            for reason in ("out_of_budget", "too_large")
        }
        counted.append({**family, **left_out, "rows": family["positions"] - sum(left_out.values())})
    return {
        "families": counted,
        "plan": dict(content),
        "rows": {"held_out": held_out, "train": rows - held_out},
        "schema": dataset.SCHEMA,
        "shards": [
            {
                "bytes": file.stat().st_size,
                "name": file.name,
                "rows": each["rows"],
                "sha256": file_digest(file),
            }
            for file, each in zip(files, notes, strict=True)
        ],
    }


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
