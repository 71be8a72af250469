"""Networks of action values, the policies that hold them, and their optimisers.

`policy_kwargs` of all policies here:

    net_arch            layers after the features, in the language of `sb3_ext.networks`
    extractor           features extractor by name, such as `"flatten"`; `"point_set"` if none is
                        given to HostPolicy or AgentPolicy and the observation has points [P, D]
    features_extractor_class, features_extractor_kwargs   as in SB3, images included; the class may
                        be a name or a path such as `module.Class`
    activation_fn       class of the activation
    dueling             value and advantage heads instead of one
    sort_axes           rename the axes by the size of their coordinates, so that games which differ
                        by names alone are one to the network, see `sb3_ext.networks.sorted_axes`;
                        for hosts with an extractor that pools over points
    optimizer_class     a name in `OPTIMIZERS`, or a class
    optimizer_kwargs    its arguments without the learning rate
    learning_rate_factors   {part: factor}: the learning rate of parts of the network, by the
                        beginnings of their names, such as {features_extractor: 0.1}

The online and the target network are separate in all their parts, extractor included.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from gymnasium import spaces
from stable_baselines3.common.policies import BasePolicy
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from stable_baselines3.dqn.policies import DQNPolicy, QNetwork
from torch import Tensor, nn, optim
from torch.optim.optimizer import _global_optimizer_post_hooks, _global_optimizer_pre_hooks

from sb3_ext.config.checks import Registry, check_flag, check_number, unknown_word
from sb3_ext.ddqn.legality import legal_argmax, mask_key
from sb3_ext.ddqn.muon import Muon
from sb3_ext.networks.extractors import PoolingExtractor, extractor_class
from sb3_ext.networks.mlp import build_mlp, expand_net_arch, plays_every_size
from sb3_ext.networks.sorted_axes import SortedAxes
from sb3_ext.schedules.schedules import set_learning_rate
from sb3_ext.types import Arguments

OPTIMIZERS: Registry[type[optim.Optimizer]] = Registry("optimizer", optim.Optimizer)
OPTIMIZERS.update(adam=optim.Adam, adamw=optim.AdamW, muon=Muon)
OPTIMIZERS.update(rmsprop=optim.RMSprop, sgd=optim.SGD)

TINY = 1e-30
"""Mean gradients below this move no weight. After 100 updates without a gradient (beta 0.9) 3e-35
is left of it, still a normal float32."""

TINY_SQUARE = 2e-38
"""Mean squares below this, whose root is nothing beside Adam's epsilon. After 100 updates without a
gradient (beta 0.999) 1.8e-38 is left of it, still a normal float32."""


_HOOKS_OF_ALL = (_global_optimizer_pre_hooks, _global_optimizer_post_hooks)


class FusedAdam(optim.Adam):
    """Adam with `fused=True` and the same bits; PyTorch sorts tensors for longer than it steps."""

    def step(self) -> None:  # type: ignore[override]
        """One step of every group, with the profiler's mark only where there are hooks."""
        own = self._optimizer_step_pre_hooks or self._optimizer_step_post_hooks
        (self._hooked_step if own or any(_HOOKS_OF_ALL) else self._step)()

    @torch.no_grad()
    def _step(self) -> None:
        for group in self.param_groups:
            parts: list[list[Tensor]] = [[] for _ in range(6)]
            self._init_group(group, *parts)
            torch._foreach_add_(parts[5], 1)  # the numbers of steps
            beta1, beta2 = group["betas"]
            names = ("amsgrad", "eps", "lr", "maximize", "weight_decay")
            settings = {name: group[name] for name in names}
            torch._fused_adam_(*parts, beta1=beta1, beta2=beta2, **settings)

    step.hooked = True  # type: ignore[attr-defined]  # so PyTorch puts nothing around it
    _hooked_step = optim.Optimizer.profile_hook_step(_step)


def clip_gradients(parameters: Sequence[Tensor], max_norm: float) -> Tensor:
    """Clip the common norm of gradients in place, and return the norm before, float32 [].

    As `nn.utils.clip_grad_norm_`, which also groups them by device and dtype; that takes longer
    than clipping. Here they must have one of each, and at least one parameter a gradient.
    """
    gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
    norm = torch.linalg.vector_norm(torch.stack(torch._foreach_norm(gradients)))
    torch._foreach_mul_(gradients, (max_norm / (norm + 1e-6)).clamp(max=1.0))
    return norm


