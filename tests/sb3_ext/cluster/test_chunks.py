"""What an actor sends and what the learner counts, without any cluster."""

import numpy as np
import pytest
import torch

from sb3_ext.adapter import TensorVecEnv
from sb3_ext.adapter.seam import each_entry, entries_of, to_arrays
from sb3_ext.cluster.actor import Actor, ActorPlan, blocks
from sb3_ext.cluster.collector import RayCollector
from sb3_ext.ddqn.collector import TensorCollector
from sb3_ext.ddqn.legality import LegalActions
from tests.fakes import ToyVectorEnv
from tests.sb3_ext.ddqn.helpers import make_model

KINDS = {"dict_obs": ({"dict_obs": True}, "none"), "masks": ({}, "environment")}


def actor_of(model, env_kwargs, games=8):
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


def model_of(kind):
    env_kwargs, source = KINDS[kind]
    return make_model(TensorVecEnv(ToyVectorEnv(8, **env_kwargs)), mask_source=source), env_kwargs


def weights_of(model):
    return {name: value.numpy() for name, value in model.q_net.state_dict().items()}


def equal(first, second):
    if first is None or second is None:
        return first is second
    first, second = entries_of(to_arrays(first)), entries_of(to_arrays(second))
    return first.keys() == second.keys() and all(
        np.array_equal(first[name], second[name])
        and np.asarray(first[name]).dtype == np.asarray(second[name]).dtype
        for name in first
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rows", [8, 4])
def test_a_chunk_holds_the_steps_that_a_tensor_collector_plays(kind, rows):
    model, env_kwargs = model_of(kind)
    actor, weights = actor_of(model, env_kwargs), weights_of(model)
    chunk, games = actor.collect(0, 3, 0, weights, 0.3, None)
    other, _ = actor.collect(1, 3, 0, weights, 0.3, None)
    assert not equal(other.steps.observations, chunk.steps.observations)
    following, _ = actor.collect(0, 4, 0, weights, 0.3, games)
    assert not np.array_equal(following.steps.actions, chunk.steps.actions)
    going_on = ~(chunk.steps.terminated | chunk.steps.truncated)[-1]
    assert equal(
        each_entry(lambda value: value[-1][going_on], chunk.steps.next_observations),
        each_entry(lambda value: value[0][going_on], following.steps.observations),
    )
    env = TensorVecEnv(ToyVectorEnv(8, **env_kwargs))
    env.seed(5)
    legal = LegalActions(env.observation_space, env.action_space, env, model.legal_actions.source)
    words = np.random.SeedSequence((5, 0, 3)).generate_state(1, np.uint64)
    generator = torch.Generator().manual_seed(int(words[0] >> np.uint64(1)))
    explorer = model.explorer_elsewhere()
    explorer.exploration_rate = 0.3
    expected = TensorCollector(env, explorer, legal, generator).collect(10)
    got = [step for block in blocks(chunk.steps, rows) for step in block.each()]
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
    assert ended > 5


def test_no_chunk_is_taken_that_is_too_old():
    model, env_kwargs = model_of("masks")
    chunk, _ = actor_of(model, env_kwargs).collect(1, 0, 0, weights_of(model), 0.5, None)
    source = RayCollector(ToyVectorEnv, actors=2, sync_updates=10, max_staleness=10)
    assert [source.accept(chunk, updates) for updates in (0, 11, 10)] == [True, False, True]
    counted, ended = source.statistics, chunk.steps.episode["ended"]
    assert (counted["received"], counted["accepted"], counted["stale"]) == (3, 2, 1)
    assert (counted["staleness_max"], counted["staleness_mean"]) == (10, 5)
    assert counted["episodes"] == 2 * ended.sum() > 0
    assert [each["transitions"] for each in counted["actors"]] == [0, 160]
