"""The Triton kernels: a whole step or start.

One program plays a few games from the first load to the last store, with the points in registers,
and nothing that it writes is read again. Every line of the step has its counterpart in
`resgym.kernels.cpu.step`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import triton
import triton.language as tl
from triton.language import constexpr

from resgym.cuda.rules import (
    absorb,
    choose_axis,
    draw_starts,
    episode_key,
    integer,
    load,
    load_points,
    load_set,
    played_points,
    prune,
    store_points,
    store_set,
)
from resgym.game.rng import Stream
from resgym.game.stepping import (
    AUTORESET_MODES,
    INVALID_ACTION_REWARD,
    INVALID_ACTIONS,
    REWARD_NAMES,
    SEATS,
)
from resgym.kernels.backend import ASKED, STARTING

_START = constexpr(Stream.START)
_HOST = constexpr(Stream.HOST)
_AGENT = constexpr(Stream.AGENT)

HOSTS = ("all_coord", "random", "random_pair")
"""Hosts that play inside a kernel, which takes the index."""


def _indices(names: tuple[str, ...], *chosen: str) -> list[constexpr]:
    return [constexpr(names.index(name)) for name in chosen]


_HOST_SEAT, _AGENT_SEAT, _BOTH_SEATS = _indices(SEATS, "host", "agent", "both")
_TERMINAL, _STEP, _SURVIVAL = _indices(REWARD_NAMES, "terminal", "step", "survival")
_ERROR, _PENALTY, _TERMINATE = _indices(INVALID_ACTIONS, "error", "penalty", "terminate")
_SAME_STEP, _DISABLED = _indices(AUTORESET_MODES, "SAME_STEP", "DISABLED")
_STARTING = constexpr(STARTING)
_ILLEGAL_REWARD = constexpr(INVALID_ACTION_REWARD)
_ASKED = constexpr(ASKED)

# The others draw a set from a table.
(_ALL_COORD,) = _indices(HOSTS, "all_coord")


def _kernel(function: Callable[..., Any]) -> Any:
    """Compiles one binary for each set of constants.

    By default Triton makes more of them, for values that are 1 or divisible by 16 and for
    addresses, so that a later step would compile again.
    """
    parameters = inspect.signature(function).parameters.values()
    names = [each.name for each in parameters if each.annotation != "constexpr"]
    return triton.jit(function, do_not_specialize=names, do_not_specialize_on_alignment=names)


@triton.jit
def _name_set(table, num_sets, key, count, mask, HOST: constexpr, D: constexpr):
    """The sets int64 [G] that a scripted host names."""
    if HOST == _ALL_COORD:
        return tl.where(count > 1, (1 << D) - 1, 3).to(tl.int64)
    return tl.load(table + integer(key, num_sets), mask=mask, other=3)


@_kernel
def step_games(
    actions, answered_axes, table,
    old_points, old_count, old_coords, old_half_moves, seeds, old_episode, old_key, old_returns,
    old_lengths, old_ended,
    new_points, new_coords, new_numbers, new_floats, flags, rewards, seen, seen_coords, final_seen,
    final_coords,
    num_games: tl.int64, num_sets: tl.int64, limit: tl.int64, num_drawn: tl.int64,
    values: tl.int64, attempts: tl.int64,
    SEAT: constexpr, OPPONENT: constexpr, REWARD: constexpr, ON_ILLEGAL: constexpr,
    MODE: constexpr, RESTARTS: constexpr, SCALE: constexpr, REPOSITION: constexpr,
    P: constexpr, D: constexpr,
    G: constexpr, R: constexpr,
):  # fmt: skip
    """Plays a step of ``num_games`` games, G of them in a program, or starts some of them.

    Reads ``actions``, int64 [N], which where ``MODE`` is `STARTING` mark the games to
    start, ``answered_axes`` int64 [N] if the agents were asked, and the old fields, and writes
    every entry of

        new_points     int64 [N, P, D]
        new_coords     int8 [N, D]
        new_numbers    int64 [6, N]: count, half_moves, episode, key, lengths, final lengths
        new_floats     float32 [3, N]: returns, reward, final returns
        flags          int8 [6, N]: restartable end, terminated, truncated, overflow, ended, refused
        rewards        float32 [N, 2], if both seats are played
        seen           float32 [N, P, D]
        seen_coords    int8 [N, D]
        final_seen     float32 [N, P, D], in SAME_STEP
        final_coords   int8 [N, D], in SAME_STEP

    ``table`` int64 [num_sets] holds the sets of the host's actions or, if the opponent is a host,
    the sets that it draws from.
    """
    games = tl.program_id(0).to(tl.int64) * G + tl.arange(0, G)
    within = games < num_games
    row = tl.arange(0, R)[None, :]
    before = load(old_count, games, within)
    axis_mask = load_set(old_coords, games, within, D)
    half_moves = load(old_half_moves, games, within)
    episode = load(old_episode, games, within)
    key = load(old_key, games, within).to(tl.uint64)
    was_ended = tl.load(old_ended + games, mask=within, other=1) != 0
    action = load(actions, games, within)
    alive = row < before[:, None]
    points = load_points(old_points, games, alive & within[:, None], P, D, R)

    # What is legal, and whose turn it is.
    active = ~was_ended
    if MODE == _STARTING:
        active = within & False
    hosts_turn = within
    if SEAT == _AGENT_SEAT:
        hosts_turn = within & False
    elif SEAT == _BOTH_SEATS:
        hosts_turn = axis_mask == 0
    known = tl.where(hosts_turn, action < num_sets, action < D) & (action >= 0)
    safe = tl.where(known, action, 0)
    legal = active & known & (hosts_turn | (((axis_mask >> safe) & 1) == 1))

    # The move, or the half-move.
    half_moves += legal
    naming = legal & hosts_turn
    if SEAT != _AGENT_SEAT:
        named = tl.load(table + safe, mask=naming & within, other=3)
        axis_mask = tl.where(naming, named, axis_mask)
    if SEAT == _HOST_SEAT:
        if OPPONENT == _ASKED:
            axis = load(answered_axes, games, within)
        else:
            draws = absorb(absorb(key, half_moves.to(tl.uint64)), _AGENT)
            axis = choose_axis(axis_mask, draws, OPPONENT, D)
        half_moves += legal
        answered = legal
    else:
        axis = safe
        answered = legal & ~hosts_turn
    points, overflow = played_points(points, axis_mask, axis, answered & (before > 1), D, G, R)
    if MODE == _STARTING:
        kept, rank, count = alive, row, before
    else:
        kept, rank, count = prune(points, alive, before, D, G, R)
    axis_mask = tl.where(answered, 0, axis_mask)
    finished = answered & (count <= 1)

    # The reward.
    if REWARD == _TERMINAL:
        host_reward = finished.to(tl.float32)
    elif REWARD == _STEP:
        host_reward = -1.0
    elif REWARD == _SURVIVAL:
        host_reward = finished.to(tl.float32) - 1.0
    else:
        host_reward = (before - count).to(tl.float32)
    host_reward = tl.where(answered, host_reward, 0.0)
    reward = host_reward
    if SEAT != _HOST_SEAT:
        reward = 0.0 - host_reward  # -host_reward would make -0 of 0
    if SEAT == _BOTH_SEATS:
        tl.store(rewards + games * 2, host_reward, mask=within)
        tl.store(rewards + games * 2 + 1, reward, mask=within)
    if SEAT == _AGENT_SEAT and OPPONENT != _ASKED:
        names = answered & ~finished
        draws = absorb(absorb(key, half_moves.to(tl.uint64)), _HOST)
        named = _name_set(table, num_sets, draws, count, within, OPPONENT, D)
        axis_mask = tl.where(names, named, axis_mask)
        half_moves += names

    # The end.
    illegal = active & ~legal
    if ON_ILLEGAL >= _PENALTY:
        reward = tl.where(illegal, _ILLEGAL_REWARD, reward)
    if ON_ILLEGAL == _TERMINATE:
        finished = finished | illegal
    total = load(old_returns, games, within) + reward
    length = load(old_lengths, games, within) + active
    cut = active & ~finished & (overflow | (length >= limit))
    done = finished | cut
    if MODE == _SAME_STEP:
        restart = done & within
        waiting = done & False
    elif MODE == _STARTING:
        restart = within & (action != 0)
        waiting = was_ended & (action == 0)
    else:
        restart = was_ended & within
        waiting = done
    restart = restart & RESTARTS  # which is False in DISABLED
    stays = within & ~restart
    refused = illegal & (ON_ILLEGAL == _ERROR)
    if MODE == _DISABLED:
        refused = refused | was_ended

    # What is kept, and what is seen.
    store_points(
        new_points, seen, final_seen, points, kept, rank, count, games, stays, within,
        SCALE, REPOSITION and MODE != _STARTING, RESTARTS and MODE == _SAME_STEP, P, D, G, R,
    )  # fmt: skip
    tl.store(new_floats + games + num_games, reward, mask=within)
    tl.store(new_floats + games + num_games * 2, total, mask=within)
    tl.store(new_numbers + games + num_games * 5, length, mask=within)
    ends = (waiting, finished, cut, overflow, done, refused)
    for index in tl.static_range(6):
        tl.store(flags + games + num_games * index, ends[index], mask=within)
    if RESTARTS and MODE == _SAME_STEP:
        store_set(final_coords, games, axis_mask, within, D)

    # Restarts.
    if RESTARTS:  # noqa: SIM102 - decided when it is compiled, unlike the next one
        if tl.max(restart.to(tl.int32), 0) > 0:
            seed = load(seeds, games, within)
            fresh_key = episode_key(seed, episode + 1)
            draws = absorb(absorb(fresh_key, 0), _START)
            drawn = draw_starts(
                new_points, seen, games, restart, draws, num_drawn, values, attempts,
                SCALE, REPOSITION, P, D, G, R,
            )  # fmt: skip
            count = tl.where(restart, drawn, count)
            axis_mask = tl.where(restart, 0, axis_mask)
            half_moves = tl.where(restart, 0, half_moves)
            if SEAT == _AGENT_SEAT and OPPONENT != _ASKED:
                draws = absorb(absorb(fresh_key, 0), _HOST)
                named = _name_set(table, num_sets, draws, count, within, OPPONENT, D)
                axis_mask = tl.where(restart, named, axis_mask)
                half_moves = tl.where(restart, 1, half_moves)
            episode += restart
            key = tl.where(restart, fresh_key, key)
            total = tl.where(restart, 0.0, total)
            length = tl.where(restart, 0, length)
    store_set(new_coords, games, axis_mask, within, D)
    store_set(seen_coords, games, axis_mask, within, D)
    numbers = (count, half_moves, episode, key, length)
    for index in tl.static_range(5):
        tl.store(new_numbers + games + num_games * index, numbers[index], mask=within)
    tl.store(new_floats + games, total, mask=within)
