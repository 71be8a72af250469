"""Networks that take mirror images for one game."""

import pytest
import torch
from gymnasium import spaces

from sb3_ext.checkpoints.policy_description import build_policy, describe_policy
from sb3_ext.ddqn import QPolicy
from sb3_ext.networks.mirror import Mirror, parse_mirror, rows_in_order

MIRROR = {"axes": [2, 1, 0], "actions": [2, 1, 0, 3]}
SPACE = spaces.Box(-1.0, 1.0, (5, 3))


def policy(mirror=MIRROR, space=SPACE, actions=4):
    torch.manual_seed(3)
    return QPolicy(
        space,
        spaces.Discrete(actions),
        lambda _: 1e-3,
        net_arch=[16],
        extractor="ordered_points",
        mirror=mirror,
    )


def games(number=64):
    """Points in descending order, some rows absent."""
    source = torch.Generator().manual_seed(1)
    points = torch.randint(0, 6, (number, 5, 3), generator=source) / 5.0
    absent = torch.arange(5) >= torch.randint(2, 6, (number, 1), generator=source)
    return rows_in_order(points.masked_fill(absent[:, :, None], -1.0))


def image(points):
    """The mirror images, with Python's own sorting."""
    rows = [sorted(([x[2], x[1], x[0]] for x in game), reverse=True) for game in points.tolist()]
    return torch.tensor(rows)


def test_mirror_images_have_the_same_values():
    points = games()
    assert points.tolist() == [sorted(game, reverse=True) for game in points.tolist()]
    network = policy().q_net
    values, mirrored = network(points), network(image(points))
    lead = (points[:, :, 0] - points[:, :, 2]).sum(1)  # absent rows are equal in both
    clear = lead.abs() > 1e-4
    assert clear.sum() > 50
    # {0, 1} of the one is {1, 2} of the other.
    assert torch.equal(mirrored[clear], values[clear][:, [2, 1, 0, 3]])
    plain = policy(mirror=None).q_net
    assert not torch.allclose(plain(image(points))[clear], plain(points)[clear][:, [2, 1, 0, 3]])
    # Where nothing is turned the network is the plain one.
    assert torch.equal(values[lead > 1e-4], plain(points)[lead > 1e-4])
    assert not torch.equal(values[lead < -1e-4], plain(points)[lead < -1e-4])


def test_both_ways_to_turn_rows_agree(monkeypatch):
    points, mirror = games(), Mirror((2, 1, 0), (2, 1, 0, 3))
    turned = mirror.turned(points)
    looked = mirror.images(points, turned)
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
    assert torch.equal(mirror.images(points, turned), looked)
    assert torch.equal(looked[turned], image(points)[turned])
    assert torch.equal(looked[~turned], points[~turned])


def test_a_description_keeps_the_mirror():
    original = policy()
    again = build_policy(describe_policy(original))
    again.load_state_dict(original.state_dict())
    assert torch.equal(again.q_net(games()), original.q_net(games()))
    assert again.mirror == MIRROR


@pytest.mark.parametrize(
    ("mirror", "message"),
    [
        ({"axes": [1, 2, 0], "actions": [0, 1, 2, 3]}, "mirror: axes must exchange pairs of 0..2"),
        ({"axes": [2, 1, 0], "actions": [2, 1, 0]}, "mirror: actions must exchange pairs of 0..3"),
        ({"axes": [0, 1, 2], "actions": [0, 1, 2, 3]}, "mirror: axes must exchange pairs"),
    ],
)
def test_what_is_no_mirror_is_refused(mirror, message):
    with pytest.raises(ValueError, match=message):
        policy(mirror)
    with pytest.raises(ValueError, match=message):
        parse_mirror(mirror, 3, 4)
