"""The form of what callers pass to the environments and get from them: arguments, states, results.

A saved state is plain tensors and data. Players and rewards are not part of it: they have no
memory, and belong to the code that made the environment.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from gymnasium.spaces.utils import flatten_space
from gymnasium.vector import AutoresetMode
from torch import Tensor

from resgym.game.episode import legal_actions
from resgym.game.rng import RowRandom
from resgym.game.spec import MAX_COORDINATE, GameSpec, check_choice, check_flag, check_integer
from resgym.game.state import canonical_state, check_tensor, holds_integers, tensor_kind
from resgym.game.stepping import Array, EpisodeState, Seat, StepPlan, StepResult
from resgym.texts import shown

MAX_SEED = 2**63 - 1

Info = dict[str, Any]
"""What an environment tells beside an observation."""

StateDict = dict[str, Any]
"""All that the next steps depend on: tensors and plain data by name."""


def parse_autoreset_mode(mode: AutoresetMode | str) -> AutoresetMode:
    """Return the mode of an enum member, its name or its value."""
    for member in AutoresetMode:
        if mode in (member, member.name, member.value):
            return member
    raise ValueError(
        f"autoreset_mode must be one of {[*AutoresetMode.__members__]}, got {shown(mode)}"
    )


def parse_options(options: Any) -> dict[str, Any]:
    """Return the options of a reset as a new dict with known keys only."""
    if options is None:
        return {}
    if not isinstance(options, Mapping):
        raise TypeError(f"options must be a dict, got {shown(options)}")
    for key in options:
        check_choice("options", key, ("points", "weights", "reset_mask"))
    return dict(options)


def parse_seeds(seed: Any, num_envs: int, fresh: bool) -> list[int | None]:
    """Return one seed in 0..2^63-1 per row: s means s, s + 1, ...; a list has one per row.

    Rows without a seed get one from the system's entropy if ``fresh``, otherwise None.
    """
    if hasattr(seed, "tolist"):
        seed = seed.tolist()
    values: list[int | None] = [None] * num_envs
    if isinstance(seed, (list, tuple)):
        if len(seed) != num_envs:
            raise ValueError(f"seed must be an integer or {num_envs} of them, got {len(seed)}")
        values = [
            each if each is None else check_integer("seed", each, 0, MAX_SEED) for each in seed
        ]
    elif seed is not None:
        first = check_integer("seed", seed, 0, MAX_SEED - (num_envs - 1))
        values = list(range(first, first + num_envs))
    if fresh:
        entropy = secrets.randbits(62)
        values = [entropy + row if each is None else each for row, each in enumerate(values)]
    return values


def array_of(name: str, values: Any) -> np.ndarray:
    """Return values as an array; lists of unequal lengths are a ValueError."""
    try:
        return np.asarray(values)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None


def parse_integers(name: str, values: Any, length: int, device: torch.device) -> Tensor:
    """int64 [length] on a device, from a tensor, an array or a list of integers."""
    if not isinstance(values, Tensor):
        array = array_of(name, values)
        if array.dtype.kind not in "iu":
            raise TypeError(f"{name} must be integers, got dtype {array.dtype}")
        values = torch.from_numpy(array.astype(np.int64))
    if tuple(values.shape) != (length,):
        raise ValueError(f"{name} must have shape ({length},), got {tuple(values.shape)}")
    if not holds_integers(values):
        raise TypeError(f"{name} must be integers, got dtype {tensor_kind(values)}")
    return values.to(device, torch.int64)


def parse_reset_mask(mask: Any, num_envs: int, device: torch.device, started: bool) -> Tensor:
    """Return the rows to reset as bool [N] on a device, from a tensor, an array or a list.

    None means all rows.

    Raises:
        ValueError: another type or shape, no True, or at the first reset (not ``started``) a False.
    """
    if mask is None:
        return torch.ones(num_envs, dtype=torch.bool, device=device)
    # A copy, since torch refuses negative strides and warns of memory that is read-only.
    values = mask if isinstance(mask, Tensor) else array_of("reset_mask", mask).copy()
    got = f"{values.dtype} {tuple(values.shape)}".removeprefix("torch.")
    if got != f"bool ({num_envs},)":
        raise ValueError(f"reset_mask must be bool ({num_envs},), got {got}")
    if not (values.any() if started else values.all()):
        least = "at least one" if started else "at the first reset all"
        raise ValueError(f"reset_mask must have {least} True, got {values.tolist()[:12]}")
    return torch.as_tensor(values, device=device)


def start_sizes(spec: GameSpec, num_points: int | None, max_value: int | None) -> GameSpec:
    """Return the sizes of random starts of a stage, at most the game's own (also for None)."""
    points = spec.max_num_points
    value = spec.max_value
    if num_points is not None:
        points = check_integer("num_points", num_points, 2, points)
    if max_value is not None:
        value = check_integer("max_value", max_value, 1, value)
    return replace(spec, max_num_points=points, max_value=value)


