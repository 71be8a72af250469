"""Trees to look at: outlines for the terminal, SVG, HTML, Graphviz and LaTeX source."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import NamedTuple

from resgym.game.exact import corner, shifted
from resgym.game.spec import check_integer
from resgym.geometry.fan import chart_rays, old_coordinates, tree_divisors
from resgym.pictures.diagram import FAINT, INK, MUTED, TICK_SIZE
from resgym.pictures.shapes import Line, Picture, Polygon, Shape, Text, picture_to_svg, text_width
from resgym.texts import (
    Formula,
    counted,
    format_axes,
    latex,
    markup,
    position_pretty,
    variable_pretty,
)
from resgym.trees.growth import Chart, ResolutionTree

ENDINGS = {
    "depth": "cut: depth limit",
    "size": "cut: size limit",
    "overflow": "cut: exponents too large",
    "smooth": "smooth",
    "crossings": "normal crossings",
    "below_one": "below 1",
    "no_contribution": "no contribution",
}
"""What is said of a branch that ends before one monomial is left."""

LONGEST = 60
"""Characters of a position; longer ones are cut after a monomial."""


class Entry(NamedTuple):
    """A line of an outline.

    Attributes:
        chart: its chart.
        hidden: how many charts below it are not shown.
        like: number of the chart that has the same charts below it, if they are shown there only.
        parts: the move that leads there, its number, its monomials.
        note: what comes next.
        others: for each host that would play otherwise, its name and its set.
    """

    chart: Chart
    hidden: int
    like: int | None
    parts: list[str]
    note: list[str]
    others: list[str]

    def written(self, how: Callable[[str], str] = str, gap: str = "   ") -> str:
        """Return the line, with ``how`` applied to its pieces."""
        return gap.join(" ".join(map(how, each)) for each in self[3:] if each)


def totals_text(tree: ResolutionTree) -> str:
    """Format totals: ``7 moves deep, 54 charts, 31 leaves``, cut branches, and other hosts."""
    text = (
        f"{counted(tree.depth, 'move')} deep, {counted(tree.num_nodes, 'chart')}, "
        f"{counted(tree.num_leaves, 'leaf', 'leaves')}"
    )
    if not tree.complete:
        text += f", {counted(tree.num_cut, 'branch', 'branches')} cut"
    if tree.root.others:
        moves = [chart for chart in tree if chart.axes]
        counts = (
            f"{name} {sum(chart.others[index][1] != chart.axes for chart in moves)}"
            for index, (name, _) in enumerate(tree.root.others)
        )
        text += f"; other sets: {', '.join(counts)} of {len(moves)}"
    return text


def _same_below(tree: ResolutionTree) -> list[int]:
    """A number for each chart; charts with equal subtrees, up to monomial factors, share it."""
    numbers: dict[object, int] = {}
    found = [0] * tree.num_nodes
    for chart in reversed(tree.charts):
        points = tuple(sorted(shifted(chart.points, corner(chart.points))))
        below = tuple(found[child - 1] for child in chart.children)
        key = points, chart.axes, chart.ending, chart.others, below
        found[chart.number - 1] = numbers.setdefault(key, len(numbers))
    return found


def outline(tree: ResolutionTree, max_charts: int, once: bool = True) -> Iterator[Entry]:
    """The charts of an outline from its top to its bottom.

    Args:
        tree: the tree; its charts are opened level by level, each if all its children fit.
        max_charts: most charts to show, at least 1.
        once: show only the first of equal subtrees; the others name it.
    """
    check_integer("max_charts", max_charts, 1)
    below = [0] * (tree.num_nodes + 1)
    for chart in reversed(tree.charts):
        below[chart.parent or 0] += 1 + below[chart.number]
    same = _same_below(tree) if once else range(tree.num_nodes)
    num_hidden = {1: 0}  # of each chart shown, how many below it are not
    first = dict[int, int]()
    like = dict[int, int]()
    for chart in tree:
        if chart.number not in num_hidden or not chart.children:
            continue
        key = same[chart.number - 1]
        if key in first:
            like[chart.number] = first[key]
        elif len(num_hidden) + len(chart.children) <= max_charts:
            first[key] = chart.number
            num_hidden |= dict.fromkeys(chart.children, 0)
            continue
        num_hidden[chart.number] = below[chart.number]
    names = [*map(variable_pretty, tree.variables)]
    stack = [tree.root]
    while stack:
        chart = stack.pop()
        hidden = num_hidden[chart.number]
        equal = like.get(chart.number)
        position = position_pretty(chart.points, tree.variables, tree.start.between)
        parts = [f"[{chart.number}]", position]
        if len(position) > LONGEST:
            cut = Formula(f"{position[:LONGEST].rpartition(' ')[0]} …")
            parts[1:] = [cut, f"({len(chart.points)} monomials)"]
        if chart.axis is not None:
            parts.insert(0, Formula(f"{names[chart.axis]}:"))
        note = []
        others = []
        if hidden:
            where = f"like those below [{equal}]" if equal else "folded"
            note = [f"(+ {counted(hidden, 'chart')} {where})"]
        elif chart.axes:
            note = ["blow up", format_axes(chart.axes, names)]
            for name, axes in chart.others:
                if axes != chart.axes:
                    others += ["≠", name, format_axes(axes, names)]
        elif text := ENDINGS.get(chart.ending or ""):
            note = [f"({text})"]
        yield Entry(chart, hidden, equal, parts, note, others)
        if not hidden:
            stack += [tree[child] for child in reversed(chart.children)]


def _divisors(tree: ResolutionTree) -> dict[int, str]:
    """For each chart with a move, what it makes: ray, multiplicity N and log discrepancy."""
    return {
        number: f"{each.ray} N {each.multiplicity} ν {each.log_discrepancy}"
        for each in tree_divisors(tree)
        for number in each.charts
    }


def tree_to_text(tree: ResolutionTree, max_charts: int = 200) -> str:
    """An outline: one line a chart; subtrees are folded so that this many are shown at most."""
    lines = [*filter(None, [tree.title]), totals_text(tree), ""]
    below = {1: ""}  # what stands before the children of a chart
    for line in outline(tree, max_charts):
        chart, before = line.chart, ""
        if chart.parent:
            last = chart.number == tree[chart.parent].children[-1]
            branch, bar = ("└─ ", "   ") if last else ("├─ ", "│  ")
            above = below[chart.parent]
            before, below[chart.number] = above + branch, above + bar
        lines.append(f"{before}{line.written()}")
    return "\n".join(lines)


def tree_to_dot(tree: ResolutionTree) -> str:
    """Return Graphviz source of the whole tree, one node per chart; ``dot -Tsvg`` draws it."""
    quoted = json.JSONEncoder(ensure_ascii=False).encode
    lines = [
        "digraph resolution {",
        f"  label={quoted(f'{tree.title}: {totals_text(tree)}')};",
        '  node [shape=box, style=rounded, fontname="monospace"];',
    ]
    for line in outline(tree, tree.num_nodes, once=False):
        chart = line.chart
        colour = "" if chart.ending is None else ", color=" + ("red" if chart.is_cut else "green")
        lines.append(f"  c{chart.number} [label={quoted(line.written())}{colour}];")
        lines += [f"  c{chart.number} -> c{child};" for child in chart.children]
    return "\n".join([*lines, "}", ""])


def tree_to_latex(tree: ResolutionTree, max_charts: int = 50) -> str:
    r"""An outline for LaTeX of a page at most; needs ``\usepackage[edges]{forest}``."""
    style = "folder, grow'=0, font=\\small, s sep=0pt, inner ysep=0.5pt, outer ysep=0pt"
    lines = [f"\\begin{{forest}}\n  for tree={{{style}}}"]
    depth = -1
    for line in outline(tree, max_charts):
        lines[-1] += "]" * (depth + 1 - line.chart.depth)
        depth = line.chart.depth
        text = line.written(latex, r" \quad ")
        lines.append(f"{'  ' * depth}  [{{{text}}}")
    return "\n".join(lines) + "]" * (depth + 1) + "\n\\end{forest}\n"


MARGIN, HEADER, ROW, INDENT, SIZE = 16.0, 56.0, 24.0, 22.0, 12.0
LONGEST_TITLE = 90
"""Characters of the title."""
GAP = "\u2003"
"""Between the parts of a line; SVG joins spaces."""

# Cut branches and folded ones say in words what they are, too.
_FILLS = {
    "resolved": "#e3f3e6",
    "below_one": "#e3f3e6",
    "depth": "#fbe5e1",
    "size": "#fbe5e1",
    "overflow": "#fbe5e1",
    "smooth": "#ddf1f5",
    "crossings": "#ddf1f5",
}


def _italic(text: str) -> str:
    """Text for SVG, with the variables of a formula in italics."""
    if not isinstance(text, Formula):
        return markup(text)
    italic = '<tspan font-style="italic">{}</tspan>'.format
    return "".join(italic(each) if each.isalpha() else markup(each) for each in text)


def tree_to_svg(tree: ResolutionTree, max_charts: int = 100) -> str:
    """A tree as an SVG picture; subtrees are folded so that this many charts are shown at most."""
    totals, title = totals_text(tree), tree.title[:LONGEST_TITLE]
    shapes: list[Shape] = [
        Text((MARGIN, 24), title, INK, 14, bold=True),
        Text((MARGIN, 44), totals, MUTED, SIZE),
    ]
    right = MARGIN + max(text_width(title, 14), text_width(totals, SIZE))
    bottom, middles, divisors = HEADER, {}, _divisors(tree)
    for line in outline(tree, max_charts):
        chart, text = line.chart, line.written(gap=GAP)
        left, middle = MARGIN + INDENT * chart.depth, bottom + ROW / 2
        middles[chart.number] = middle
        end, low, high = left + text_width(text, SIZE) + 12, middle - 10, middle + 10
        plain = FAINT if line.hidden else "#fff0b3" if line.others else "#f4f6f8"
        fill = _FILLS.get(chart.ending or "", plain)
        box = Polygon(((left, low), (end, low), (end, high), (left, high)), fill)
        written = Text((left + 6, middle + 4), text, INK, SIZE, markup=line.written(_italic, GAP))
        shapes += [box, written]
        if chart.parent:
            note, stem = divisors[chart.parent], left - INDENT + 8
            shapes += [
                Line((stem, middles[chart.parent] + 10), (stem, middle), MUTED),
                Line((stem, middle), (left, middle), MUTED),
                Text((end + 8, middle + 4), note, MUTED, TICK_SIZE),
            ]
            end += 8 + text_width(note, TICK_SIZE)
        right, bottom = max(right, end), bottom + ROW
    size = int(right + MARGIN), int(bottom + MARGIN)
    return picture_to_svg(Picture(*size, shapes, f"{title}: {totals}"))


SMALL = 60
"""Charts that are open in the beginning, at most."""

# Colours are translucent, so that they fit light and dark pages.
_STYLE = """
.charts { font-size: 0.95em; line-height: 1.7; overflow-x: auto; }
.charts details, .charts p { margin: 0 0 0 1.2em; border-left: 1px solid #8886;
  padding-left: 0.5em; min-width: 16em; }