def forget_tiny_moments(optimizer: optim.Optimizer) -> None:
    """Sets means of gradients and of their squares that are all but zero to zero.

    Those of a unit that has died (`exp_avg` and `exp_avg_sq` of Adam) shrink in every update. After
    some 800 updates, the squares after some 70,000, they are subnormal numbers, with which a step
    takes several times as long. To be called every 100 updates, those of a resumed run the same.
    """
    for state in optimizer.state.values():
        for name, least in (("exp_avg", TINY), ("exp_avg_sq", TINY_SQUARE)):
            if name in state:
                state[name].masked_fill_(state[name].abs() < least, 0.0)


def parameter_groups(network: nn.Module, factors: Mapping[str, float]) -> list[dict[str, Any]]:
    """The parameters of a network in groups for an optimiser, by the parts that they belong to.

    Args:
        network: the network.
        factors: by the beginning of parameters' names, up to a dot, what the learning rate is
            multiplied with, at least 0. The first that fits counts.

    Returns:
        The group of those that no name stands for, then one for each name.

    Raises:
        TypeError, ValueError: a factor is not a number of at least 0, or no parameter has the name.
    """
    groups: dict[str, dict[str, Any]] = {}
    for name, factor in factors.items():
        where = f"learning_rate_factors.{name}"
        groups[name] = {"params": [], "rate_factor": check_number(where, factor, low=0)}
    rest: dict[str, Any] = {"params": [], "rate_factor": 1.0}
    parameters = dict(network.named_parameters())
    for name, parameter in parameters.items():
        fitting = (groups[each] for each in groups if f"{name}.".startswith(f"{each}."))
        next(fitting, rest)["params"].append(parameter)
    for name in groups:
        if not groups[name]["params"]:
            known = {each.split(".")[0] for each in parameters}
            raise ValueError(f"learning_rate_factors: {unknown_word('part', name, known)}")
    return [rest, *groups.values()]


class DuelingHead(nn.Module):
    """Q(s, a) = V(s) + A(s, a) - mean over a of A(s, a) (Wang et al. 2016, equation 9)."""

    def __init__(self, latent_dim: int, num_actions: int) -> None:
        super().__init__()
        self.value = nn.Linear(latent_dim, 1)
        self.advantage = nn.Linear(latent_dim, num_actions)

    def forward(self, latent: Tensor) -> Tensor:
        """Action values `[B, A]` of latent vectors `[B, latent_dim]`."""
        advantage = self.advantage(latent)
        return self.value(latent) + advantage - advantage.mean(dim=1, keepdim=True)


class LegalQNetwork(QNetwork):
    """Extractor, layers of `net_arch`, and a plain or dueling head.

    With sorted axes the values of games that differ by the names of axes are the same numbers
    for actions that correspond. That is right only if the opponents do not tell them apart either.
    """

    def __init__(
        self,
        net_arch: Any,
        dueling: bool = False,
        sort_axes: bool = False,
        **arguments: Any,
    ) -> None:
        """`arguments` are the others of SB3's `QNetwork`."""
        super().__init__(net_arch=[], **arguments)
        self.net_arch = net_arch
        self.dueling = dueling
        self.sort_axes = sort_axes
        num_actions = int(self.action_space.n)
        expand_net_arch(net_arch, "net_arch", self.features_dim, num_actions)
        body = build_mlp(self.features_dim, net_arch, activation=self.activation_fn)
        head = DuelingHead if dueling else nn.Linear
        per_action = plays_every_size(self)
        if per_action and dueling:
            raise ValueError("dueling: got true; expected false, as actions are valued one by one")
        self.q_net = nn.Sequential(body, head(body.output_dim, 1 if per_action else num_actions))
        if per_action:
            self.q_net.append(nn.Flatten())
        self._sorted: SortedAxes | None = None
        if sort_axes:
            extractor = self.features_extractor
            if not isinstance(extractor, PoolingExtractor) or extractor.others:
                raise ValueError(
                    "sort_axes: needs points alone and the extractor point_set or point_pairs, got"
                    f" {type(extractor).__name__} of {self.observation_space}"
                )
            self._sorted = SortedAxes(extractor.dimension, num_actions)

    def forward(self, obs: Any) -> Tensor:
        """Action values `[B, A]`."""
        if self._sorted is None:
            return super().forward(obs)
        images, actions = self._sorted(obs if obs.is_floating_point() else obs.float())
        return super().forward(images).gather(1, actions)

    def _predict(self, observation: Any, deterministic: bool = True) -> Tensor:
        key = mask_key(self.observation_space, self.action_space)
        return legal_argmax(self(observation), None if key is None else observation[key].bool())

    def _get_constructor_parameters(self) -> Arguments:
        return {
            **super()._get_constructor_parameters(),
            "dueling": self.dueling,
            "sort_axes": self.sort_axes,
        }


