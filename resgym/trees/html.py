"""A tree as a self-contained page: totals, the picture, and an outline that folds."""

from __future__ import annotations

from html import escape

from resgym.game.spec import check_integer
from resgym.polynomials.monomials import position_pretty, script_runs, variable_pretty
from resgym.trees.data import Chart, ChartTree
from resgym.trees.svg import tree_to_svg
from resgym.trees.text import charts_below, ending_text

OUTLINE_CHARTS = 20_000
"""Charts of the outline; browsers become slow with more."""

OPEN_LEVELS = 3

_STYLE = """
:root { color-scheme: light; }
body { font-family: system-ui, sans-serif; color: #1c2733; margin: 2rem auto; max-width: 78rem;
       padding: 0 1rem; line-height: 1.45; }
h1 { font-size: 1.3rem; }
h2 { font-size: 1.05rem; margin-top: 2rem; }
table { border-collapse: collapse; }
th, td { text-align: right; padding: 0.15rem 0.9rem; border-bottom: 1px solid #d7dde3; }
th { font-weight: 600; }
.picture { overflow: auto; border: 1px solid #d7dde3; max-height: 80vh; }
.picture svg { display: block; max-width: 100%; height: auto; }
.outline { font-family: 'DejaVu Sans Mono', Menlo, Consolas, monospace; font-size: 0.85rem;
       line-height: 1.7; }
.outline details, .outline .end { margin-left: 1.4rem; border-left: 1px solid #d7dde3;
       padding-left: 0.5rem; }
.outline summary { cursor: pointer; }
.outline .end { padding-left: 1.6rem; }
.move { color: #33518a; } .number, .below { color: #66737f; }
.resolved, .below_one { background: #e3f3e6; }
.smooth { background: #ddf1f5; } .cut { background: #fbe5e1; }
sup, sub { font-size: 0.72em; line-height: 0; }
button { font: inherit; margin-right: 0.5rem; }
"""

_SCRIPT = """
function fold(open) {
  for (const part of document.querySelectorAll('.outline details')) part.open = open;
}
const drawing = document.querySelector('.picture svg');
// By a factor of what is seen; 0 fits the picture to the page, as at first.
function zoom(factor) {
  const width = drawing.getBoundingClientRect().width * factor;
  drawing.style.maxWidth = factor ? 'none' : '';
  drawing.style.width = factor ? width + 'px' : '';
}
// A tall picture begins at its first chart, not at its upper corner.
const picture = document.querySelector('.picture');
const first = picture.querySelector('g g rect').getBoundingClientRect();
picture.scrollTop = first.top - picture.getBoundingClientRect().top - picture.clientHeight / 2;
"""


def tree_to_html(tree: ChartTree, max_charts: int = 100) -> str:
    """Return HTML with at most this many charts in the picture, and up to 20,000 in the outline.

    Raises:
        ValueError: ``max_charts`` is below 1.
    """
    check_integer("max_charts", max_charts, 1)
    title = tree.title or "Resolution tree"
    totals = {
        "moves on the longest branch": tree.depth,
        "charts": tree.num_nodes,
        "leaves": tree.num_leaves,
        "branches cut": tree.num_cut,
    }
    rows = [f"<tr><th>{name}</th><td>{number}</td></tr>" for name, number in totals.items()]
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body>",
            f"<h1>{_scripts(title)}</h1>",
            f"<table>{''.join(rows)}</table>",
            "<h2>Picture</h2>",
            '<p><button onclick="zoom(1.5)">larger</button>'
            '<button onclick="zoom(1 / 1.5)">smaller</button>'
            '<button onclick="zoom(0)">fit to the page</button></p>',
            f'<div class="picture">{tree_to_svg(tree, max_charts, "tree")}</div>',
            "<h2>Charts</h2>",
            '<p><button onclick="fold(true)">open all</button>'
            '<button onclick="fold(false)">close all</button></p>',
            f'<div class="outline">{_outline(tree)}</div>',
            f"<script>{_SCRIPT}</script></body></html>",
            "",
        ]
    )


def _scripts(text: str) -> str:
    forms = {"base": "{}", "super": "<sup>{}</sup>", "sub": "<sub>{}</sub>"}
    return "".join(forms[kind].format(escape(run)) for kind, run in script_runs(text))


def _outline(tree: ChartTree) -> str:
    """Return nested ``details``, written without recursion because trees can be deep."""
    numbers = charts_below(tree)
    parts: list[str] = []
    # A chart, or the text that closes one.
    stack: list[Chart | str] = [tree.root]
    written = 0
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            parts.append(item)
            continue
        written += 1
        if not item.children:
            state = "cut" if item.is_cut else item.ending or ""
            parts.append(f'<div class="end"><span class="{state}">{_line(tree, item)}</span></div>')
            continue
        below = numbers[item.number]
        opened = " open" if item.depth < OPEN_LEVELS else ""
        names = ", ".join(_scripts(variable_pretty(tree.variables[j])) for j in item.axes or ())
        parts.append(
            f"<details{opened}><summary>{_line(tree, item)} "
            f'<span class="move">blow up {{{names}}}</span> '
            f'<span class="below">({below} below)</span></summary>'
        )
        stack.append("</details>")
        if written + len(stack) > OUTLINE_CHARTS:
            parts.append(f'<div class="end">{below} charts left out here</div>')
        else:
            stack.extend(tree[child] for child in reversed(item.children))
    return "\n".join(parts)


def _line(tree: ChartTree, chart: Chart) -> str:
    move = ""
    if chart.axis is not None:
        move = f'<span class="move">{_scripts(variable_pretty(tree.variables[chart.axis]))}</span> '
    note = ending_text(chart)
    return (
        f'{move}<span class="number">[{chart.number}]</span> '
        f"{_scripts(position_pretty(chart.points, tree.variables))}"
        + (f" - {escape(note)}" if note else "")
    )
