"""The table of the hosts' trees."""

from benchmarks import trees
from benchmarks.results import ROOT


def test_the_page_shows_what_the_command_prints():
    hosts, text = ["any", "spivakovsky"], (ROOT / "docs" / "results.md").read_text()
    for row in trees.rows(hosts, 5.0, ["simple"]):
        assert f"| {' | '.join(row)} |" in text


def test_families_have_the_sizes_of_the_page():
    families = trees.families()
    axes = {name: {len(points[0]) for points in members} for name, members in families.items()}
    assert axes.pop("curves") == {2}
    assert (axes.pop("threefolds"), axes.pop("fourfolds")) == ({4}, {5})
    assert set.union(*axes.values()) == {3}