def refusal(plan: StepPlan, games: EpisodeState, values: Tensor) -> ValueError:
    """The error that says why a step was refused, of actions int64 [N]."""
    if plan.autoreset_mode == "DISABLED" and games.ended.any():
        if len(values) == 1:
            return ValueError("step after the end of the episode: call reset() first")
        rows = games.ended.nonzero()[:12, 0].tolist()
        return ValueError(f"rows {rows} have ended: reset them with options={{'reset_mask': ...}}")
    legal = legal_actions(plan, games)
    known = values.clamp(0, plan.num_actions - 1)
    good = (known == values) & legal.gather(1, known[:, None])[:, 0]
    row = int((~good & ~games.ended).nonzero()[0, 0])
    allowed = str(legal[row].nonzero()[:, 0].tolist())
    if len(allowed) >= 80:
        allowed = f"{allowed[:60]} ... {plan.num_actions - 1}]"
    action = "action" if len(values) == 1 else f"action of row {row}"
    return ValueError(f"{action} must be one of {allowed}, got {int(values[row])}")


FIELDS = tuple(name for name in EpisodeState._fields if name not in ("key", "rule"))
"""The saved fields of a state; keys follow from seeds and episodes."""


def save_state(plan: StepPlan, games: EpisodeState, started: bool) -> StateDict:
    """Return all that the next steps depend on.

    Returns:
        ``game``: sizes and options of the game, and its set of starts; ``stage``: sizes of new
        games; ``fields``: copies of `FIELDS` of the state; ``started``.
    """
    drawn = plan.start_spec
    starts = plan.starts
    # Equal for equal positions in the same order.
    digest = hashlib.sha256(starts.points.cpu().numpy().tobytes()).hexdigest() if starts else None
    return {
        "game": {**asdict(plan.spec), "starts": digest},
        "stage": {"num_points": drawn.max_num_points, "max_value": drawn.max_value},
        "fields": {name: getattr(games, name).clone() for name in FIELDS},
        "started": started,
    }


def load_state(
    plan: StepPlan, like: EpisodeState, state: StateDict
) -> tuple[StepPlan, EpisodeState, bool]:
    """Return the plan with the stage of the saved games, the games, and whether they started.

    ``state`` is a result of `save_state`; shapes and devices must be those of the games ``like``.

    Raises:
        ValueError, TypeError: the state belongs to another game or form, or holds values that no
            game of this plan can have.
    """
    own = save_state(plan, like, False)
    if state.keys() != own.keys() or state["fields"].keys() != own["fields"].keys():
        raise ValueError(f"state must have {', '.join(own)} of such games, got {sorted(state)}")
    if state["game"] != own["game"]:
        raise ValueError(
            f"game: the saved games have {state['game']}, this environment has {own['game']}"
        )
    fields = {}
    for name, field in own["fields"].items():
        check_tensor(name, state["fields"][name], field.dtype, field.shape)
        fields[name] = state["fields"][name].clone().to(field.device)
    key = RowRandom.for_episode(fields["seed"], fields["episode"]).key
    games = EpisodeState(key=key, rule=like.rule, **fields)
    started = bool(state["started"])
    stage = start_sizes(plan.spec, **state["stage"])
    _check_rows(plan, games, started)
    return replace(plan, start_spec=stage), games, started


