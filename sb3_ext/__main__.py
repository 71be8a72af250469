"""``python -m sb3_ext NAME``: the commands of this package; without a name they are listed."""

import sys
from collections.abc import Sequence

from sb3_ext.runs.command import command, start

COMMANDS = {
    "train": ("sb3_ext.train.train:main", "train one player, with rl_zoo3's options"),
    "enjoy": ("sb3_ext.train.play:enjoy", "let a trained player play"),
    "quickstart": ("sb3_ext.train.quickstart:main", "train a host and measure it"),
    "win": ("sb3_ext.train.quickstart:win", "train a host that wins against every agent"),
    "two_player": ("sb3_ext.two_player.job:main", "train a host and an agent as opponents"),
    "teach": ("sb3_ext.teach.teach:main", "learn from the solver's moves"),
    "attack": ("sb3_ext.attack.attack:main", "find a player's worst opponent"),
    "curves": ("sb3_ext.train.curves:main", "draw the learning curves of runs"),
    "record_video": ("sb3_ext.train.play:record_video", "record a trained player"),
    "card": ("sb3_ext.train.card:main", "write a model card for the Hugging Face Hub"),
}
"""Function and a line of help of each."""


@command("sb3_ext")
def listed(given: Sequence[str]) -> int:
    """Lists the commands; another name than theirs is an error."""
    if given and given[0] not in ("-h", "--help"):
        raise ValueError(f"command: got {given[0]!r:.200}; expected one of {', '.join(COMMANDS)}")
    print("usage: python -m sb3_ext COMMAND ...; COMMAND --help lists its options\n")
    for each, (_, text) in COMMANDS.items():
        print(f"  {each:13} {text}")
    return 0


def main() -> int:
    """Runs the command that is named, or lists all; returns the exit code."""
    name = sys.argv[1] if len(sys.argv) > 1 else ""
    if name not in COMMANDS:
        return listed()
    del sys.argv[1]
    return start(name, COMMANDS[name][0])


if __name__ == "__main__":
    raise SystemExit(main())
