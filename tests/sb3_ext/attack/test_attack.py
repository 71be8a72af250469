"""The attack finds what is weak, in the same way every time, and goes on where it stopped."""

import copy
import json

import pytest
import torch
from safetensors.torch import load_file

import resgym
import sb3_ext
from sb3_ext.attack.attack import main
from sb3_ext.runs.checkpoint import checkpoint_name, load_checkpoint, save_checkpoint
from tests.resgym.players.test_exact import remembers
from tests.sb3_ext.helpers import LESS, SMALL_ATTACK

LEARNS = (
    *("seeds=[1]", "updates=200", "every=50", "learner.batch_size=64", "learner.n_envs=32"),
    *("learner.policy_kwargs.net_arch=[32]", "learner.learning_rate=0.003"),
    *("learner.exploration_rate=0.3", "learner.target_update_interval=25"),
)


def trap(state, coords, rng):
    """Zeillinger's host with one hole: it names all axes, again and again, once axis 1 is ahead.

    Then an agent that keeps to axis 1 is never done, since every point moves up by the same rule.
    Scripted agents that keep to the first or the last axis of a set do not get there often.
    """
    answer = resgym.make_host("zeillinger").act(state, coords, rng)
    absent = state.points[:, :, :1] < 0
    highest = state.points.masked_fill(absent, 0).amax(1)
    ahead = highest[:, 1] > highest[:, 0] + highest[:, 2]
    return torch.where(ahead, 3, answer)


def attack(player, *settings, **more):
    return sb3_ext.exploit(player, settings=[*SMALL_ATTACK, *settings], **more)


@pytest.mark.learning
def test_a_planted_hole_is_found():
    """Recorded: 0.093 with training, 0.330 without, scripted agents 0.32 to 0.37."""
    more = {"role": "host", "parts": ["scripted", "trained"]}
    found = attack(trap, *LEARNS, **more)
    control = attack(trap, *LEARNS, "updates=0", **more)
    assert found["worst"]["rho"] < 0.15
    assert found["worst_responder"] == "seed 1"
    assert control["trained"]["1"]["test"]["rho"] > 0.25
    assert min(each["rho"] for each in found["scripted"].values()) > 0.25


@pytest.mark.parametrize(("player", "worst"), [("zeillinger", min), ("choose_first", max)])
def test_the_worst_responder_counts_and_its_best_version(player, worst):
    found = attack(player, "exact.starts=100", "lookahead=20")
    rhos = {name: each["rho"] for name, each in found["responders"].items()}
    assert len(rhos) == 5
    assert found["worst"]["rho"] == worst(rhos.values()) == rhos[found["worst_responder"]]
    seed = found["trained"]["0"]
    assert [each["updates"] for each in seed["history"]] == [0, 2, 4]
    assert seed["best"]["rho"] == worst(each["rho"] for each in seed["history"])
    # Nobody does more than the longest games, or the shortest, and lookahead does not do less.
    end = found["exact"]["lowest" if worst is min else "highest"]["rho"]
    assert worst(end, found["worst"]["rho"]) == end
    assert worst(seed["lookahead"]["rho"], seed["test"]["rho"]) == seed["lookahead"]["rho"]


def test_the_command_goes_on_and_repeats_nothing(tmp_path, capsys):
    out = tmp_path / "a"
    command = ["zeillinger", *LESS, "--set", "seeds=[0, 2]", "--out", str(out)]
    assert main([*command, "--stop", "max_updates=5"]) == 0  # in the second seed
    assert "max_updates 5 reached" in capsys.readouterr().out
    assert list(json.loads((out / "result.json").read_text())["trained"]) == ["0"]
    first = (out / "seed-0" / "manifest.json").stat().st_mtime_ns
    assert main(command) == 0
    assert "searches given up" not in capsys.readouterr().err  # the exact part is done
    result = json.loads((out / "result.json").read_text())
    assert list(result["trained"]) == ["0", "2"]
    assert (out / "seed-0" / "manifest.json").stat().st_mtime_ns == first
    assert result["responders"] == attack("zeillinger", "seeds=[0, 2]")["responders"]
    assert attack("zeillinger", "seeds=[7]")["trained"]["7"]["test"] != result["worst"]
    # What was kept plays as it was measured, and can be attacked itself.
    assert load_file(out / "seed-0" / "policy.safetensors")
    here = {"max_num_points": 3, "max_value": 6, "max_moves": 40}
    again = resgym.rho("zeillinger", out / "seed-0", games=100, seed=2, **here)
    assert again.to_dict() == result["trained"]["0"]["test"]
    assert attack(out / "seed-0", parts=["exact"])["role"] == "agent"


def test_the_folder_of_an_attack_on_another_player_is_refused(tmp_path, capsys):
    given = [*LESS, "--set", "updates=0", "--set", "exact.starts=2", "--out", str(tmp_path / "a")]
    assert main(["zeillinger", *given, "--no-progress"]) == 0
    capsys.readouterr()
    assert main(["random_pair", *given]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "belongs to an attack on another player" in line


def test_a_resealed_state_of_a_wrong_form_is_refused_in_one_line(tmp_path, capsys):
    out = tmp_path / "a"
    command = ["zeillinger", *LESS, "--set", "updates=0", "--no-progress", "--out", str(out)]
    assert main(command) == 0
    sound, result = load_checkpoint(out), (out / "result.json").read_text()
    for path, value in (
        (("exact", "optimum"), {}),
        (("scripted", "random"), 0.5),
        (("trained", "0"), {}),
        (("trained", "0", "updates"), "many"),
        (("trained", "0", "best", "rho"), None),
        (("trained",), []),
    ):
        state = copy.deepcopy(sound)
        *above, key = path
        inner = state["attack"]["found"]
        for each in above:
            inner = inner[each]
        inner[key] = value
        save_checkpoint(out / "checkpoints" / checkpoint_name(99), state)
        capsys.readouterr()
        assert main(command) == 2, path
        (line,) = capsys.readouterr().err.splitlines()
        assert "checkpoint-000000000099: " in line
    assert (out / "result.json").read_text() == result


def test_a_player_that_draws_has_no_exact_worst_case():
    for player in ("random", remembers("host")):
        lines = []
        assert attack(player, "updates=0", role="host", say=lines.append)["exact"] is None
        assert any("no exact worst case: host must be determin" in line for line in lines)
        with pytest.raises(ValueError, match="host must be deterministic and without memory"):
            attack(player, role="host", parts=["exact"])
    proved = attack("zeillinger", "game.max_moves=1", parts=["exact"])
    assert (proved["worst_responder"], proved["trained"]) == ("proof", {})
    assert proved["exact"]["largest_gap"] == 0  # each game is cut, as best play is


def test_an_unknown_part_is_named():
    with pytest.raises(ValueError, match="parts: unknown part 'exakt'; did you mean 'exact'"):
        attack("zeillinger", parts=["exakt"])