def _check_rows(plan: StepPlan, games: EpisodeState, started: bool) -> None:
    """Raise ValueError if a field holds values that no game can have: kernels trust them."""
    spec = plan.spec
    most = spec.max_num_points
    count = games.counts.clamp(1, most)
    points = games.points[:, :most]
    columns = points.clamp(0, MAX_COORDINATE).permute(2, 1, 0)
    canonical = canonical_state(columns, count, spec)
    possible = (canonical.points == points).flatten(1).all(1) & (canonical.count == games.counts)
    # Rows in which no episode was started have no points yet.
    fresh = (games.episode == -1) & (points == -1).flatten(1).all(1) & (games.counts == 1)
    sound = (possible | fresh) & (games.episode >= -1)
    sound &= (games.lengths >= 0) & (games.half_moves >= 0) & (games.seed >= 0)
    if spec.least_axes > 1:
        sound &= games.coords.sum(1) != 1
    if started:
        named = games.coords.any(1)
        finished = games.position.finished()
        # The host sees no sets, the agent one in every position that continues.
        sound &= {"host": ~named, "agent": named != finished, "both": ~(named & finished)}[
            plan.seat
        ]
        sound &= (games.ended | ~finished) & (~games.ended | (plan.autoreset_mode != "SAME_STEP"))
    if not sound.all():
        row = int((~sound).nonzero()[0, 0])
        raise ValueError(f"fields: row {row} of the saved state holds what no game can")


