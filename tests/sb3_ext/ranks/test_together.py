"""What ranks have to agree on: ends, checkpoints, errors, and where to go on."""

import os
import signal
import warnings

import pytest
import torch
from stable_baselines3.common.callbacks import BaseCallback

from sb3_ext.adapter import TensorVecEnv
from sb3_ext.callbacks.base import Checkpoints, Every, Signals
from sb3_ext.checkpoints.resume import resume
from sb3_ext.runs import checkpoint, files
from sb3_ext.runs.checkpoint import checkpoint_name, list_checkpoints, load_checkpoint
from sb3_ext.runs.files import CheckpointWarning
from tests.fakes import ToyVectorEnv
from tests.sb3_ext.ddqn.helpers import make_model
from tests.sb3_ext.ranks.processes import on_ranks

ROWS = 4


def toy(ranks, **arguments):
    model = make_model(TensorVecEnv(ToyVectorEnv(ROWS)), **{"train_freq": 2, **arguments})
    model.join(ranks)
    return model


class AtStep(BaseCallback):
    """Does something in one rank, in one of its parallel steps; returns what that returns."""

    def __init__(self, rank, step, act):
        super().__init__()
        self.rank, self.step, self.act = rank, step, act

    def _on_step(self):
        model = self.model
        if (model.ranks.rank, self.n_calls) == (self.rank, self.step):
            return self.act(model) is not False
        return True


def stopped(model):
    model.request_stop()


def refused(model):
    return False


@pytest.mark.parametrize("act", [stopped, refused])
def test_all_stop_where_one_does(act):
    """In the middle of a rollout, whose updates all of them make first."""

    def work(ranks):
        model = toy(ranks)
        model.learn(10_000, AtStep(1, 31, act))
        return model.num_timesteps, model.num_updates

    assert on_ranks(work) == [(32 * ROWS * 2, 32 // 2 - 64 // (2 * ROWS * 2))] * 2


def test_ranks_have_the_same_weights_and_other_games():
    def work(ranks):
        model = toy(ranks)
        model.learn(400)
        fields = model.replay_buffer.state_dict()["fields"]
        return dict(model.policy.state_dict()), fields["observations"]

    (first, games), (second, others) = on_ranks(work)
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert games.shape == others.shape
    assert not torch.equal(games, others)


def test_a_signal_to_one_rank_saves_all(tmp_path):
    def work(ranks):
        model = toy(ranks)
        signalled = AtStep(1, 21, lambda model: os.kill(os.getpid(), signal.SIGUSR1))
        saving = Checkpoints(tmp_path, Every(updates=10**6))
        model.learn(400, [Signals(), signalled, saving])
        return len(list_checkpoints(tmp_path))

    assert on_ranks(work) == [2, 2]  # and the one at the end
    path = list_checkpoints(tmp_path)[-1]
    parts = [load_checkpoint(path), load_checkpoint(path / "rank-1")]
    assert [part["model"]["ranks"] for part in parts] == [2, 2]
    assert parts[0].keys() == parts[1].keys()


def test_a_checkpoint_that_one_rank_cannot_write_is_none(tmp_path, monkeypatch):
    """All go on without it; the one before it stays, and at the end it is an error of all."""
    original = files.sync

    def full_disk(path):
        if path.name == "rank-1" and list_checkpoints(tmp_path):
            raise OSError(28, "No space left on device")
        original(path)

    def work(ranks):
        model = toy(ranks)
        try:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                model.learn(400, [Checkpoints(tmp_path, Every(updates=10))])
        except OSError as error:
            return model.num_timesteps, str(error), [str(each.message) for each in caught]

    monkeypatch.setattr(checkpoint, "sync", full_disk)
    first, second = on_ranks(work)
    assert first[0] == second[0] == 400
    assert "rank 1: [Errno 28] No space left" in first[1]
    assert second[1] == "[Errno 28] No space left on device"
    assert any("no checkpoint was written: rank 1" in text for text in first[2])
    (path,) = list_checkpoints(tmp_path)
    assert path.name == checkpoint_name(64 + 10 * 2 * 2 * ROWS)
    assert {each.name for each in tmp_path.iterdir()} == {path.name}


def saved(ranks, folder, transitions):
    model = toy(ranks)
    callbacks = [Checkpoints(folder, Every(updates=10))]
    if list_checkpoints(folder):
        resume(model, folder, callbacks)
    model.learn(transitions - model.num_timesteps, callbacks, reset_num_timesteps=False)
    return model


def test_a_damaged_part_sends_all_back_to_the_checkpoint_before(tmp_path):
    def work(ranks):
        saved(ranks, tmp_path, 400)
        newest, before = list_checkpoints(tmp_path)
        if ranks.rank == 1:
            (newest / "rank-1" / "buffer.safetensors").write_bytes(b"damaged")
        ranks.exchange()
        model = toy(ranks)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            path = resume(model, tmp_path)
        kinds = {each.category for each in caught}
        return path == before, CheckpointWarning in kinds, model.num_timesteps

    first, second = on_ranks(work)
    assert first == second
    assert first[:2] == (True, True)


def test_weights_that_are_no_longer_the_same_are_an_error(tmp_path):
    def spoil(model):
        with torch.no_grad():
            next(model.q_net.parameters()).view(-1)[0] += 1e-7

    def work(ranks):
        toy(ranks).learn(400, [AtStep(1, 21, spoil), Checkpoints(tmp_path, Every(updates=10))])

    results = on_ranks(work)
    assert all(each.startswith("FloatingPointError: the ranks no longer") for each in results)


def test_a_rank_that_ends_ends_the_others():
    def work(ranks):
        toy(ranks).learn(10**6, AtStep(1, 21, lambda model: os._exit(1)))

    first, second = on_ranks(work)
    assert first.startswith("ConnectionError: rank 0: another rank has ended")
    assert second is None