class QPolicy(DQNPolicy):
    """SB3's `DQNPolicy` with the arguments of this module; further ones are SB3's.

    Raises:
        ValueError: An unknown name.
    """

    of_a_box = "sb3.FlattenExtractor"
    """The extractor of an observation without parts, where none is named."""

    def __init__(
        self,
        observation_space: spaces.Space,
        action_space: spaces.Discrete,
        lr_schedule: Any,
        *,
        extractor: str | None = None,
        features_extractor_class: str | type[BaseFeaturesExtractor] | None = None,
        optimizer_class: str | type[optim.Optimizer] = "adam",
        optimizer_kwargs: Arguments | None = None,
        dueling: bool = False,
        sort_axes: bool = False,
        learning_rate_factors: Mapping[str, float] | None = None,
        **arguments: Any,
    ) -> None:
        kind = OPTIMIZERS.resolve(optimizer_class)
        settings = dict(optimizer_kwargs or {})
        if "fused" in inspect.signature(kind).parameters and "foreach" not in settings:
            settings.setdefault("fused", True)  # a third of the time for small networks on a CPU
        if kind is optim.Adam and settings.get("fused"):
            kind = FusedAdam
        self.dueling = check_flag("dueling", dueling)
        self.sort_axes = check_flag("sort_axes", sort_axes)
        self.learning_rate_factors = dict(learning_rate_factors or {})
        super().__init__(
            observation_space,
            action_space,
            lr_schedule,
            features_extractor_class=extractor_class(
                features_extractor_class or extractor or self._usual_extractor(observation_space)
            ),
            optimizer_class=kind,
            optimizer_kwargs=settings,
            **arguments,
        )

    def _usual_extractor(self, space: spaces.Space) -> str:
        """SB3's."""
        return "sb3.CombinedExtractor" if isinstance(space, spaces.Dict) else self.of_a_box

    def _build(self, lr_schedule: Any) -> None:
        super()._build(lr_schedule)
        if self.learning_rate_factors:
            groups = parameter_groups(self.q_net, self.learning_rate_factors)
            rate = lr_schedule(1)
            self.optimizer = self.optimizer_class(groups, lr=rate, **self.optimizer_kwargs)  # type: ignore[call-arg]
            set_learning_rate(self.optimizer, rate)

    def make_q_net(self) -> LegalQNetwork:
        """A new network with its own extractor."""
        arguments = self._update_features_extractor(self.net_args, features_extractor=None)
        network = LegalQNetwork(**arguments, dueling=self.dueling, sort_axes=self.sort_axes)
        return network.to(self.device)

    def _get_constructor_parameters(self) -> Arguments:
        return {
            **super()._get_constructor_parameters(),
            "dueling": self.dueling,
            "sort_axes": self.sort_axes,
            "learning_rate_factors": self.learning_rate_factors,
        }


class CnnPolicy(QPolicy):
    """The policy with SB3's convolutions for an image."""

    of_a_box = "sb3.NatureCNN"


class PointsPolicy(QPolicy):
    """The policy with `point_set`, where the observation shows points."""

    def _usual_extractor(self, space: spaces.Space) -> str:
        points = space.get("points", space) if isinstance(space, spaces.Dict) else space
        return "point_set" if len(points.shape or ()) == 2 else super()._usual_extractor(space)


ALIASES: dict[str, type[BasePolicy]] = {
    **dict.fromkeys(("HostPolicy", "AgentPolicy"), PointsPolicy),
    **dict.fromkeys(("MlpPolicy", "MultiInputPolicy"), QPolicy),
    "CnnPolicy": CnnPolicy,
}
"""Policies by the names that DDQN takes: by the seat that it plays, or as SB3 does."""
