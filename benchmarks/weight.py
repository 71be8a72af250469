"""How heavy is the code? Tokens of Python per folder, beside those of well-known libraries.

Comments, docstrings and layout do not count, so neither packing lines nor cutting documentation
makes code lighter; stubs (``.pyi``) do. An f-string is one token on every version of Python.

  python -m benchmarks.weight
"""

from __future__ import annotations

import ast
import io
import tokenize
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ANCHORS = {  # the same rule
    "mctx 0.0.71": 6_821,
    "rl_zoo3 2.9.2": 26_509,
    "sbx 0.28": 29_561,
    "stable-baselines3 2.9.2": 67_449,
    "pgx 2.6.0, more than twenty games": 97_645,
    "Tianshou 2.0.1, thirty algorithms": 106_722,
}
NAMES = ("COMMENT", "NL", "NEWLINE", "INDENT", "DEDENT", "ENDMARKER")
LAYOUT = {getattr(tokenize, name) for name in NAMES}
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def docstring_of(node: ast.AST) -> ast.Expr | None:
    """The statement that is the docstring of a module, class or function."""
    if not isinstance(node, DOCUMENTED) or ast.get_docstring(node, clean=False) is None:
        return None
    statement = node.body[0]
    return statement if isinstance(statement, ast.Expr) else None


def weigh(source: str) -> int:
    """Tokens of some code."""
    documentation: set[int] = set()
    for statement in filter(None, map(docstring_of, ast.walk(ast.parse(source)))):
        documentation.update(range(statement.lineno, (statement.end_lineno or 0) + 1))
    tokens = depth = 0
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in LAYOUT and token.start[0] not in documentation and not depth:
            tokens += 1
        name = tokenize.tok_name[token.type]  # since Python 3.12 f-strings come in pieces
        depth += name.endswith("STRING_START") - name.endswith("STRING_END")
    return tokens


def files(folder: str, root: Path = ROOT) -> Iterator[Path]:
    """The files with code below a folder, in order."""
    for path in sorted((root / folder).rglob("*.py*")):
        if path.suffix in (".py", ".pyi"):
            yield path


def rooms(folder: str, root: Path = ROOT) -> Counter[str]:
    """Tokens by the folders directly below one; what lies in it has its own name."""
    found: Counter[str] = Counter()
    for path in files(folder, root):
        parts = path.relative_to(root).parts[:-1]
        found["/".join(parts[:2])] += weigh(path.read_text(encoding="utf-8"))
    return found


def caps(root: Path = ROOT) -> dict[str, int]:
    """What a folder may weigh: ``[tool.resgym.weight]`` of pyproject.toml."""
    data = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    return dict(data["tool"]["resgym"]["weight"])


def main() -> None:
    print(f"{'tokens of code':36}{'today':>10}{'cap':>10}")
    limits = caps()
    for folder in (each for each in limits if "/" not in each):
        found = rooms(folder)
        print(f"{folder:36}{found.total():>10,}{limits[folder]:>10,}")
        for room, tokens in found.most_common():
            cap = f"{limits[room]:,}" if room in limits and room != folder else ""
            print(f"  {room:34}{tokens:>10,}{cap:>10}")
    for name, tokens in ANCHORS.items():
        print(f"{name:36}{tokens:>10,}")


if __name__ == "__main__":
    main()
