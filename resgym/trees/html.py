"""A tree as HTML: an outline that folds, for notebooks and as a page that needs no other file."""

from __future__ import annotations

from resgym.texts import markup
from resgym.trees.data import ChartTree
from resgym.trees.fan import chart_rays, old_coordinates
from resgym.trees.text import outline, totals_text

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
line to fold it. Hover over it to see the first chart's coordinates in its own. Colours:
<span class="resolved">one monomial left</span> <span class="smooth">smooth</span>
<span class="depth">cut</span> <mark>another host's choice</mark></p>"""
# What is deeper than the slider allows is closed.
_OPEN = (
    "for (const d of document.querySelectorAll('details')) "
    "d.open = !d.matches('details '.repeat(+this.value + 1))"
)
_ZOOM = "document.querySelector('.charts').style.fontSize = this.value + 'em'"


def _open_levels(tree: ChartTree) -> int:
    return tree.depth if tree.num_nodes <= SMALL else max(tree.charts[SMALL].depth - 1, 1)


def tree_part(tree: ChartTree, max_charts: int = 2_000, mark: str = "") -> str:
    """HTML for a part of a page; ``mark`` begins the names of its links."""
    parts = [f'<div class="charts"><style>{_STYLE}</style>{markup(totals_text(tree))}{_LEGEND}']
    levels, rays = _open_levels(tree), chart_rays(tree)
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


def tree_to_html(tree: ChartTree, max_charts: int = 20_000, note: str = "") -> str:
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
<label><input type="checkbox">old coordinates in new ones</label>
</form>
{tree_part(tree, max_charts)}
</body></html>
"""
