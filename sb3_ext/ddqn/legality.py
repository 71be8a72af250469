"""Which actions are legal, and the mathematics of DQN and double DQN with masks of them.

Letters: N rows of an environment, B of a batch, A actions. A mask says `legal`, True = allowed,
`[N, A]` bool; None means that every action is. Minus infinity appears only inside an argmax, never
in a value that is returned, because `0 * -inf` in a target is NaN.
"""

from __future__ import annotations

from dataclasses import dataclass
from inspect import signature
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3.common.vec_env import VecEnv, unwrap_vec_normalize
from torch import Tensor
from torch.nn import functional

from sb3_ext.adapter.seam import check_spaces, to_arrays
from sb3_ext.adapter.tensor_vec_env import SHOWING
from sb3_ext.config.checks import Registry, unknown_word

MASK_KEYS = ("action_mask", "action_masks")
MASK_SOURCES = ("auto", "observation", "environment", "none")


def mask_key(observation_space: spaces.Space, action_space: spaces.Space) -> str | None:
    """The entry of observations that is the mask of A actions, found by its name, or None.

    It is called `action_mask` or `action_masks`, or `coords` where an agent of this package
    observes `points` and `coords` alone.

    Raises:
        ValueError: An entry of that name has other values than 0 and 1, or not A of them.
    """
    if not isinstance(observation_space, spaces.Dict) or not hasattr(action_space, "n"):
        return None
    entries, number = observation_space.spaces, int(action_space.n)
    names = ("coords",) if entries.keys() == {"points", "coords"} else MASK_KEYS
    key = next((name for name in names if name in entries), None)
    if key is not None:
        space = entries[key]
        low, high = getattr(space, "low", 0), getattr(space, "high", getattr(space, "nvec", 2) - 1)
        if space.shape != (number,) or np.any(low != 0) or np.any(high != 1):
            raise ValueError(f"{key}: got {space}; expected 0 or 1 for each of {number} actions")
    return key


def environment_masks(env: VecEnv) -> Tensor:
    """Ask a vector environment which actions are legal now, `[N, A]` bool.

    Understands `TensorVecEnv`, and sb3-contrib's `action_masks()` of every single environment.
    """
    # Looked up on the class: a wrapper's attribute forwarding would skip the wrapper.
    if hasattr(type(env), "action_masks_tensor"):
        return env.action_masks_tensor()  # type: ignore[attr-defined, no-any-return]
    return torch.from_numpy(np.stack(env.env_method("action_masks"))).bool()


def shown_masks(observation: Any) -> np.ndarray | None:
    """The masks of the `TensorVecEnv` that has returned this very object last, or None."""
    for env in SHOWING:
        if env.shown is observation and not env.all_actions_legal and env.has_attr("action_masks"):
            return env.action_masks()
    return None


def masks_for(values: Tensor, observation: Any, given: Any) -> Tensor | None:
    """Legal actions `[N, A]` bool as given, `[A]` or `[N, A]`, or else as `shown_masks`.

    Raises:
        ValueError: They have another shape than the values `[N, A]`.
    """
    if (masks := shown_masks(observation) if given is None else given) is None:
        return None
    legal = torch.as_tensor(masks, device=values.device).bool()
    if legal.shape not in (values.shape, values.shape[1:]):
        shape, rows = tuple(legal.shape), tuple(values.shape)
        raise ValueError(f"action_masks: got {shape}; expected {rows[1:]} or {rows}")
    return legal.expand_as(values)


@dataclass
class Masked:
    """A model that asks an environment for the legal actions when it predicts."""

    _model: Any
    _env: VecEnv
    _key: str | None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    def predict(self, observation: Any, *args: Any, **kwargs: Any) -> Any:
        """As the model, among legal actions; sb3-contrib's own evaluation has asked for them."""
        if kwargs.get("action_masks") is None:
            masks = environment_masks(self._env) if self._key is None else observation[self._key]
            kwargs["action_masks"] = to_arrays(masks)
        return self._model.predict(observation, *args, **kwargs)


def with_masks(model: Any, env: VecEnv) -> Any:
    """A model that plays legal actions of an environment, to be evaluated there.

    That is the model itself if there are no masks, or if its `predict` takes none.
    """
    source = getattr(model, "mask_source", "auto")
    if "action_masks" not in signature(model.predict).parameters:
        return model
    legal = LegalActions(model.observation_space, model.action_space, env, source)
    return model if legal.source == "none" else Masked(model, env, legal.key)