@dataclass(frozen=True)
class ResultForm:
    """The form of an environment's results; the game is the same.

    Attributes:
        output: ``torch`` (tensors on the environment's device) or ``numpy``. NumPy has float64
            rewards and a mask ``_key`` for each key of info, as Gymnasium's own environments.
        observation: ``points``, or ``flat``: one row of numbers per game, in the order of
            `gymnasium.spaces.flatten`.
        episode_statistics: whether info has ``episode`` when games end.
        full_info: whether the info of every reset and step has all keys, including ``action_mask``;
            without it, those of ended games are there when a game ends.
    """

    output: str = "torch"
    observation: str = "points"
    episode_statistics: bool = True
    full_info: bool = False

    def __post_init__(self) -> None:
        check_choice("output", self.output, ("torch", "numpy"))
        check_choice("observation", self.observation, ("points", "flat"))
        check_flag("episode_statistics", self.episode_statistics)
        check_flag("full_info", self.full_info)

    def space(self, plan: StepPlan) -> spaces.Space[Any]:
        """Return the observation space of one game for the seat of a plan."""
        spec = plan.spec
        high = 1.0 if plan.scale_observation else np.inf
        rows = spec.max_num_points + spec.kind.extra_rows
        space: spaces.Space[Any] = spaces.Box(-1.0, high, (rows, spec.dimension), np.float32)
        if plan.seat != "host":
            parts = {"points": space, "coords": spaces.MultiBinary(spec.dimension)}
            turn = {} if plan.seat == "agent" else {"to_play": spaces.Discrete(2)}
            space = spaces.Dict(parts | turn)
        if self.observation == "points":
            return space
        flat: Any = flatten_space(space)
        return spaces.Box(flat.low.astype(np.float32), flat.high.astype(np.float32))

    def out(self, value: Array) -> Any:
        """Convert an array to the output form."""
        if self.output == "torch":
            return torch.as_tensor(value)
        return value.cpu().numpy() if isinstance(value, Tensor) else value

    def paid(self, value: Array) -> Any:
        """Convert rewards; in NumPy they are float64, as in Gymnasium's own environments."""
        paid = self.out(value)
        return paid.astype(np.float64) if self.output == "numpy" else paid

    def seen(self, seat: Seat, points: Array, coords: Array) -> Any:
        """Return the observation of a seat, from points float32 [N, P, D] and sets int8 [N, D]."""
        flat = self.observation == "flat"
        if flat:
            points = points.reshape(len(points), -1)
        if seat == "host":
            return self.out(points)
        turn = []
        if seat == "both":
            # Where a set awaits the agent's answer.
            named = torch.as_tensor(coords).any(1, keepdim=True)
            turn = [~named, named]
        if flat:
            # As `flatten` orders them: the set, the points, and whose turn it is, one of two.
            parts = map(torch.as_tensor, [coords, points, *turn])
            return self.out(torch.cat([part.float() for part in parts], 1))
        seen = {"coords": self.out(coords), "points": self.out(points)}
        return seen | {"to_play": self.out(turn[1][:, 0].long())} if turn else seen

    def info(self, plan: StepPlan, result: StepResult, observation: Any) -> Info:
        """Return the info of a step that is observed so."""
        info = {"overflow": self.out(result.overflow)}
        if self.full_info:
            legal = legal_actions(plan, result.games.tensors())
            info["action_mask"] = self.out(legal.to(torch.int8))
        if result.some_ended or self.full_info:
            ended = self.out(result.ended)
            if self.episode_statistics:
                returns = self.paid(result.episode_returns)
                lengths = result.episode_lengths
                info["episode"], info["_episode"] = {"r": returns, "l": self.out(lengths)}, ended
            if plan.autoreset_mode == "SAME_STEP":
                if result.final_points is None or result.final_coords is None:
                    final = deepcopy(observation)
                else:
                    final = self.seen(plan.seat, result.final_points, result.final_coords)
                copied = ended.clone() if isinstance(ended, Tensor) else ended.copy()
                info["final_obs"], info["_final_obs"] = final, copied
        if result.rewards is not None:
            info["rewards"] = self.paid(result.rewards)
        if self.output == "numpy":
            for key in (*info,):
                if key[0] != "_":
                    info.setdefault("_" + key, np.ones(len(result.overflow), bool))
        return info


class Legal:
    """A space that samples among the actions that are legal now.

    Gymnasium's tools and most tutorials draw actions by ``action_space.sample()`` without a mask. A
    copy (also a pickled one) continues the same random numbers, but is a plain space, detached
    from its environment. A copied environment makes a space of its copy.
    """

    _masks: Callable[[], np.ndarray | None]

    def __init__(self, space: spaces.Space[Any], masks: Callable[[], np.ndarray | None]) -> None:
        vars(self).update(vars(space), _masks=masks)

    def __reduce__(self) -> tuple[Any, ...]:
        kept = vars(self).copy()
        del kept["_masks"]
        return object.__new__, (type(self).__bases__[-1],), kept


class LegalDiscrete(Legal, spaces.Discrete):
    """A `Discrete` space of legal actions."""

    def sample(self, mask: Any = None, probability: Any = None) -> np.int64:
        """Draw until the action is legal; obey a mask or probabilities."""
        action = super().sample(mask, probability)
        legal = self._masks() if mask is None and probability is None else None
        while legal is not None and legal.any() and not legal.ravel()[action]:
            action = super().sample()
        return action


class LegalMultiDiscrete(Legal, spaces.MultiDiscrete):
    """A `MultiDiscrete` space of N games with legal actions."""

    def sample(self, mask: Any = None, probability: Any = None) -> np.ndarray:
        """Draw uniformly among the legal actions of each game; obey a mask or probabilities."""
        legal = self._masks() if mask is None and probability is None else None
        if legal is None:
            return super().sample(mask, probability)
        keys = np.where(legal, self.np_random.random(legal.shape), -1.0)
        return keys.argmax(1).astype(self.dtype)
