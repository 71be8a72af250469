"""Rollouts played by actors: the same bits with any number of them, whatever happens to these."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from stable_baselines3.common.callbacks import BaseCallback

from sb3_ext.two_player import HostAgentTrainer
from sb3_ext.two_player.job import main
from tests.sb3_ext.cluster.processes import MARK, marked, marked_cluster, wait_until
from tests.sb3_ext.two_player.helpers import (
    POOL,
    HostNet,
    difference,
    tiny,
)

NEEDS_RAY = "needs the extra: pip install 'resgym[cluster]'"
CURRICULUM = "{callback: curriculum, stages: [{max_value: 3}]}"
LONG = pytest.mark.long


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    """Two processors; it is the user's, so that it stays when a training ends."""
    pytest.importorskip("ray", reason=NEEDS_RAY)
    with marked_cluster(num_cpus=2):
        yield


def workers() -> list[int]:
    return marked(os.environ[MARK], b"ray::do_piece")


def crewed(data: dict[str, Any], actors: int, **arguments: Any) -> HostAgentTrainer:
    collector = {"actors": actors, "pieces": 3}
    return HostAgentTrainer({**data, "collector": collector}, **arguments)


def trained(data: dict[str, Any], actors: int, **arguments: Any) -> HostAgentTrainer:
    trainer = crewed(data, actors, **arguments)
    trainer.train()
    return trainer


def pooled() -> dict[str, Any]:
    return tiny(*POOL, name="self_play")


class Kill(BaseCallback):
    """Ends a process that has played, after two of the rollouts."""

    killed = 0

    def _on_rollout_end(self) -> None:
        if self.killed < 2:
            os.kill(marked(os.environ[MARK], b"ray::IDLE")[0], signal.SIGKILL)
            self.killed += 1

    def _on_step(self) -> bool:
        return True


def test_no_actors_are_no_collector() -> None:
    without, none = HostAgentTrainer(pooled()), crewed(pooled(), 0)
    without.train()
    none.train()
    assert difference(without.state_dict(), none.state_dict()) == []
    assert none.roles["host"].elsewhere["played"] == 0


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize(
    "data",
    [
        pytest.param(pooled(), id="pool", marks=LONG),
        pytest.param(tiny(), id="small"),
        pytest.param(tiny("roles.agent.rollout.reset_each_rollout=true"), id="reset", marks=LONG),
    ],
)
def test_the_number_of_actors_changes_nothing(data: dict[str, Any]) -> None:
    one, two = trained(data, 1), trained(data, 2)
    assert difference(one.state_dict(), two.state_dict()) == []
    assert wait_until(lambda: not workers())
    without = HostAgentTrainer(data)
    without.train()
    for role, learner in without.roles.items():
        assert learner.transitions == one.roles[role].transitions > 0
        assert learner.updates == one.roles[role].updates
        assert one.roles[role].elsewhere["played"] > 0
    states = (each.roles["host"].policy.state_dict() for each in (one, without))
    assert not all(map(torch.equal, *(state.values() for state in states)))


@pytest.mark.usefixtures("cluster")
def test_killed_actors_and_resumed_learners_change_nothing(tmp_path: Path) -> None:
    whole = trained(pooled(), 2)
    kill = Kill()
    first = crewed(pooled(), 2, callbacks={"host": [kill]})
    first.train(3)
    assert kill.killed == 2
    state = first.state_dict()
    state["trainer"]["config"]["collector"]["actors"] = 1
    del state["host.callbacks"]
    first.state_dict = lambda: state  # type: ignore[method-assign]
    path = first.save(tmp_path / "saved")
    torch.manual_seed(99)
    second = HostAgentTrainer.load(path)
    second.train(3)
    assert difference(whole.state_dict(), second.state_dict()) == []
    # What the games led to came to the right transitions: those that ended have a point left.
    batch = whole.roles["host"].model.replay_buffer.sample(256)
    alive = (batch.next_observations[:, :, 0] >= 0).sum(1)
    assert torch.equal(alive <= 1, batch.dones[:, 0].bool())
    assert 0 < batch.dones.sum() < 256


@LONG
@pytest.mark.usefixtures("cluster")
def test_players_networks_and_rewards_of_ones_own_travel() -> None:
    """Two opponents that are objects, a network and a reward, each as where it was given."""

    def own(actors: int) -> HostAgentTrainer:
        torch.manual_seed(0)
        trainer = crewed(tiny(), actors, nets={"host": HostNet()})
        trainer.replace_reward("agent", lambda transition: transition.finished.float() * 3)
        trainer.set_opponent("host", "choose_last")
        trainer.train(3)
        trainer.replace_nets(host=HostNet())
        trainer.train(3)
        return trainer

    one, two = own(1), own(2)
    assert difference(one.state_dict(), two.state_dict()) == []
    rewards = two.roles["agent"].model.replay_buffer.state_dict()["fields"]["rewards"]
    assert set(rewards.unique().tolist()) == {0.0, 3.0}


class Early(BaseCallback):
    """Ends training in the middle of the third rollout."""

    def _on_step(self) -> bool:
        return bool(self.n_calls < 8)


@LONG
@pytest.mark.usefixtures("cluster")
def test_callbacks_see_every_step() -> None:
    seen = Early()
    trainer = crewed(tiny(), 1, callbacks={"host": [seen]})
    trainer.train()
    assert seen.n_calls == 8
    assert trainer.roles["host"].wants_to_stop
    assert trainer.total_steps < 6


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["collector={actors: -1}"], "collector.actors must be at least 0, got -1"),
        (
            ["collector.actors=1", "collector.pieces=50"],
            "collector.pieces: got 50; expected at most",
        ),
        (["collector.pieces=3"], "collector.actors is missing: processes on a Ray cluster"),
        (["collector={actors: 1, pieces: 50}"], "collector.pieces: got 50; expected at most"),
        (["collector={actors: 1, piece: 3}"], "unknown key of collector 'piece'"),
        (["--actors", "-1"], "collector.actors must be at least 0, got -1"),
        (["--config", "ppo_host", "--actors", "1"], "roles.host.algorithm: got ppo; expected ddqn"),
        (
            ["collector={actors: 1}", f"roles.host.callbacks=[{CURRICULUM}]"],
            "roles.host.callbacks: got a curriculum",
        ),
    ],
)
def test_what_is_wrong_is_one_line(settings: list[str], message: str, capsys: Any) -> None:
    given = [] if settings[0][0] == "-" else [part for each in settings for part in ("--set", each)]
    assert main(["--config", "small", "--dry-run", *(given or settings)]) == 2
    said = capsys.readouterr().err
    assert message in said
    assert said.count("\n") == 1


@pytest.mark.usefixtures("cluster")
def test_the_command_line_plays_with_actors(tmp_path: Path, capsys: Any) -> None:
    run = ["--config", "self_play", "--smoke", "--no-progress", "--out", str(tmp_path / "run")]
    assert main([*run, "--actors", "1"]) == 0
    again = ["--resume", str(tmp_path / "run"), "--no-progress", "--set", "training.steps=6"]
    assert main([*again, "--actors", "2"]) == 0
    assert main([*again, "--actors", "0"]) == 2
    assert main([*again, "--actors", "3"]) == 2
    said = capsys.readouterr().err.splitlines()
    assert "holds a run with another collector" in said[-2]
    assert said[-1].startswith("two_player: actors: 3 need 3 CPUs, the cluster has 2; take fewer")
    assert wait_until(lambda: not workers())
