"""Moves per second of a vector environment."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from itertools import cycle
from typing import Any

import torch
from torch.utils.benchmark import Timer

from resgym.envs.environments import HironakaVectorEnv
from resgym.game.spec import check_integer
from resgym.solver.search import Search, compiled
from resgym.texts import Data, Rows, Table


@dataclass(frozen=True)
class BenchResult(Table):
    """Rates by batch size.

    Attributes:
        settings: settings of the environment, with threads and repeats.
        rates: for each number of games the rates of all repeats, in moves per second.
    """

    settings: Data
    rates: dict[int, list[float]]

    def to_dict(self) -> Data:
        """Return plain data for JSON: median, least and largest rate by number of games."""
        summaries = {
            str(size): {"median": statistics.median(rates), "min": min(rates), "max": max(rates)}
            for size, rates in self.rates.items()
        }
        return {"settings": self.settings, "moves_per_second": summaries}

    def table_rows(self) -> Rows:
        """See `Table`: moves per second."""
        rates = self.to_dict()["moves_per_second"].items()
        rows = [[size, *(f"{rate:,.0f}" for rate in each.values())] for size, each in rates]
        return [["games", "moves/s (median)", "min", "max"], *rows]

    def __str__(self) -> str:
        settings = ", ".join(f"{key}={value}" for key, value in self.settings.items())
        return f"{settings}\n{super().__str__()}"


def _moves_per_second(env: Any, repeats: int, seconds: float) -> list[float]:
    """Measure whole moves (host and agent) a second through ``step``, resets included."""
    number = int(env.single_action_space.n)
    generator = torch.Generator(device=env.device).manual_seed(0)
    # Actions are drawn beforehand: the rate is the environment's alone.
    shape = (64, env.num_envs)
    actions = torch.randint(number, shape, generator=generator, device=env.device).unbind()
    env.reset(seed=0)
    timer = Timer(
        "env.step(next(actions))",
        "import gc; gc.enable()",  # as in any other program
        globals={"env": env, "actions": cycle(actions)},
        num_threads=torch.get_num_threads(),
    )
    timer.timeit(32)
    steps = (timer.blocked_autorange(min_run_time=seconds) for _ in range(repeats))
    return [env.num_envs / each.mean for each in steps]


def bench(
    *,
    batch_sizes: Sequence[int] = (1, 64, 1024, 4096, 16384),
    dimension: int = 3,
    max_num_points: int = 20,
    device: str = "cpu",
    backend: str = "auto",
    repeats: int = 5,
    seconds: float = 1.0,
    progress: Callable[[str], None] = lambda line: None,
) -> BenchResult:
    """Measure random play of both players for several numbers of parallel games.

    ``progress`` is called with a line before each number of games.
    """
    check_integer("repeats", repeats, 1)
    if not seconds > 0:
        raise ValueError(f"seconds must be above 0, got {seconds}")
    settings: Data = {
        "dimension": dimension,
        "max_num_points": max_num_points,
        "device": device,
        "backend": backend,
    }
    # By its own name a backend compiles at once; 'auto' may be the reference for a while.
    settings["backend"] = HironakaVectorEnv(seat="host", **settings).backend.name
    rates = {}
    for size in batch_sizes:
        number = check_integer("batch_sizes", size, 1)
        progress(f"{number} games at once: {repeats} times {seconds:g} s")
        env = HironakaVectorEnv(number, seat="host", **settings)
        rates[size] = _moves_per_second(env, repeats, seconds)
    return BenchResult({**settings, "threads": torch.get_num_threads(), "repeats": repeats}, rates)


@dataclass(frozen=True)
class Compiled:
    """The seconds that compiling has taken."""

    seconds: float

    def to_dict(self) -> Data:
        """Return plain data for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        return f"compiled in {self.seconds:.1f} s"


def load_search() -> None:
    """Load the compiled search, or compile it; ImportError without numba."""
    search = Search("depth", 3, 6, compiled())
    search.allow(10_000)
    (number,) = search.numbers([(0, 5, 19), (1, 17, 2), (4, 9, 8), (7, 3, 12), (13, 6, 1)])
    search.value(number)


def compile_ahead() -> Compiled:
    """Compile the games and the solver for this processor, as far as that is not done."""
    begin = time.perf_counter()
    for dimension in (3, 4):  # three axes have code of their own
        env = HironakaVectorEnv(2, seat="host", dimension=dimension, backend="numba")
        env.reset(seed=0)
        env.step(torch.zeros(2, dtype=torch.int64))
        every, axis = torch.ones(2, dimension, dtype=torch.bool), torch.zeros(2, dtype=torch.int64)
        env.backend.move(env.games.position, every, axis, env.plan.spec)
    load_search()
    return Compiled(time.perf_counter() - begin)
