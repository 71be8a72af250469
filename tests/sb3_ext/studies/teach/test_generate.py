"""Datasets: what is in them, that they can be made again, and what is refused."""

from __future__ import annotations

import json
import subprocess
import sys
import time

import pytest
import torch

from resgym.files import sealed
from resgym.game.actions import action_axes
from resgym.game.plain import canonical, moved, prune
from resgym.game.rng import RowRandom
from resgym.game.spec import GameSpec
from resgym.game.state import GameState, state_from_points
from resgym.players import make_agent, make_host
from resgym.polynomials.singularities import singularity, singularity_names
from resgym.solver.labels import Labeller
from resgym.solver.solve import solve
from sb3_ext.checkpoints.durable_files import file_digest
from sb3_ext.runs.files import write_json
from sb3_ext.studies.teach import drawing, families
from sb3_ext.studies.teach import generate as module
from sb3_ext.studies.teach.cli import main
from sb3_ext.studies.teach.dataset import MANIFEST, joined, load_dataset
from sb3_ext.studies.teach.drawing import Plan, draw_positions
from sb3_ext.studies.teach.families import TeachConfig, excluded_forms
from sb3_ext.studies.teach.generate import generate
from tests.sb3_ext.studies.teach.labelled import make_model

CONFIG = {
    "dimension": 3,
    "budget": 200,
    "exclude": {"singularities": True, "brieskorn_pham": 9},
    "families": [
        {"name": "few", "kind": "uniform", "points": [2, 4], "max_value": [2, 3]},
        {
            "name": "played",
            "kind": "uniform",
            "points": [8, 8],
            "max_value": [5],
            "sparsity": [0.5],
            "alive": [2, 4],
            "play": {"hosts": ["random", "zeillinger"], "agents": ["random"], "moves": [1, 5]},
        },
        {"name": "simple", "kind": "invertible", "weight": 0.5, "exponents": [1, 6]},
    ],
}


def plan(**changes):
    return Plan.read({"config": CONFIG, "positions": 300, **changes})


@pytest.fixture(autouse=True)
def small_shards(monkeypatch):
    monkeypatch.setattr(drawing, "SHARD_ROWS", 64)


def points_of(split):
    return GameState(split.points, split.count).point_lists()


def content(folder):
    return {file.name: file_digest(file) for file in folder.glob("shard-*")} | {
        "manifest": (folder / MANIFEST).read_text()
    }


def test_host_dataset(tmp_path):
    generate(plan(held_out=0.3), tmp_path / "data")
    data = load_dataset(tmp_path / "data")
    sizes = (data.seat, data.objective, data.dimension, data.max_num_points)
    assert sizes == ("host", "depth", 3, 4)
    assert data.families == ["few", "played", "simple"]
    forms = {}
    for part in ("train", "held_out"):
        split = data.split(part)
        assert split.coords is None
        kinds = [split.points.dtype, split.count.dtype, split.value.dtype, split.family.dtype]
        assert kinds == [torch.int64] * 4
        assert split.optimal.dtype == torch.bool
        assert split.optimal.shape == (len(split.count), 4)
        assert split.optimal.any(1).all()
        assert set(split.family.tolist()) == {0, 1, 2}
        positions = points_of(split)
        for position in positions:
            assert position == sorted(prune(position), reverse=True)
        absent = torch.arange(4) >= split.count[:, None]
        assert (split.points[absent] == -1).all()
        forms[part] = {canonical(prune(position)) for position in positions}
        # No two are equivalent.
        assert len(forms[part]) == len(positions)
    assert not forms["train"] & forms["held_out"]
    assert 0.2 < len(forms["held_out"]) / (len(forms["train"]) + len(forms["held_out"])) < 0.4
    barred = {canonical(prune(singularity(name))) for name in singularity_names()}
    assert not barred & (forms["train"] | forms["held_out"])
    split = data.split("train")
    for row in range(0, len(split.count), 20):
        assert split.value[row] == solve(points_of(split)[row]).value
    rows = data.manifest["rows"]
    left_out = sum(f["out_of_budget"] + f["too_large"] for f in data.manifest["families"])
    assert rows["train"] + rows["held_out"] + left_out == 300
    assert left_out > 0


