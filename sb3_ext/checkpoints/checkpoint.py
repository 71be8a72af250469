"""Checkpoints: directories that are complete or not there, and that are read without pickle.

A state is a dictionary of *parts* by name (``policy``, ``buffer``, ``host.policy``); what a part
may hold is said in `sb3_ext.checkpoints.format`, what the files are and how they are written and
read in docs/checkpoints.md. A checkpoint that is being replaced is called ``<name>.old`` meanwhile,
and is found under that name.
"""

from __future__ import annotations

import os
import re
import shutil
import warnings
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from resgym.trust import regular_file
from sb3_ext.checkpoints.durable_files import rename_durably, sync, write_text_durably
from sb3_ext.checkpoints.format import (
    MANIFEST,
    NAME,
    STATE,
    CheckpointError,
    CheckpointWarning,
    read_manifest,
    read_part,
    read_state,
    split_parts,
    write_files,
)
from sb3_ext.runs.ranks import ALONE, Ranks

StrPath = str | os.PathLike[str]
PartNames = Collection[str] | Callable[[list[str]], Collection[str]]

_LATEST = "LATEST"
_NUMBERED = re.compile(r"checkpoint-(\d+)(\.old)?")


def checkpoint_name(number: int) -> str:
    """The name of a run's checkpoint after so many transitions or steps."""
    return f"checkpoint-{number:012d}"


def shard(path: Path, rank: int) -> Path:
    """Where one of several ranks keeps its state in a checkpoint; the first one at the top."""
    return path / f"rank-{rank}" if rank else path


def save_checkpoint(
    path: StrPath,
    state: Mapping[str, Any],
    *,
    latest: bool = True,
    keep_last: int | None = None,
    ranks: Ranks = ALONE,
) -> Path:
    """Writes a state as the directory ``path``, and returns it once everything is on the disk.

    Args:
        path: the directory, in a run folder that is made if needed; a checkpoint of that name is
            replaced. `load_checkpoint` finds the newest one whose name is of `checkpoint_name`.
        state: parts by name (letters, digits, ``_``, ``-`` and ``.``), see the module.
        latest: write the name into ``LATEST`` too; False for a copy that is kept for its quality.
        keep_last: how many numbered checkpoints stay in the run folder; None removes none.
        ranks: all of them call this, each with its own state; on the disk they become one.

    Raises:
        OSError: it could not be written, by any rank; earlier checkpoints are as they were.
        TypeError, ValueError: the state holds something that cannot be stored; nothing is written.
    """
    path = Path(path)
    if path.name.endswith((".old", ".tmp")) or not NAME.fullmatch(path.name):
        raise ValueError(f"path: {path.name!r} cannot be the name of a checkpoint")
    aside = path.with_name(path.name + ".tmp")
    with ranks.together():
        text, tensors = split_parts(state)
        if ranks.rank == 0:
            path.parent.mkdir(parents=True, exist_ok=True)
            _remove(aside)
            aside.mkdir()
    try:
        with ranks.together():
            own = shard(aside, ranks.rank)
            own.mkdir(exist_ok=True)
            write_files(own, text, tensors)
        with ranks.together():
            if ranks.rank == 0:
                if ranks.size > 1:
                    sync(aside)  # its folders were made by others
                _publish(aside, path, latest, keep_last)
    except BaseException:
        if ranks.rank == 0:
            _remove(aside)
        raise
    return path


def _publish(aside: Path, path: Path, latest: bool, keep_last: int | None) -> None:
    replaced = path.with_name(path.name + ".old")
    if path.exists():
        _remove(replaced)
        rename_durably(path, replaced)
    rename_durably(aside, path)
    _remove(replaced)
    if latest:
        write_text_durably(path.parent / _LATEST, path.name + "\n")
    if keep_last is not None:
        prune_checkpoints(path.parent, keep_last)


def _remove(folder: Path) -> None:
    if folder.is_dir() and not folder.is_symlink():
        shutil.rmtree(folder)
    else:
        folder.unlink(missing_ok=True)


def is_checkpoint(path: StrPath) -> bool:
    """Whether this is the directory of a checkpoint, valid or not."""
    return (Path(path) / MANIFEST).is_file()


