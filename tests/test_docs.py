"""Pages run as written, in their order, with programs beside them; their figures are compared."""

import io
import json
import re
import runpy
import shlex
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from fractions import Fraction
from pathlib import Path

import gymnasium
import numpy as np
import pytest
import torch

import resgym
from benchmarks import ade_table
from resgym.benchmark import load, tasks
from resgym.cli import main
from resgym.pictures.shapes import picture_to_svg
from sb3_ext.checkpoints.models import save_player
from sb3_ext.train import quickstart
from tests.sb3_ext.helpers import start_quickly

DOCS = Path(__file__).resolve().parents[1] / "docs"
PAGE = (DOCS / "resolution.md").read_text(encoding="utf-8")
README = (DOCS.parent / "README.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```(sh|python)\n(.*?)^```(?:\n\n```text\n(.*?)^```)?", re.M | re.S)
BLOCKS = BLOCK.findall(PAGE)
START = "x^2+y^3+z^5"


def table_rows(text):
    """The rows of singularities in a table of Markdown."""
    lines = re.findall(r"^\| ([ADE]\d \|.*) \|$", text, flags=re.M)
    return [re.split(r" *\| *", line) for line in lines]


TABLE = table_rows(PAGE)


def without_times(text):
    """Lines, without what depends on the machine."""
    return re.sub(r"\d+ positions, \d+\.\d+ s", "_", text).splitlines()


def assert_in_order(expected, printed):
    """Every expected line was printed, in this order; "..." stands for any lines."""
    lines = iter(without_times(printed))
    for line in without_times(expected):
        if line != "...":
            assert any(line == other for other in lines), line


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Where the page's commands run, with the host that its training command would save."""
    folder = tmp_path_factory.mktemp("page")
    model = quickstart.make_model(updates=3, seed=0)
    save_player(folder / "runs" / "ade" / "host", model, {})
    return folder


def run_ade_table(arguments, monkeypatch):
    if "--model" not in arguments:
        start_quickly(monkeypatch)
        arguments = [*arguments, "--updates", "2"]
    ade_table.main([*arguments, "--names", "A1", "D4", "--max-depth", "4"])


@pytest.mark.parametrize("name", ["resolution", "invariants"])
def test_a_page_runs_and_prints_what_is_shown(name, folder, monkeypatch, capsys):
    if name == "invariants":
        pytest.importorskip("sympy", reason="needs the extra math")
    monkeypatch.chdir(folder)
    names = {"__name__": "__main__"}
    for language, source, shown in BLOCK.findall((DOCS / f"{name}.md").read_text("utf-8")):
        # What a person types in a game is what stands after "choose:" on the page.
        answers = re.findall(r"^choose: (.*)$", shown, flags=re.M)
        monkeypatch.setattr("sys.stdin", io.StringIO("".join(f"{answer}\n" for answer in answers)))
        command = shlex.split(source) if language == "sh" else []
        if language == "python":
            less = source.replace("max_nodes=2000", "max_nodes=50")
            exec(compile(less, f"{name}.md", "exec"), names)
        elif command[0] == "resgym":
            # The host is untrained here: of a repeated option the last one counts.
            less = ["--max-nodes", "50"] if "--max-nodes" in command else []
            assert main([*command[1:], *less]) == 0
        else:
            assert command[:3] == ["python", "-m", "benchmarks.ade_table"]
            run_ade_table(command[3:], monkeypatch)
        printed = capsys.readouterr().out
        assert printed.strip(), source
        assert_in_order(shown, printed)


def in_the_least_depth(rows):
    return sum(row[1] == row[5] for row in rows)


def test_table_of_the_page():
    assert [row[0] for row in TABLE] == list(resgym.singularity_names())
    for row in TABLE:
        name, least_depth, fewest_nodes, depth, nodes, trained_depth, trained_nodes = row
        (found,) = ade_table.table("zeillinger", [name])
        assert found[:5] == (name, least_depth, fewest_nodes, depth, nodes)
        # No host can do better than what is proved; the page says that this one beats Zeillinger's.
        assert int(least_depth) <= int(trained_depth) <= int(depth)
        assert int(fewest_nodes) <= int(trained_nodes) <= int(nodes)
    count = re.search(r"least possible depth on ([\w ]+) simple sing", " ".join(README.split()))[1]
    assert (count == "the sixteen") == (in_the_least_depth(TABLE) == 16)


