"""Pictures, pages and LaTeX of trees: every chart is there, large trees fold, equal parts once."""

import re
from itertools import accumulate
from xml.etree import ElementTree

import pytest

from resgym.pictures.shapes import text_width
from resgym.pictures.trees import outline
from resgym.polynomials.singularities import random_family
from resgym.trees.growth import resolution_tree
from tests.reference import players
from tests.resgym.latex import check_latex

SVG = "{http://www.w3.org/2000/svg}"

TREES = {
    "A1": resolution_tree("A1"),
    "E8": resolution_tree("E8"),
    "cut": resolution_tree("E8", "all_coord", max_depth=6),
    "ten axes": resolution_tree(random_family("random(points=9,max=99,dim=10)"), max_depth=4),
    "long": resolution_tree([(2**40, 0, 7), (0, 2**41, 0)], max_depth=9),
    "over": resolution_tree([(0, 0, 0)]),
}


@pytest.mark.parametrize("tree", TREES.values(), ids=TREES)
def test_a_line_a_chart_inside_the_picture_and_to_the_right_of_its_parent(tree):
    root = ElementTree.fromstring(tree.to_svg(max_charts=100))
    width = float(root.get("width"))
    height = float(root.get("height"))
    boxes = [each.get("points").split() for each in root.findall(f"{SVG}polygon")]
    notes = [each for each in root.findall(f"{SVG}text") if " ν " in (each.text or "")]
    assert all(float(each.get("x")) + text_width(each.text, 10) <= width for each in notes)
    lines = ["".join(text.itertext()) for text in root.findall(f"{SVG}text")]
    texts = [line for line in lines if re.search(r"\[\d+\]", line)]
    assert len(boxes) == len(texts) <= 100
    lefts = {}
    last = 0.0
    for corners, text in zip(boxes, texts, strict=True):
        left, top = map(float, corners[0].split(","))
        right, bottom = map(float, corners[2].split(","))
        assert 0 <= left < right <= width
        assert last <= top < bottom <= height
        last = bottom
        chart = tree[int(re.search(r"\[(\d+)\]", text)[1])]
        lefts[chart.number] = left
        assert chart.parent is None or lefts[chart.parent] < left


@pytest.mark.parametrize("limit", [1, 10, 100, 500])
def test_large_trees_fold(limit):
    tree = resolution_tree("E8", "all_coord", max_depth=9)
    for form in (tree.to_svg, tree.to_html, tree.to_text):
        text = form(limit)
        folded = sum(map(int, re.findall(r"\+ (\d+) charts (?:folded|like those below)", text)))
        shown = len(re.findall(r"\[\d+\] ", text))
        assert shown <= limit
        assert shown + folded == tree.num_nodes > 500


def folds(text):
    """Of a page: the names of what folds, how deep it is nested, and the links."""
    charts = re.search('<div class="charts">.*</div>', text, re.DOTALL)[0]
    root = ElementTree.fromstring(charts.replace(" open>", ">"))
    nested = accumulate(-1 if slash else 1 for slash in re.findall("<(/?)details", charts))
    names = [each.get("id") for each in root.iter("details")]
    return names, max(nested), [each.get("href") for each in root.iter("a")]


@pytest.mark.parametrize("name", ["A1", "E8"])
def test_the_page_folds_and_needs_nothing_else(name):
    tree = TREES[name]
    text = tree.to_html()
    names, deepest, links = folds(text)
    lines = list(outline(tree, 1000))
    assert names == [str(x.chart.number) for x in lines if x.chart.children and not x.hidden]
    assert deepest == max(x.chart.depth + (not x.hidden) for x in lines if x.chart.children)
    assert links == [f"#{line.like}" for line in lines if line.like]
    assert not re.search("http|src=", text)
    assert text.count(' title="x = ') == len(lines)
    assert 'class="depth">cut<' in text  # in the legend
    assert all(f"[{line.chart.number}]" in text for line in lines)


