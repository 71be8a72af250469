"""Results as text, HTML and LaTeX; text of others is short in errors, and escaped everywhere."""

import json
import re
from dataclasses import asdict
from html import unescape
from xml.etree import ElementTree

import pytest

import resgym
from resgym.benchmark import evaluate, tasks
from resgym.pictures.plots import Curve, plot_curves
from resgym.pictures.shapes import Picture, Text, picture_to_svg
from resgym.scoreboard import shipped_rows
from resgym.texts import (
    MOST,
    Formula,
    Table,
    latex,
    markdown_table,
    markup,
    one_line,
    printable,
    short,
    shown,
    text_table,
)
from resgym.trees.growth import ResolutionTree
from tests.resgym.commands import run
from tests.resgym.latex import check_latex, compile_latex

# Escape sequences (C0 and C1), a turned reading direction, line ends, what markup reads.
HOSTILE = (
    "\x1b[2J\x1b]0;pwn\x07",
    "\x9b2J\x85\x7f\x00\x08",
    "\u202egnp.exe\u2066\u200b\u2028",
    "a|b\nc\r\td",
    "<script>&\"'</script>",
    r"\input{x} $\frac$ 50% #_^~",
    "[x](javascript:1) `y` *z*",
    "\ud800",
)
LONG = "x" * 50_000


def is_plain(text):
    return all(each.isprintable() or each == "\n" for each in text)


@pytest.mark.parametrize("name", HOSTILE)
def test_every_place_has_its_escape(name):
    class Named(Table):
        def table_rows(self):
            return [("player", "rho"), (name, "1")]

    table = Named()
    assert is_plain(text_table(table.table_rows()))
    assert str(table).count("\n") == 1
    lines = markdown_table(table.table_rows()).splitlines()
    assert [len(re.findall(r"(?<!\\)\|", line)) for line in lines] == [3, 3, 3]
    assert is_plain("".join(lines))
    assert not re.search(r"(?<!\\)[<`*\[]", lines[2])
    check_latex(latex(name).replace("\\ud800", ""))
    assert is_plain(latex(name))
    page = table._repr_html_()
    assert set(re.findall(r"<(\w+)", page)) == {"table", "tr", "th", "td"}
    assert is_plain(page)
    picture = picture_to_svg(Picture(9, 9, (Text((0, 0), name, "#000000"),), name))
    ElementTree.fromstring(picture)
    assert is_plain(picture)
    tree = ResolutionTree(resgym.resolution_tree("A1").charts, "xyz", name)
    assert is_plain(markup(name))
    assert "<script" not in name or "<script>&" not in tree.to_html()
    assert is_plain(one_line(ValueError(name)))
    plot_curves([Curve(name, [0.0], [0.5])], levels={name: 0.1}).draw_without_rendering()


@pytest.mark.parametrize("name", HOSTILE)
def test_names_of_a_file_cannot_control_the_terminal(name, capsys, tmp_path):
    row = {**asdict(shipped_rows()[0]), "name": name, "details": {name: 1.0}}
    (tmp_path / "s.json").write_text(json.dumps([row]))
    code, out, err = run(capsys, "scoreboard", "--file", str(tmp_path / "s.json"))
    assert (code, err) == (0, "")
    assert is_plain(out)


def test_paths_cannot_control_the_terminal(capsys, tmp_path):
    for name in ("\x1b[2J.html", "\x9b.html"):
        code, out, _ = run(capsys, "tree", "A1", "--out", str(tmp_path / name))
        assert (code, is_plain(out)) == (0, True)
    code, _, err = run(capsys, "tree", "x^2 +\x1b[2J y^3")
    assert (code, is_plain(err)) == (2, True)


