"""Draws positions from families, labels them with the solver and writes a dataset.

Every position gets the set of all optimal moves of a seat, and its value. Positions that differ
only by a shift, a factor or an order of axes and points are one, and stand on one side of the split
into training and held-out part. A position for which the solver's budget is not enough is left out
and counted. Finished shards stay when the command is stopped or killed: the same command goes on
with the rest. The result depends on the options but neither on --workers nor on --actors, which
take their place.

  python -m sb3_ext.teach generate --out runs/teach/small --config small --positions 2000
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context, parent_process
from multiprocessing.connection import wait as wait_for
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from tqdm import tqdm

from resgym.files import sealed
from resgym.solver.labels import OUT_OF_BUDGET, SOLVED, TOO_LARGE, Labeller
from resgym.trust import import_modules, imported_modules
from sb3_ext.checkpoints.durable_files import file_digest
from sb3_ext.checkpoints.format import errors_named
from sb3_ext.cluster.pieces import Spread, spreading
from sb3_ext.cluster.stream import LONGEST_WAIT
from sb3_ext.config.sections import ConfigError
from sb3_ext.runs.command_line import add_options
from sb3_ext.runs.files import digest_of, write_json
from sb3_ext.runs.folder import LOCK, RunFolder
from sb3_ext.runs.provenance import provenance
from sb3_ext.studies.teach import dataset, drawing
from sb3_ext.studies.teach.dataset import MANIFEST, PLAN, Dataset, load_dataset
from sb3_ext.studies.teach.drawing import Plan, draw_positions

__all__ = ["Plan", "add_arguments", "generate", "prepared", "run"]


class _Job(NamedTuple):
    """One shard to be labelled.

    ``positions`` as of `draw_positions`; ``digest`` is equal for equal content.
    """

    file: Path
    plan: Plan
    positions: dict[str, np.ndarray]
    digest: str


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    add = parser.add_argument
    add("--out", type=Path, required=True, help="folder of the dataset")
    families = "families: a YAML file, or one of configs/teach by its name (default %(default)s)"
    add("--config", default="default", help=families)
    add("--positions", type=int, default=100_000, help="positions to draw (default %(default)s)")
    add("--seat", default="host", help="whose moves: host (default) or agent")
    add("--objective", default="depth", help="what is optimal: depth (default), nodes or leaves")
    add("--seed", type=int, default=0, help="fixes the dataset (default %(default)s)")
    held_out = "share of the positions, by canonical form, for measuring only (default %(default)s)"
    add("--held-out", type=float, default=0.05, help=held_out)
    student = "a trained player, which families call student; its mistakes are drawn"
    add("--student", type=Path, metavar="RUN", help=student)
    add_options(parser, "--workers", "--actors", "--timeout-s", "--no-progress")


def run(args: argparse.Namespace, command: Sequence[str]) -> int:
    """Runs the command; see `sb3_ext.studies.teach.cli.main`."""
    plan = Plan.read({name: getattr(args, name) for name in Plan.model_fields})
    how = (args.workers, not args.no_progress, command, args.actors, args.timeout_s)
    manifest = generate(plan, args.out, *how)
    print(_report(manifest, args.out))
    return 0


def generate(
    plan: Plan,
    out: str | Path,
    workers: int = 1,
    progress: bool = False,
    command: Sequence[str] = (),
    actors: int = 0,
    timeout_s: float = LONGEST_WAIT,
    check: Callable[[], None] = lambda: None,
) -> dict[str, Any]:
    """Makes a dataset in the folder ``out``, or what is missing of it; returns the manifest.

    Labels come from ``workers`` processes, or from ``actors`` on a Ray cluster, see `spreading`.
    ``check`` is called after each shard; what it raises ends the work, and finished shards stay.

    Raises:
        ValueError: an option is out of range, a family yields no position, the folder holds
            something else, or another process is at work in it.
        OSError: it could not be written.
        RuntimeError: a process died.
    """
    out, begin = Path(out), time.perf_counter()
    if not 1 <= workers <= 256:
        raise ConfigError(f"workers must be in 1..256, got {workers}")
    content, size = plan.content(), drawing.SHARD_ROWS
    with RunFolder(out) as folder, spreading(actors, timeout_s=timeout_s) as spread:
        _check_folder(out, content)
        write_json(out / PLAN, content)
        drawn, families = draw_positions(plan)
        total = len(drawn["count"])
        jobs = []
        for number, first in enumerate(range(0, total, size)):
            file = out / f"shard-{number:05d}.safetensors"
            positions = {name: array[first : first + size] for name, array in drawn.items()}
            digest = digest_of(digest_of(content), file.name, *positions.values())
            jobs.append(_Job(file, plan, positions, digest))
        notes = {job.file: dataset.read_shard_notes(job.file) for job in jobs}
        open_jobs = [job for job in jobs if notes[job.file].get("job") != job.digest]
        kept = total - sum(len(job.positions["count"]) for job in open_jobs)
        with tqdm(total=total, initial=kept, unit="position", disable=not progress) as bar:
            for job, found in _labelled(open_jobs, workers, spread):
                notes[job.file] = found
                bar.update(len(job.positions["count"]))
                check()
        manifest = _manifest(content, notes, families)
        about = {
            "seconds": round(time.perf_counter() - begin, 2),
            "shards_kept": len(jobs) - len(open_jobs),
            "actors": actors,
            "workers": workers,
        }
        folder.write_json("provenance.json", {**provenance(plan.seed, command), **about})
        for leftover in set(out.glob("shard-*")) - notes.keys():  # of processes that were killed
            leftover.unlink(missing_ok=True)
        write_json(out / MANIFEST, sealed(manifest))
        return manifest


def prepared(plan: Plan, out: Path, *how: Any, **named: Any) -> Dataset:
    """The dataset of a plan: read if it is finished, otherwise generated first.

    Arguments and errors are those of `generate`; the folder of another plan is refused.
    """
    if (out / MANIFEST).is_file():
        _check_folder(out, plan.content())
    else:
        generate(plan, out, *how, **named)
    return load_dataset(out, dimension=plan.config.dimension, seat=plan.seat)


def _check_folder(out: Path, content: Mapping[str, Any]) -> None:
    """Refuses a folder that holds something else than this dataset, or the beginning of it."""
    file = out / PLAN
    if not file.is_file():
        if any(path.name != LOCK for path in out.iterdir()):
            raise ConfigError(f"out: {out} is not empty and holds no dataset; take another folder")
        return
    with errors_named(f"{file}: cannot be read", ConfigError):
        found = json.loads(file.read_text(encoding="utf-8"))
    found = found if isinstance(found, dict) else {}
    wanted = json.loads(json.dumps(content))
    names = [key for key in wanted if found.get(key) != wanted[key]]
    if names:
        raise ConfigError(
            f"out: {out} holds a dataset with another {', '.join(names)}; take another folder"
        )


def _label(job: _Job) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """What a shard holds, and its notes."""
    config, positions = job.plan.config, job.positions
    # A new table for each: what the budget is enough for must not depend on the shards before.
    size, budget = config.max_num_points, config.budget
    labeller = Labeller(config.dimension, size, job.plan.objective, budget=budget)
    host = job.plan.seat == "host"
    given = (positions["points"], positions["count"])
    labels = labeller.host(*given) if host else labeller.agent(*given, positions["coords"])
    good = labels.status == SOLVED
    arrays = {name: field[good] for name, field in positions.items()}
    if host:
        del arrays["coords"]
    arrays |= {"optimal": labels.optimal[good], "value": labels.value[good]}

    def left_out(status: int) -> list[int]:
        """How many positions of each family have this status."""
        family = positions["family"][labels.status == status]
        return np.bincount(family, minlength=len(config.families)).tolist()

    notes = {
        "held_out": int(arrays["held_out"].sum()),
        "job": job.digest,
        "out_of_budget": left_out(OUT_OF_BUDGET),
        "rows": int(good.sum()),
        "too_large": left_out(TOO_LARGE),
    }
    return arrays, notes


def _shard(job: _Job) -> dict[str, Any]:
    """Labels one shard and writes it; returns its notes."""
    arrays, notes = _label(job)
    dataset.write_shard(job.file, arrays, notes)
    return notes


def _labelled(
    jobs: Sequence[_Job], workers: int, spread: Spread
) -> Iterator[tuple[_Job, dict[str, Any]]]:
    """Labels shards; gives their notes."""
    if spread is not map:  # actors may be where the folder is not
        for job, (arrays, notes) in zip(jobs, spread(_label, jobs), strict=True):
            dataset.write_shard(job.file, arrays, notes)
            yield job, notes
        return
    if workers == 1 or len(jobs) < 2:
        yield from ((job, _shard(job)) for job in jobs)
        return
    # A fresh interpreter each: a fork of a process with threads of torch can hang.
    pool = ProcessPoolExecutor(
        min(workers, len(jobs)),
        mp_context=get_context("spawn"),
        initializer=_start_worker,
        initargs=(imported_modules(),),
    )
    try:
        yield from zip(jobs, pool.map(_shard, jobs), strict=True)
    except BrokenProcessPool:
        raise RuntimeError(
            "a labelling process died (of too little memory?); finished shards are kept, the same "
            "command goes on, --workers 1 needs least memory"
        ) from None
    finally:
        pool.shutdown(cancel_futures=True)


def _start_worker(modules: Sequence[str]) -> None:
    """Leaves interrupts to the main process, and ends with it even if that is killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    torch.set_num_threads(1)
    import_modules(modules)
    parent = parent_process()
    assert parent is not None

    def follow() -> None:
        wait_for([parent.sentinel])
        os._exit(1)

    threading.Thread(target=follow, daemon=True).start()


def _manifest(
    content: Mapping[str, Any],
    notes: Mapping[Path, Mapping[str, Any]],
    families: Sequence[dict[str, Any]],
) -> dict[str, Any]:
    for place, family in enumerate(families):
        family["rows"] = family["positions"]
        for reason in ("out_of_budget", "too_large"):
            family[reason] = sum(each[reason][place] for each in notes.values())
            family["rows"] -= family[reason]
    held_out = sum(each["held_out"] for each in notes.values())
    rows = sum(each["rows"] for each in notes.values())
    return {
        "families": families,
        "plan": content,
        "rows": {"held_out": held_out, "train": rows - held_out},
        "schema": dataset.SCHEMA,
        "shards": [
            {
                "bytes": file.stat().st_size,
                "name": file.name,
                "rows": each["rows"],
                "sha256": file_digest(file),
            }
            for file, each in notes.items()
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
            line += f", {family['too_large']} left out for coordinates above 2^28"
        if family["positions"] < family["wanted"]:
            line += f" (no more than {family['positions']} of {family['wanted']} found)"
        lines.append(line)
    return "\n".join(lines)