def test_agent_dataset(tmp_path):
    generate(plan(seat="agent", objective="nodes", positions=120), tmp_path / "data")
    data = load_dataset(tmp_path / "data", seat="agent")
    split = data.split("train")
    assert data.objective == "nodes"
    assert split.optimal.shape == split.coords.shape == (len(split.count), 3)
    assert (split.coords.sum(1) >= 2).all()
    assert not (split.optimal & ~split.coords).any()
    assert len(split.coords.unique(dim=0)) == len(action_axes(3))
    again = Labeller(3, 4, "nodes").agent(
        split.points.numpy(), split.count.numpy(), split.coords.numpy()
    )
    assert (again.optimal == split.optimal.numpy()).all()
    assert (again.value == split.value.numpy()).all()


def test_any_number_of_processes_gives_the_same_files(tmp_path):
    generate(plan(positions=150), tmp_path / "one")
    generate(plan(positions=150), tmp_path / "two", workers=2)
    generate(plan(positions=150, seed=1), tmp_path / "other")
    assert content(tmp_path / "one") == content(tmp_path / "two")
    assert content(tmp_path / "one") != content(tmp_path / "other")


def test_goes_on_after_a_stop(tmp_path, monkeypatch):
    generate(plan(), tmp_path / "whole")
    real, labelled, room = module._label, [], [2]

    def counted(job):
        if len(labelled) == room[0]:
            raise OSError("the disk is full")
        labelled.append(job.file.name)
        return real(job)

    monkeypatch.setattr(module, "_label", counted)
    with pytest.raises(OSError, match="disk is full"):
        generate(plan(), tmp_path / "data")
    with pytest.raises(ValueError, match="half written"):
        load_dataset(tmp_path / "data")
    # What a killed process leaves behind, and a shard that is damaged.
    (tmp_path / "data" / "shard-00004.safetensors.99.tmp").write_bytes(b"half")
    first = tmp_path / "data" / "shard-00000.safetensors"
    first.write_bytes(first.read_bytes()[:-10])
    flip_last_bit(tmp_path / "data" / "shard-00001.safetensors")
    labelled.clear()
    room[0] = None
    generate(plan(), tmp_path / "data")
    assert {"shard-00000.safetensors", "shard-00001.safetensors"} <= set(labelled)
    assert content(tmp_path / "data") == content(tmp_path / "whole")
    # Nor does a damaged shard of a whole dataset pass into a new manifest.
    flip_last_bit(tmp_path / "data" / "shard-00002.safetensors")
    labelled.clear()
    generate(plan(), tmp_path / "data")
    assert labelled == ["shard-00002.safetensors"]
    assert content(tmp_path / "data") == content(tmp_path / "whole")


def flip_last_bit(file):
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)


@pytest.mark.long
def test_goes_on_after_a_kill(tmp_path):
    command = [sys.executable, "-m", "sb3_ext.teach", "generate", "--config", "small"]
    command += ["--positions", "20000", "--no-progress", "--out"]
    folder = tmp_path / "data"
    process = subprocess.Popen([*command, str(folder)])
    while not list(folder.glob("shard-*.safetensors")):
        assert process.poll() is None
        time.sleep(0.05)
    process.kill()
    process.wait()
    assert not (folder / MANIFEST).exists()
    subprocess.run([*command, str(folder), "--workers", "1"], check=True)
    subprocess.run([*command, str(tmp_path / "whole")], check=True)
    assert content(folder) == content(tmp_path / "whole")
    assert json.loads((folder / "provenance.json").read_text())["shards_kept"] >= 1