def list_checkpoints(run_dir: StrPath) -> list[Path]:
    """The numbered checkpoints of a run, newest first, damaged ones too; ``LATEST`` leads."""
    run_dir = Path(run_dir)
    found = []
    for entry in run_dir.iterdir() if run_dir.is_dir() else ():
        match = _NUMBERED.fullmatch(entry.name)
        if match and entry.is_dir() and not _was_replaced(entry):
            found.append((int(match[1]), match[2] is None, entry))
    ordered = [entry for *_, entry in sorted(found, reverse=True)]
    with suppress(OSError, ValueError):
        latest = regular_file(run_dir / _LATEST, _LATEST)
        named = run_dir / latest.read_text(encoding="utf-8").strip()
        if named in ordered:
            ordered.remove(named)
            ordered.insert(0, named)
    return ordered


def _was_replaced(path: Path) -> bool:
    return path.suffix == ".old" and path.with_suffix("").exists()


def prune_checkpoints(run_dir: StrPath, keep_last: int) -> None:
    """Removes all numbered checkpoints but the newest, and what interrupted writers left behind.

    Args:
        run_dir: no other process may be writing into it.
        keep_last: how many stay, at least 1; two allow going back when one is damaged.
    """
    if keep_last < 1:
        raise ValueError(f"keep_last must be at least 1, got {keep_last}")
    run_dir = Path(run_dir)
    for path in list(run_dir.glob("checkpoint-*.tmp")):
        _remove(path)
    replaced = [path for path in run_dir.glob("checkpoint-*.old") if _was_replaced(path)]
    for path in [*list_checkpoints(run_dir)[keep_last:], *replaced]:
        # Renamed first: a removal that is interrupted must not leave half a checkpoint.
        aside = path.with_name(path.name + ".tmp")
        rename_durably(path, aside)
        _remove(aside)


def load_checkpoint(path: StrPath, parts: PartNames | None = None) -> dict[str, Any]:
    """Reads what `save_checkpoint` wrote.

    Args:
        path: a checkpoint, or a run folder for its newest valid one. Damaged checkpoints of a run
            folder are passed over with a `CheckpointWarning`.
        parts: the parts wanted, or a function that chooses them from the names there are; the files
            of others are not opened. None reads all.

    Returns:
        The state, its tensors on the CPU; tuples have become lists.

    Raises:
        CheckpointError: no checkpoint, a damaged one, one of a newer schema, or a part is missing.
    """
    return read_checkpoint(path, parts)[1]


def read_checkpoint(
    path: StrPath, parts: PartNames | None = None, ranks: Ranks = ALONE
) -> tuple[Path, dict[str, Any]]:
    """As `load_checkpoint`; also returns the directory that was read.

    Of several ranks each reads its own state, of the newest checkpoint that is valid for all.
    """
    path = Path(path)
    inside = path / "checkpoints"  # of a run that a driver made
    if inside.is_dir() and not is_checkpoint(path) and not list_checkpoints(path):
        path = inside
    candidates = ranks.exchange(list_checkpoints(path))[0]
    if is_checkpoint(path) or not candidates:
        return path, _load(shard(path, ranks.rank), parts)
    reasons: list[str] = []
    for candidate in candidates:
        reason, state = None, {}
        try:
            state = _load(shard(candidate, ranks.rank), parts)
        except CheckpointError as error:
            reason = str(error)
        if found := [each for each in ranks.exchange(reason) if each is not None]:
            reasons += found
            continue
        for reason in reasons:
            warnings.warn(f"{reason}; going back to {candidate}", CheckpointWarning, stacklevel=2)
        return candidate, state
    raise CheckpointError(
        f"{path}: there is no valid checkpoint in this folder ({'; '.join(reasons)})"
    )


def _load(path: Path, parts: PartNames | None) -> dict[str, Any]:
    if not is_checkpoint(path):
        raise CheckpointError(f"{path}: there is no checkpoint here ({MANIFEST} is missing)")
    files = read_manifest(path)
    plain = read_state(path, files)
    if callable(parts):
        parts = parts(list(plain))
    wanted = list(plain) if parts is None else list(parts)
    for part in wanted:
        if part not in plain:
            raise CheckpointError(f"{path / STATE}: parts: no {part!r}, it has {sorted(plain)}")
    return {part: read_part(path, part, plain[part], files) for part in wanted}
