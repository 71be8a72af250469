"""What an actor sends and what the learner counts, without any cluster."""

import numpy as np
import pytest
import torch

from sb3_ext.adapter import TensorVecEnv
from sb3_ext.adapter.seam import each_entry, to_arrays
from sb3_ext.cluster.actor import Actor, ActorPlan, blocks
from sb3_ext.cluster.collector import RayCollector, Stream
from sb3_ext.ddqn.collector import TensorCollector
from sb3_ext.ddqn.legality import LegalActions
from tests.fakes import ToyVectorEnv
from tests.sb3_ext.helpers import equal as exactly_equal
from tests.sb3_ext.helpers import make_model

ray = pytest.importorskip("ray", reason="needs the extra: pip install 'resgym[cluster]'")

KINDS = {"dict_obs": ({"dict_obs": True}, "none"), "masks": ({}, "environment")}


def actor_of(model, env_kwargs):
    plan = ActorPlan(
        env=ToyVectorEnv,
        games=8,
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


def equal(first, second):
    return exactly_equal(to_arrays(first), to_arrays(second))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rows", [8, 4])
def test_a_chunk_holds_the_steps_that_a_tensor_collector_plays(kind, rows):
    model, env_kwargs = model_of(kind)
    actor = actor_of(model, env_kwargs)
    weights = to_arrays(model.q_net.state_dict())
    chunk, games = actor.collect(0, 3, 0, weights, 0.3, None)
    other, _ = actor.collect(1, 3, 0, weights, 0.3, None)
    assert not equal(other.steps.observations, chunk.steps.observations)
    following, _ = actor.collect(0, 4, 0, weights, 0.3, games)
    again, _ = actor.collect(0, 4, 0, weights, 0.3, games)
    assert equal(again.steps, following.steps)
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
        whole = expected[place % 10]
        part = slice(rows * (place // 10), rows * (place // 10) + rows)
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
    weights = to_arrays(model.q_net.state_dict())
    chunk, _ = actor_of(model, env_kwargs).collect(1, 0, 0, weights, 0.5, None)
    source = RayCollector(ToyVectorEnv, actors=2, sync_updates=10, max_staleness=10)
    assert [source.accept(chunk, updates) for updates in (0, 11, 10)] == [True, False, True]
    counted = source.statistics
    ended = chunk.steps.episode["ended"]
    assert (counted["received"], counted["accepted"], counted["stale"]) == (3, 2, 1)
    assert (counted["staleness_max"], counted["staleness_mean"]) == (10, 5)
    assert counted["episodes"] == 2 * ended.sum() > 0
    assert [each["transitions"] for each in counted["actors"]] == [0, 160]


class Lossy:
    """Stands in for Ray: gives what it was told, errors too, and keeps what it was asked to wait.

    Of everything asked for it answers the oldest; what comes after the last event never comes.
    """

    exceptions = ray.exceptions

    def __init__(self, *events):
        self.events = [*events]
        self.waits = []
        self.asked = []

    def remote(self, *given):
        self.asked.append(given[1:3])
        return object(), object()

    def wait(self, references, timeout):
        self.waits.append(timeout)
        return (references[:1], references[1:]) if self.events else ([], references)

    def get(self, references):
        event = self.events.pop(0)
        if isinstance(event, Exception):
            raise event
        return event, {}


def waiting_for(events, **settings):
    """A collector that is owed two chunks by each of two actors."""
    source = RayCollector(ToyVectorEnv, actors=2, timeout_s=7.0, **settings)
    source._ray = source._play = Lossy(*events)
    source._streams = [Stream(0, None), Stream(1, None)]
    source._max_requests = 4
    source.version = 0
    source._weights = {0: None}
    return source


CRASHED = ray.exceptions.WorkerCrashedError()
SO_CRASHED = ray.exceptions.RayTaskError("play_chunk", "", CRASHED)


def test_an_actor_that_is_started_again_is_alive():
    """Each start has all the time that a chunk has, and all that was owed is asked for again."""
    source = waiting_for([CRASHED, SO_CRASHED] * 10 + ["chunk"])
    assert source.receive() == "chunk"
    assert source._ray.waits == [7.0] * 21
    assert source._ray.asked[-2:] == [(0, 0), (0, 1)]
    source._ray.events[:] = [CRASHED]
    text = r"no chunk came for 7 s, timeout_s; waited for actor 1: chunk 0 \(started again: 1\),"
    with pytest.raises(ChildProcessError, match=rf"^actors: {text} actor 0: chunk 1$"):
        source.receive()


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (ray.exceptions.LocalRayletDiedError(), "LocalRayletDied"),
        (CRASHED, "lost: WorkerCrashedError, more often than max_restarts al"),
    ],
)
def test_what_does_not_end_by_starting_again_is_said(error, message):
    source = waiting_for([error] * 3, max_restarts=2)
    with pytest.raises(ChildProcessError, match=rf"^actor 0: chunk 0.*: .*{message}"):
        source.receive()
    assert len(source._ray.waits) == (3 if error is CRASHED else 1)
