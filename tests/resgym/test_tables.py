"""Results show themselves in notebooks and in LaTeX."""

import re
from html import unescape
from xml.etree import ElementTree

import pytest

import resgym
from resgym.scoreboard import shipped_rows
from resgym.texts import Formula, Table, latex, markdown_table
from tests.resgym.latex import check_latex, compile_latex

SPEC = resgym.GameSpec()
RESULTS = {
    "solution": lambda: resgym.solve("A2"),
    "state": lambda: resgym.state_from_points([[(1, 2, 3), (0, 4, 11)]] * 3, SPEC),
    "rho": lambda: resgym.rho("zeillinger", "random", games=20),
    "cross-play": lambda: resgym.cross_play(["zeillinger"], ["random", "choose_first"], games=5),
    "scoreboard": shipped_rows,
    "divisors": lambda: resgym.resolution_tree("A2").divisors(),
}


def cells(page):
    """The cells of a table in HTML, row by row."""
    rows = (re.findall("<t[hd]>([^<]*)", row) for row in page.split("<tr>")[1:])
    return [[unescape(cell) for cell in row] for row in rows]


class Odd(Table):
    """A table of everything that LaTeX or HTML could stumble over."""

    def table_rows(self):
        return [("a_b", "50 % & more"), (r"\x{1}^2 ~ #$ <&>", Formula("x₁₂y² + z¹⁰")), ("…", "± 2")]


RESULTS["odd"] = Odd


@pytest.mark.parametrize("name", RESULTS)
def test_every_cell_is_in_the_html_and_the_latex(name):
    result = RESULTS[name]()
    rows = result.table_rows()
    assert len({len(row) for row in rows}) == 1
    assert cells(result._repr_html_()) == [list(row) for row in rows]
    text = result.to_latex()
    check_latex(text)
    assert text.count(r"\\") == len(rows)


def test_latex_of_text_and_of_formulas():
    assert latex("x₁² of 50 % in a_b") == r"x$_{1}$$^{2}$ of 50 \% in a\_b"
    assert latex(Formula("x₁²y⁵ + 1")) == "$x_{1}^{2}y^{5} + 1$"
    assert latex(Formula("{x, z}")) == r"$\{x, z\}$"
    assert resgym.parse("x^2+y^13*z").to_latex() == "$x^{2} + y^{13}z$"


def test_positions_are_pictures_with_their_polynomial():
    picture = ElementTree.fromstring(resgym.singularity("E8")._repr_svg_())
    assert "#3" in "".join(picture.itertext())
    assert '<div class="position">x² + y³ + z⁵<br><svg ' in resgym.singularity("E8")._repr_html_()
    four = resgym.parse("x^2+y^3+z^5+w^2")
    assert four._repr_svg_() is None
    assert "x² + y³ + z⁵ + w²<br></div>" in four._repr_html_()


def test_a_state_shows_its_first_games():
    starts = resgym.state_from_points([[(1, 0), (0, 2)]] * 25, resgym.GameSpec(2))
    heading, *rows = starts.table_rows()
    assert heading == ("of 25", "position")
    assert rows == [(str(game), "x + y²") for game in range(20)]


def test_one_writer_of_text():
    rows = [("host", "rho"), ("a", "0.5")]
    assert markdown_table(rows) == "| host | rho |\n|---|---:|\n| a | 0.5 |"
    board = shipped_rows()
    assert str(board).splitlines()[0].split()[:2] == ["task", "player"]
    assert len(str(board).splitlines()) == 1 + len({(row.task, row.name) for row in board})


def test_latex_compiles(tmp_path):
    tree = resgym.resolution_tree("E8").compare("spivakovsky")
    results = [tree.to_latex(), resgym.parse("x_1^2+x_2^3").to_latex()]
    results += [RESULTS[name]().to_latex() for name in ("odd", "state", "solution", "divisors")]
    if not compile_latex("\n\n".join(results), tmp_path):
        pytest.skip("no LaTeX with the package forest")
