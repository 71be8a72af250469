"""The command line as a test runs it."""

from __future__ import annotations

from resgym.cli import main


def run(capsys, *arguments: str) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of a command line."""
    try:
        code = main(arguments)
    except SystemExit as stop:
        code = stop.code
    return code, *capsys.readouterr()