@pytest.mark.long
def test_training_gives_what_the_table_shows(tmp_path, monkeypatch, capsys):
    """The page's own commands; another processor may round otherwise, hence the margins."""
    monkeypatch.chdir(tmp_path)
    commands = [source for language, source, _ in BLOCKS if "benchmarks.ade_table" in source]
    assert len(commands) == 2
    for command in commands:
        ade_table.main(shlex.split(command)[3:])
    rows = table_rows(capsys.readouterr().out)
    assert abs(in_the_least_depth(rows) - in_the_least_depth(TABLE)) <= 3
    for found, shown in zip(rows, TABLE, strict=True):
        assert found[:5] == shown[:5]
        assert abs(int(found[5]) - int(shown[5])) <= 3
        assert int(found[6]) <= 1.3 * int(shown[6])


def test_pictures_are_those_of_the_commands():
    picture = re.compile(r"\]\((?:docs/|\.\./)?images/(\w+)\.svg\)")
    names = picture.findall(PAGE)
    pages = (README, *(page.read_text(encoding="utf-8") for page in DOCS.rglob("*.md")))
    shown = {each for page in pages for each in picture.findall(page)}
    one_move = runpy.run_path(str(DOCS / "images" / "one_move.py"))["picture"]()
    made = {
        "one_move": picture_to_svg(one_move),
        "resolving_E6": resgym.resolution_tree("E6", host="taught").to_svg(),
    }
    assert set(re.findall(r"\]\(docs/images/(\w+)\.svg\)", README)) == {*made, "win"}
    for name, picture in made.items():
        assert (DOCS / "images" / f"{name}.svg").read_text(encoding="utf-8") == picture
    assert sorted(shown) == sorted(path.stem for path in (DOCS / "images").glob("*.svg"))
    fewest, hosts = resgym.solve(START, "nodes").tree, ("zeillinger", "spivakovsky")
    trees = {
        "fewest_nodes": fewest.compare(*hosts, "taught"),
        "zeillinger": resgym.resolution_tree(START),
    }
    for name in names:
        assert f"--out {name}.svg" in PAGE
        picture = ElementTree.parse(DOCS / "images" / f"{name}.svg").getroot()
        text = "".join(picture.itertext())
        title = picture.findtext("{http://www.w3.org/2000/svg}title")
        drawn = ElementTree.fromstring(trees[name].to_svg())
        assert (title, text) == (drawn[0].text, "".join(drawn.itertext()))
    assert set(names) == set(trees)


def test_linked_files_exist():
    for page in DOCS.rglob("*.md"):
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.name}: {target}"


HEADINGS = """Action Space, Observation Space, Rewards, Starting State, Episode End, Arguments,
Version History"""


@pytest.mark.parametrize("dimension", [3, 4])
@pytest.mark.parametrize("page", sorted((DOCS / "environments").glob("*.md")), ids=lambda p: p.stem)
def test_a_page_of_an_environment_is_one_of_gymnasium_s(page, dimension):
    """The headings of Gymnasium's own pages, and the spaces of the environment that is named."""
    text = page.read_text(encoding="utf-8")
    assert re.findall("^## (.*)", text, re.M) == re.split(r",\s", HEADINGS)
    cells = dict(re.findall(r"^\| ([\w ]+) \| `(.*)` \|$", text, re.M))
    env = eval(cells["Import"].replace('0")', f'0", dimension={dimension})'))
    names = {**vars(gymnasium.spaces), "D": dimension, "P": 20, "float32": np.float32}
    for name, space in (("Action", env.action_space), ("Observation", env.observation_space)):
        assert eval(cells[f"{name} space"].replace("^", "**"), names) == space


def test_no_line_of_a_page_is_taken_for_a_comment_or_a_break():
    pages = [*DOCS.rglob("*.md"), DOCS.parent / "README.md"]
    lost = {
        f"{page.name}: {line}"
        for page in pages
        for part in page.read_text(encoding="utf-8").split("```")[::2]  # outside blocks
        for line in part.splitlines()
        if re.match(r" {0,3}(%|\+\+\+)", line)  # what MyST leaves out
    }
    assert not lost


