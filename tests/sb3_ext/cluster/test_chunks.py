"""What an actor sends and what the learner counts, without any cluster."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
import torch

from sb3_ext.adapter import TensorVecEnv
from sb3_ext.adapter.observations import each_entry, entries_of, to_arrays
from sb3_ext.cluster.actor import Actor, ActorPlan
from sb3_ext.cluster.chunk import Chunk, side_by_side
from sb3_ext.cluster.ledger import Ledger
from sb3_ext.ddqn import DDQN
from sb3_ext.ddqn.collector import TensorCollector
from sb3_ext.ddqn.legality import LegalActions
from tests.fakes import ToyVectorEnv
from tests.sb3_ext.ddqn.helpers import make_model

KINDS = {"dict_obs": ({"dict_obs": True}, "none"), "masks": ({}, "environment")}


def actor_of(model: DDQN, env_kwargs: dict[str, Any], games: int = 8) -> Actor:
    plan = ActorPlan(
        env=ToyVectorEnv,
        games=games,
        chunk=10,
        seed=5,
        explorer=model.explorer_elsewhere(),
        mask_source=model.legal_actions.source,
        observation_space=model.observation_space,
        action_space=model.action_space,
    )
    return Actor(plan, env_kwargs)


def model_of(kind: str) -> tuple[DDQN, dict[str, Any]]:
    env_kwargs, source = KINDS[kind]
    return make_model(TensorVecEnv(ToyVectorEnv(8, **env_kwargs)), mask_source=source), env_kwargs


def weights_of(model: DDQN) -> dict[str, np.ndarray]:
    return {name: value.numpy() for name, value in model.playing_weights().items()}


def equal(first: Any, second: Any) -> bool:
    if first is None or second is None:
        return first is second
    first, second = entries_of(to_arrays(first)), entries_of(to_arrays(second))
    return first.keys() == second.keys() and all(
        np.array_equal(first[name], second[name])
        and np.asarray(first[name]).dtype == np.asarray(second[name]).dtype
        for name in first
    )


def same_chunk(first: Chunk, second: Chunk) -> bool:
    names = [field.name for field in dataclasses.fields(Chunk)]
    names = [name for name in names if name != "seconds"]
    return all(equal(getattr(first, name), getattr(second, name)) for name in names)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rows", [8, 4])
def test_a_chunk_holds_the_steps_that_a_tensor_collector_plays(kind: str, rows: int) -> None:
    model, env_kwargs = model_of(kind)
    chunk, _ = actor_of(model, env_kwargs).collect(0, 3, 0, weights_of(model), 0.3, None)
    env = TensorVecEnv(ToyVectorEnv(8, **env_kwargs))
    env.seed(5)
    legal = LegalActions(env.observation_space, env.action_space, env, model.legal_actions.source)
    words = np.random.SeedSequence((5, 0, 3)).generate_state(1, np.uint64)
    generator = torch.Generator().manual_seed(int(words[0] >> np.uint64(1)))
    explorer = model.explorer_elsewhere()
    explorer.exploration_rate = 0.3
    expected = TensorCollector(env, explorer, legal, generator).collect(10)
    got = [step for block in chunk.steps(rows) for step in block.each()]
    assert len(got) == 10 * (8 // rows)
    ended = 0
    for place, step in enumerate(got):
        whole, part = expected[place % 10], slice(rows * (place // 10), rows * (place // 10) + rows)
        for name in step._fields[:-1]:
            value = getattr(whole, name)
            cut = None if value is None else each_entry(lambda each, part=part: each[part], value)
            assert equal(getattr(step, name), cut), name
        here = (whole.terminated | whole.truncated)[part]
        assert equal(step.episode["ended"], here)
        for name in ("r", "l"):
            given = torch.zeros(8) if whole.episode is None else whole.episode[name]
            assert torch.equal(step.episode[name], torch.where(here, given[part], 0))
        ended += int(here.sum())
    sums = [each.episode for each in expected if each.episode is not None]
    returns, lengths = (sum(each[k][each["ended"]].sum().item() for each in sums) for k in "rl")
    assert chunk.episode_sums() == (ended, returns, lengths)
    assert ended > 5


@pytest.mark.parametrize("kind", KINDS)
def test_another_process_answers_the_same(kind: str) -> None:
    """An actor remembers nothing that its chunks depend on; actors and chunks differ."""
    model, env_kwargs = model_of(kind)
    weights = weights_of(model)
    first = actor_of(model, env_kwargs)
    games: Any = None
    chunks = []
    for sequence in range(3):
        chunk, after = first.collect(0, sequence, 0, weights, 0.5, games)
        other = actor_of(model, env_kwargs)
        again, after_again = other.collect(0, sequence, 0, weights, 0.5, games)
        assert same_chunk(chunk, again)
        assert equal(after["observation"], after_again["observation"])
        chunks.append(chunk)
        games = after
    assert equal(
        each_entry(lambda value: value[-1], chunks[0].observations),
        each_entry(lambda value: value[0], chunks[1].observations),
    )
    assert not np.array_equal(chunks[0].actions, chunks[1].actions)
    chunk, _ = first.collect(1, 0, 0, weights, 0.5, None)
    assert not equal(chunk.observations, chunks[0].observations)
    for chunk in chunks:
        for value in vars(chunk).values():
            for array in entries_of(value).values():
                assert not isinstance(array, np.ndarray) or array.flags.c_contiguous


def test_an_environment_of_other_spaces_is_refused() -> None:
    with pytest.raises(ValueError, match="observation_space is"):
        actor_of(make_model(), {"num_actions": 5})


def test_the_ledger_takes_each_chunk_once_and_none_too_old() -> None:
    model, env_kwargs = model_of("masks")
    actor = actor_of(model, env_kwargs)
    ledger = Ledger(2, max_staleness=10)
    games: list[Any] = [None, None]
    accepted = []
    # (actor, sequence, version, updates at its arrival, accepted)
    for number, sequence, version, updates, fine in (
        (0, 0, 0, 0, True),
        (0, 0, 0, 0, False),  # again
        (1, 0, 0, 10, True),
        (0, 1, 0, 11, False),  # too old
        (0, 1, 11, 11, False),  # and then it is over: its games have gone on
        (0, 2, 8, 11, True),
    ):
        asked = (number, sequence, version, weights_of(model), 0.5, games[number])
        chunk, games[number] = actor.collect(*asked)
        assert ledger.accept(chunk, updates) is fine
        if fine:
            accepted.append(chunk)
    counted = ledger.statistics
    assert (counted["received"], counted["accepted"]) == (6, 3)
    assert (counted["duplicate"], counted["stale"]) == (2, 1)
    assert counted["staleness_max"] == 10
    assert counted["staleness_mean"] == pytest.approx(13 / 3)
    assert counted["episodes"] == sum(int(each.ended.sum()) for each in accepted)
    assert counted["returns"] == sum(float(each.returns.sum()) for each in accepted)
    assert [each["transitions"] for each in counted["actors"]] == [160, 80]
    other = Ledger(2, max_staleness=10)
    other.load_state_dict(ledger.state_dict())
    assert other.statistics.keys() == counted.keys()
    for name in ("accepted", "stale", "returns", "bytes", "staleness_mean"):
        assert other.statistics[name] == counted[name]
    assert other.statistics["actors"][0]["episodes"] == counted["actors"][0]["episodes"]
    assert "6 received, 3 accepted, 2 duplicate, 1 stale" in ledger.table()


@pytest.mark.parametrize("kind", KINDS)
def test_chunks_side_by_side_are_those_of_all_rows(kind: str) -> None:
    model, env_kwargs = model_of(kind)
    sizes = (8, 4)
    chunks = [
        actor_of(model, env_kwargs, games).collect(number, 0, 0, weights_of(model), 0.5, None)[0]
        for number, games in enumerate(sizes)
    ]
    assert all(chunk.ended.any() for chunk in chunks)
    joined = side_by_side(chunks)
    each = [chunk.steps(games) for chunk, games in zip(chunks, sizes, strict=True)]
    for block, parts in zip(joined.steps(12), zip(*each, strict=True), strict=True):
        for name, value in block._asdict().items():
            if value is not None:
                others = (getattr(part, name) for part in parts)
                assert equal(value, each_entry(lambda *rows: torch.cat(rows, 1), *others))
    assert joined.episode_sums()[0] == sum(chunk.episode_sums()[0] for chunk in chunks)
    assert joined.num_bytes == sum(chunk.num_bytes for chunk in chunks)
