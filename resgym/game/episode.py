"""A step and a start of N games: the reference that every backend equals bit for bit.

The functions are pure: they return new states and write to no tensor. Players of the other seat are
asked through a function `Ask`; a backend may play a scripted player itself.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import pad

from resgym.game import devices
from resgym.game.rng import RowRandom, Stream
from resgym.game.rules import move, observe_points, start_positions
from resgym.game.spec import MAX_NUM_POINTS, Role, host_action_table
from resgym.game.state import GameState, where_state
from resgym.game.stepping import (
    INVALID_ACTION_REWARD,
    Ask,
    EpisodeState,
    Games,
    RefusedStep,
    StepPlan,
    StepResult,
    Transition,
    role_reward,
)


def legal_actions(plan: StepPlan, state: EpisodeState) -> Tensor:
    """Return the legal actions, bool [N, A]."""
    coords = state.coords
    position = state.position
    if plan.seat == "agent":
        return position.answers(coords)
    sets = position.legal_sets()
    if sets is None:
        sets = coords.new_ones(len(coords), plan.spec.num_host_actions)
    if plan.seat == "host":
        return sets
    both = sets, position.answers(coords)
    sets, answers = (pad(legal, (0, plan.num_actions - legal.shape[1])) for legal in both)
    return torch.where(coords.any(1, keepdim=True), answers, sets)


def check_refusal(plan: StepPlan, active: Tensor, legal: Tensor) -> None:
    """Raise `RefusedStep` for an illegal action with ``error``, or an ended row in DISABLED.

    Which rows continue and whose actions are legal are bool [N].
    """
    if plan.invalid_action == "error" and (active & ~legal).any():
        raise RefusedStep
    if plan.autoreset_mode == "DISABLED" and not active.all():
        raise RefusedStep


def answers_of_agents(
    plan: StepPlan, state: EpisodeState, actions: Tensor, mask: Tensor, ask: Ask
) -> Tensor:
    """Return the agents' axes, int64 [N], for the hosts' actions, int64 [N] in 0..A-1.

    Rows outside ``mask``, bool [N], have an illegal action or are about to restart, so their answer
    is not used. They get the first set, because a player is never asked to choose from nothing.
    """
    sets = _sets(plan, state)
    coords = torch.where(mask[:, None], sets[actions], sets[:1])
    coords = state.position.answers(coords)
    rng = RowRandom(state.key).at(state.half_moves + mask, Stream.AGENT)
    return ask(state, coords, rng, None)


def name_sets(plan: StepPlan, state: EpisodeState, mask: Tensor, ask: Ask) -> EpisodeState:
    """Let the opposing hosts choose their sets in the rows of ``mask``, bool [N]."""
    sets = _sets(plan, state)
    rng = state.rng(Stream.HOST)
    half_moves = state.half_moves + mask
    if devices.is_host_memory(mask.device):
        rows = mask.nonzero()[:, 0]
        if not len(rows):
            return state
        if len(rows) < len(mask):
            coords = state.coords.index_copy(0, rows, sets[ask(state, None, rng, rows)])
            return state._replace(coords=coords, half_moves=half_moves)
    chosen = sets[ask(state, None, rng, None)]
    coords = torch.where(mask[:, None], chosen, state.coords)
    return state._replace(coords=coords, half_moves=half_moves)


def _sets(plan: StepPlan, state: EpisodeState) -> Tensor:
    spec = plan.spec
    return host_action_table(spec.dimension, state.coords.device, spec.least_axes)


class Backend:
    """The reference: a step and a start, composed of single operations.

    Faster backends replace its functions.

    Attributes:
        name: the name for `resgym.kernels.dispatch.resolve_backend`, never ``auto``.
        device_types: types of the devices that it runs on; none stands for all.
        max_num_points: most points of a position.
    """

    name = "torch"
    device_types: tuple[str, ...] = ()
    max_num_points = MAX_NUM_POINTS

    move = staticmethod(move)

    def start(
        self, plan: StepPlan, games: Games, mask: Tensor, ask: Ask, given: GameState | None = None
    ) -> StepResult:
        """Start episodes in the rows of ``mask``, bool [N].

        They start from ``given``, unfinished positions of N games, or from random ones. The
        opponents are asked only if they move first.
        """
        before = games.tensors()
        state = self._restarted(plan, before, mask, ask, given)
        state = state._replace(ended=state.ended & ~mask)
        none = torch.zeros_like(mask)
        reward = torch.zeros_like(before.returns)
        rewards = torch.stack([reward, reward], 1) if plan.seat == "both" else None
        return StepResult(
            state, *self._observed(plan, state), reward, rewards, none, none, none, none,
            None, None, before.returns.clone(), before.lengths.clone(), some_ended=False,
        )  # fmt: skip

    def _restarted(
        self, plan: StepPlan, state: EpisodeState, mask: Tensor, ask: Ask, given: GameState | None
    ) -> EpisodeState:
        episode = state.episode + mask
        key = RowRandom.for_episode(state.seed, episode).key
        position = state.position
        rng = RowRandom(key).at(0, Stream.START)
        sources = plan.starts, plan.start_spec
        # Where the started rows can be counted for free, only they are drawn.
        rows = mask.nonzero()[:, 0] if devices.is_host_memory(mask.device) else None
        if given:
            position = where_state(mask, given, position)
        elif rows is None:
            position = where_state(mask, start_positions(plan.spec, rng, *sources), position)
        else:
            fresh = start_positions(plan.spec, rng.select(rows), *sources)
            position = GameState(
                position.points.index_copy(0, rows, fresh.points),
                position.count.index_copy(0, rows, fresh.count),
                position.rule,
            )
        state = state._replace(
            points=position.points,
            counts=position.count,
            coords=state.coords & ~mask[:, None],
            half_moves=torch.where(mask, 0, state.half_moves),
            episode=episode,
            key=key,
            returns=torch.where(mask, 0.0, state.returns),
            lengths=torch.where(mask, 0, state.lengths),
        )
        if plan.seat != "agent":
            return state
        return name_sets(plan, state, mask, ask)

    def _observed(
        self, plan: StepPlan, state: EpisodeState, rows: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Return new tensors: the observations of all rows, or of an index int64 [M]."""
        position = state.position
        coords = position.answers(state.coords)
        if rows is not None:
            position, coords = position.select(rows), coords[rows]
        return observe_points(position, plan.scale_observation), coords.to(torch.int8)

    def step(self, plan: StepPlan, games: Games, actions: Tensor, ask: Ask) -> StepResult:
        """Play one action int64 [N], any integers, in every row. Every situation is defined.

        situation                       outcome
        legal action                    the move is played
        illegal, invalid_action=error   RefusedStep before anything changes
        illegal, noop                   position stays, reward 0, the step counts
        illegal, penalty                as noop, reward -1
        illegal, terminate              terminated, reward -1
        one point left                  terminated
        max_episode_steps reached       truncated (unless terminated)
        a coordinate would pass 2^59    position stays, truncated, info["overflow"]
        ended row, SAME_STEP            impossible: the row has restarted already
        ended row, NEXT_STEP            the action is ignored, the row restarts, reward 0
        ended row, DISABLED             RefusedStep until reset with options={"reset_mask": ...}
        """
        state = games.tensors()
        active = ~state.ended
        known = actions.clamp(0, plan.num_actions - 1)
        legal = known == actions
        if plan.seat != "host" or plan.spec.kind.limits_sets:
            legal = legal & legal_actions(plan, state).gather(1, known[:, None])[:, 0]
        check_refusal(plan, active, legal)
        waiting = state.ended
        lengths = state.lengths + active
        state, reward, rewards, terminated, overflow = self._played(
            plan, state, known, active & legal, ask
        )
        if plan.invalid_action in ("penalty", "terminate"):
            reward = torch.where(active & ~legal, INVALID_ACTION_REWARD, reward)
        if plan.invalid_action == "terminate":
            terminated = terminated | (active & ~legal)
        truncated = (overflow | (lengths >= plan.max_episode_steps)) & active & ~terminated
        ended = terminated | truncated
        state = state._replace(returns=state.returns + reward, lengths=lengths, ended=ended)

        read_values = devices.is_host_memory(actions.device)
        seen = self._observed(plan, state)
        final: tuple[Tensor | None, Tensor | None] = None, None
        same_step = plan.autoreset_mode == "SAME_STEP"
        restart = ended if same_step else waiting
        statistics = state.returns.clone(), state.lengths.clone()
        some_ended = not read_values or bool(ended.any())
        rows = restart.nonzero()[:, 0] if read_values else None
        if plan.autoreset_mode != "DISABLED" and (rows is None or len(rows)):
            if same_step:
                state, final = state._replace(ended=torch.zeros_like(ended)), seen
            state = self._restarted(plan, state, restart, ask, None)
            fresh = self._observed(plan, state, rows)
            if rows is not None:
                points, coords = seen
                fresh = points.index_copy(0, rows, fresh[0]), coords.index_copy(0, rows, fresh[1])
            seen = fresh
        return StepResult(
            state, *seen, reward, rewards, terminated, truncated, overflow,
            ended.clone(), *final, *statistics, some_ended,
        )  # fmt: skip

    def _played(
        self, plan: StepPlan, state: EpisodeState, actions: Tensor, mask: Tensor, ask: Ask
    ) -> tuple[EpisodeState, Tensor, Tensor | None, Tensor, Tensor]:
        """Play the rows of ``mask``, whose actions are legal: one half-move or two.

        Return the games, reward, rewards of both, finished and overflow, neutral in other rows.
        """
        spec, sets = plan.spec, _sets(plan, state)
        named = state.coords
        half_moves = state.half_moves
        answering = mask
        if plan.seat != "agent":
            naming = mask
            if plan.seat == "both":
                naming, answering = mask & ~named.any(1), mask & named.any(1)
            chosen = sets[actions.clamp(max=len(sets) - 1)]
            named = torch.where(naming[:, None], chosen, named)
            half_moves = half_moves + naming
        if plan.seat == "host":
            axis = answers_of_agents(plan, state, actions, mask, ask)
        else:
            axis = actions.clamp(max=spec.dimension - 1)

        # A reward gets the set that is answered, not one that was just chosen.
        asked = state.coords if plan.seat == "both" else named
        before = state.position
        after, overflow = self.move(before, named & answering[:, None], axis, spec)
        finished = answering & after.finished()

        def reward_of(role: Role) -> Tensor:
            transition = Transition(before, asked, axis, after, finished, role)
            return role_reward(plan.reward, transition, answering)

        rewards = None
        if plan.seat == "both":
            host, reward = reward_of("host"), reward_of("agent")
            rewards = torch.stack([host, reward], 1)
        else:
            reward = reward_of(plan.seat)
        state = state._replace(
            points=after.points,
            counts=after.count,
            coords=named & ~answering[:, None],
            half_moves=half_moves + answering,
        )
        if plan.seat == "agent":
            state = name_sets(plan, state, answering & ~finished, ask)
        return state, reward, rewards, finished, overflow
