"""Networks, how they are called, and the ``net_arch`` language that writes them as a list.

[256, 256]                                  two layers of 256 units
[128, b, 64, ln]                            with BatchNorm, with LayerNorm
[256, r256, r256]                           with residual blocks of width 256
[{repeat: 20, net_arch: [256, b]}, 128]     a part that is repeated, as deep as wanted
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import islice, pairwise
from typing import Annotated, Any

import torch
from gymnasium.spaces import Space, flatdim
from torch import Tensor, nn

from sb3_ext.adapter.seam import first_entry
from sb3_ext.config.checks import Registry, check_count, shown
from sb3_ext.config.sections import Size, checked

MAX_WEIGHTS = 2**28
"""Largest number of weights of one ``net_arch``; as float32 they take 1 GiB."""
MAX_LAYERS = 1_000
"""Most layers of one ``net_arch``, repetitions written out; 10,000 take half a minute to build."""

ACTIVATIONS: Registry[type[nn.Module]] = Registry("activation")
ACTIVATIONS.update(elu=nn.ELU, gelu=nn.GELU, relu=nn.ReLU, silu=nn.SiLU, tanh=nn.Tanh)

_ALLOWED = "a width (int >= 1), 'b', 'ln', 'rK' or {repeat: n, net_arch: [...]}"
_WORD = re.compile(r"b|ln|r[1-9][0-9]{0,8}")
_NORMS = {"b": nn.BatchNorm1d, "ln": nn.LayerNorm}


class Mlp(nn.Sequential):
    """Layers in a row, with the width that they end in."""

    output_dim: int


class ResidualBlock(nn.Module):
    """activation(skip(x) + norm(linear(activation(norm(linear(x)))))), the norms being BatchNorm.

    Where the width inside and after differs from the input's, the skip is a linear map.
    """

    def __init__(self, input_dim: int, width: int, activation: Callable[[], nn.Module]) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(input_dim, width),
            nn.BatchNorm1d(width),
            activation(),
            nn.Linear(width, width),
            nn.BatchNorm1d(width),
        )
        self.skip = nn.Identity() if input_dim == width else nn.Linear(input_dim, width)
        self.activation = activation()

    def forward(self, x: Tensor) -> Tensor:
        """Applies the block to [N, input_dim], giving [N, width]."""
        return self.activation(self.skip(x) + self.body(x))


def build_mlp(
    input_dim: int,
    net_arch: Sequence[Any],
    activation: str | type[nn.Module] = nn.ReLU,
) -> Mlp:
    """Builds a network from the ``net_arch`` language.

    A width is a linear layer and the activation after it; ``b`` and ``ln`` put a BatchNorm or a
    LayerNorm between the two; ``rK`` is a ``ResidualBlock`` of width K. Nothing is applied to the
    input itself, so that an absent point (-1) and the origin (0) stay apart.

    Args:
        input_dim: width of the input, at least 1.
        net_arch: the list, see the module.
        activation: name in ``ACTIVATIONS`` or class.

    Raises:
        TypeError, ValueError: names the item of ``net_arch`` that is not of the language.
    """
    width = input_dim
    act: Any = ACTIVATIONS.resolve(activation)
    # In place: a copy of every activation takes as long as a part of the product before it.
    act = partial(nn.ReLU, inplace=True) if act is nn.ReLU else act
    layers: list[nn.Module] = []
    can_norm = False
    for position, item in expand_net_arch(net_arch, first=input_dim):
        if isinstance(item, int):
            layers += [nn.Linear(width, item), act()]
            width = item
            can_norm = True
        elif item in _NORMS:
            if not can_norm:
                raise ValueError(f"{position}: {item!r} must come directly after a width")
            layers.insert(-1, _NORMS[item](width))
            can_norm = False
        else:
            block_width = int(item[1:])
            layers.append(ResidualBlock(width, block_width, act))
            width = block_width
            can_norm = False
    network = Mlp(*layers)
    network.output_dim = width
    return network


def expand_net_arch(
    net_arch: Sequence[Any], name: str = "net_arch", first: int = 64, last: int = 0
) -> list[tuple[str, int | str]]:
    """Pairs (position, item) of a ``net_arch`` with its repetitions written out.

    ``first`` and ``last`` are the widths of what comes before and after it; 64 is a usual input.

    Raises:
        TypeError: it is not a list, or a number of repetitions is not a number.
        ValueError: an item is not of the language, or all of them make more than `MAX_LAYERS` or
            `MAX_WEIGHTS`.
    """
    items = list(islice(_expand(net_arch, name), MAX_LAYERS + 1))
    if len(items) > MAX_LAYERS:
        raise ValueError(f"{name} must make at most {MAX_LAYERS} layers, got more")
    widths = [first]
    for _, item in items:
        if isinstance(item, int):
            widths.append(item)
        elif item not in _NORMS:
            widths += [int(item[1:])] * 2
    weights = sum(before * after for before, after in pairwise([*widths, last]))
    if weights > MAX_WEIGHTS:
        raise ValueError(f"{name} must have at most {MAX_WEIGHTS} weights, got {weights}")
    return items


def check_widths(arguments: Mapping[str, Any], seen: Space[Any], given: Space[Any]) -> None:
    """Raises as `expand_net_arch`, for all the networks that a policy makes of its arguments.

    ``net_arch`` may be a mapping with a list for each part, as in SB3's own policies. A layer of an
    LSTM has four gates, each from its input and from what the layer gave last.
    """
    layers = arguments.get("net_arch") or [64]
    width = arguments.get("lstm_hidden_size", 1)
    quantiles = arguments.get("n_quantiles", 1)
    parts = dict(layers) if isinstance(layers, Mapping) else {"net_arch": layers}
    parts["lstm_hidden_size"] = [
        {"repeat": arguments.get("n_lstm_layers", 1), "net_arch": [4 * width, width]}
    ]
    extractor = arguments.get("features_extractor_kwargs") or {}
    parts["features_dim"] = [extractor.get("features_dim", 1)]
    for name, part in parts.items():
        expand_net_arch(part, name, flatdim(seen), flatdim(given) * quantiles)


def _expand(net_arch: Any, where: str) -> Iterator[tuple[str, int | str]]:
    """Yield the layers, each with its place for messages; lists that repeat are written out."""
    if isinstance(net_arch, str) or not isinstance(net_arch, Sequence):
        raise TypeError(f"{where} must be a list of layers, got {shown(net_arch)}")
    for index, item in enumerate(net_arch):
        position = f"{where}[{index}]"
        if isinstance(item, Mapping):
            if set(item) != {"repeat", "net_arch"}:
                raise ValueError(
                    f"{position} must have the keys repeat and net_arch, got {shown(item)}"
                )
            times = check_count(f"{position}.repeat", item["repeat"])
            # No more than the caller takes: lists inside of lists could make millions of layers.
            part = list(islice(_expand(item["net_arch"], f"{position}.net_arch"), MAX_LAYERS + 1))
            for _ in range(times if part else 0):  # nothing is not repeated: times can be huge
                yield from part
        elif (type(item) is int and item >= 1) or (type(item) is str and _WORD.fullmatch(item)):
            yield position, item
        else:
            raise ValueError(f"{position} must be {_ALLOWED}, got {shown(item)}")


@contextmanager
def in_mode(policy: Any, training: bool) -> Iterator[None]:
    """Puts a policy into training or evaluation mode, and back even after an error."""
    before = policy.training
    if before != training:  # setting it visits every module, which costs as much as a small network
        policy.set_training_mode(training)
    try:
        yield
    finally:
        if policy.training != before:
            policy.set_training_mode(before)


def action_values(network: Any, observation: Any, bfloat16: bool = False) -> Tensor:
    """Values of the actions, float32 [N, A]; the network may calculate with bfloat16 numbers.

    Not with a cache of the weights in bfloat16, which a captured update would keep.
    """
    if not bfloat16:
        return network(observation).float()  # type: ignore[no-any-return]
    kind = first_entry(observation).device.type
    with torch.autocast(kind, torch.bfloat16, cache_enabled=False):
        return network(observation).float()  # type: ignore[no-any-return]


_IN_THE_LANGUAGE = checked(lambda layers: expand_net_arch(layers, "") and layers)
NetArch = Annotated[list[Any], _IN_THE_LANGUAGE]
"""The ``net_arch`` language, as a field of a configuration."""
Widths = Annotated[list[Size], _IN_THE_LANGUAGE]
"""Widths of layers alone, as SB3's own policies have them."""


