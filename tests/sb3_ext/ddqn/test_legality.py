"""Who knows the legal actions, and which of them are chosen."""

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium import spaces
from gymnasium.vector import VectorWrapper
from stable_baselines3.common.vec_env import DummyVecEnv, VecMonitor, VecNormalize

from sb3_ext.adapter import TensorVecEnv
from sb3_ext.ddqn import legality
from sb3_ext.ddqn.legality import LegalActions, mask_key
from tests.fakes import ToyEnv, ToyVectorEnv
from tests.sb3_ext.helpers import keep_logs, make_model

PLAIN = ToyVectorEnv(1).single_observation_space
ACTIONS = ToyVectorEnv(1).single_action_space
MASKED = spaces.Dict(coords=spaces.MultiBinary(4), points=PLAIN)


class Unmasked(ToyEnv):
    action_masks = property()


def toys():
    return TensorVecEnv(ToyVectorEnv(4))


def games():
    return gymnasium.make_vec("resgym/HironakaHost-v0", num_envs=2)


@pytest.mark.parametrize(
    ("space", "make_env", "asked", "source"),
    [
        (MASKED, toys, "auto", "observation"),
        (MASKED, toys, "environment", "environment"),
        (MASKED, toys, "none", "none"),
        (PLAIN, lambda: None, "auto", "none"),
        (PLAIN, toys, "auto", "environment"),
        # Only an environment whose actions are all legal is not asked; a wrapper or subclass may
        # have masks of its own.
        (PLAIN, lambda: TensorVecEnv(games()), "environment", "environment"),
        (PLAIN, lambda: TensorVecEnv(games()), "auto", "none"),
        (PLAIN, lambda: TensorVecEnv(VectorWrapper(games())), "auto", "environment"),
        (PLAIN, lambda: VecMonitor(TensorVecEnv(games())), "auto", "environment"),
    ],
)
def test_the_observation_is_asked_before_the_environment(space, make_env, asked, source):
    legal = LegalActions(space, ACTIONS, make_env(), asked)
    assert legal.source == source
    seen = legal.of_observation({"coords": torch.tensor([[0, 1, 0, 1]])})
    assert (seen is None) == (source != "observation")
    assert seen is None or seen.tolist() == [[False, True, False, True]]


def test_an_environment_without_masks_cannot_be_asked():
    with pytest.raises(ValueError, match=r"no action_masks\(\)"):
        LegalActions(PLAIN, ACTIONS, DummyVecEnv([Unmasked]), "environment")


BINARY = (
    spaces.MultiBinary(4),
    spaces.Box(0, 1, (4,), np.int8),
    spaces.Box(0.0, 1.0, (4,), np.float32),
    spaces.MultiDiscrete([2] * 4),
)
OTHER = (spaces.MultiBinary(3), spaces.Box(-1, 1, (4,)), spaces.MultiDiscrete([2, 2, 2, 3]))


def test_a_mask_is_found_by_its_name_and_of_any_binary_space():
    for name in ("action_mask", "action_masks"):
        for space in BINARY:
            assert mask_key(spaces.Dict({"seen": BINARY[0], name: space}), ACTIONS) == name
        for space in OTHER:
            with pytest.raises(ValueError, match=rf"{name}: got .*expected 0 or 1 for each of 4"):
                mask_key(spaces.Dict({name: space}), ACTIONS)
    # Others are no masks, whatever their size: the set on the turn of the host is none, either.
    for entries in (("seen", "points"), ("coords", "points", "to_play"), ("coords",)):
        assert mask_key(spaces.Dict(dict.fromkeys(entries, BINARY[0])), ACTIONS) is None
    both = gymnasium.make_vec("resgym/Hironaka-v0", num_envs=2, dimension=2)
    assert make_model(TensorVecEnv(both)).legal_actions.source == "environment"
    toy = ToyVectorEnv(2)
    toy.single_observation_space = spaces.Dict(action_mask=BINARY[1])
    with pytest.raises(ValueError, match="norm_obs_keys: action_mask must not be one"):
        make_model(VecNormalize(TensorVecEnv(toy)))
    assert LegalActions(spaces.Dict(action_mask=OTHER[0]), ACTIONS, None, "none").key is None
    with pytest.raises(ValueError, match="expected one that starts at 0"):
        LegalActions(BINARY[0], spaces.Discrete(4, start=1))


def test_every_action_counts_as_legal_at_a_final_observation():
    """What the environment says after the step is about the next episode."""
    env = TensorVecEnv(ToyVectorEnv(4, horizon=2))
    legal = LegalActions(PLAIN, ACTIONS, env)
    env.reset()
    ended = 0
    for _ in range(8):
        dones = torch.from_numpy(env.step(np.zeros(4, dtype=int))[2])
        now, stored = legal.after(env, torch.device("cpu"), dones)
        assert torch.equal(now, env.action_masks_tensor())
        assert stored[dones].all()
        assert torch.equal(stored[~dones], now[~dones])
        ended += int(dones.sum())
    assert ended > 8


@pytest.mark.parametrize("temperature", [0.5, 2.0])
def test_actions_are_drawn_by_their_values(temperature):
    """Shares of 100,000 draws against exp(value / temperature) over the legal actions' sum."""
    values = torch.tensor([1.0, 0.0, 3.0, 0.5]).repeat(100_000, 1)
    legal = torch.tensor([True, True, False, True])
    source = torch.Generator().manual_seed(0)
    drawn = legality.boltzmann(values, legal.repeat(100_000, 1), temperature, source)
    shares = torch.bincount(drawn, minlength=4) / 100_000
    expected = torch.exp(values[0] / temperature) * legal
    torch.testing.assert_close(shares, expected / expected.sum(), atol=0.006, rtol=0)
    assert shares[2] == 0


def test_a_temperature_of_0_takes_the_best_legal_action():
    source = torch.Generator().manual_seed(0)
    values = torch.randn((500, 6), generator=source)
    legal = torch.rand((500, 6), generator=source) < 0.5
    drawn = legality.boltzmann(values, legal, 0.0, source)
    assert torch.equal(drawn, legality.legal_argmax(values, legal))


def test_rows_that_do_not_explore_play_as_predict_does():
    """The last three of eight, in the warm-up too; their episodes are logged by themselves."""
    arguments = {"exploration_rate": 1.0, "mask_source": "none", "learning_starts": 400}
    model = make_model(evaluation_rows=3, **arguments)
    kept = keep_logs(model)

    def choose(rows):
        buffer = model.replay_buffer
        stored = buffer.state_dict()["fields"]
        greedy, _ = model.predict(stored["observations"].flatten(0, 1).numpy(), deterministic=True)
        same = stored["actions"][:, :, 0].numpy() == greedy.reshape(-1, 8)
        return float(same[:, rows].mean())

    model.learn(320)  # no update yet: one network played all the time
    assert choose(slice(5, 8)) == 1.0
    assert choose(slice(0, 5)) < 0.7
    logged = kept.dumps[-1]
    assert logged["rollout/evaluation_ep_len_mean"] > 0
    assert logged["rollout/evaluation_ep_rew_mean"] != logged["rollout/ep_rew_mean"]
