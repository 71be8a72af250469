"""Write a saved player as a folder for the Hugging Face Hub: weights, description, card.

The card shows figures of the scoreboard, measured from the written folder.
``hf upload USER/NAME FOLDER`` sends it, see docs/scoreboard.md.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from huggingface_hub import ModelCardData

import resgym
from resgym.benchmark import TASKS, Result, evaluate
from resgym.benchmark.solved import GAMES
from resgym.cli import OneLineParser
from resgym.files import write_file
from resgym.players import player_name
from resgym.scoreboard import Scoreboard
from resgym.texts import markdown, markdown_table
from resgym.trust import add_trust, command_line
from sb3_ext.callbacks.evaluation import player_of
from sb3_ext.checkpoints.models import MODEL, policy_bytes
from sb3_ext.checkpoints.policy_description import describe_policy
from sb3_ext.networks.mlp import seat_of, size_played
from sb3_ext.runs.command import command
from sb3_ext.train.loading import load_player, load_policy

CARD, CONFIG = "README.md", "config.json"
TAGS = ("reinforcement-learning", "resgym", "resolution-of-singularities", "stable-baselines3")


def write_card(
    model: Path, out: Path, name: str, licence: str = "mit", half: bool = False
) -> list[Result]:
    """Write the folder of a saved player.

    Args:
        model: as for `sb3_ext.train.loading.load_player`.
        out: a new folder, or that of an earlier card.
        name: name of the player.
        licence: licence of the weights, as named on the Hub.
        half: round the weights to float16, which halves the size.

    Returns:
        The figures on the card, of the tasks that the player's size allows.

    Raises:
        ValueError: the model cannot be read or described, or other files are in the folder.
    """
    policy = load_policy(model)
    (role, _), size = seat_of(policy), size_played(policy)
    player_of(policy, str(model))  # refuses what observes no points
    content = policy_bytes(policy, {"made by": f"resgym {resgym.__version__}"}, half)
    if out.is_file():
        raise ValueError(f"out: got the file {out}; expected a folder")
    if foreign := {file.name for file in out.glob("*")} - {MODEL, CONFIG, CARD}:
        raise ValueError(
            f"out: got {out} with {min(foreign)!r}; expected a new folder, or a card's"
        )
    out.mkdir(parents=True, exist_ok=True)
    # Whatever happens meanwhile, no figures stand beside weights that they are not of.
    (out / CARD).unlink(missing_ok=True)
    write_file(out / MODEL, content)
    config = {"library_name": "resgym", "role": role, "policy": describe_policy(policy)}
    write_file(out / CONFIG, json.dumps(config, indent=1) + "\n")
    player = load_player(out, role)
    print("measuring the tasks of this size: some minutes", file=sys.stderr)
    parts = [
        part
        for part, game in GAMES.items()
        if size is None or (game.dimension == size[1] and game.max_num_points <= size[0])
    ]
    rows = [
        evaluate(player, task, name=name)
        for task, (part, _, _, seat) in TASKS.items()
        if seat == role and part in parts
    ]
    write_file(out / CARD, _page(name, role, size, licence, rows))
    return rows


def _page(
    name: str, role: str, size: tuple[int, int] | None, licence: str, rows: Sequence[Result]
) -> str:
    """The card: what machines read, then what people read; ``size`` is the (P, D) it knows."""
    sizes = f"{size[1]} axes, up to {size[0]} points" if size else "all numbers of axes and points"
    about = ModelCardData(
        library_name="resgym",
        license=licence,
        pipeline_tag="reinforcement-learning",
        tags=[*TAGS],
        model_name=name,
    )
    figures = markdown_table(Scoreboard(rows).table_rows())
    if not rows:
        figures = "None: no task of the scoreboard has positions of this size."
    seats = {"host": ("./FOLDER choose_first", "Agent"), "agent": ("zeillinger ./FOLDER", "Host")}
    play, other = seats[role]
    return f"""---
{about.to_yaml()}
---

# {markdown(name)}

A {role} for Hironaka's polyhedral game, for resgym: {sizes}. The
weights are in `{MODEL}`, their description in `{CONFIG}`; no file runs code.

    resgym rho {play}

```python
import gymnasium
import resgym

env = gymnasium.make("resgym/Hironaka{other}-v0", opponent="./FOLDER")
```

## Figures

{figures}

resgym {resgym.__version__}. docs/scoreboard.md describes the tasks; 1 is proved optimal play.
"""


@command("card")
def main(arguments: Sequence[str]) -> int:
    """Writes a card; returns the exit code, see `command`."""
    parser = OneLineParser(prog="resgym card", description=__doc__)
    add = parser.add_argument
    add("model", help="the path of a saved player")
    add("--out", type=Path, required=True, metavar="FOLDER", help="where to write the card")
    add("--name", help="name on the card (default: the model's own)")
    add("--license", default="mit", help="licence of the weights (default mit)")
    add("--half", action="store_true", help="round the weights to float16, which halves the size")
    add_trust(parser)
    args = parser.parse_args(arguments)
    with command_line(args.trust):
        name = args.name or player_name(args.model)
        write_card(Path(args.model), args.out, name, args.license, args.half)
    print(args.out / CARD)
    return 0
