"""The command line as a test runs it."""

from resgym.cli import main


def run(capsys, *arguments, main=main):
    """Exit code, standard output and standard error of a command line."""
    try:
        code = main(arguments)
    except SystemExit as stop:
        code = stop.code
    return code, *capsys.readouterr()