def test_excluded_forms():
    forms = excluded_forms(TeachConfig.read(CONFIG).exclude, 3)
    for name in singularity_names():
        assert canonical(prune(singularity(name))) in forms
    assert canonical([(6, 0, 0), (0, 9, 0), (0, 0, 2)]) in forms
    assert canonical([(10, 0, 0), (0, 9, 0), (0, 0, 2)]) not in forms


def test_what_is_refused(tmp_path):
    folder = tmp_path / "data"
    generate(plan(positions=100), folder)
    manifest, shard = folder / MANIFEST, folder / "shard-00000.safetensors"
    kept = {file: file.read_bytes() for file in (manifest, shard)}
    document = json.loads(kept[manifest])

    def write(**changes):
        write_json(manifest, sealed({**document, **changes}))

    for damage, match in (
        (lambda: write(plan={**document["plan"], "solver": 0}), "labelled by version 0"),
        (lambda: write(schema=99), "schema: got 99"),
        (lambda: write(plan={**document["plan"], "max_num_points": 5}), "shapes: got"),
        (lambda: write_json(manifest, {**document, "rows": {}}), "changed after it was written"),
        (lambda: manifest.write_text("{"), "cannot be read"),
        (lambda: manifest.write_text("[]"), "cannot be read"),
        (lambda: flip_last_bit(shard), "is damaged"),
        (lambda: shard.write_bytes(kept[shard][:-1]), "size: got"),
        (shard.unlink, "is missing"),
        (manifest.unlink, "half written"),
    ):
        damage()
        with pytest.raises(ValueError, match=match) as error:
            load_dataset(folder)
        assert "\n" not in str(error.value)
        for file, content_of in kept.items():
            file.write_bytes(content_of)

    data = load_dataset(folder, dimension=3, seat="host")
    for refused, match in (
        (lambda: load_dataset(folder, dimension=4), "dimension: got 3, need 4"),
        (lambda: load_dataset(folder, seat="agent"), "seat: got 'host', need 'agent'"),
        (lambda: data.split("test"), "part must be one of train, held_out, got 'test'"),
        (lambda: load_dataset(tmp_path), "there is no dataset"),
        (lambda: generate(plan(positions=100, seed=3), folder), "another seed"),
        (lambda: generate(plan(positions=100), tmp_path), "is not empty"),
    ):
        with pytest.raises(ValueError, match=match):
            refused()


def changed(place, **keys):
    families = [dict(family) for family in CONFIG["families"]]
    families[place].update(keys)
    return CONFIG | {"families": families}


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (CONFIG | {"dimension": 6}, "dimension must be at most 5, got 6"),
        (CONFIG | {"budgets": 1}, "budget"),
        (changed(0, kind="gauss"), r"families\[0\].kind"),
        (changed(0, points=[5, 2]), r"families\[0\].points must be"),
        (changed(0, exponents=[1, 2]), "has no meaning"),
        (changed(0, weigth=1.0), "weight"),
        (changed(1, play={"hosts": ["nobody"], "agents": ["random"], "moves": [0, 1]}), "nobody"),
        (changed(1, name="few"), "stands there twice"),
        (changed(2, exponents=None), "exponents is missing"),
    ],
)
def test_bad_configurations(config, message):
    with pytest.raises(ValueError, match=message) as error:
        TeachConfig.read(config)
    assert "\n" not in str(error.value)


def test_a_family_without_positions(tmp_path, monkeypatch):
    # Two points of values 0 and 1 in three axes cannot be four points.
    config = changed(0, max_value=[1], points=[2, 2], alive=[4, 4])
    with pytest.raises(ValueError, match=r"families\[few\]: no position"):
        generate(plan(config=config), tmp_path / "data")


@pytest.mark.parametrize("name", ["agent", "default", "small"])
def test_shipped_configurations(name):
    config = TeachConfig.read(name)
    assert TeachConfig.read(config.to_dict()) == config
    barred = excluded_forms(config.exclude, config.dimension)
    assert canonical(prune(singularity("E8"))) in barred
    assert canonical([(9, 0, 0), (0, 9, 0), (0, 0, 7)]) in barred