def test_the_mathematics(capsys):
    page = (DOCS / "mathematics.md").read_text(encoding="utf-8")
    _, *rows = (line.strip("| ").split(" | ") for line in page.splitlines() if line[:2] == "| ")
    assert [row[0] for row in rows] == list(resgym.singularity_names("exceptional"))
    for name, depth, nodes, *hosts, threshold in rows:
        best = resgym.solve(name, objective="nodes").tree
        assert (best.num_nodes, best.log_canonical_threshold()) == (int(nodes), Fraction(threshold))
        assert best.fan().glues
        trees = [resgym.resolution_tree(name, host) for host in ("zeillinger", "taught")]
        assert hosts == [str(size) for tree in trees for size in (tree.depth, tree.num_nodes)]
        assert resgym.solve(name).value == int(depth) == trees[1].depth
    code = re.search(r"^```python\n(.*?)^```", page, flags=re.M | re.S)[1]
    exec(code, {})
    shown = re.findall(r"# (.*?)(?:, \.\.\.\))?$", code, flags=re.M)
    for line, start in zip(capsys.readouterr().out.splitlines(), shown, strict=True):
        assert line.startswith(start)


def test_tables_of_hosts_show_their_data():
    """docs/safety.json has the figures of docs/results.md."""
    safe = json.loads((DOCS / "safety.json").read_text(encoding="utf-8"))
    page = (DOCS / "results.md").read_text(encoding="utf-8").replace("*", "")
    curve = page.split("## Safe and quick")[1].split("## ")[0]
    for host, found in safe.items():
        (row,) = re.findall(rf"^\| {re.escape(host)} \| (.*) \|$", curve, flags=re.M)
        moves, *rhos = row.split(" | ")
        assert moves == " to ".join(f"{m:.2f}" for m in dict.fromkeys(found["worst_moves"]))
        assert rhos[1:] == [f"{rho:.3f}" for rho in found["rho"].values()]


FOLDERS = ("tutorials", "howto", "environments")
PAGES = sorted(
    (*(page for name in FOLDERS for page in (DOCS / name).glob("*.md")), DOCS / "environments.md")
)
# What only takes long; every line runs.
LESS = {".learn(60_000)": ".learn(3_000)", "games=2_000": "games=100", '=20"': '=2"'}
LESS |= {"seconds=60": "seconds=0.2", "time_limit=5": "time_limit=0.2"}
LESS |= {"max_depth=30": "max_depth=8"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: f"{page.parent.name}-{page.stem}")
def test_the_blocks_of_a_page_run(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    # A few positions of each task of the scoreboard.
    monkeypatch.setattr(tasks, "load", lambda part: load(part).select(torch.arange(4)))
    names = {"__name__": "__main__"}
    text = page.read_text(encoding="utf-8")
    blocks = re.findall(r"```(?:python|{code-cell} python3)\n(.*?)```", text, re.DOTALL)
    assert blocks or "literalinclude" in text
    for block in blocks:
        for more, less in LESS.items():
            block = block.replace(more, less)
        exec(compile(block, str(page), "exec"), names)


CLIENTS = DOCS / "clients"
LIBRARIES = {name: name for name in ("pettingzoo", "tianshou", "torchrl")}
LIBRARIES |= {"gymnasium": "moviepy"}  # for its videos, of batches since Gymnasium 1.2
LIBRARIES |= {"open_spiel": "pyspiel", "rllib": "ray.rllib", "tianshou_both": "tianshou"}


@pytest.mark.parametrize("name", LIBRARIES)
@pytest.mark.filterwarnings("ignore")  # of the libraries themselves
def test_the_program_runs_alone(name, tmp_path):
    reason = f"needs {LIBRARIES[name]}, which is no requirement"
    pytest.importorskip(LIBRARIES[name], reason=reason, exc_type=ImportError)
    if name == "gymnasium" and not hasattr(gymnasium.wrappers.vector, "RecordVideo"):
        pytest.skip("this Gymnasium records no videos of batches")
    program = [sys.executable, str(CLIENTS / f"with_{name}.py")]
    done = subprocess.run(program, cwd=tmp_path, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


def test_every_program_is_on_the_page_and_run():
    files = sorted(path.stem for path in CLIENTS.glob("*.py"))
    assert files == sorted(f"with_{name}" for name in LIBRARIES)
    page = CLIENTS.with_suffix(".md").read_text(encoding="utf-8")
    assert all(f"{{literalinclude}} clients/{name}.py" in page for name in files)
