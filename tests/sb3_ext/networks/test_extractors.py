"""Features extractors: what they compute, what they ignore, and that SB3 algorithms use them."""

import numpy as np
import torch
from gymnasium import spaces

import resgym  # noqa: F401  registers the environments
from sb3_ext.networks.extractors import FlattenExtractor


def box(size=6, dimension=3):
    return spaces.Box(-1.0, 1.0, (size, dimension), np.float32)


def test_flatten_a_dict_in_alphabetical_order():
    space = spaces.Dict([("points", box(2, 1)), ("coords", spaces.MultiBinary(3))])
    extractor = FlattenExtractor(space)
    x = {
        "points": torch.tensor([[[8.0], [9.0]]]),
        "coords": torch.tensor([[1, 0, 1]]).to(torch.int8),
    }
    assert extractor.features_dim == 5
    assert extractor(x).tolist() == [[1, 0, 1, 8, 9]]
    one_hot = spaces.Dict(a=spaces.Discrete(5), b=spaces.MultiDiscrete([2, 2]))
    assert FlattenExtractor(one_hot).features_dim == 9
