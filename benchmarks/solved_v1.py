"""The test positions of the benchmark, from the runs that made all positions.

  python -m benchmarks.solved_v1 runs

Each part PART is read from runs/PART, see configs/teach/PART.yml. Files that come with the package
have the test split alone, and Arnold's lists beside the family.
"""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from resgym import GameSpec, singularity, singularity_names, state_from_points
from resgym.benchmark.solved import GAMES, PACKAGED, Solved, joined, solve
from resgym.solver.labels import digests

WHOLE = ("scale-100", "family")
"""Parts that are test positions throughout: nothing like them is trained on."""


def named(rows: int) -> Solved:
    """Arnold's lists, solved, with this many rows of points."""
    names = [
        name for kind in ("simple", "exceptional", "bimodal") for name in singularity_names(kind)
    ]
    state = state_from_points([singularity(name) for name in names], GameSpec(3, rows))
    none = state.count.new_zeros(len(names), 0)
    return solve(
        "depth", 10**6, True, Solved(state.points, state.count, 0 * state.count, none, none)
    )


def main(folder: str) -> None:
    known = {}
    for part in GAMES:
        data = Solved.load(Path(folder, part, "solved-0.npz"))
        known[part] = {} if part in WHOLE else {"all": data.digest()}
        if part in WHOLE:
            data = replace(data, split=torch.zeros_like(data.split))
        if part == "family":
            data = joined([data, named(data.points.shape[1])])
            forms = digests(data.points.numpy(), data.count.numpy())
            # Two names may have one form.
            data = data.select(
                torch.from_numpy(np.sort(np.unique(forms, axis=0, return_index=True)[1]))
            )
        test = data.select(data.split == 0)
        test.save(PACKAGED / f"{part}.npz")
        known[part]["test"] = test.digest()
        print(part, len(data), "positions,", len(test), "of them for tests")
    (PACKAGED / "sha256.json").write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
