"""Resolution trees of all hosts, checked move by move."""

import shutil
import subprocess
from pathlib import Path

import pytest
import torch

from resgym import make_host
from resgym.players import host_names
from resgym.polynomials.singularities import random_family, singularity
from resgym.trees.growth import resolution_tree
from tests.resgym.trees.tree_check import check_tree

STARTS = {
    "E6": list(singularity("E6")),
    "plane": list(random_family("random(points=6,max=20,dim=2)")),
    "random": list(random_family("random(points=8,max=6,dim=3)", seed=2)),
    "five": list(random_family("random(points=5,max=3,dim=5)", seed=1)),
}


@pytest.mark.parametrize("reposition", [False, True])
@pytest.mark.parametrize("start", STARTS.values(), ids=STARTS)
@pytest.mark.parametrize("host", [*host_names()])
def test_every_move_of_every_host(host, start, reposition):
    tree = resolution_tree(start, host, max_depth=4, max_nodes=200, reposition=reposition)
    check_tree(tree, start, reposition=reposition)
    assert tree.num_nodes <= 200 + len(start[0])
    assert all(chart.ending == "depth" for chart in tree if chart.depth == 4 and chart.is_cut)


def test_limits_mark_what_they_cut():
    whole = resolution_tree("E8")
    for limit in range(14):
        tree = resolution_tree("E8", max_depth=limit)
        assert tree.depth == min(limit, whole.depth)
        assert tree.num_nodes == sum(chart.depth <= limit for chart in whole)
        open_charts = [c for c in whole if c.depth == limit and c.children]
        assert tree.num_cut == len(open_charts)
        assert tree.complete == (limit >= 13)
        check_tree(tree, list(singularity("E8")))
    for limit in (1, 2, 10, 60):
        tree = resolution_tree("E8", max_nodes=limit)
        assert limit <= tree.num_nodes <= limit + 2
        assert {c.ending for c in tree if c.is_cut} == {"size"}
        check_tree(tree, list(singularity("E8")))
    assert resolution_tree("E8", max_nodes=91).complete


def test_exponents_past_the_bound_cut_the_branch():
    start = [(2**59, 2**59 - 1), (2**59 - 2, 2**59)]
    tree = resolution_tree(start, "all_coord")
    assert (tree.root.ending, tree.complete) == ("overflow", False)
    assert resolution_tree(start, "all_coord", max_depth=0).root.ending == "depth"


def test_hosts_as_objects_and_functions():
    def all_axes(state, coords, rng):
        assert coords is None
        assert state.points.shape[1:] == (20, 3)
        return torch.full_like(state.count, 3)

    hosts = ("all_coord", make_host("all_coord"), all_axes)
    named, *others = (resolution_tree("E6", host, max_depth=3) for host in hosts)
    assert all(named.to_dict()["charts"] == each.to_dict()["charts"] for each in others)
    assert "all_axes" in others[-1].title


def test_a_host_that_draws_is_called_one_sample():
    titles = [
        resolution_tree("A1", host, seed=3, max_depth=2).title
        for host in ("random", make_host("random_pair"), "spivakovsky")
    ]
    position = "x² + y² + z²"
    assert titles[0] == f"host random (one sample, seed 3): {position}"
    assert "one sample, seed 3" in titles[1]
    assert titles[2] == f"host spivakovsky: {position}"


@pytest.mark.parametrize("ending", ["txt", "dot", "svg", "tex", "json"])
def test_the_written_tree(ending):
    """A tree that is cut in two ways, with the sets of another host."""
    tree = resolution_tree("E8", max_depth=4, max_nodes=14).compare("spivakovsky")
    tree.title = 'a "title" with \\ and <b>'
    expected = Path(__file__).with_name(f"tree.{ending}").read_text(encoding="utf-8")
    assert f"{tree.to_form(ending).rstrip()}\n" == expected
    if ending == "dot" and shutil.which("dot"):
        done = subprocess.run(["dot", "-Tsvg"], input=expected.encode(), capture_output=True)
        assert done.returncode == 0, done.stderr
        assert done.stdout.count(b'class="node"') == tree.num_nodes