def seat_of(policy: Any) -> tuple[Any, Any]:
    """The seat of a model or policy by its observations, and the space [P, D] of their points."""
    space = policy.observation_space  # a dictionary is the agent's
    return ("agent", space.get("points")) if hasattr(space, "spaces") else ("host", space)


def plays_every_size(network: Any) -> bool:
    """Whether a network of action values has no weight that belongs to a point or an axis."""
    return bool(getattr(getattr(network, "features_extractor", None), "per_action", False))


def _network_of_values(policy: Any) -> Any:
    """The network of action values of a policy, or a network itself; None if there is none."""
    for name in ("q_net", "quantile_net"):
        if hasattr(policy, name):  # in a network this is all but its features extractor
            return getattr(policy, name) if hasattr(policy, f"{name}_target") else policy
    return None


def size_played(policy: Any) -> tuple[int, int] | None:
    """The (P, D) that a policy's network is made for; None: it plays every size."""
    return None if plays_every_size(_network_of_values(policy)) else seat_of(policy)[1].shape


def action_scores(policy: Any, observation: Any) -> Tensor:
    """Scores of the actions of a discrete policy, float [N, A], higher is better.

    Args:
        policy: a policy of DQN, DDQN, QRDQN (values), A2C, PPO or MaskablePPO (logits), or a
            network of values; left in the mode (training or not) it was in.
        observation: tensors as the policy's features extractor takes them, [N, ...] each.

    Raises:
        TypeError: the policy is of no such kind.
    """
    with in_mode(policy, training=False), torch.no_grad():
        if (network := _network_of_values(policy)) is not None:
            values = network(observation)
            return values if values.dim() == 2 else values.mean(1)  # over quantiles
        if hasattr(policy, "get_distribution") and not hasattr(policy, "lstm_actor"):
            return policy.get_distribution(observation).distribution.logits
    raise TypeError(
        "policy must be one of DQN, DDQN, QRDQN, A2C, PPO or MaskablePPO in PyTorch, "
        f"got {type(policy)}"
    )


def recurrent_scores(
    policy: Any, observation: Any, memory: Tensor | None, begins: Tensor
) -> tuple[Tensor, Tensor]:
    """As `action_scores`, of a recurrent policy, with its memory after this observation.

    Args:
        policy: a policy of RecurrentPPO.
        observation: as for `action_scores`.
        memory: float [N, 2 L H], hidden and cell states of L layers of width H; None: none yet.
        begins: bool [N]: rows whose memory is forgotten first.

    Returns:
        Logits [N, A], and the new memory.
    """
    layers, _, width = policy.lstm_hidden_state_shape
    rows = len(begins)
    if memory is None:
        memory = torch.zeros(rows, 2 * layers * width, device=begins.device)
    hidden, cell = memory.reshape(rows, 2, layers, width).permute(1, 2, 0, 3).contiguous()
    with in_mode(policy, training=False), torch.no_grad():
        found, states = policy.get_distribution(observation, (hidden, cell), begins.float())
    return found.distribution.logits, torch.stack(states).permute(2, 0, 1, 3).reshape(rows, -1)
