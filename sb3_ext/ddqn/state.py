"""How a DDQN is made and how it is saved; `ddqn.py` has what it does, `logs.py` what it logs."""

from __future__ import annotations

import copy
import io
import pathlib
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Annotated, Any, ClassVar, Literal, Self, get_type_hints

import gymnasium
import numpy as np
import torch
from annotated_types import Gt
from gymnasium.vector import VectorEnv
from pydantic import create_model
from stable_baselines3 import DQN, HerReplayBuffer
from stable_baselines3.common.buffers import BaseBuffer
from stable_baselines3.common.type_aliases import GymEnv, TrainFreq, TrainFrequencyUnit
from stable_baselines3.common.utils import ConstantSchedule, FloatSchedule
from stable_baselines3.common.vec_env import VecEnv
from stable_baselines3.dqn.policies import DQNPolicy
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _NormBase
from torch.nn.modules.dropout import _DropoutNd

from sb3_ext.adapter import TensorVecEnv
from sb3_ext.adapter.seam import OBSERVATIONS, networks_were_replaced, to_arrays
from sb3_ext.config.checks import shown
from sb3_ext.config.sections import (
    Count,
    CountOrMinusOne,
    Fraction,
    NonNegative,
    PositiveCount,
    PositiveNumber,
    Section,
    accepted_by,
    read_as,
)
from sb3_ext.ddqn.legality import LOSSES, STRATEGIES, LegalActions
from sb3_ext.ddqn.logs import MEASURED, Logs
from sb3_ext.networks.extractors import PointExtractor
from sb3_ext.networks.mlp import action_values, expand_net_arch
from sb3_ext.replay.buffers import TensorReplayBuffer
from sb3_ext.schedules.schedules import Following, Schedule, parse_schedule
from sb3_ext.types import StateDict


def _has_modes(module: nn.Module) -> bool:
    """Whether a module may do something else while training."""
    known = type(module).__module__.split(".")[0] in ("sb3_ext", "stable_baselines3", "torch")
    return not known or isinstance(module, (_NormBase, _DropoutNd))


class Settings:
    """Arguments of `DDQN` that are attributes of the same name."""

    autocast: bool
    compile_networks: Literal["default", "reduce-overhead", "max-autotune"] | None
    double_q: bool
    evaluation_rows: Count
    exploration_strategy: Annotated[str, accepted_by(STRATEGIES.resolve)]
    log_interval_seconds: NonNegative | None
    log_interval_updates: PositiveCount | None
    loss: Annotated[str, accepted_by(LOSSES.resolve)]
    mask_source: str
    replay_ratio: PositiveNumber | None
    target_update_unit: Literal["updates", "transitions"]
    warmup: Literal["uniform_legal", "policy"]


_CHECKED = create_model(
    "_CHECKED",
    __base__=Section,
    **get_type_hints(Settings, include_extras=True),
    batch_size=PositiveCount,
    buffer_size=PositiveCount,
    exploration_final_eps=Fraction,
    exploration_fraction=Fraction,
    exploration_initial_eps=Fraction,
    gamma=Fraction,
    gradient_steps=CountOrMinusOne,
    learning_starts=Count,
    max_grad_norm=Annotated[float, Gt(0)],
    n_steps=PositiveCount,
    seed=Count | None,
    target_update_interval=PositiveCount,
    tau=Fraction,
)


Playable = GymEnv | VectorEnv[Any, Any, Any] | str | None
"""What a model can be made for."""
NUM_GAMES = 256
"""Rows of an environment of resgym that is named by its id."""


