"""Held-out positions with repetition."""

from __future__ import annotations

from collections import Counter

import torch

from resgym.game.plain import canonical, prune
from resgym.players import make_host
from resgym.solver.solve import solve
from sb3_ext.studies.teach import measures
from sb3_ext.studies.teach.dataset import load_dataset
from sb3_ext.studies.teach.families import draw_batch
from sb3_ext.studies.teach.generate import Plan, generate
from sb3_ext.studies.teach.measures import optimal_choices


def forms(points, count):
    return [
        canonical(prune([tuple(p) for p in rows[:size].tolist()]))
        for rows, size in zip(points, count.tolist(), strict=True)
    ]


def test_they_count_as_often_as_they_come_and_were_not_taught(tmp_path, monkeypatch):
    monkeypatch.setattr(measures, "DRAWN_BATCHES", 2)
    plan = Plan.read({"config": "small", "positions": 3000, "seed": 3, "held_out": 0.2})
    generate(plan, tmp_path / "data")
    taught = load_dataset(tmp_path / "data").split("train")
    found, left_out = measures.held_out_draws(plan)
    assert left_out == 0
    drawn = [draw_batch(plan.config, 0, batch, 4) for batch in range(2)]
    everything = Counter(form for d in drawn for form in forms(d.points, d.count))
    held_out = Counter(forms(found.points, found.count))
    assert not set(held_out) & set(forms(taught.points, taught.count))
    assert all(everything[form] == times for form, times in held_out.items())
    assert max(held_out.values()) > 5
    # About a fifth of the forms.
    assert 0.1 < len(held_out) / len(everything) < 0.3
    for row in range(0, len(found), 200):
        points = found.points[row, : found.count[row]].tolist()
        assert solve(points).value == found.value[row]
    right = optimal_choices(make_host("zeillinger"), found).double().mean()
    assert 0.5 < right < 0.95
    assert torch.equal(found.value > 0, torch.ones(len(found), dtype=torch.bool))
