"""The page docs/benchmarks.md and its picture, made from a file of results.

  python -m benchmarks.report docs/benchmarks.json            writes both
  python -m benchmarks.report docs/benchmarks.json --check    exit code 1 if the page differs
  python -m benchmarks.report runs/bench/mine.json --print    only prints the tables

On the page everything between the two marks is replaced, the text around them is kept.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.results import ROOT, ResultsError, read
from benchmarks.run import Parser
from sb3_ext.runs.files import write_durably

PAGE = ROOT / "docs" / "benchmarks.md"
PICTURE = ROOT / "docs" / "images" / "benchmarks.svg"
BEGIN, END = "<!-- results: written by benchmarks.report -->", "<!-- end of results -->"
TITLES = {
    "environment": "Environment",
    "policy": "Environment and policy",
    "training": "Environment, policy and training",
}
Case = dict[str, Any]
# A subject that is compared with, by rate: eager torch, or SB3's own algorithm.
BASE = {
    "environment": "resgym torch",
    "policy": "SB3 DQN, DummyVecEnv",
    "training": "SB3 DQN, DummyVecEnv",
}
STOCK = ("SB3 DummyVecEnv", "SB3 DQN, DummyVecEnv")  # SB3 as it comes, with its own loops
# Other ways to the same rate. A ratio to the fastest is shown if the first, which is hard to beat,
# was measured: without it the ratio would flatter.
PEERS = {
    "environment": (
        "JAX rollout",
        "JAX step",
        "SyncVectorEnv",
        "SB3 DummyVecEnv",
        "gymnasium.make",
    ),
    "policy": (),
    "training": (
        *("plain DQN on resgym", "SBX DQN on resgym", "SB3 DQN on resgym"),
        "SB3 DQN, DummyVecEnv",
    ),
}
COLOURS = {
    "resgym numba": "#0b6e4f",
    "DDQN numba": "#0b6e4f",
    "resgym triton": "#7b2d8b",
    "DDQN triton": "#7b2d8b",
    "resgym torch": "#d1701c",
    "DDQN torch": "#d1701c",
    "JAX rollout": "#2b6cb0",
    "JAX step": "#7fb0e0",
    "plain DQN on resgym": "#b0305c",
    "SBX DQN on resgym": "#2b6cb0",
    "SB3 DQN on resgym": "#777777",
    "SyncVectorEnv": "#777777",
    "SB3 DummyVecEnv": "#aaaaaa",
    "SB3 DQN, DummyVecEnv": "#aaaaaa",
    "gymnasium.make": "#222222",
}


def short(rate: float) -> str:
    """A rate with three significant digits: ``1.23 M``, ``45.6 k``."""
    for unit, name in ((1e9, " G"), (1e6, " M"), (1e3, " k"), (1.0, "")):
        if rate >= unit * 0.9995:
            value = rate / unit
            digits = max(0, 2 - math.floor(math.log10(value * 1.0005)))
            return f"{value:.{digits}f}{name}"
    return f"{rate:.3g}"


def label(case: Case) -> str:
    return case["subject"] if case["device"] == "cpu" else f"{case['subject']}, {case['device']}"


def best_threads(cases: Iterable[Case]) -> dict[tuple[Any, ...], Case]:
    """The faster number of threads of every subject at every size."""
    best: dict[tuple[Any, ...], Case] = {}
    for case in cases:
        key = (case["rate"], case["dimension"], case["points"], case["games"], label(case))
        if key not in best or case["median"] > best[key]["median"]:
            best[key] = case
    return best


def is_own(case: Case) -> bool:
    return case["subject"].split()[0] in ("resgym", "DDQN")


def is_usual(case: Case) -> bool:
    """Whether it is a backend with the usual settings: others have more words."""
    return is_own(case) and len(case["subject"].split()) == 2


def cell(case: Case | None) -> str:
    if case is None:
        return ""
    threads = f" ·{case['threads']}" if (case["threads"] or 1) > 1 else ""
    return f"{short(case['median'])} ({short(case['min'])} – {short(case['max'])}){threads}"


def ordered(names: Iterable[str]) -> list[str]:
    known = [*COLOURS]
    return sorted(
        set(names),
        key=lambda name: (
            known.index(name.split(", cuda")[0]) if name.split(", cuda")[0] in known else 2.5,
            name,
        ),
    )


def titled(
    title: str, head: Sequence[str], rows: Sequence[Sequence[str]], words: Sequence[str] = ()
) -> list[str]:
    """A table under its title, nothing without rows; the columns `words` are no numbers."""
    if not rows:
        return []
    rule = "".join("---|" if name in words else "---:|" for name in head)
    lines = ["| " + " | ".join(row) + " |" for row in (head, *rows)]
    return [f"### {title}", "", lines[0], f"|{rule}", *lines[1:], ""]


def table(content: dict[str, Any], rate: str) -> list[str]:
    """One table: a row a size, a column a subject."""
    best = best_threads(case for case in content["cases"] if case["rate"] == rate)
    columns = ordered(key[-1] for key in best)
    sizes = sorted({key[1:4] for key in best}, key=lambda size: (size[0], size[1], size[2]))
    base = BASE[rate]
    ratio = base in columns and len(columns) > 1
    peers = PEERS[rate] if {*PEERS[rate][:1]} & {*columns} else ()
    head = ["d", "P", "games", *columns, *([f"best / {base}"] if ratio else [])]
    head += ["own / fastest peer"] if peers else []
    rows = []
    for size in sizes:
        found = {name: best.get((rate, *size, name)) for name in columns}
        row = [str(size[0]), str(size[1]), f"{size[2]:,}", *(cell(found[name]) for name in columns)]
        if ratio:
            most = max(case["median"] for case in found.values() if case)
            compared = found[base]
            row.append(f"{most / compared['median']:.1f}" if compared else "")
        if peers:
            own = [case["median"] for case in found.values() if case and is_own(case)]
            others = [case["median"] for name in peers if (case := found.get(name))]
            row.append(f"{max(own) / max(others):.1f}" if own and others else "")
        rows.append(row)
    return titled(TITLES[rate], head, rows)


def three_rates(content: dict[str, Any]) -> list[str]:
    """The three rates side by side, where all were measured."""
    best = best_threads(content["cases"])
    rows = []
    for key in sorted({key[1:4] for key in best}):
        rates = {}
        for rate in TITLES:
            found = [case for other, case in best.items() if other[:4] == (rate, *key)]
            own = [case for case in found if is_usual(case)]
            stock = [case for case in found if case["subject"] in STOCK]
            if own:
                rates[rate] = (
                    max(own, key=lambda case: case["median"]),
                    max(stock, key=lambda case: case["median"], default=None),
                )
        if len(rates) < 3:
            continue
        row = [str(key[0]), str(key[1]), f"{key[2]:,}"]
        row += [short(rates[rate][0]["median"]) for rate in TITLES]
        trained, stock = rates["training"]
        row.append(f"{trained['median'] / stock['median']:.1f}" if stock else "")
        rows.append(row)
    head = ["d", "P", "games", *TITLES.values(), f"training / {BASE['training']}"]
    return titled("Three rates", head, rows)


def about(content: dict[str, Any]) -> list[str]:
    """Machine, versions and how it was measured."""
    machine, settings = content["machine"], content["settings"]
    accelerator = machine["accelerator"] or "no accelerator"
    versions = ", ".join(f"{name} {version}" for name, version in content["versions"].items())
    loads = [
        f"{each['begun']}: {each['seconds']:.0f} s, load {each['load_before']} before and "
        f"{each['load_after']} after"
        for each in content["sittings"]
    ]
    clock = f" of {settings['clock']}" if "clock" in settings else ""
    alive: dict[tuple[int, int], list[float]] = {}
    for case in content["cases"]:
        if case.get("alive_points") and case["games"] >= 256 and "resgym" in case["subject"]:
            alive.setdefault((case["dimension"], case["points"]), []).append(case["alive_points"])
    means = ", ".join(
        f"{sum(values) / len(values):.1f} (d = {d}, P = {p})"
        for (d, p), values in sorted(alive.items())
    )
    return [
        f"- Machine: {machine['processor']}, {machine['cores']} cores, "
        f"{machine['memory_gib']} GiB, {machine['system']}, {accelerator}.",
        f"- Commit `{content['commit']}`; {versions}.",
        f"- Each figure: median of {settings['repeats']} repeats of {settings['seconds']} s{clock}"
        ", least and greatest in brackets; k, M and G are thousands, millions and billions of "
        "moves per second. `·2` means that 2 threads were the faster choice.",
        f"- Points alive in a position, on average: {means or 'not measured'}.",
        "- Sittings: " + "; ".join(loads) + ".",
        "",
    ]


def section(content: dict[str, Any], rates: Collection[str] = ("environment",)) -> str:
    """Return the text between the marks; `--print` shows the tables of all rates."""
    lines = about(content)
    if len(rates) == 1:  # larger positions and sizes in between are left to `--print`
        left_out = 16, 16_384, 65_536
        cases = [c for c in content["cases"] if c["points"] <= 20 and c["games"] not in left_out]
        content = {**content, "cases": cases}
    lines += three_rates(content)
    for rate in rates:
        lines += table(content, rate)
    return "\n".join(lines).rstrip() + "\n"


def page_with(page: str, text: str) -> str:
    """The page with the part between the marks replaced.

    Raises:
        ResultsError: a mark is missing.
    """
    begin, end = page.find(BEGIN), page.find(END)
    if begin < 0 or end < begin:
        raise ResultsError(f"page: needs the lines {BEGIN!r} and {END!r}, in this order")
    return page[: begin + len(BEGIN)] + "\n\n" + text + "\n" + page[end:]


def picture(content: dict[str, Any], path: Path) -> None:
    """Four panels: cost by games, by kind of game, by dimension, and the three rates."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    best = best_threads(content["cases"])
    names = ordered(key[-1] for key in best)

    def colour(name: str) -> str:
        return COLOURS.get(name.split(", cuda")[0], "#b0305c")

    def costs(name: str, dimension: int, points: int, by: int, at: int = 0) -> list[tuple]:
        """(x, median, least, greatest) microseconds a move; x is the entry `by` of the key."""
        found = []
        for key, case in best.items():
            fits = key[0] == "environment" and key[4] == name and key[2] == points
            fits = fits and (key[1] == dimension if by == 3 else key[3] == at)
            if fits:
                found.append((key[by], *(1e6 / case[k] for k in ("median", "max", "min"))))
        return sorted(found)

    def line(axis: Any, found: list[tuple], **style: Any) -> None:
        if found:
            x, middle, low, high = zip(*found, strict=True)
            axis.plot(x, middle, marker="o", markersize=4, **style)
            axis.fill_between(x, low, high, color=style["color"], alpha=0.15, linewidth=0)

    def legend(axis: Any, **place: Any) -> None:
        if axis.get_legend_handles_labels()[0]:
            axis.legend(fontsize=8, **place)

    plt.rcParams.update({"svg.hashsalt": "resgym", "font.size": 10, "axes.titlesize": 11})
    figure, ((first, second), (third, fourth)) = plt.subplots(2, 2, figsize=(12, 9))

    for name in names:
        line(first, costs(name, 3, 20, by=3), color=colour(name), label=name, linewidth=1.8)
    first.set(title="Cost against parallel games (d = 3, P = 20)", xlabel="parallel games B")

    fastest = [name for name in ("resgym numba", "resgym torch") if name in names][:1]
    fastest += [name for name in names if "triton" in name or ", cuda" in name]
    shades = {3: "#7fc8a9", 5: "#2f9e77", 10: "#084c36"}
    for name in fastest:
        for dimension in sorted({key[1] for key in best}):
            for points, style in ((20, "-"), (50, "--")):
                line(
                    second,
                    costs(name, dimension, points, by=3),
                    color=shades.get(dimension, "#084c36"),
                    linestyle=style if "cuda" not in name else ":",
                    label=f"{name.removeprefix('resgym ')}, d = {dimension}, P = {points}",
                )
    second.set(title="The same for other sizes of game", xlabel="parallel games B")

    for name in names:
        for points, style in ((20, "-"), (50, "--")):
            line(
                third,
                costs(name, 0, points, by=1, at=4096),
                color=colour(name),
                linestyle=style,
                label=f"{name}, P = {points}",
            )
    third.set(title="Cost against dimension (4,096 games)", xlabel="dimension d")
    for axis in (first, second, third):
        axis.set(yscale="log", ylabel="microseconds per move")
        axis.grid(True, which="major", alpha=0.3)
    for axis in (first, second):
        axis.set(xscale="log")
        legend(axis)
    low, high = third.get_ylim()
    third.set_ylim(low, high * 15)
    legend(third, ncols=2, loc="upper center")
    dimensions = sorted({key[1] for key in best})
    third.set_xticks(dimensions, [str(each) for each in dimensions])

    bars: list[tuple[str, list[float]]] = []
    sizes = [(d, 20, 1024) for d in dimensions]
    usual = {"resgym": is_usual, "stable-baselines3": lambda case: case["subject"] in STOCK}
    for title, is_meant in usual.items():
        for rate in TITLES:
            values = []
            for size in sizes:
                found = [
                    case["median"]
                    for key, case in best.items()
                    if key[:4] == (rate, *size) and is_meant(case)
                ]
                values.append(max(found, default=math.nan))
            what = {"environment": "environment", "policy": "+ policy", "training": "+ training"}
            bars.append((f"{title}: {what[rate]}", values))
    palette = ["#0b6e4f", "#4fae8a", "#a9dcc6", "#444444", "#888888", "#cccccc"]
    for index, (title, values) in enumerate(bars):
        if all(math.isnan(value) for value in values):
            continue
        at = [x + 0.13 * (index - 2.5) for x in range(len(sizes))]
        drawn = fourth.bar(at, values, 0.12, color=palette[index], label=title)
        texts = ["" if math.isnan(v) else short(v).replace(" ", "") for v in values]
        fourth.bar_label(drawn, texts, fontsize=7, rotation=90, padding=2)
    fourth.set(title="Three rates (1,024 games, P = 20)", yscale="log", ylabel="moves per second")
    fourth.set_xticks(range(len(sizes)), [f"d = {size[0]}" for size in sizes])
    low, high = fourth.get_ylim()
    fourth.set_ylim(low / 2, high * 100)  # room for the legend above the bars
    legend(fourth, ncols=2, loc="upper center")
    fourth.grid(True, axis="y", alpha=0.3)

    machine = content["machine"]
    figure.suptitle(
        f"{machine['accelerator'] or machine['processor']}, {machine['cores']} cores, "
        f"commit {str(content['commit'])[:10]}: median of {content['settings']['repeats']}, band "
        "from least to greatest",
        fontsize=10,
    )
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(f"{path.stem}.tmp{path.suffix}")
    try:
        metadata = {"Date": None} if path.suffix == ".svg" else None
        figure.savefig(aside, dpi=110, metadata=metadata)
        aside.replace(path)
    finally:
        aside.unlink(missing_ok=True)
        plt.close(figure)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = Parser(
        prog="python -m benchmarks.report",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("results", type=Path, help="a file that benchmarks.run wrote")
    parser.add_argument("--page", type=Path, default=PAGE, help="default docs/benchmarks.md")
    parser.add_argument("--picture", type=Path, default=PICTURE, help="an .svg or .png file")
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--print", action="store_true", help="print the tables, write nothing")
    group.add_argument("--check", action="store_true", help="compare the page, write nothing")
    args = parser.parse_args(arguments)
    try:
        content = read(args.results)
        if args.print:
            print(section(content, TITLES), end="")
            return 0
        text = section(content)
        if args.picture.suffix not in (".png", ".svg"):
            raise ResultsError(f"--picture: must end in .svg or .png, got {str(args.picture)!r}")
        page = args.page.read_text(encoding="utf-8")
        new = page_with(page, text)
        if args.check:
            if new != page:
                print(f"{args.page} does not show {args.results}", file=sys.stderr)
            return int(new != page)
        picture(content, args.picture)
        write_durably(args.page, new)
        print(f"written: {args.page}, {args.picture}")
        return 0
    except (OSError, ResultsError) as error:
        print(f"python -m benchmarks.report: {str(error).splitlines()[0]}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
