"""How a rate is measured: subjects that take turns, a median of several repeats."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol

import torch

WARM_UP = 32  # parallel steps: the games have spread over their lengths by then


class Subject(Protocol):
    """Something whose moves per second are measured.

    Attributes:
        games: moves that one parallel step makes, one per game.
        device: where it runs.
        threads: threads of torch that it is given; None if it has threads of its own.
        figures: what else can be said of it after the repeats, by name.
    """

    games: int
    device: str
    threads: int | None

    @property
    def figures(self) -> dict[str, float]: ...

    def steps(self, number: int) -> None: ...

    def wait(self) -> None: ...

    def close(self) -> None: ...


@dataclass
class Found:
    """The repeats of one subject, in moves per second."""

    rates: list[float]
    warm_up_seconds: float
    figures: dict[str, float]


def set_threads(threads: int | None) -> None:
    if threads is not None and threads != torch.get_num_threads():
        torch.set_num_threads(threads)


def timed(subject: Subject, number: int, cpu_time: bool = False) -> float:
    """Seconds of so many parallel steps; an accelerator is waited for at the two ends only.

    Args:
        subject: what takes the steps.
        number: of parallel steps.
        cpu_time: seconds that all threads of this process were at work, in place of the wall's.
    """
    now = time.process_time if cpu_time else time.perf_counter
    subject.wait()
    begin = now()
    subject.steps(number)
    subject.wait()
    return now() - begin


def warmed(subject: Subject, seconds: float, cpu_time: bool) -> tuple[int, float]:
    """Compiles, fills caches and brings the games to their usual lengths.

    Returns:
        How many parallel steps last about so many seconds, and the seconds of the first step, with
        all compiling in it.
    """
    first = timed(subject, 1, cpu_time)
    timed(subject, WARM_UP)
    number = 1
    while (taken := timed(subject, number, cpu_time)) < seconds / 8 and number < 1 << 24:
        number *= 2
    return max(1, math.ceil(number * seconds / max(taken, 1e-9))), first


def side_by_side(
    makers: Iterable[tuple[str, Callable[[], Subject]]],
    repeats: int,
    seconds: float,
    say: Callable[[str], None],
    cpu_time: bool = False,
) -> tuple[dict[str, Found], dict[str, str], dict[str, Any]]:
    """Measures several subjects that take turns, so that what else the machine does falls on all.

    Returns:
        What was found by name; why the others could not be measured; thread counts and devices.
    """
    subjects: dict[str, Subject] = {}
    numbers: dict[str, int] = {}
    found: dict[str, Found] = {}
    absent: dict[str, str] = {}
    try:
        for name, make in makers:
            say(f"{name}: warm-up")
            try:
                subject = make()
            except (ImportError, ValueError) as error:
                absent[name] = str(error).splitlines()[0]
                continue
            subjects[name] = subject
            set_threads(subject.threads)
            numbers[name], first = warmed(subject, seconds, cpu_time)
            found[name] = Found([], first, {})
        for repeat in range(repeats):
            for name, subject in subjects.items():
                say(f"{name}: repeat {repeat + 1} of {repeats}")
                set_threads(subject.threads)
                taken = timed(subject, numbers[name], cpu_time)
                found[name].rates.append(numbers[name] * subject.games / taken)
        for name, subject in subjects.items():
            found[name].figures = subject.figures
    finally:
        for subject in subjects.values():
            subject.close()
    about = {
        name: {"device": subject.device, "threads": subject.threads}
        for name, subject in subjects.items()
    }
    return found, absent, about