def shape(tree, chart):
    """Sets, ends and positions below a chart, without what all monomials have in common."""
    least = [min(column) for column in zip(*chart.points, strict=True)]
    points = {tuple(p - m for p, m in zip(point, least, strict=True)) for point in chart.points}
    return points, chart.axes, chart.ending, [shape(tree, tree[n]) for n in chart.children]


@pytest.mark.parametrize("name", ["E8", "cut", "ten axes"])
def test_of_equal_subtrees_the_first_is_shown_and_the_others_link_to_it(name):
    tree = TREES[name]
    lines = {line.chart.number: line for line in outline(tree, 1000)}
    for line in lines.values():
        if line.like:
            assert shape(tree, line.chart) == shape(tree, tree[line.like])
            assert line.like < line.chart.number
            assert not lines[line.like].hidden
            assert f"(+ {line.hidden} charts like those below [{line.like}])" in str(line)
    opened = [shape(tree, x.chart) for x in lines.values() if x.chart.children and not x.hidden]
    assert all(opened.count(each) == 1 for each in opened)
    assert any(line.like for line in lines.values()) == (name == "E8" or name == "cut")
    assert all(line.hidden == 0 for line in outline(tree, 1000, once=False))


def test_notebooks_show_a_tree_with_links_of_its_own():
    tree = TREES["E8"]
    other = resolution_tree("x^2, y^3, z^5")
    text = tree._repr_html_()
    # Chart 9 is reached by x of {x, y}, then z of {x, z} twice: its x^2z^4 is (xz^2)^2.
    note = "(2, 2, 1) N 4 ν 5"  # the sum of the rays (1, 1, 0) and (1, 1, 1)
    line = f'title="x = xz², y = xyz², z = z; {note}">z: [9] x²z⁴ + z⁵ '
    assert line in text
    assert text.startswith("<b>host zeillinger: x² + y³ + z⁵</b>")
    assert "[1] x², y³, z⁵ " in other._repr_html_()  # an ideal
    names, _, links = folds(text)
    assert {link[1:] for link in links} <= set(names)
    assert links
    assert not set(names) & set(folds(other._repr_html_())[0])
    assert len(names) == len(folds(tree.to_html())[0])


def test_long_positions_keep_the_hosts_set():
    tree = resolution_tree(random_family("random(points=20,max=9,dim=4)"), max_depth=1)
    for form in (tree.to_svg, tree.to_text, tree.to_html):
        assert f"… ({len(tree.root.points)} monomials)" in form()
        assert "blow up {" in form()
    assert f"$ ({len(tree.root.points)} monomials) " in tree.to_latex()
    assert max(map(len, tree.to_text().splitlines()[2:])) < 130


@pytest.mark.parametrize("tree", TREES.values(), ids=TREES)
def test_latex_is_balanced_and_has_a_node_for_each_chart_shown(tree):
    text = tree.to_latex()
    check_latex(text)
    for line in outline(tree, 50):
        assert text.count(f"[{line.chart.number}] $") == 1
    assert text.startswith("\\begin{forest}")


def test_a_comparison_marks_the_charts_where_hosts_differ():
    tree = TREES["E8"]
    same = tree.compare("zeillinger_lex")
    assert "; other sets: zeillinger_lex 0 of 45" in same.to_text()
    assert "≠" not in same.to_text() + same.to_svg() + same.to_html() + same.to_dot()
    found = tree.compare("zeillinger_lex", "spivakovsky")
    assert "others" not in tree.to_dict()["charts"][0]
    moves = [chart for chart in found if chart.axes]
    sets = [players.spivakovsky(sorted(chart.points, reverse=True)) for chart in moves]
    assert [dict(chart.others)["spivakovsky"] for chart in moves] == sets
    differing = sum(axes != chart.axes for axes, chart in zip(sets, moves, strict=True))
    assert 0 < differing < len(moves) == 45
    assert f"; other sets: zeillinger_lex 0, spivakovsky {differing} of 45" in found.to_svg()
    assert found.to_dot().count("≠ spivakovsky {") == differing
    assert "<mark>≠ spivakovsky {" in found.to_html()