def test_command_line(tmp_path, capsys):
    out = str(tmp_path / "data")
    common = ["generate", "--config", "small", "--positions", "60", "--workers", "1"]
    assert main([*common, "--out", out, "--no-progress"]) == 0
    assert "positions to learn from" in capsys.readouterr().out
    assert len(load_dataset(out).split("train").count) > 0
    versions = json.loads((tmp_path / "data" / "provenance.json").read_text())["versions"]
    assert "numpy" in versions
    for wrong in (
        ["--seat", "both"],
        ["--objective", "length"],
        ["--positions", "0"],
        ["--workers", "0"],
        ["--held-out", "1"],
        ["--config", "none"],
        ["--seed", "7"],
    ):
        assert main([*common, "--out", out, *wrong]) == 2
        line = capsys.readouterr().err
        assert line.startswith("teach generate: ")
        assert line.count("\n") == 1


def test_few_positions_of_a_family_with_many():
    # Each draw brings thousands of distinct positions, and all of them are remembered.
    many = {"name": "many", "kind": "uniform", "points": [4, 4], "max_value": [1000]}
    config = {"dimension": 3, "budget": 1, "families": [many, {**many, "name": "more"}]}
    drawn, families = draw_positions(plan(config=config, positions=5))
    assert len(drawn["count"]) == 5
    assert [family["positions"] for family in families] == [3, 2]


def test_weights_are_shares(tmp_path):
    manifest = generate(plan(positions=250), tmp_path / "data")
    assert [family["positions"] for family in manifest["families"]] == [100, 100, 50]


WALK = {
    "dimension": 3,
    "budget": 20_000,
    "families": [
        {
            "name": "walked",
            "kind": "uniform",
            "points": [3, 6],
            "max_value": [4],
            "play": {"hosts": ["zeillinger"], "moves": [0, 60]},
        }
    ],
}


def test_every_answer_is_followed(monkeypatch):
    """The positions are those that a walk in plain numbers meets, up to shift, factor and order."""
    monkeypatch.setattr(families, "WALKED_ROWS", 20)
    starts = {**WALK["families"][0]}
    del starts["play"]
    config = TeachConfig.read({**WALK, "families": [starts]})
    monkeypatch.setattr(families, "BATCH_ROWS", 20)
    drawn = families.draw_batch(TeachConfig.read(WALK), 0, 0, seed=3)
    host, table = make_host("zeillinger"), action_axes(3)
    waiting = [prune(points) for points in families.draw_batch(config, 0, 0, seed=3).point_lists()]
    expected, met = set(), set()
    while waiting:
        points = tuple(waiting.pop())
        if len(points) == 1 or points in met:
            continue
        met.add(points)
        expected.add(canonical(points))
        state = state_from_points([points], GameSpec(3, 6))
        (action,) = host.act(state, None, RowRandom(torch.zeros(1, dtype=torch.int64))).tolist()
        waiting += [moved(points, table[action], axis) for axis in table[action]]
    assert len(expected) >= 50
    assert {canonical(prune(points)) for points in drawn.point_lists()} == expected


def played(play, starts, student=None):
    """Canonical forms of what a family of drawn starts meets when it plays."""
    config = {**WALK, "families": [{**starts, "play": {"moves": [0, 12], **play}}]}
    points = families.draw_batch(TeachConfig.read(config), 0, 0, seed=3, student=student)
    return {canonical(prune(position)) for position in points.point_lists()}


def test_the_student_may_be_an_agent(monkeypatch):
    monkeypatch.setattr(families, "BATCH_ROWS", 40)
    starts = {**WALK["families"][0]}
    named = {"hosts": ["zeillinger", "random"], "agents": ["choose_last"]}
    agent = make_agent("choose_last")
    assert played({**named, "agents": ["student"]}, starts, agent) == played(named, starts)
    assert played({**named, "agents": ["choose_first"]}, starts) != played(named, starts)


