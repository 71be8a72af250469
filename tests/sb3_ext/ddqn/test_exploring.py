"""Exploration around action values, and rows that do not explore."""

import pytest
import torch

from sb3_ext.ddqn import legality
from tests.sb3_ext.callbacks.helpers import keep_logs
from tests.sb3_ext.ddqn.helpers import make_model


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
