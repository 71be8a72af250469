"""Tables in files beside the tests: a line a row, of two texts with an arrow between them."""

from pathlib import Path


def rows(test, name, section=""):
    """The pairs of texts in a file beside a test, or in a section of it, which an empty line ends.

    ⏎ stands for the end of a line; lines that begin with %% are remarks.
    """
    text = Path(test).with_name(name).read_text(encoding="utf-8")
    if section:
        text = text.partition(f"== {section}\n")[2].partition("\n\n")[0]
    lines = (line for line in text.strip("\n").split("\n") if not line.startswith("%% "))
    pairs = (line.replace("⏎", "\n").partition(" ⟹ ") for line in lines)
    return [(left, right) for left, _, right in pairs]
