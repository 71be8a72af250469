"""Pictures of trees: nothing overlaps, nothing is lost, large trees fold."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from itertools import pairwise
from xml.etree import ElementTree

import pytest

from resgym.polynomials.singularities import random_family, singularity_names
from resgym.solver.solve import solve
from resgym.trees.growth import resolution_tree
from resgym.trees.svg import layout_tree, text_width
from resgym.trees.text import shown_charts

SVG = "{http://www.w3.org/2000/svg}"


def trees():
    yield from (resolution_tree(name) for name in singularity_names())
    yield solve("E8", "nodes").tree
    yield solve("E8").tree
    yield resolution_tree("E8", "all_coord", max_depth=6)
    yield resolution_tree("E6", "random", max_depth=5, seed=3)
    yield resolution_tree(random_family("random(points=15,max=9,dim=4)"), max_depth=4)
    yield resolution_tree(random_family("random(points=9,max=99,dim=10)"), max_depth=4)
    yield resolution_tree("bp(2,3,4,5,6)", "all_coord", max_depth=2)
    yield resolution_tree([(2**40, 0, 7), (0, 2**41, 0)], max_depth=9)
    yield resolution_tree([(0, 0, 0)])


TREES = list(trees())


def boxes_and_labels(picture: str):
    """Rectangles (left, top, right, bottom) of boxes, with text inside, and of edge labels."""
    root = ElementTree.fromstring(picture)
    drawing = root.find(f"{SVG}g")
    boxes = []
    for group in drawing.findall(f"{SVG}g"):
        rect = group.find(f"{SVG}rect")
        x, y, w, h = (float(rect.get(key)) for key in ("x", "y", "width", "height"))
        boxes.append((x, y, x + w, y + h))
        for text in group.findall(f"{SVG}text"):
            assert float(text.get("x")) + drawn_width(text) <= x + w
            assert float(text.get("y")) + 3 <= y + h
    labels = []
    for text in drawing.findall(f"{SVG}text"):
        x, y = float(text.get("x")), float(text.get("y"))
        labels.append((x, y - 10, x + drawn_width(text), y + 3))
    return root, boxes, labels


def drawn_width(text) -> float:
    """Width of a text element by the sizes that it names."""
    size = float(text.get("font-size", 12))
    runs = [(text.text or "", size)]
    runs += [(span.text or "", float(span.get("font-size", size))) for span in text]
    return sum(len(characters) * 0.6 * own for characters, own in runs)


def overlap(one, other) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


@pytest.mark.parametrize("layout", ["tree", "outline"])
@pytest.mark.parametrize("tree", TREES, ids=lambda tree: tree.title[:40])
def test_nothing_overlaps_and_all_is_inside(tree, layout):
    root, boxes, labels = boxes_and_labels(tree.to_svg(max_charts=100, layout=layout))
    assert len(labels) == len(boxes) - 1
    everything = boxes + labels
    for place, one in enumerate(everything):
        for other in everything[place + 1 :]:
            assert not overlap(one, other)
    width, height = float(root.get("width")), float(root.get("height"))
    shift = float(re.search(r"translate\(0 (\d+)\)", root.find(f"{SVG}g").get("transform"))[1])
    for left, top, right, bottom in everything:
        assert left >= 0
        assert right <= width
        assert top + shift >= 0
        assert bottom + shift <= height
    # The heading too.
    for text in root.findall(f"{SVG}text"):
        assert float(text.get("x")) + drawn_width(text) <= width


@pytest.mark.parametrize("tree", TREES, ids=lambda tree: tree.title[:40])
def test_edges_do_not_cross_boxes_or_each_other(tree):
    by_depth: dict[int, list] = {}
    for box in layout_tree(tree, 100)[0]:
        by_depth.setdefault(box.chart.depth, []).append(box)
    for column in by_depth.values():
        # In a column, order of the branches is order from top to bottom.
        for one, other in pairwise(column):
            assert one.y + one.height / 2 < other.y - other.height / 2
        spans = [(box.children[0].y, box.children[-1].y) for box in column if box.children]
        for one, other in pairwise(spans):
            assert one[1] < other[0]
        for box in column:
            if box.children:
                middle = (box.children[0].y + box.children[-1].y) / 2
                assert abs(box.y - middle) < 1e-6


@pytest.mark.parametrize("tree", TREES, ids=lambda tree: tree.title[:40])
def test_an_outline_shows_the_charts_of_the_tree(tree):
    """The same charts and totals, parents above their children and to the left of them."""
    pictures = {
        layout: ElementTree.fromstring(tree.to_svg(60, layout)) for layout in ("tree", "outline")
    }
    titles, tops = {}, {}
    for layout, root in pictures.items():
        groups = root.find(f"{SVG}g").findall(f"{SVG}g")
        titles[layout] = {group.findtext(f"{SVG}title") for group in groups}
        tops[layout] = [
            (float(group.find(f"{SVG}rect").get("x")), float(group.find(f"{SVG}rect").get("y")))
            for group in groups
        ]
    assert titles["outline"] == titles["tree"]
    assert pictures["outline"].findtext(f"{SVG}title") == pictures["tree"].findtext(f"{SVG}title")
    rows = [y for _, y in tops["outline"]]
    assert rows == sorted(rows)
    numbers = [
        int(re.match(r"chart (\d+)", group.findtext(f"{SVG}title"))[1])
        for group in pictures["outline"].find(f"{SVG}g").findall(f"{SVG}g")
    ]
    place = dict(zip(numbers, tops["outline"], strict=True))
    for number in numbers[1:]:
        parent = place[tree[number].parent]
        assert parent[0] < place[number][0]
        assert parent[1] < place[number][1]


def test_an_outline_of_a_deep_tree_is_narrow():
    tree = resolution_tree("E8")
    widths = {
        layout: float(ElementTree.fromstring(tree.to_svg(layout=layout)).get("width"))
        for layout in ("tree", "outline")
    }
    assert widths["outline"] < 700 < 2000 < widths["tree"]
    # What is too wide to be read is an outline unless it is asked for; pages zoom.
    assert tree.to_svg() == tree.to_svg(layout="outline")
    assert tree.to_svg(layout="tree") in tree.to_html()
    small = resolution_tree("A2")
    assert small.to_svg() == small.to_svg(layout="tree") != small.to_svg(layout="outline")
    with pytest.raises(
        ValueError, match=r"^layout must be one of \['tree', 'outline'\], got 'round'$"
    ):
        tree.to_svg(layout="round")


def test_subtrees_are_packed():
    """Branches of different depth stand beside each other, not below each other's ends."""
    _, _, height = layout_tree(resolution_tree("E8"), 100)
    assert height < 46 * 30


