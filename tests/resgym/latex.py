"""Checks LaTeX without LaTeX, and with it where it is installed."""

import re
import shutil
import subprocess


def check_latex(text):
    """Groups, environments and formulas are closed, and nothing needs more than ASCII."""
    assert text.isascii()
    assert re.findall(r"\\begin{(\w+)}", text) == re.findall(r"\\end{(\w+)}", text)[::-1]
    plain = re.sub(r"\\[\\{}%&#_$]", "", text)
    assert "%" not in plain
    assert plain.count("$") % 2 == 0
    inside = "".join(plain.split("$")[::2])
    assert not re.search(r"[\^_<>]", inside.replace(r"\^", ""))
    for opening, closing in ("{}", "[]"):
        depth = 0
        for each in plain:
            depth += (each == opening) - (each == closing)
            assert depth >= 0
        assert depth == 0


def compile_latex(body, folder):
    """Make a PDF; False if there is no LaTeX with forest here."""
    if not shutil.which("pdflatex") or not shutil.which("kpsewhich"):
        return False
    if subprocess.run(["kpsewhich", "forest.sty"], capture_output=True).returncode:
        return False
    page = r"\documentclass{article}\usepackage{amsmath}\usepackage[edges]{forest}"
    (folder / "page.tex").write_text(f"{page}\n\\begin{{document}}\n{body}\n\\end{{document}}\n")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "page.tex"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:]
    return True
