"""A folder that another process is at work in."""

import subprocess
import sys
from contextlib import contextmanager

HOLD = """
import sys
from sb3_ext.runs.files import RunFolder
with RunFolder(sys.argv[1]):
    print("held", flush=True)
    sys.stdin.read()
"""


@contextmanager
def held_by_another(folder):
    """Another process is at work in the folder; it is killed at the end, if it still lives."""
    command = [sys.executable, "-c", HOLD, str(folder)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "held\n"
            yield
        finally:
            process.kill()