def test_mixed_games_change_their_host_from_move_to_move(monkeypatch):
    """Every position of them is reached by choices of both hosts, and some by neither alone."""
    monkeypatch.setattr(families, "BATCH_ROWS", 60)
    starts = {**WALK["families"][0], "max_value": [12]}
    two, last = ["zeillinger", "all_coord"], {"agents": ["choose_last"]}
    mixed = played({"hosts": two, "mixed": True, **last}, starts)
    alone = [played({"hosts": [name], **last}, starts) for name in two]
    assert len(mixed - alone[0] - alone[1]) > 10

    config = TeachConfig.read({**WALK, "families": [{k: starts[k] for k in starts if k != "play"}]})
    drawn = families.draw_batch(config, 0, 0, seed=3).point_lists()
    waiting, reached, table = [prune(points) for points in drawn], set(), action_axes(3)
    for _ in range(13):
        waiting = list({tuple(points) for points in waiting if len(points) > 1})
        reached |= {canonical(points) for points in waiting}
        state = state_from_points(waiting, GameSpec(3, 6))
        rng = RowRandom(torch.zeros(len(waiting), dtype=torch.int64))
        sets = [make_host(name).act(state, None, rng).tolist() for name in two]
        waiting = [
            moved(points, table[action], max(table[action]))
            for actions in sets
            for points, action in zip(waiting, actions, strict=True)
        ]
    assert mixed <= reached


@pytest.mark.parametrize(
    ("play", "message"),
    [
        ({"agents": ["student"]}, "student must be a host or an agent, got both"),
        ({"mixed": True}, "play.mixed has no meaning without agents"),
        ({"agents": ["zeillinger"]}, "agents.*'zeillinger'"),
    ],
)
def test_players_that_do_not_fit_are_refused(play, message):
    play = {"hosts": ["student"], "moves": [0, 9], **play}
    with pytest.raises(ValueError, match=message):
        TeachConfig.read({**WALK, "families": [{**WALK["families"][0], "play": play}]})


def test_the_student_has_to_be_given(tmp_path, capsys):
    command = ["generate", "--config", "walk", "--positions", "20", "--out", str(tmp_path / "a")]
    assert main([*command, "--no-progress"]) == 2
    error = capsys.readouterr().err
    assert "student: is missing; these families play with one (--student RUN)" in error
    assert main([*command, "--student", str(tmp_path / "none"), "--no-progress"]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert main([*command, "--config", "small", "--student", "runs/host"]) == 2
    assert "student: no family plays with one, got runs/host" in capsys.readouterr().err
    assert not (tmp_path / "a").exists()


def test_joined_datasets(tmp_path):
    small = generate(plan(), tmp_path / "a")
    make_model().save(tmp_path / "student")
    walk = {
        **WALK["families"][0],
        "points": [6, 6],
        "play": {"hosts": ["student"], "moves": [0, 9]},
    }
    walk = {**WALK, "budget": 200, "families": [walk]}
    generate(plan(config=walk, positions=100, student=tmp_path / "student.zip"), tmp_path / "b")
    a, b = load_dataset(tmp_path / "a"), load_dataset(tmp_path / "b")
    both = joined([a, b])
    assert both.max_num_points == 6
    for part in ("train", "held_out"):
        assert points_of(both.split(part)) == points_of(a.split(part)) + points_of(b.split(part))
        assert len(both.split(part)) == small["rows"][part] + b.manifest["rows"][part]
    held_out = {canonical(points) for points in points_of(both.split("held_out"))}
    assert held_out.isdisjoint(canonical(points) for points in points_of(both.split("train")))
    generate(plan(seat="agent"), tmp_path / "c")
    with pytest.raises(ValueError, match="data: seat: got 'host' and 'agent', need the same"):
        joined([a, load_dataset(tmp_path / "c")])