def test_large_trees_fold():
    tree = resolution_tree("E8", "all_coord", max_depth=10)
    assert tree.num_nodes > 1000
    for limit in (1, 2, 10, 100, 500):
        boxes, *_ = layout_tree(tree, limit)
        assert len(boxes) <= limit
        assert len(boxes) + sum(box.hidden for box in boxes) == tree.num_nodes
        assert all(f"+ {box.hidden} charts" in box.note for box in boxes if box.hidden)
    assert not any(shown_charts(tree, tree.num_nodes).values())
    picture = tree.to_svg(100)
    assert "charts folded" in picture
    assert len(picture) < 200_000


def test_pictures_say_what_is_cut():
    picture = resolution_tree("E8", max_depth=2).to_svg()
    assert "cut: depth limit" in picture
    assert "stroke-dasharray" in picture
    assert "2 branches cut" in picture or "3 branches cut" in picture
    assert "stroke-dasharray" not in resolution_tree("E8").to_svg()
    assert "smooth" in resolution_tree("D4", smooth_stop=True, reposition=True).to_svg()


def test_width_of_text():
    assert text_width("ab") == pytest.approx(2 * 0.61 * 12)
    assert text_width("x²") == pytest.approx(0.61 * (12 + 9))


class Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.stack: list[str] = []
        self.deepest = 0
        self.folding = 0
        self.links: list[str] = []

    def handle_starttag(self, tag, attrs):
        names = dict(attrs)
        self.links += [names[key] for key in ("src", "href") if key in names]
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
    tree = resolution_tree(name)
    text = tree.to_html()
    page = Page()
    page.feed(text)
    assert page.stack == []
    assert page.folding == sum(bool(chart.children) for chart in tree)
    assert page.deepest == tree.depth
    assert page.links == []
    assert "http" not in text.replace("http://www.w3.org/2000/svg", "")
    for chart in tree:
        assert f"[{chart.number}]" in text
    assert f"<td>{tree.num_nodes}</td>" in text


def test_the_page_of_a_large_tree_stays_usable():
    tree = resolution_tree("E8", "all_coord", max_nodes=30_000)
    text = tree.to_html()
    assert "charts left out here" in text
    assert len(text) < 10_000_000


@pytest.mark.parametrize("form", ["to_svg", "to_html", "to_text"])
def test_bad_limits(form):
    with pytest.raises(ValueError, match="max_charts must be at least 1, got 0"):
        getattr(resolution_tree("A1"), form)(max_charts=0)


def test_a_growing_tree_shows_each_chart_once_and_each_position_of_the_longest_branch():
    tree = resolution_tree("x^2+y^3+z^4", host="spivakovsky")
    root = ElementTree.fromstring(tree.to_growing_svg())
    svg = "{http://www.w3.org/2000/svg}"
    groups = [group.get("class", "") for group in root.iter(f"{svg}g")]
    for depth in range(tree.depth + 1):
        charts = sum(chart.depth == depth for chart in tree)
        assert groups.count(f"from{depth}") == 2 * charts  # the boxes and the edges to them
        assert groups.count(f"at{depth}") == 1
    style = root.find(f"{svg}style").text
    # What is there from a depth on is hidden before it, what is there at it also afterwards.
    frames = re.findall(r"@keyframes (from|at)(\d+)\{([^@]*?)\}(?=@|\.)", style)
    assert len(frames) == 2 * (tree.depth + 1)
    for kind, depth, frame in frames:
        assert frame.startswith("0%,") == (int(depth) > 0)
        ends_hidden = frame.endswith("100%{opacity:0}")
        assert ends_hidden == (kind == "at" and int(depth) < tree.depth)


def test_a_tree_grows_in_the_plane_and_in_space_only():
    with pytest.raises(ValueError, match="2 or 3 axes"):
        resolution_tree([(1, 2, 3, 4), (4, 3, 2, 1)]).to_growing_svg()
    with pytest.raises(ValueError, match="max_charts"):
        resolution_tree("A2").to_growing_svg(max_charts=0)
