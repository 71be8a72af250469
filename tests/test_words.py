"""Texts keep clear of the phrases that made earlier ones hard to read; see CONTRIBUTING.md."""

import io
import re
import tokenize
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PHRASES = {
    r"\bof which\b": "start a new sentence",
    r"(?<!there )\b(is|are) no (?!longer|more|such|other|less|larger|slower)\w+": "is not a ...",
    r"\bso many\b": "this many, or a number",
    r"\b(go|goes|going) on\b": "continue, resume",
    r"\bwhat is there\b": "say what",
    r"\bwho (asked|drives|knows|says|waits|wants)\b": "name the person or the program",
    r"\b(hands|handed) (in|on|out|over|to)\b|\bis handed\b": "pass, return",
    r"\b(put|puts) back\b": "restore",
    r"\b(nobody|whoever)\b": "name the person or the program",
    r"\bis taken for\b": "counts as",
    r"\bas of `": "as in, those of",
    r"\bin the mean\b": "on average",
    r"\b(file|page|table|row|message) says\b": "has, shows",
}
PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]
CODE = [*ROOT.glob("resgym/**/*.py"), *ROOT.glob("sb3_ext/**/*.py"), *ROOT.glob("examples/*.py")]


@cache
def words(path):
    """A page, or the comments and strings of a module, with single blanks."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        tokens = tokenize.generate_tokens(io.StringIO(text).readline)
        kinds = (tokenize.COMMENT, tokenize.STRING)
        text = " ".join(each.string.lstrip("# ") for each in tokens if each.type in kinds)
    return re.sub(r"\s+", " ", text)


@pytest.mark.parametrize(("phrase", "instead"), PHRASES.items())
def test_no_page_docstring_or_message_has_the_phrase(phrase, instead):
    found = []
    for path in (*PAGES, *CODE):
        for match in re.finditer(phrase, text := words(path), re.IGNORECASE):
            place = text[max(match.start() - 30, 0) : match.end() + 30]
            found.append(f"{path.relative_to(ROOT)}: ...{place}...")
    assert not found, f"write {instead!r}: " + "\n".join(found)
