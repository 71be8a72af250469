"""The data ``solved-v1``: solved positions by name and split.

The test positions come with the package. All are made by ``python -m sb3_ext.teach --config NAME``,
from the same seed on every machine, and checked by their digests. A correction makes a new version.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from resgym.benchmark.solved import SPLITS, Solved
from resgym.files import read_json
from resgym.game.spec import GameSpec, check_choice

GAMES = {
    "worst-5": GameSpec(3, 5),
    "worst-20": GameSpec(),
    "moves-20": GameSpec(),
    "scale-100": GameSpec(max_value=100),
    "family": GameSpec(max_value=29),
    "axes4": GameSpec(4, 5, 4),
}
"""The parts of the data, by the games that their positions come from."""

PACKAGED = Path(__file__).with_name("solved-v1")


@cache
def load(part: str, split: str = "test", folder: str | None = None) -> Solved:
    """Read solved positions, the same on every machine.

    Args:
        part: a name of `GAMES`.
        split: ``test``, ``validation`` or ``train``.
        folder: the run of ``python -m sb3_ext.teach --config PART --out FOLDER``, which makes all
            but the test positions.

    Returns:
        The positions. Shared: do not write to them.

    Raises:
        ValueError: there is no such part or split, or a file is missing, damaged or of another
            version.
    """
    check_choice("part", part, [*GAMES])
    place = [*SPLITS].index(check_choice("split", split, [*SPLITS]))
    if place and folder is None:
        raise ValueError(
            f"folder: got none; expected that of: python -m sb3_ext.teach --config {part} --out ..."
        )
    file, kind = PACKAGED / f"{part}.npz", "test"
    if folder is not None:
        file, kind = Path(folder, "solved-0.npz"), "all"
    data, known = Solved.load(file), read_json(PACKAGED / "sha256.json", "data")
    if data.digest() != known[part].get(kind):
        raise ValueError(f"data: {file}: sha256: is not that of solved-v1, {part}")
    return data if folder is None else data.select(data.split == place)
