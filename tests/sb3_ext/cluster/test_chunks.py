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


def actor_of(model: DDQN, env_kwargs: dict[str, Any], number: int = 0, games: int = 8) -> Actor:
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
    return Actor(number, 0, plan, env_kwargs)


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
    names = [name for name in names if name not in ("generation", "seconds")]
    return all(equal(getattr(first, name), getattr(second, name)) for name in names)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rows", [8, 4])
def test_a_chunk_holds_the_steps_that_a_tensor_collector_plays(kind: str, rows: int) -> None:
    model, env_kwargs = model_of(kind)
    actor = actor_of(model, env_kwargs)
    chunk, games = actor.collect(3, 0, weights_of(model), 0.3, None)
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
        part = slice(rows * (place // 10), rows * (place // 10) + rows)
        whole = expected[place % 10]
        for name in ("observations", "actions", "rewards", "terminated", "truncated"):
            cut = each_entry(lambda value, part=part: value[part], getattr(whole, name))
            assert equal(getattr(step, name), cut), name
        reached = each_entry(lambda value, part=part: value[part], whole.next_observations)
        assert equal(step.next_observations, reached)
        assert (step.next_legal is None) == (whole.next_legal is None)
        if step.next_legal is not None:
            assert equal(step.next_legal, whole.next_legal[part])
        here = (whole.terminated | whole.truncated)[part]
        assert equal(step.episode["ended"], here)
        for name in ("r", "l"):
            given = torch.zeros(8) if whole.episode is None else whole.episode[name]
            assert torch.equal(step.episode[name], torch.where(here, given[part], 0))
        ended += int(here.sum())
    sums = chunk.episode_sums()
    assert sums[0] == ended > 5
    whole_sums = [step.episode for step in expected if step.episode is not None]
    assert sums[2] == sum(int(each["l"][each["ended"]].sum()) for each in whole_sums)
    assert sums[1] == sum(float(each["r"][each["ended"]].sum()) for each in whole_sums)
    assert games["observation"] is not None


@pytest.mark.parametrize("kind", KINDS)
def test_another_process_answers_the_same(kind: str) -> None:
    """An actor remembers nothing that its chunks depend on; actors and chunks differ."""
    model, env_kwargs = model_of(kind)
    weights = weights_of(model)
    first = actor_of(model, env_kwargs)
    games: Any = None
    chunks = []
    for sequence in range(3):
        chunk, after = first.collect(sequence, 0, weights, 0.5, games)
        again, after_again = actor_of(model, env_kwargs).collect(sequence, 0, weights, 0.5, games)
        assert same_chunk(chunk, again)
        assert equal(after["observation"], after_again["observation"])
        chunks.append(chunk)
        games = after
    assert equal(
        each_entry(lambda value: value[-1], chunks[0].observations),
        each_entry(lambda value: value[0], chunks[1].observations),
    )
    assert not np.array_equal(chunks[0].actions, chunks[1].actions)
    other, _ = actor_of(model, env_kwargs, number=1).collect(0, 0, weights, 0.5, None)
    assert not equal(other.observations, chunks[0].observations)
    for chunk in chunks:
        for value in vars(chunk).values():
            for array in entries_of(value).values():
                assert not isinstance(array, np.ndarray) or array.flags.c_contiguous


@pytest.mark.parametrize(
    ("env_kwargs", "message"),
    [({"num_actions": 5}, "observation_space is"), ({"illegal": "error"}, "")],
)
def test_an_environment_of_other_spaces_is_refused(env_kwargs: Any, message: str) -> None:
    actor = actor_of(make_model(), env_kwargs)
    if not message:
        assert actor.start() > 0
        return
    with pytest.raises(ValueError, match=message):
        actor.start()


def test_the_ledger_takes_each_chunk_once_and_none_too_old() -> None:
    model, env_kwargs = model_of("masks")
    actors = [actor_of(model, env_kwargs, number) for number in range(2)]
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
        chunk, games[number] = actors[number].collect(
            sequence, version, weights_of(model), 0.5, games[number]
        )
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
    assert other.state_dict()["chunks"] == ledger.state_dict()["chunks"]
    assert other.statistics["actors"][0]["episodes"] == counted["actors"][0]["episodes"]
    assert "6 received, 3 accepted, 2 duplicate, 1 stale" in ledger.table()


@pytest.mark.parametrize("kind", KINDS)
def test_chunks_side_by_side_are_those_of_all_rows(kind: str) -> None:
    model, env_kwargs = model_of(kind)
    sizes = (8, 4)
    chunks = [
        actor_of(model, env_kwargs, number, games).collect(0, 0, weights_of(model), 0.5, None)[0]
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
