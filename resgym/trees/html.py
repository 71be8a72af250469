"""A tree as a page that needs no other file: an outline that folds."""

from __future__ import annotations

from html import escape

from resgym.trees.data import ChartTree
from resgym.trees.text import outline, totals_text

OPEN_LEVELS = 3

_STYLE = """
body { font-family: system-ui, sans-serif; color: #1c2733; margin: 2rem auto; max-width: 78rem;
       padding: 0 1rem; }
main { font-family: 'DejaVu Sans Mono', Menlo, Consolas, monospace; font-size: 0.85rem;
       line-height: 1.7; }
main details, main p { margin: 0 0 0 1.4rem; border-left: 1px solid #d7dde3;
       padding-left: 0.5rem; }
summary { cursor: pointer; }
.resolved, .below_one { background: #e3f3e6; }
.smooth { background: #ddf1f5; }
.depth, .size, .overflow { background: #fbe5e1; }
"""


def tree_to_html(tree: ChartTree, max_charts: int = 20_000) -> str:
    """HTML text of a page, with this many charts at most; browsers get slow beyond."""
    title = escape(tree.title or "Resolution tree")
    parts = [
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{title}</title><style>{_STYLE}</style></head><body>",
        f"<h1>{title}</h1><p>{totals_text(tree)}</p><main>",
    ]
    opened = 0  # charts above, whose part has not ended yet
    for chart, hidden, line in outline(tree, max_charts):
        parts += ["</details>"] * (opened - chart.depth)
        opened = chart.depth
        if chart.children and not hidden:
            opened += 1
            state = " open" if chart.depth < OPEN_LEVELS else ""
            parts.append(f"<details{state}><summary>{escape(line)}</summary>")
        else:
            parts.append(f'<p><span class="{chart.ending or ""}">{escape(line)}</span></p>')
    return "\n".join([*parts, *["</details>"] * opened, "</main></body></html>", ""])
