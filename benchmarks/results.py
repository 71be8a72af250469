"""The file of results: what was measured, on what, when; it grows with every measurement."""

from __future__ import annotations

import json
import os
import platform
import statistics
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from sb3_ext.runs.files import commit, versions, write_durably

SCHEMA = 1
ROOT = Path(__file__).resolve().parents[1]
# One case of these is measured once; measured again, it takes the place of the old one.
KEY = ("rate", "dimension", "points", "games", "device", "subject", "threads")


class ResultsError(ValueError):
    """A file of results that cannot be read or continued."""


def machine() -> dict[str, Any]:
    """What the figures depend on, beside the code."""
    processor = platform.processor() or platform.machine()
    about, memory = Path("/proc/cpuinfo"), None
    if about.exists():
        names = [
            line.split(":", 1)[1].strip()
            for line in about.read_text().splitlines()
            if line.startswith("model name")
        ]
        processor = names[0] if names else processor
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        memory = round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30)
    return {
        "accelerator": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
        "cores": os.cpu_count(),
        "memory_gib": memory,
        "processor": processor,
        "system": f"{platform.system()} {platform.machine()}",
    }


def load_average() -> float | None:
    """Processes that wanted to run, on average over the last minute."""
    return round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None


class Results:
    """Results of one commit on one machine, written to a file whenever some are added.

    Args:
        path: the file. If it holds results of the same commit, machine and versions, they are
            kept and added to.
        settings: how long and how often each case is measured; what all cases have in common.

    Raises:
        ResultsError: the file holds something else.
    """

    def __init__(self, path: Path, settings: Mapping[str, Any]) -> None:
        self.path = path
        self.content: dict[str, Any] = {
            "schema": SCHEMA,
            "commit": commit(),
            "machine": machine(),
            "versions": versions(),
            "settings": dict(settings),
            "sittings": [],
            "cases": [],
        }
        if path.exists():
            old = read(path)
            for name in ("commit", "machine", "versions", "settings"):
                if old[name] != self.content[name]:
                    raise ResultsError(
                        f"--json: {path} was measured with {name} {old[name]}, this is "
                        f"{self.content[name]}; name another file or remove it"
                    )
            self.content["sittings"], self.content["cases"] = old["sittings"], old["cases"]
        self.content["sittings"].append(
            {
                "begun": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
                "load_before": load_average(),
                "load_after": None,
                "seconds": 0.0,
            }
        )
        self._begun = time.monotonic()

    @property
    def cases(self) -> list[dict[str, Any]]:
        return self.content["cases"]

    def add(self, cases: list[dict[str, Any]]) -> None:
        """Adds cases, or measures them anew, and writes the file."""
        new = {tuple(case[name] for name in KEY) for case in cases}
        kept = [case for case in self.cases if tuple(case[name] for name in KEY) not in new]
        self.content["cases"] = kept + cases
        self.write()

    def write(self) -> None:
        sitting = self.content["sittings"][-1]
        sitting["load_after"] = load_average()
        sitting["seconds"] = round(time.monotonic() - self._begun, 1)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        write_durably(self.path, json.dumps(self.content, indent=1) + "\n")


def case(about: Mapping[str, Any], rates: list[float], **more: Any) -> dict[str, Any]:
    """One measured case as plain data, rates in moves per second."""
    return {
        **about,
        "median": statistics.median(rates),
        "min": min(rates),
        "max": max(rates),
        "repeats": [round(rate, 1) for rate in rates],
        **more,
    }


def read(path: Path) -> dict[str, Any]:
    """The content of a file of results.

    Raises:
        ResultsError: it is missing, or none.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ResultsError(f"results: {path} cannot be read ({error.strerror})") from error
    except ValueError as error:
        raise ResultsError(f"results: {path} is no JSON ({error})") from error
    if not isinstance(content, dict) or content.get("schema") != SCHEMA:
        raise ResultsError(f"results: {path} is no file of benchmark results (schema {SCHEMA})")
    needed = {"cases", "commit", "machine", "settings", "sittings", "versions"}
    if missing := sorted(needed - content.keys()):
        raise ResultsError(f"results: {path} lacks {', '.join(missing)}")
    return content
