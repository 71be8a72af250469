"""Iterations per second of the host/agent trainer: an update of each role with its rollouts.

    python -m benchmarks.two_player --steps 1000

The setting is the one of the published trainer with networks [256, 256]: batches of 256, and every
10 updates 20 new games of 10 moves for each role.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from typing import Any

from sb3_ext.runs.command import torch_threads
from sb3_ext.two_player import HostAgentTrainer, read_config

SETTINGS = (
    "compute.device=cpu",
    "roles.host.net_arch=[256, 256]",
    "roles.agent.net_arch=[256, 256]",
    "roles.host.replay_buffer.size=200000",
    "roles.agent.replay_buffer.size=200000",
    "logging.layers=false",
)
ORIGINAL = 94  # iterations per second of the first trainer on two cores, networks [256, 256]


def measure(steps: int, threads: int, settings: tuple[str, ...]) -> dict[str, Any]:
    """Runs the loop without evaluations and returns what it cost."""
    config = read_config("published", [*SETTINGS, f"compute.torch_threads={threads}", *settings])
    trainer = HostAgentTrainer(config)
    players = config.training.players
    with torch_threads(threads):
        trainer.collect_initial_rollouts(players)
        for _ in range(20):
            trainer.step(players)
        before = trainer.seconds
        cpu, wall = time.process_time(), time.perf_counter()
        for _ in range(steps):
            trainer.step(players)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    trainer.close()
    milliseconds = {name: 1e3 * (trainer.seconds[name] - before[name]) / steps for name in before}
    return {
        "cpu_ms": 1e3 * cpu / steps,
        "iterations_per_second": steps / wall,
        "original_iterations_per_second": ORIGINAL,
        "ratio": steps / wall / ORIGINAL,
        "rollout_ms": milliseconds["rollout"],
        "torch_threads": threads,
        "update_ms": milliseconds["update"],
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--set", action="append", default=[], dest="settings", metavar="a.b=1")
    args = parser.parse_args()
    result = measure(args.steps, args.threads, tuple(args.settings))
    if args.json:
        print(json.dumps(result))
        return 0
    print(
        f"{result['iterations_per_second']:.0f} iterations/s with {args.threads} threads, "
        f"{result['ratio']:.2f} times the original's {ORIGINAL} "
        f"(updates {result['update_ms']:.2f} ms, rollouts {result['rollout_ms']:.2f} ms, "
        f"CPU {result['cpu_ms']:.2f} ms)"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
