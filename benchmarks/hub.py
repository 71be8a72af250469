"""The data ``solved-v1`` as Parquet files with a dataset card, for the Hugging Face Hub.

  python -m benchmarks.hub runs/hub            # the test positions of the package
  python -m benchmarks.hub runs/hub --runs runs  # with those of runs/PART, see benchmarks.solved_v1

Needs pyarrow, which no extra installs. Nothing is uploaded: the card names the command.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import torch

from benchmarks.solved_v1 import WHOLE
from resgym.benchmark import SPLITS, Solved, load
from resgym.benchmark.solved import GAMES

Numbers = pa.list_(pa.int32())
SCHEMA = pa.schema(
    {"points": pa.list_(Numbers), "value": pa.int32(), "costs": Numbers, "after": pa.list_(Numbers)}
)
CARD = """\
---
license: mit
pretty_name: "resgym solved-v1: positions of Hironaka's polyhedral game, solved"
tags: [reinforcement-learning, game, solved-game, tabular]
configs:
{configs}---

# solved-v1

Positions of Hironaka's polyhedral game with the proved cost of every move under best play, from
`resgym`. A host names a set of at least two axes, an agent one of them; on this axis each point
gets the sum of its coordinates over the set; points that another point dominates are dropped. The
game ends with one point. The host wants few moves, the agent many.

| column | content |
|---|---|
| `points` | the points, each a list of coordinates |
| `value` | moves that the game takes under best play |
| `costs` | the same after each set of the host, the move counted; sets in the order of `resgym` |
| `after` | moves left after each set and each axis; -1 for axes outside the set |

{sizes}

`scale-100` and `family` are for tests only. A digest of the canonical form decides the split, so
positions that differ by a shift, a factor or an order of axes or points are in one split. Positions
that the budget did not prove are left out. `resgym.benchmark.load` reads the same positions without
this mirror, and checks their SHA-256: {digests}. A correction will make `solved-v2`.

Upload: `hf upload NAME/solved-v1 FOLDER --repo-type dataset`
"""


def table(data: Solved) -> pa.Table:
    """The rows of a table; absent points are left out."""
    points = [
        rows[:count].tolist() for rows, count in zip(data.points, data.count.tolist(), strict=True)
    ]
    columns = [points, data.value.tolist(), data.costs.tolist(), data.after.tolist()]
    return pa.table(columns, schema=SCHEMA)


def read(file: Path, rows: int, split: str) -> Solved:
    """What was written, with this many rows of points."""
    columns = pq.read_table(file).to_pydict()
    dimension = len(columns["points"][0][0])
    points = [each + [[-1] * dimension] * (rows - len(each)) for each in columns["points"]]
    count = torch.tensor([*map(len, columns["points"])])
    place = torch.full_like(count, [*SPLITS].index(split))
    costs, after = torch.tensor(columns["costs"]), torch.tensor(columns["after"])
    return Solved(torch.tensor(points), count, place, costs, after)


def card(sizes: Mapping[tuple[str, str], int]) -> str:
    """The README.md of the data set, for positions by part and split."""
    configs, lines = "", ["| part | " + " | ".join(SPLITS) + " |", "|---|" + "---:|" * len(SPLITS)]
    for part in dict.fromkeys(part for part, _ in sizes):
        own = [split for split in SPLITS if (part, split) in sizes]
        configs += f"- config_name: {part}\n  data_files:\n"
        configs += "".join(f"  - {{split: {each}, path: {part}/{each}.parquet}}\n" for each in own)
        numbers = (sizes.get((part, split), "-") for split in SPLITS)
        lines.append(f"| `{part}` | " + " | ".join(map(str, numbers)) + " |")
    digests = ", ".join(f"`{part}` test {load(part).digest()[:12]}..." for part in GAMES)
    return CARD.format(configs=configs, sizes="\n".join(lines), digests=digests)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.hub", description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path, help="write the files there")
    parser.add_argument("--runs", type=Path, help="folder with the runs of benchmarks.solved_v1")
    given = parser.parse_args(arguments)
    sizes = {}
    for part in GAMES:
        more = given.runs is not None and part not in WHOLE
        for split in SPLITS if more else ["test"]:
            data = load(part, split, str(given.runs / part) if split != "test" else None)
            file = given.folder / part / f"{split}.parquet"
            file.parent.mkdir(parents=True, exist_ok=True)
            pq.write_table(table(data), file, compression="zstd")
            sizes[part, split] = len(data)
    text = card(sizes)
    (given.folder / "README.md").write_text(text, encoding="utf-8")
    print(f"{sum(sizes.values())} positions in {given.folder}")


if __name__ == "__main__":
    main()
