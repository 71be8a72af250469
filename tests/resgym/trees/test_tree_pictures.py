"""Pictures of trees: nothing overlaps, nothing is lost, large trees fold."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest

from resgym.polynomials.singularities import random_family
from resgym.solver.solve import solve
from resgym.trees.growth import resolution_tree

SVG = "{http://www.w3.org/2000/svg}"

TREES = {
    "A1": resolution_tree("A1"),
    "D8": resolution_tree("D8"),
    "E8": resolution_tree("E8"),
    "fewest nodes": solve("E8", "nodes").tree,
    "cut": resolution_tree("E8", "all_coord", max_depth=6),
    "random": resolution_tree("E6", "random", max_depth=5, seed=3),
    "four axes": resolution_tree(random_family("random(points=15,max=9,dim=4)"), max_depth=4),
    "ten axes": resolution_tree(random_family("random(points=9,max=99,dim=10)"), max_depth=4),
    "wide": resolution_tree("bp(2,3,4,5,6)", "all_coord", max_depth=2),
    "long": resolution_tree([(2**40, 0, 7), (0, 2**41, 0)], max_depth=9),
    "over": resolution_tree([(0, 0, 0)]),
}


def drawn_width(text) -> float:
    """Width of a text element by the sizes that it names."""
    size = float(text.get("font-size", 12))
    runs = [(text.text or "", size)]
    runs += [(span.text or "", float(span.get("font-size", size))) for span in text]
    return sum(len(characters) * 0.6 * own for characters, own in runs)


def drawn(picture: str):
    """The picture, its boxes (left, top, right, bottom) by chart, and those of the moves."""
    root = ElementTree.fromstring(picture)
    drawing = root.find(f"{SVG}g")
    boxes = {}
    for group in drawing.findall(f"{SVG}g"):
        rect = group.find(f"{SVG}rect")
        x, y, w, h = (float(rect.get(key)) for key in ("x", "y", "width", "height"))
        number = int(re.match(r"chart (\d+)", group.findtext(f"{SVG}title"))[1])
        boxes[number] = (x, y, x + w, y + h)
        for text in group.findall(f"{SVG}text"):
            assert float(text.get("x")) + drawn_width(text) <= x + w
            assert float(text.get("y")) + 3 <= y + h
    labels = []
    for text in drawing.findall(f"{SVG}text"):
        x, y = float(text.get("x")), float(text.get("y"))
        labels.append((x, y - 10, x + drawn_width(text), y + 3))
    return root, boxes, labels


def overlap(one, other) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


@pytest.mark.parametrize("layout", ["tree", "outline"])
@pytest.mark.parametrize("tree", TREES.values(), ids=TREES)
def test_nothing_overlaps_and_all_is_inside(tree, layout):
    root, boxes, labels = drawn(tree.to_svg(max_charts=100, layout=layout))
    assert len(labels) == len(boxes) - 1
    everything = [*boxes.values(), *labels]
    for place, one in enumerate(everything):
        assert not any(overlap(one, other) for other in everything[place + 1 :])
    width, height = float(root.get("width")), float(root.get("height"))
    shift = float(re.search(r"translate\(0 (\d+)\)", root.find(f"{SVG}g").get("transform"))[1])
    for left, top, right, bottom in everything:
        assert left >= 0
        assert right <= width
        assert top + shift >= 0
        assert bottom + shift <= height
    for text in root.findall(f"{SVG}text"):  # the heading too
        assert float(text.get("x")) + drawn_width(text) <= width
    # Children are to the right of their parent, which is in their middle or above them.
    for number, box in boxes.items():
        children = [boxes[child] for child in tree[number].children if child in boxes]
        assert all(child[0] > box[0] for child in children)
        if children:
            middle = (children[0][1] + children[0][3] + children[-1][1] + children[-1][3]) / 4
            own = (box[1] + box[3]) / 2
            assert own < children[0][1] if layout == "outline" else abs(own - middle) < 0.3


def test_the_layouts_show_the_same_charts_and_the_narrower_one_is_taken():
    tree = TREES["E8"]
    pictures = {layout: tree.to_svg(60, layout) for layout in ("tree", "outline")}
    wide, outline = (drawn(picture) for picture in pictures.values())
    assert wide[1].keys() == outline[1].keys()
    assert wide[0].findtext(f"{SVG}title") == outline[0].findtext(f"{SVG}title")
    assert float(outline[0].get("width")) < 700 < 1280 < float(wide[0].get("width"))
    # Subtrees of different depth stand beside each other.
    assert float(wide[0].get("height")) < 46 * 30
    assert tree.to_svg(60) == pictures["outline"]
    small = TREES["A1"]
    assert small.to_svg() == small.to_svg(layout="tree") != small.to_svg(layout="outline")
    with pytest.raises(ValueError, match=r"^layout must be one of .*got 'round'$"):
        tree.to_svg(layout="round")


@pytest.mark.parametrize("limit", [1, 2, 10, 100, 500])
def test_large_trees_fold(limit):
    tree = resolution_tree("E8", "all_coord", max_depth=9)
    picture = tree.to_svg(limit)
    folded = sum(map(int, re.findall(r"\+ (\d+) charts folded", picture)))
    shown = len(drawn(picture)[1])
    assert shown <= limit
    assert shown + folded == tree.num_nodes > 500
    assert f"; {folded} charts folded" in picture


def test_pictures_say_what_is_cut():
    picture = resolution_tree("E8", max_depth=2).to_svg()
    for part in ("cut: depth limit", "stroke-dasharray", " branches cut"):
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
        if tag not in ("meta", "path", "rect", "link", "img"):
            self.stack.append(tag)
        self.folding += tag == "details"
        self.deepest = max(self.deepest, self.stack.count("details"))

    def handle_startendtag(self, tag, attrs):
        pass

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
    assert "http" not in text.replace("http://www.w3.org/2000/svg", "")
    assert all(f"[{chart.number}]" in text for chart in tree)
    assert f"<td>{tree.num_nodes}</td>" in text
    assert tree.to_svg(layout="tree") in text


def test_the_page_of_a_large_tree_stays_usable():
    text = resolution_tree("E8", "all_coord", max_nodes=30_000).to_html()
    assert "charts left out here" in text
    assert len(text) < 10_000_000


def test_a_growing_tree_shows_each_chart_once_and_each_position_of_the_longest_branch():
    tree = resolution_tree("x^2+y^3+z^4", host="spivakovsky")
    root = ElementTree.fromstring(tree.to_growing_svg())
    groups = [group.get("class", "") for group in root.iter(f"{SVG}g")]
    for depth in range(tree.depth + 1):
        charts = sum(chart.depth == depth for chart in tree)
        assert groups.count(f"from{depth}") == 2 * charts  # the boxes and the edges to them
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
        TREES["four axes"].to_growing_svg()


@pytest.mark.parametrize("form", ["to_svg", "to_html", "to_text", "to_growing_svg"])
def test_bad_limits(form):
    with pytest.raises(ValueError, match="max_charts must be at least 1, got 0"):
        getattr(TREES["A1"], form)(max_charts=0)