class DDQNState(Settings, Logs):
    """What `DDQN` is without its loop.

    Attributes:
        game: Arguments of the games that an id of resgym makes.
        last_legal: Legal actions at the last observation, if the environment was asked for them.
        last_said: What its `TensorVecEnv` said when the model played last; None where that is
            unknown, as after a reset.
        remembered: Names of the attributes that a resumed run needs beside those of SB3.
    """

    random_streams: dict[str, torch.Generator]  # of exploration and of `predict`
    exploration: Any
    train_freq: TrainFreq  # type: ignore[assignment]

    remembered = (
        "_earlier_transitions",
        "_finite_until_update",
        "_logged_updates",
        "_sums",
        "_updates_owed",
        "collector_state",
        "evaluation_buffer",
        "last_legal",
        "ep_info_buffer",
        "ep_success_buffer",
        "num_target_updates",
    )

    game: ClassVar[Mapping[str, Any]] = {}
    last_legal: Tensor | None = None
    last_said: Any = None
    _collector_state: StateDict | None = None

    _earlier_transitions = 0  # before `learn` set `num_timesteps` back
    _updates_owed = 0.0

    @property
    def num_transitions(self) -> int:
        """Transitions collected so far, those before `learn` began to count anew included."""
        return self._earlier_transitions + self.num_timesteps

    @property
    def collector_state(self) -> StateDict | None:
        """Where a collector with a memory stands, or stood when the last `learn` with it ended."""
        own = hasattr(self._collector, "state_dict")
        return self._collector.state_dict() if own else self._collector_state

    @collector_state.setter
    def collector_state(self, state: StateDict | None) -> None:
        self._collector_state = state

    def __init_subclass__(cls) -> None:
        """Refuse methods that SB3's loop calls and ours does not."""
        super().__init_subclass__()
        for name in ("_on_step", "_sample_action", "_store_transition"):
            if name in vars(cls):
                raise TypeError(f"{name}: {cls.__name__} has one, but DDQN never calls it")

    @classmethod
    def games_of(cls, env: Playable) -> Any:
        """What it plays: `NUM_GAMES` for an id of resgym, a batch of Gymnasium in an adapter."""
        if isinstance(env, str) and env.removeprefix("resgym:").startswith("resgym/"):
            env = gymnasium.make_vec(env, num_envs=NUM_GAMES, **cls.game)
        return TensorVecEnv(env) if isinstance(env, VectorEnv) else env

    @classmethod
    def _wrap_env(  # type: ignore[override]
        cls, env: Any, verbose: int = 0, monitor_wrapper: bool = True
    ) -> VecEnv:
        return DQN._wrap_env(cls.games_of(env), verbose, monitor_wrapper)

    def __getstate__(self) -> StateDict:
        """Return the attributes for a copy, without its log, collector and compiled networks."""
        omitted = "_collector _infos _logger _online _target last_said"
        state = {name: value for name, value in vars(self).items() if name not in omitted.split()}
        return {**state, "_collector_state": self.collector_state, "_custom_logger": False}

    def __setstate__(self, state: StateDict) -> None:
        vars(self).update(state)
        networks_were_replaced(self)
        buffer = self.replay_buffer
        if buffer is not None:  # programs may drop it before they pickle a model
            buffer.device = self.device  # a pickled buffer is on the CPU
        if isinstance(buffer, HerReplayBuffer):  # SB3 pickles it without its environment
            buffer.env = self.env

    @classmethod
    def load(cls, *args: Any, **kwargs: Any) -> Self:  # type: ignore[override]
        """As in SB3; further arguments, in the place of those saved, are the constructor's."""
        if "exploration_rate" in kwargs:  # whose attribute is the rate of now
            kwargs["exploration"] = kwargs.pop("exploration_rate")
        return super().load(*args, **kwargs)

    def _setup_model(self) -> None:
        # Here, as `load` sets arguments after the constructor.
        self.max_grad_norm = torch.inf if self.max_grad_norm is None else self.max_grad_norm
        values = {name: getattr(self, name) for name in _CHECKED.model_fields}
        vars(self).update(read_as(_CHECKED, values))
        if self.replay_ratio is not None and self.gradient_steps != 1:
            raise ValueError(
                f"replay_ratio: got {self.replay_ratio} together with "
                f"gradient_steps={self.gradient_steps}; give only one of them"
            )
        highest = 1.0 if self.exploration_strategy == "epsilon_greedy" else torch.inf
        self.exploration = self._read_schedule("exploration_rate", self.exploration, highest)
        if not issubclass(self.policy_class, DQNPolicy):
            raise ValueError(
                f"policy: got {self.policy_class.__name__}; expected a DQNPolicy, as in models of "
                "DDQN and DQN"
            )
        if self.replay_buffer_class is None:
            self.replay_buffer_class = TensorReplayBuffer
        kind = self.replay_buffer_class
        if not (isinstance(kind, type) and issubclass(kind, BaseBuffer)):
            raise TypeError(f"replay_buffer_class must be a class of buffers, got {shown(kind)}")
        if layers := self.policy_kwargs.get("net_arch"):
            # Written out, as SB3 loads a list that begins with a mapping as this mapping.
            written = [layer for _, layer in expand_net_arch(layers)]
            self.policy_kwargs = {**self.policy_kwargs, "net_arch": written}
        if (default := torch.get_default_dtype()) != torch.float32:
            raise ValueError(f"torch.set_default_dtype: must be float32 for SB3, got {default}")
        if (place := torch.get_default_device()).type != "cpu":
            raise ValueError(
                f"torch.set_default_device: must be unset, got {place}; use device={place}"
            )
        self._find_legal_actions()
        with warnings.catch_warnings():
            # About the rounding of an interval in transitions, which is not done here, and about
            # a buffer that was not told of `n_steps`.
            if isinstance(self.replay_buffer, TensorReplayBuffer):
                warnings.simplefilter("ignore", UserWarning)
            super()._setup_model()
        normalizes = getattr(self._vec_normalize_env, "norm_obs", False)
        if normalizes and isinstance(self.q_net.features_extractor, PointExtractor):
            raise ValueError("norm_obs: must be False, as networks know absent points by their -1")
        frequency, unit = self.train_freq
        if unit != TrainFrequencyUnit.STEP or frequency < 1:
            raise ValueError(
                f"train_freq: got {[frequency, unit.value]}; expected a number of parallel steps"
            )
        self._sums = torch.zeros(len(MEASURED), device=self.device)
        self._unread = []
        self.evaluation_buffer = deque(maxlen=self._stats_window_size)
        if self.exploration is not None:
            self.exploration_schedule = self._following(self.exploration)
            self.exploration_rate = self.exploration_schedule(1.0)
        elif self.exploration_fraction == 0:  # SB3's line would be divided by it
            self.exploration_schedule = ConstantSchedule(self.exploration_final_eps)

    def _setup_lr_schedule(self) -> None:
        self.lr_schedule = self._following(self._read_schedule("learning_rate", self.learning_rate))

    def _following(self, rate: Any) -> Any:
        """A schedule as SB3 calls it, with the progress; a function of the progress stays one."""
        return Following(rate, self) if isinstance(rate, Schedule) else FloatSchedule(rate)

    @staticmethod
    def _read_schedule(name: str, value: Any, highest: float = torch.inf) -> Any:
        """A schedule from any of its forms; a callable of the progress or None stays."""
        if value is None or (callable(value) and not isinstance(value, Schedule)):
            return value
        return parse_schedule(value, name, highest=highest)

    def _create_aliases(self) -> None:
        """As in SB3; and how updates call the networks is decided here, once."""
        super()._create_aliases()
        networks = (self.q_net, self.q_net_target)
        self._online, self._target = (self._as_called(network) for network in networks)
        # Setting a mode visits every module, which takes as long as a small network.
        self._has_modes = any(_has_modes(module) for module in self.q_net.modules())

    def _as_called(self, network: Any) -> Callable[[Any], Tensor]:
        if self.compile_networks:
            # Shapes are fixed: PyTorch would compile changing ones again for any shape.
            network = torch.compile(network, dynamic=False, mode=self.compile_networks)
        return partial(action_values, network, bfloat16=True) if self.autocast else network

    def _find_legal_actions(self) -> None:
        """Settle the source of the legal actions, and make the replay buffer to match."""
        spaces = self.observation_space, self.action_space
        self.legal_actions = LegalActions(*spaces, self.env, self.mask_source)
        assert self.replay_buffer_class is not None
        asked = self.legal_actions.source == "environment"
        if not issubclass(self.replay_buffer_class, TensorReplayBuffer):  # SB3 makes it
            if asked:
                raise ValueError(
                    f"replay_buffer_class: {self.replay_buffer_class.__name__} cannot keep the "
                    "legal actions of action_masks(); use TensorReplayBuffer, or mask_source='none'"
                )
            return
        buffer = self.replay_buffer
        if buffer is not None and (buffer.store_next_legal == asked or buffer.size()):
            return
        arguments = {
            "n_steps": self.n_steps,
            "gamma": self.gamma if self.n_steps > 1 else None,
            "store_next_legal": asked,
            **self.replay_buffer_kwargs,
        }
        self.replay_buffer = self.replay_buffer_class(
            self.buffer_size,
            *spaces,
            device=self.device,
            n_envs=self.n_envs,
            optimize_memory_usage=self.optimize_memory_usage,
            **arguments,
        )

    def load_replay_buffer(self, path: Any, truncate_last_traj: bool = True) -> None:
        """As in SB3; `n_steps` and `gamma` stay those of the model.

        Raises:
            ValueError: The model needs legal actions, which the buffer does not have. The model
                keeps its own buffer.
        """
        former = self.replay_buffer
        super().load_replay_buffer(path, truncate_last_traj)
        buffer = self.replay_buffer
        source = self.legal_actions.source
        if source == "environment" and not getattr(buffer, "store_next_legal", False):
            self.replay_buffer = former
            raise ValueError(
                "store_next_legal: False in this buffer; mask_source='environment' needs True"
            )
        if hasattr(buffer, "n_steps"):  # it holds single transitions
            own = self.replay_buffer_kwargs.get
            buffer.n_steps = own("n_steps", self.n_steps)
            buffer.gamma = own("gamma", self.gamma)
        elif self.n_steps > 1:  # as in SB3
            kind = type(buffer).__name__
            warnings.warn(f"n_steps={self.n_steps} is ignored: a {kind} has none", stacklevel=2)

    def set_env(self, env: GymEnv, force_reset: bool = True) -> None:
        """As in SB3."""
        super().set_env(env, force_reset)
        self._find_legal_actions()

    def set_random_seed(self, seed: int | None = None) -> None:
        """Seed what SB3 seeds, and our exploration, `predict` and replay sampling; None: anew."""
        super().set_random_seed(seed)
        words = np.random.SeedSequence(seed).generate_state(3, np.uint64) >> np.uint64(1)
        self.random_streams = {
            name: torch.Generator(self.device).manual_seed(int(word))
            for name, word in zip(("explore", "predict"), words, strict=False)
        }
        if isinstance(self.replay_buffer, TensorReplayBuffer):
            self.replay_buffer.set_seed(int(words[2]))

    def save(
        self,
        path: str | pathlib.Path | io.BufferedIOBase,
        exclude: Iterable[str] | None = None,
        include: Iterable[str] | None = None,
    ) -> None:
        """As in SB3, without the replay buffer; FloatingPointError if `check_finite` raises."""
        self.check_finite()
        kept = copy.copy(self)
        for name in OBSERVATIONS:  # arrays, for a machine without this device
            setattr(kept, name, to_arrays(getattr(self, name)))
        super(DDQNState, kept).save(path, exclude, include)

    def _excluded_save_params(self) -> list[str]:
        names = (
            "batch_changes extra_losses last_legal last_said legal_actions random_streams seconds "
            "_collector _collector_state _fitting _infos _online _sums _target _unread "
            "exploration_schedule lr_schedule"  # made anew of what was given
        )
        return [*super()._excluded_save_params(), *names.split()]
