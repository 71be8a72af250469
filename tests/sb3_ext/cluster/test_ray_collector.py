"""Training with actors on a small cluster of this machine."""

import os
import signal
from pathlib import Path

import pytest
import torch

from sb3_ext.adapter import TensorVecEnv
from sb3_ext.checkpoints.resume import resume, save_run
from sb3_ext.cluster import RayCollector
from sb3_ext.replay.prioritized import PrioritizedReplayBuffer
from tests.fakes import ToyVectorEnv
from tests.sb3_ext.cluster.processes import actor_processes, wait_until
from tests.sb3_ext.helpers import equal, make_model, weights

ray = pytest.importorskip("ray", reason="needs the extra: pip install 'resgym[cluster]'")


pytestmark = pytest.mark.usefixtures("cluster")


class BrokenToy(ToyVectorEnv):
    """Fails at its first step."""

    def step(self, actions):
        raise ZeroDivisionError("the board\nfell off the table")


class FatefulToy(ToyVectorEnv):
    """Sends a signal to its own process, twice in all; files in a folder say how often it did."""

    def __init__(self, num_envs, folder, number):
        super().__init__(num_envs)
        self.folder = Path(folder)
        self.number = number
        self.steps = 0

    def step(self, actions):
        self.steps += 1
        fate = self.folder / str(len(list(self.folder.iterdir())))
        if self.steps % 17 == 0 and int(fate.name) < 2:
            fate.touch()
            os.kill(os.getpid(), self.number)
        return super().step(actions)


GAMES = 8
CHUNK = 10


def toy(**arguments):
    return make_model(TensorVecEnv(ToyVectorEnv(GAMES)), gradient_steps=1, **arguments)


def collector(actors=2, **arguments):
    given = {"chunk": CHUNK, "sync_updates": 10, "max_staleness": 60, **arguments}
    return RayCollector(given.pop("env", ToyVectorEnv), actors=actors, **given)


def check_ledger(statistics, model):
    assert statistics["received"] == statistics["accepted"] + statistics["stale"]
    assert statistics["accepted"] * GAMES * CHUNK == model.num_timesteps
    assert sum(each["transitions"] for each in statistics["actors"]) == model.num_timesteps


def test_no_actors_are_this_process():
    inside = toy()
    outside = toy()
    inside.learn(800)
    none = collector(actors=0)
    outside.learn(800, collector=none)
    assert equal(weights(inside), weights(outside))
    assert none.statistics["received"] == 0
    assert torch.equal(
        inside.random_streams["explore"].get_state(), outside.random_streams["explore"].get_state()
    )


def test_actors_feed_the_learner():
    model = toy(verbose=0)
    two = collector()
    before = weights(model)
    states = []
    model.learn(1600, lambda *_: states.append(two.state_dict()) is None, collector=two)
    first, *_, last = ([each["requests"] for each in state["streams"]] for state in states)
    assert first != last  # a state does not change when the collector goes on
    counted = two.statistics
    check_ledger(counted, model)
    assert model.num_timesteps == 1600
    assert model.num_updates == 200
    assert not equal(before, weights(model))
    assert 0 < counted["staleness_mean"] <= counted["staleness_max"] <= 60
    assert wait_until(lambda: not actor_processes())


def deterministic(model, steps, actors, *more):
    cpus = 1.0 if actors < 4 else 0.5
    source = collector(actors, deterministic=True, epsilons=(0.4, 2.0), actor_cpus=cpus)
    model.learn(steps, list(more) or None, reset_num_timesteps=False, collector=source)
    return source.statistics


PRIORITIES = {
    "replay_buffer_class": PrioritizedReplayBuffer,
    "exploration_strategy": "boltzmann",
    "evaluation_rows": 2,
}


@pytest.mark.parametrize(
    ("actors", "arguments"), [(2, PRIORITIES), pytest.param(4, {}, marks=pytest.mark.long)]
)
def test_in_order_a_run_repeats_itself_and_goes_on_from_a_checkpoint(actors, arguments, tmp_path):
    whole = toy(**arguments)
    counted = deterministic(whole, 1200, actors)
    assert counted["stale"] == 0
    first = toy(**arguments)
    deterministic(first, 560, actors)
    save_run(first, tmp_path)
    second = toy(**arguments)
    resume(second, tmp_path)
    torch.manual_seed(99)
    second.seed = None  # that of the first part goes on
    with pytest.raises(ValueError, match=rf"^actors: the resumed run has {actors}, got 1$"):
        deterministic(second, 640, 1)
    after = deterministic(second, 640, actors)
    assert equal(weights(whole), weights(second))
    for name in ("received", "episodes", "staleness_max", "staleness_mean"):
        assert after[name] == counted[name]
    assert equal(whole.replay_buffer.state_dict(), second.replay_buffer.state_dict())


@pytest.mark.long
@pytest.mark.parametrize("in_order", [True, False])
def test_what_a_dead_process_owed_is_played_by_another(in_order, tmp_path):
    """Each chunk once, none left out; in order, the run is the same as without any harm."""
    whole = toy()
    harmed = toy()
    seen = []

    class Watched(RayCollector):
        def receive(self):
            seen.append(chunk := super().receive())
            return chunk

    kwargs = {"folder": str(tmp_path), "number": signal.SIGKILL}
    more = {"deterministic": True, "epsilons": (0.4, 2.0)} if in_order else {}
    given = {"actors": 2, "chunk": CHUNK, "sync_updates": 10, "max_staleness": 60, **more}
    source = Watched(FatefulToy, env_kwargs=kwargs, **given)
    harmed.learn(480 if in_order else 4800, reset_num_timesteps=False, collector=source)
    assert len(list(tmp_path.iterdir())) == 2
    check_ledger(source.statistics, harmed)
    assert source.statistics["received"] == len(seen)
    for actor in range(2):
        sequences = [chunk.sequence for chunk in seen if chunk.actor == actor]
        assert sequences == list(range(len(sequences)))
    if in_order:
        deterministic(whole, 480, 2)
        assert equal(weights(whole), weights(harmed))
    assert wait_until(lambda: not actor_processes())


@pytest.mark.long
def test_a_process_that_hangs_ends_the_run(tmp_path):
    kwargs = {"folder": str(tmp_path), "number": signal.SIGSTOP}
    source = collector(1, env=FatefulToy, env_kwargs=kwargs, timeout_s=20.0)
    with pytest.raises(ChildProcessError, match=r"^actors: no chunk came for 20 s"):
        toy().learn(480, collector=source)


def one(**arguments):
    return {"actors": 1, "env_kwargs": arguments}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"env": BrokenToy, "actors": 1}, "0: ZeroDivisionError: the board fell off the table$"),
        (one(num_actions=5), "^actor 0: chunk 0: ValueError: Observation sp"),
        (one(nonsense=1), "^actor 0: chunk 0: TypeError: .*nonsense"),
        ({"actors": 3}, r"^actors: 3 need 3 CPUs, the cluster has 2; take fewer"),
        ({"games": 12}, r"^games must be a multiple of the model's 8, got 12$"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(arguments, message):
    with pytest.raises(ValueError, match=message) as caught:
        toy().learn(20_000, collector=collector(**arguments))
    assert "\n" not in str(caught.value)
    assert wait_until(lambda: not actor_processes())
    assert ray.is_initialized()