.charts summary { cursor: pointer; }
.charts .legend mark { margin: 0; }
.charts .legend { font-size: 0.9em; border: 0; margin: 0; padding: 0; }
.charts .legend span { padding: 0 0.3em; }
.charts i, .charts mark { display: inline-block; margin-left: 0.7em; }
.charts i { opacity: 0.75; }
.charts i:empty { display: none; }
.charts mark { background: #fb06; color: inherit; }
.charts :target { outline: 2px solid #c80; }
.charts .resolved, .charts .below_one { background: #2a53; }
.charts .smooth, .charts .crossings { background: #0ac3; }
.charts .depth, .charts .size, .charts .overflow { background: #e533; }
@media (max-width: 40em) { .charts details, .charts p { margin-left: 0; } }
"""
_PAGE = """
:root { color-scheme: light dark; font-family: system-ui, sans-serif; }
body { margin: 1rem auto; max-width: 78rem; padding: 0 1rem; }
h1 { font-size: 1.2rem; overflow-wrap: anywhere; }
form { position: sticky; top: 0; background: Canvas; padding: 0.5rem 0; display: flex;
  flex-wrap: wrap; gap: 0 1.5rem; }
label { display: flex; gap: 0.5rem; }
form:has(:checked) + .charts [title]::after { content: attr(title); display: block;
  font-size: 0.85em; opacity: 0.75; }
"""
_LEGEND = """<p class="legend">Each line is a chart: the variable that the agent chose, the
chart's number, its monomials that no other divides, the variables that the host blows up. Click a
line to fold it. Hover over it to see the first chart's coordinates in its own, and its new
divisor: ray, multiplicity N, log discrepancy ν. Colours:
<span class="resolved">one monomial left</span> <span class="smooth">smooth</span>
<span class="depth">cut</span> <mark>another host's choice</mark></p>"""
# What is deeper than the slider allows is closed.
_OPEN = (
    "for (const d of document.querySelectorAll('details')) "
    "d.open = !d.matches('details '.repeat(+this.value + 1))"
)
_ZOOM = "document.querySelector('.charts').style.fontSize = this.value + 'em'"


def _open_levels(tree: ResolutionTree) -> int:
    return tree.depth if tree.num_nodes <= SMALL else max(tree.charts[SMALL].depth - 1, 1)


def tree_part(tree: ResolutionTree, max_charts: int = 2_000, mark: str = "") -> str:
    """HTML for a part of a page; ``mark`` begins the names of its links."""
    parts = [f'<div class="charts"><style>{_STYLE}</style>{markup(totals_text(tree))}{_LEGEND}']
    levels, rays, divisors = _open_levels(tree), chart_rays(tree), _divisors(tree)
    opened = 0  # charts above, whose part has not ended yet
    for line in outline(tree, max_charts):
        chart, note = line.chart, markup(" ".join(line.note))
        parts += ["</details>"] * (opened - chart.depth)
        opened = chart.depth
        if line.like:
            note = f'<a href="#{mark}{line.like}">{note}</a>'
        text = f"{markup(' '.join(line.parts))} <i>{note}</i>"
        if line.others:
            text += f" <mark>{markup(' '.join(line.others))}</mark>"
        title = ", ".join(old_coordinates(rays[chart.number - 1], tree.variables))
        title += f"; {divisors[chart.parent]}" if chart.parent else ""
        if chart.children and not line.hidden:
            opened += 1
            parts += [
                f'<details id="{mark}{chart.number}"{" open" * (chart.depth < levels)}>',
                f'<summary title="{markup(title)}">{text}</summary>',
            ]
        else:
            parts.append(
                f'<p><span class="{chart.ending or ""}" title="{markup(title)}">{text}</span></p>'
            )
    return "\n".join([*parts, *["</details>"] * opened, "</div>"])


def tree_in_notebook(tree: ResolutionTree) -> str:
    """HTML of a folded tree with its title."""
    return f"<b>{markup(tree.title)}</b>{tree_part(tree, mark=f'{id(tree)}-')}"


def tree_to_html(tree: ResolutionTree, max_charts: int = 20_000, note: str = "") -> str:
    """HTML text of a page, with this many charts at most; browsers get slow beyond.

    ``note`` is HTML that stands below the title.
    """
    title = markup(tree.title or "Resolution tree")
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title><style>{_PAGE}</style></head><body>
<h1>{title}</h1>{note}<form>
<label>moves shown <input type="range" max="{tree.depth}" value="{_open_levels(tree)}"
oninput="{_OPEN}"></label>
<label>size <input type="range" min="0.4" max="2" step="0.05" value="0.95"
oninput="{_ZOOM}"></label>
<label><input type="checkbox">coordinates and divisors</label>
</form>
{tree_part(tree, max_charts)}
</body></html>
"""