class LegalActions:
    """Legal actions from the source that was asked for.

    Args:
        observation_space: The space of one row.
        action_space: `Discrete(A)`.
        env: The environment, or None where only the observation can be asked.
        source: `"observation"`, `"environment"`, `"none"`, or `"auto"`: the first of
            these that can tell. A `TensorVecEnv` whose `all_actions_legal` is True has nothing to
            tell.

    Attributes:
        key: Entry of the observation that is the mask, or None.
        source: `"observation"`, `"environment"` or `"none"`.

    Raises:
        ValueError: An unknown source, or one that does not know the legal actions.
    """

    def __init__(
        self,
        observation_space: spaces.Space,
        action_space: spaces.Space,
        env: VecEnv | None = None,
        source: str = "auto",
    ) -> None:
        if source not in MASK_SOURCES:
            raise ValueError(unknown_word("mask_source", source, MASK_SOURCES))
        check_spaces(action_space)
        seeing = source in ("auto", "observation")
        key = mask_key(observation_space, action_space) if seeing else None
        if key and key in getattr(unwrap_vec_normalize(env), "obs_rms", {}):  # type: ignore[arg-type]
            raise ValueError(f"norm_obs_keys: {key} must not be one, as it is the legal actions")
        # Looked up on the class: a wrapper around it may have masks of its own.
        all_legal = hasattr(type(env), "all_actions_legal") and env.all_actions_legal  # type: ignore[union-attr]
        asked = env is not None and env.has_attr("action_masks")
        if source == "auto":
            source = "environment" if asked and not all_legal else "none"
            source = source if key is None else "observation"
        names_none = source == "observation" and key is None
        if names_none or (source == "environment" and env is not None and not asked):
            wanted = "entry action_mask or coords" if names_none else "action_masks()"
            raise ValueError(f"mask_source: got {source!r}, which has no {wanted}")
        self.source = source
        self.key = key

    def of_observation(self, observation: Any) -> Tensor | None:
        """The mask inside a batch of observations, `[N, A]` bool, or None if it is not there."""
        return None if self.key is None else observation[self.key].bool()

    def now(
        self, observation: Any, env: VecEnv, device: torch.device, known: Tensor | None
    ) -> Tensor | None:
        """Legal actions at the current observation, `[N, A]` bool, or None if unknown.

        An environment that said so already (`known`) is not asked again.
        """
        if self.source != "environment":
            return self.of_observation(observation)
        return environment_masks(env).to(device) if known is None else known

    def after(
        self, env: VecEnv, device: torch.device, dones: Tensor
    ) -> tuple[Tensor | None, Tensor | None]:
        """Masks from an environment that was just stepped, if it is asked: for now, and to store.

        The mask of a final observation is unknown, and every action counts as legal there.
        """
        if self.source != "environment":
            return None, None
        legal = environment_masks(env).to(device)
        return legal, legal | dones.to(device)[:, None]


LOSSES: Registry[Any] = Registry("loss")
"""Loss functions ``loss(values, targets, reduction=...)`` by name."""
LOSSES.update(
    huber=functional.smooth_l1_loss,  # Huber's, with threshold 1
    mae=functional.l1_loss,
    mse=functional.mse_loss,
)


def legal_argmax(values: Tensor, legal: Tensor | None) -> Tensor:
    """Index of the largest legal value of every row of `[B, A]`, finite; `[B]` int64.

    The first one among equals, and 0 in a row without a legal action.
    """
    if legal is not None:
        values = values.masked_fill(~legal, -torch.inf)
    return values.max(dim=1).indices  # for few actions about half the time of argmax


def epsilon_greedy(
    values: Tensor, legal: Tensor | None, epsilon: float, generator: torch.Generator
) -> Tensor:
    """The best legal action, or with probability epsilon in each row by itself a random legal one.

    Args:
        values: Action values `[B, A]`.
        legal: Legal actions `[B, A]` bool, or None.
        epsilon: Probability of a random action; 0 never explores and 1 always does.
        generator: Source of as many random numbers, whatever epsilon is, on the device of `values`.

    Returns:
        Indices `[B]` int64.
    """
    own: Any = {"generator": generator, "device": values.device}
    explores = torch.rand(len(values), **own) < epsilon
    if legal is None:
        drawn = torch.randint(values.shape[1], (len(values),), **own)
    else:
        drawn = legal_argmax(torch.rand(values.shape, **own), legal)
    return torch.where(explores, drawn, legal_argmax(values, legal))


def boltzmann(
    values: Tensor, legal: Tensor | None, temperature: float, generator: torch.Generator
) -> Tensor:
    """Draw a legal action in each row with probability proportional to exp(value / temperature).

    It is the argmax of values plus temperature times Gumbel noise, which needs no division: at
    temperature 0 it is the best action.

    Args:
        values: Action values `[B, A]`.
        legal: Legal actions `[B, A]` bool, or None.
        temperature: At least 0, in the unit of the values.
        generator: Source of B * A random numbers, on the device of `values`.

    Returns:
        Indices `[B]` int64.
    """
    noise = torch.empty_like(values).exponential_(generator=generator)
    smallest = torch.finfo(noise.dtype).tiny
    return legal_argmax(values - temperature * noise.clamp_(min=smallest).log_(), legal)


STRATEGIES: Registry[Any] = Registry("exploration_strategy")
STRATEGIES.update(epsilon_greedy=epsilon_greedy, boltzmann=boltzmann)


def bootstrap_target(
    rewards: Tensor,
    dones: Tensor,
    discounts: Tensor | float,
    next_values: Tensor,
    next_legal: Tensor | None = None,
    next_online: Tensor | None = None,
) -> Tensor:
    """Targets `R + discount * V(next)`, `[B]`, without the second term where an episode terminated.

    Plain DQN (Mnih et al. 2015): V is the largest legal value of the target network. Double DQN
    (van Hasselt, Guez, Silver 2016, equation 4): the target network's value of the action that the
    online network prefers among the legal ones. It is 0 where no action is legal. What the network
    says of a terminal observation has no influence at all, not even a NaN.

    Args:
        rewards: Reward, or the discounted sum R of n rewards, `[B]`.
        dones: 1 where the episode terminated within these steps (not by a time limit), `[B]`.
        discounts: gamma ** k with k the number of summed rewards, `[B]` or a number.
        next_values: Target network at the next observation, `[B, A]`.
        next_legal: Legal actions there, `[B, A]` bool, or None.
        next_online: Online network there, `[B, A]`, for double DQN; None for plain DQN.
    """
    preferred = legal_argmax(next_values if next_online is None else next_online, next_legal)
    value = next_values.gather(1, preferred[:, None])[:, 0]
    if next_legal is not None:
        value = torch.where(next_legal.any(dim=1), value, 0.0)
    return torch.where(dones > 0, rewards, rewards + discounts * value)
