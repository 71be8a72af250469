"""Pictures and pages of trees: every chart is there, large trees fold."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest

from resgym.polynomials.singularities import random_family
from resgym.trees.growth import resolution_tree

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
    width, height = float(root.get("width")), float(root.get("height"))
    boxes = [each.get("points").split() for each in root.findall(f"{SVG}polygon")]
    texts = [text for text in root.findall(f"{SVG}text") if re.search(r"\[\d+\]", text.text)]
    assert len(boxes) == len(texts) <= 100
    lefts, last = {}, 0.0
    for corners, text in zip(boxes, texts, strict=True):
        left, top = map(float, corners[0].split(","))
        right, bottom = map(float, corners[2].split(","))
        assert 0 <= left < right <= width
        assert last <= top < bottom <= height
        last = bottom
        chart = tree[int(re.search(r"\[(\d+)\]", text.text)[1])]
        lefts[chart.number] = left
        assert chart.parent is None or lefts[chart.parent] < left


@pytest.mark.parametrize("limit", [1, 10, 100, 500])
def test_large_trees_fold(limit):
    tree = resolution_tree("E8", "all_coord", max_depth=9)
    for form in (tree.to_svg, tree.to_html, tree.to_text):
        text = form(limit)
        folded = sum(map(int, re.findall(r"\+ (\d+) charts folded", text)))
        shown = len(re.findall(r"\[\d+\] ", text))
        assert shown <= limit
        assert shown + folded == tree.num_nodes > 500


def test_pictures_say_what_is_cut():
    picture = resolution_tree("E8", max_depth=2).to_svg()
    for part in ("cut: depth limit", "#fbe5e1", " branches cut"):
        assert part in picture
        assert part not in TREES["E8"].to_svg()
    assert "smooth" in resolution_tree("D4", smooth_stop=True, reposition=True).to_svg()


class Page(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.stack: list[str] = []
        self.deepest = self.folding = 0
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        assert not {"src", "href"} & dict(attrs).keys()
        if tag != "meta":
            self.stack.append(tag)
        self.folding += tag == "details"
        self.deepest = max(self.deepest, self.stack.count("details"))

    def handle_endtag(self, tag):
        assert self.stack.pop() == tag


@pytest.mark.parametrize("name", ["A1", "E8"])
def test_the_page_folds_and_needs_nothing_else(name):
    tree = TREES[name]
    text = tree.to_html()
    page = Page(text)
    assert page.stack == []
    assert page.folding == sum(bool(chart.children) for chart in tree)
    assert page.deepest == tree.depth
    assert "http" not in text
    assert all(f"[{chart.number}]" in text for chart in tree)


def test_a_growing_tree_shows_each_chart_once_and_each_position_of_the_longest_branch():
    tree = resolution_tree("x^2+y^3+z^4", host="spivakovsky")
    root = ElementTree.fromstring(tree.to_growing_svg())
    groups = [group.get("class", "") for group in root.iter(f"{SVG}g")]
    for depth in range(tree.depth + 1):
        assert groups.count(f"from{depth}") == sum(chart.depth == depth for chart in tree)
        assert groups.count(f"at{depth}") == 1
    style = root.find(f"{SVG}style").text
    # What is there from a depth on is hidden before it, what is there at it also afterwards.
    frames = re.findall(r"@keyframes (from|at)(\d+)\{([^@]*?)\}(?=@|\.)", style)
    assert len(frames) == 2 * (tree.depth + 1)
    for kind, depth, frame in frames:
        assert frame.startswith("0%,") == (int(depth) > 0)
        ends_hidden = frame.endswith("100%{opacity:0}")
        assert ends_hidden == (kind == "at" and int(depth) < tree.depth)
    with pytest.raises(ValueError, match="2 or 3 axes"):
        TREES["ten axes"].to_growing_svg()


@pytest.mark.parametrize("form", ["to_svg", "to_html", "to_text", "to_growing_svg"])
def test_bad_limits(form):
    with pytest.raises(ValueError, match="max_charts must be at least 1, got 0"):
        getattr(TREES["A1"], form)(max_charts=0)