CALLS = {
    "parse": lambda: resgym.parse(LONG),
    "parse digits": lambda: resgym.parse("x^" + "9" * 40_000),
    "parse variables": lambda: resgym.parse("x+y", variables=LONG),
    "parse file": lambda: resgym.parse(LONG + ".txt"),
    "parse control": lambda: resgym.parse("x^2 +" + "\x1b" * 40_000),
    "parse rows": lambda: resgym.parse([[LONG, 1]]),
    "singularity": lambda: resgym.singularity(LONG),
    "family": lambda: resgym.random_family(f"random({LONG}=3)"),
    "solve": lambda: resgym.solve("E8", LONG),
    "time": lambda: resgym.solve("E8", time_limit=LONG),
    "points": lambda: resgym.state_from_points(LONG, resgym.GameSpec()),
    "depth": lambda: resgym.resolution_tree("E8", max_depth=LONG),
    "number": lambda: resgym.resolution_tree("E8", max_depth=-(10**400)),
    "huge": lambda: resgym.resolution_tree("E8", max_depth=-(10**5000)),
    "form": lambda: resgym.resolution_tree("A1").to_script(LONG),
    "starts": lambda: resgym.rho("random", "random", starts=LONG),
    "task": lambda: evaluate("random", LONG),
    "envs": lambda: tasks.make("worst-5", reward=LONG),
    "mode": lambda: tasks.make("worst-5", autoreset_mode=LONG),
    "device": lambda: tasks.make("worst-5", device=LONG),
    "label": lambda: plot_curves([Curve(LONG, [0.0], [float("nan")] * 9_999)]),
}


@pytest.mark.parametrize("call", CALLS)
def test_errors_of_long_values_are_short(call):
    with pytest.raises((TypeError, ValueError)) as error:
        CALLS[call]()
    assert 10 < len(str(error.value)) <= MOST
    assert str(error.value).count("\n") in (0, 2)  # the text that is parsed, with a caret


@pytest.mark.parametrize(
    "arguments",
    [
        ("tree", LONG),
        ("rho", LONG, "random"),
        ("rho", "random", "random", "--games", LONG),
        (LONG,),
        ("tree", "E8", f"--{LONG}"),
        ("certificate", LONG),
        ("scoreboard", LONG),
    ],
)
def test_errors_of_commands_are_short(arguments, capsys):
    code, _, err = run(capsys, *arguments)
    assert code == 2
    assert len(err) <= MOST
    assert is_plain(err)


def test_the_middle_is_left_out_and_numbers_are_at_the_right():
    assert short("a" * MOST) == "a" * MOST
    text = short("begin" + LONG + "end")
    assert (len(text) <= MOST, text[:5], text[-3:], " ... " in text) == (True, "begin", "end", True)
    assert shown("x\ny") == r"'x\ny'"
    assert printable("x² + y₁ → ±") == "x² + y₁ → ±"
    assert text_table([("a", "bc"), ("def", "1")]) == "a    bc\ndef   1"


RESULTS = {
    "solution": lambda: resgym.solve("A2"),
    "state": lambda: resgym.state_from_points([[(1, 2, 3), (0, 4, 11)]] * 3, resgym.GameSpec()),
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
    assert latex(Formula("$input α <")) == r"$\$input \alpha  <$"
    assert resgym.parse("x^2+y^13*z").to_latex() == "$x^{2} + y^{13}z$"
    ideal = resgym.parse("beta_1^2*x, alpha")
    assert (ideal.pretty(), ideal.to_latex()) == ("β₁²x, α", r"$\beta _{1}^{2}x, \alpha $")


def test_positions_are_pictures_with_their_polynomial():
    picture = ElementTree.fromstring(resgym.parse("a^2+b^3+c^5")._repr_svg_())
    assert {"#3", "a²", "b³"} <= {*picture.itertext()}
    assert '<div class="position">x² + y³ + z⁵<br><svg ' in resgym.singularity("E8")._repr_html_()
    four = resgym.parse("x^2+y^3+z^5+w^2")
    assert four._repr_svg_() is None
    assert "x² + y³ + z⁵ + w²<br></div>" in four._repr_html_()


def test_a_state_shows_its_first_games():
    starts = resgym.state_from_points([[(1, 0), (0, 2)]] * 25, resgym.GameSpec(2))
    heading, *rows = starts.table_rows()
    assert heading == ("of 25", "position")
    assert rows == [(str(game), "x + y²") for game in range(20)]


def test_latex_compiles(tmp_path):
    tree = resgym.resolution_tree("E8").compare("spivakovsky")
    results = [tree.to_latex(), resgym.parse("x_1^2+x_2^3").to_latex()]
    results += [RESULTS[name]().to_latex() for name in ("odd", "state", "solution", "divisors")]
    if not compile_latex("\n\n".join(results), tmp_path):
        pytest.skip("no LaTeX with the package forest")
