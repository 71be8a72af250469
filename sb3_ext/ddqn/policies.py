"""Networks of action values and the policies that hold them.

`policy_kwargs` of all policies here:

    net_arch            layers after the features, in the language of `sb3_ext.networks`
    extractor           features extractor by name: `"flatten"` or `"point_set"`
    features_extractor_class, features_extractor_kwargs   as in SB3; the class if `extractor` is not
                        given
    activation_fn       class of the activation
    dueling             value and advantage heads instead of one
    mirror              {axes, actions}: games that are each other's mirror image are one to the
                        network, see `sb3_ext.networks.mirror`; boxes of points only
    optimizer_class     a name in `sb3_ext.networks.optimizers.OPTIMIZERS`, or a class
    optimizer_kwargs    its arguments without the learning rate
    learning_rate_factors   {part: factor}: the learning rate of parts of the network, by the
                        beginnings of their names, such as {features_extractor: 0.1}

The online and the target network are separate in all their parts, extractor included.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from gymnasium import spaces
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from stable_baselines3.dqn.policies import DQNPolicy, QNetwork
from torch import Tensor, nn
from torch.optim import Adam, Optimizer

from sb3_ext.checkpoints.policy_description import POLICIES
from sb3_ext.ddqn.legality import legal_argmax, mask_key
from sb3_ext.networks.extractors import EXTRACTORS, FlattenExtractor
from sb3_ext.networks.mirror import Mirror, parse_mirror
from sb3_ext.networks.mlp import MAX_WEIGHTS, build_mlp
from sb3_ext.networks.optimizers import OPTIMIZERS, FusedAdam, parameter_groups
from sb3_ext.schedules.schedules import set_learning_rate


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

    With a mirror the values of a game and of its mirror image are the same numbers for actions that
    correspond, exactly. That is right only if the opponents do not tell them apart either.
    """

    def __init__(
        self,
        net_arch: Any,
        dueling: bool = False,
        mirror: Mapping[str, Any] | None = None,
        **arguments: Any,
    ) -> None:
        """`arguments` are the others of SB3's `QNetwork`."""
        super().__init__(net_arch=[], **arguments)
        self.net_arch, self.dueling, self.mirror = net_arch, dueling, mirror
        self.mask_key = mask_key(self.observation_space, self.action_space)
        num_actions = int(self.action_space.n)
        body = build_mlp(self.features_dim, net_arch, activation=self.activation_fn)
        head = DuelingHead if dueling else nn.Linear
        if body.output_dim * num_actions > MAX_WEIGHTS:
            raise ValueError(
                f"net_arch: must end with at most {MAX_WEIGHTS // num_actions} features for"
                f" {num_actions} actions, got {body.output_dim}"
            )
        self.q_net = nn.Sequential(body, head(body.output_dim, num_actions))
        self._mirror: Mirror | None = None
        if mirror is not None:
            shape = self.observation_space.shape or ()
            if len(shape) != 2:
                raise ValueError(
                    f"mirror: needs a box of points [P, D], got {self.observation_space}"
                )
            self._mirror = parse_mirror(mirror, shape[1], num_actions)

    def forward(self, obs: Any) -> Tensor:
        """Action values `[B, A]`."""
        if self._mirror is None:
            return super().forward(obs)
        obs = obs if obs.is_floating_point() else obs.float()
        turned = self._mirror.turned(obs)
        return self._mirror.values(super().forward(self._mirror.images(obs, turned)), turned)

    def _predict(self, observation: Any, deterministic: bool = True) -> Tensor:
        legal = None if self.mask_key is None else observation[self.mask_key].bool()
        return legal_argmax(self(observation), legal)

    def _get_constructor_parameters(self) -> dict[str, Any]:
        own = {"dueling": self.dueling, "mirror": self.mirror}
        return {**super()._get_constructor_parameters(), **own}


class QPolicy(DQNPolicy):
    """SB3's `DQNPolicy` with the arguments of this module; further ones are SB3's.

    Raises:
        ValueError: An unknown name.
    """

    def __init__(
        self,
        observation_space: spaces.Space,
        action_space: spaces.Discrete,
        lr_schedule: Any,
        *,
        extractor: str | None = None,
        features_extractor_class: type[BaseFeaturesExtractor] = FlattenExtractor,
        optimizer_class: str | type[Optimizer] = "adam",
        optimizer_kwargs: dict[str, Any] | None = None,
        dueling: bool = False,
        mirror: Mapping[str, Any] | None = None,
        learning_rate_factors: Mapping[str, float] | None = None,
        **arguments: Any,
    ) -> None:
        if extractor is not None:
            features_extractor_class = EXTRACTORS.resolve(extractor)
        kind = optimizer_class
        if isinstance(kind, str):
            kind = OPTIMIZERS.resolve(kind)
        settings = dict(optimizer_kwargs or {})
        if "fused" in inspect.signature(kind).parameters and "foreach" not in settings:
            settings.setdefault("fused", True)  # a third of the time for small networks on a CPU
        if kind is Adam and settings.get("fused"):
            kind = FusedAdam
        self.dueling, self.mirror = dueling, mirror
        self.learning_rate_factors = dict(learning_rate_factors or {})
        super().__init__(
            observation_space,
            action_space,
            lr_schedule,
            features_extractor_class=features_extractor_class,
            optimizer_class=kind,
            optimizer_kwargs=settings,
            **arguments,
        )

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
        return LegalQNetwork(**arguments, dueling=self.dueling, mirror=self.mirror).to(self.device)

    def _get_constructor_parameters(self) -> dict[str, Any]:
        names = ("dueling", "mirror", "learning_rate_factors")
        return {
            **super()._get_constructor_parameters(),
            **{name: getattr(self, name) for name in names},
        }


NAMES = ("HostPolicy", "AgentPolicy", "MlpPolicy", "MultiInputPolicy")
"""What configurations call the policy: by the seat that it plays, or as SB3 does."""
for _name in (QPolicy.__name__, *NAMES):
    POLICIES.register(_name, QPolicy)
