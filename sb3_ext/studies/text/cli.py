"""The command line: ``python -m sb3_ext.text RUN --config small --trust``."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from resgym.cli import OneLineParser
from resgym.players.trust import add_trust, trusting
from sb3_ext.config.sections import ConfigError
from sb3_ext.runs.command import command
from sb3_ext.runs.command_line import FAILED, add_options, reporter
from sb3_ext.runs.folder import RunFolder
from sb3_ext.runs.provenance import provenance
from sb3_ext.studies.text.config import TextConfig
from sb3_ext.studies.text.rounds import LINES, MODEL, TextRun

_ABOUT = f"""\
Rounds with a player that reads positions as text and answers in text. In each it plays games; the
solver labels its decisions; lines to learn from are written to round-0000/{LINES}; the command
waits until somebody who trains a model on them writes round-0000/{MODEL}, such as
  {{"arguments": {{"model": "tuned-1"}}}}
which are the arguments by name of the next calls of the function; that player is measured against
scripted players and against a perfect one. A run that was stopped, by whatever, goes on with the
same command at the stage that it was in.
"""
_EXAMPLES = """\
examples:
  python -m sb3_ext.text runs/text/tried --config small --trust      a scripted player, no model
  PYTHONPATH=. python -m sb3_ext.text runs/text/mine --config small --trust \\
      --set model.ask=my_model:ask --set wait.seconds=86400
"""


@command(
    "text", (TypeError, ValueError), failed=FAILED, interrupted="stopped; the same command goes on"
)
def main(arguments: Sequence[str]) -> int:
    """Goes through the rounds as the command line says; returns the exit code, see `command`."""
    args = _parser().parse_args(arguments)
    file = args.run / "config.yml"
    if file.is_file():
        if args.config is not None:
            raise ConfigError(f"--config: {args.run} holds a run already, which goes on without it")
        for setting in args.settings:
            if not setting.startswith(("rounds=", "wait.")):
                raise ConfigError(
                    f"--set {setting}: a run that goes on may change only rounds and wait"
                )
    elif args.config is None:
        shipped = ", ".join(TextConfig.shipped())
        raise ConfigError(f"--config is missing: a file or one of {shipped}")
    with trusting(args.trust):
        config = TextConfig.read(args.config or file, args.settings)
        with RunFolder(args.run, "run") as folder:
            lines = reporter(not args.no_progress, sys.stderr if args.json else sys.stdout)
            run = TextRun(config, folder, lines)
            run.player(0)  # an ask that cannot be imported leaves no folder behind
            folder.write_yaml(file.name, config.to_dict())
            given = ["python", "-m", "sb3_ext.text", *arguments]
            folder.append("commands.jsonl", provenance(config.seed, given))
            found = run.run()
    if args.json:
        print(json.dumps(found, indent=2))
    else:
        print(f"results are in {args.run}")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = OneLineParser(
        prog="python -m sb3_ext.text",
        description=_ABOUT,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("run", type=Path, metavar="RUN", help="folder of the run; one that is there goes on")
    shipped = ", ".join(TextConfig.shipped())
    add("--config", help=f"a YAML file, or one of {shipped}; for a new run")
    add_options(parser, "--set", "--json", "--no-progress")
    add_trust(parser)
    return parser
