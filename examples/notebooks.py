"""Runs two tutorials as notebooks and writes them, to build/notebooks unless told otherwise."""

import sys
from pathlib import Path

import jupytext
import nbclient

TUTORIALS = Path(__file__).resolve().parents[1] / "docs" / "tutorials"


def main(folder: str = "build/notebooks") -> None:
    Path(folder).mkdir(parents=True, exist_ok=True)
    for name in ("train_attack_inspect", "resolve_e8"):
        notebook = jupytext.read(TUTORIALS / f"{name}.md")
        nbclient.NotebookClient(notebook, kernel_name="python3").execute()
        jupytext.write(notebook, Path(folder) / f"{name}.ipynb")
        print(f"written to {Path(folder) / name}.ipynb")


if __name__ == "__main__":
    main(*sys.argv[1:])
