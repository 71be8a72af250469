"""Folders of models and of runs, as the server lists and reads them: nothing outside is reached."""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

DEPTH = 4
"""Folders below the named one that are looked into."""

MAX_FOLDERS = 5_000
MAX_LISTED = 300
MAX_LINES = 600
"""Lines of a log that a curve is made of; of a longer one so many, evenly spaced."""

MAX_LINE = 100_000
MAX_WHOLE = 4_000_000
"""Bytes of a file that is read as a whole."""

MAX_CURVES = 400
MANIFEST = "manifest.json"
LOGS = ("rho.json", "evaluations.jsonl", "metrics.jsonl")


def _folders(top: Path) -> Iterator[tuple[Path, list[str]]]:
    """Folders with the names of their plain files, in order; links are not followed.

    What has a name that no link can hold, such as bytes that are no UTF-8, is left out.
    """
    for number, (folder, below, files) in enumerate(os.walk(top)):
        here = Path(folder)
        depth = len(here.relative_to(top).parts)
        if number >= MAX_FOLDERS:
            return
        shown = sorted(n for n in below if not n.startswith(".") and n.isprintable())
        below[:] = shown if depth < DEPTH else []
        yield here, [name for name in files if name.isprintable() and _is_plain(here / name)]


def _is_plain(path: Path) -> bool:
    """Neither a link nor a pipe, which one would wait for."""
    return path.is_file() and not path.is_symlink()


def list_models(top: Path | None) -> dict[str, Path]:
    """Files ``.zip`` and folders of checkpoints below a folder, by their paths in it."""
    if top is None:
        return {}
    found = []
    for folder, files in _folders(top):
        found += [folder] if MANIFEST in files and folder != top else []
        found += [folder / name for name in sorted(files) if name.endswith(".zip")]
    return {path.relative_to(top).as_posix(): path for path in found[:MAX_LISTED]}


def list_runs(top: Path) -> dict[str, Path]:
    """Folders that hold what a run measured, by their paths below a folder."""
    found = {
        folder.relative_to(top).as_posix(): folder
        for folder, files in _folders(top)
        if set(LOGS) & set(files)
    }
    return dict(list(found.items())[:MAX_LISTED])


def read_curves(folder: Path, logs: Sequence[str] = LOGS) -> dict[str, dict[str, list[Any]]]:
    """The curves of a run by name, ``x`` and ``y``: rho first, then what training logged.

    Of an evaluation they are ``rho/...``, with a ``band``, the 95 % interval of each value or None,
    if there is any; and ``share/...``: of the optimum, the least. Lines that are damaged or only
    half written are left out, and logs that are links; a value that is no finite number is None.
    """
    curves: dict[str, dict[str, list[Any]]] = {}

    def add(place: object, values: object, prefix: str = "") -> None:
        at = _finite(place)
        if at is None or not isinstance(values, Mapping):
            return
        for name, value in values.items():
            if isinstance(value, (int, float)) and (
                prefix + name in curves or len(curves) < MAX_CURVES
            ):
                curve = curves.setdefault(prefix + name, {"x": [], "y": []})
                curve["x"].append(at)
                curve["y"].append(_finite(value))

    for log in logs:
        for entry in _entries(folder / log):
            if log == "rho.json":
                add(entry.get("updates"), entry.get("rho"), "rho/")
                share, intervals = (
                    each if isinstance(each := entry.get(key), Mapping) else {}
                    for key in ("share", "interval_95")
                )
                for name, curve in curves.items():
                    if name.startswith("rho/"):
                        band = _pair(intervals.get(name.removeprefix("rho/")))
                        missing = len(curve["x"]) - len(curve.setdefault("band", []))
                        curve["band"] += [band] * missing
                lows = {name: each[0] for name, each in share.items() if _pair(each)}
                add(entry.get("updates"), lows, "share/")
            elif log == "evaluations.jsonl":
                add(entry.get("step"), entry.get("values"), "rho/")
            else:
                add(entry.pop("step", None), entry)
    return curves


def scoreboard(top: Path) -> list[dict[str, Any]]:
    """A row for every run: ``name``, ``age`` in seconds, ``step``, the last ``rho`` by opponent."""
    rows = []
    for name, folder in list_runs(top).items():
        files = [folder / log for log in LOGS if (folder / log).is_file()]
        newest = max((file.stat().st_mtime for file in files), default=0.0)
        entries = _entries(folder / "rho.json") or _entries(folder / "evaluations.jsonl", last=True)
        last = entries[-1] if entries else {}
        values = last.get("rho", last.get("values"))
        shown = values if isinstance(values, Mapping) else {}
        rows.append(
            {
                "name": name,
                "age": max(0, round(time.time() - newest)),
                "step": _finite(last.get("updates", last.get("step"))),
                "rho": {str(key): _finite(value) for key, value in list(shown.items())[:20]},
            }
        )
    return rows


def _finite(value: object) -> float | None:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return value if is_number and math.isfinite(value) else None  # type: ignore[arg-type,return-value]


def _pair(value: object) -> list[Any] | None:
    """Two finite numbers, or None."""
    ends = [_finite(end) for end in value] if isinstance(value, list) else []
    return ends if len(ends) == 2 and None not in ends else None


def _entries(path: Path, last: bool = False) -> list[dict[str, Any]]:
    """The objects of a log, ascending; of a file ``.jsonl`` the last one alone if asked for."""
    try:
        if not _is_plain(path):
            return []
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            if path.suffix == ".json":
                texts = [file.read(MAX_WHOLE)]
            elif last or size > MAX_WHOLE:
                number = 1 if last else MAX_LINES
                texts = _spread_lines(file, size, number)
            else:
                texts = file.read(size).splitlines()
    except OSError:
        return []
    found: list[Any] = []
    for text in texts:
        try:
            data = json.loads(text)
        except (ValueError, RecursionError):
            continue
        found += data if isinstance(data, list) else [data]
    step = max(1, -(-len(found) // MAX_LINES))
    kept = found[::step] if (len(found) - 1) % step == 0 else [*found[::step], found[-1]]
    return [entry for entry in kept if isinstance(entry, dict)]


def _spread_lines(file: Any, size: int, number: int) -> list[bytes]:
    """So many lines, evenly spaced over a file, the last whole one among them."""
    found: dict[int, bytes] = {}
    for part in range(1, number):
        file.seek(size * part // number)
        file.readline(MAX_LINE)
        found[file.tell()] = file.readline(MAX_LINE)
    start = max(0, size - 2 * MAX_LINE)
    file.seek(start)
    lines = file.read(2 * MAX_LINE).splitlines()
    found[size] = next((line for line in reversed(lines) if line.endswith(b"}")), b"")
    return [found[place] for place in sorted(found)]
