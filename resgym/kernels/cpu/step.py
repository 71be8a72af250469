"""Steps and restarts of a range of rows, one row after the other, with scripted players.

Every line of a step has its counterpart in `resgym.game.episode`, which is the reference, and every
player in `resgym.players`. States and results come as tuples of arrays, plans as tuples of numbers.
"""

import numpy as np

from resgym.game.rng import Stream
from resgym.game.stepping import (
    AUTORESET_MODES,
    INVALID_ACTION_REWARD,
    INVALID_ACTIONS,
    REWARD_NAMES,
    SEATS,
)
from resgym.kernels.backend import AGENTS, ASKED, STARTING
from resgym.kernels.cpu.compilation import compiled, inlined
from resgym.kernels.cpu.rules import (
    absorb,
    draw_start,
    episode_key,
    integer,
    observe_position,
    play_move,
    set_of_row,
    within,
)

HOSTS = ("random", "random_pair", "all_coord", "zeillinger", "zeillinger_lex")
"""Hosts that `name_set` can play; it takes the index."""

_RANDOM_AGENT, _LAST = map(AGENTS.index, ("random", "choose_last"))
_RANDOM_HOST, _RANDOM_PAIR, _ALL_COORD, _ZEILLINGER_LEX = map(
    HOSTS.index, ("random", "random_pair", "all_coord", "zeillinger_lex")
)


@inlined
def answer_set(agent, axis_mask, dimension, key):
    """The axis that an agent (an index) chooses from a set that is not empty, bit j for axis j."""
    skip = 0
    if agent == _RANDOM_AGENT:
        size = 0
        for axis in range(dimension):
            size += (axis_mask >> axis) & 1
        skip = integer(key, size)
    chosen = 0
    for axis in range(dimension):
        if (axis_mask >> axis) & 1:
            chosen = axis
            if skip == 0 and agent != _LAST:
                break
            skip -= 1
    return chosen


@inlined
def _zeillinger_set(dims, points, count, least_axes):
    """Zeillinger's pair of axes; see `resgym.players.scripted`."""
    dimension = len(dims)
    best_spread, best_key, best_low, best_high = -1, 0, 0, 0
    for one in range(count - 1):
        for other in range(one + 1, count):
            low = high = points[one, 0] - points[other, 0]
            first_low = first_high = 0
            num_low = num_high = 1
            for axis in range(1, dimension):
                value = points[one, axis] - points[other, axis]
                if value < low:
                    low, first_low, num_low = value, axis, 1
                elif value == low:
                    num_low += 1
                if value > high:
                    high, first_high, num_high = value, axis, 1
                elif value == high:
                    num_high += 1
            spread = high - low
            key = num_low + num_high
            if least_axes:
                key = (key * dimension + first_low) * dimension + first_high
            if (
                best_spread < 0
                or spread < best_spread
                or (spread == best_spread and key < best_key)
            ):
                best_spread, best_key, best_low, best_high = spread, key, first_low, first_high
    if best_low == best_high:
        return 3
    return (1 << best_low) | (1 << best_high)


@inlined
def name_set(dims, host, points, count, sets, key):
    """The set, bit j for axis j, that a host (an index) names in a position int64 [P, D].

    ``sets`` are those of `resgym.kernels.backend.set_numbers` for this host, ``key`` uint64 is the
    row's random numbers.
    """
    if host in (_RANDOM_HOST, _RANDOM_PAIR):
        return sets[integer(key, sets.shape[0])]
    if host == _ALL_COORD:
        return sets[-1] if count > 1 else sets[0]
    return _zeillinger_set(dims, points, count, host == _ZEILLINGER_LEX)


_HOST_SEAT, _AGENT_SEAT, _BOTH_SEATS = map(SEATS.index, ("host", "agent", "both"))
_TERMINAL, _STEP, _SURVIVAL = map(REWARD_NAMES.index, ("terminal", "step", "survival"))
_ERROR, _PENALTY, _TERMINATE = map(INVALID_ACTIONS.index, ("error", "penalty", "terminate"))
_SAME_STEP, _DISABLED = map(AUTORESET_MODES.index, ("SAME_STEP", "DISABLED"))
_START, _HOST, _AGENT = Stream.START, Stream.HOST, Stream.AGENT
_ILLEGAL_REWARD = np.float32(INVALID_ACTION_REWARD)
_BLOCK = 256  # rows whose results stay in a core's cache


@inlined
def _is_legal(dims, action, seat, axis_mask, sets):
    if seat == _HOST_SEAT or (seat == _BOTH_SEATS and axis_mask == 0):
        return 0 <= action < sets.shape[0]
    return 0 <= action < len(dims) and (axis_mask >> action) & 1 == 1


@inlined
def _host_reward(kind, finished, before, after):
    if kind == _TERMINAL:
        return np.float32(1.0) if finished else np.float32(0.0)
    if kind == _STEP:
        return np.float32(-1.0)
    if kind == _SURVIVAL:
        return np.float32(0.0) if finished else np.float32(-1.0)
    return np.float32(before - after)


@inlined
def _write_set(dims, axis_mask, coords, seen_coords):
    """Writes a set as flags bool [D], and what an agent sees of it as int8 [D]."""
    for axis in range(len(dims)):
        coords[axis] = (axis_mask >> axis) & 1 == 1
        seen_coords[axis] = (axis_mask >> axis) & 1


@inlined
def _fill(array, begin, end, value):
    """Fills the rows begin..end-1 of an array in one run: much faster than row by row."""
    flat = array[begin:end].reshape((end - begin) * array.shape[1] * array.shape[2])
    for index in range(flat.shape[0]):
        flat[index] = value


@inlined
def _copy(source, target, begin, end):
    size = (end - begin) * source.shape[1] * source.shape[2]
    flat, to = source[begin:end].reshape(size), target[begin:end].reshape(size)
    for index in range(size):
        to[index] = flat[index]


@inlined
def _start_row(
    dims, row, sets, rules, starts, scratch, numbers, old, new, seen, seen_coords
):  # fmt: skip
    """Starts an episode in a row: overwrites its state and what is seen of it."""
    seat, opponent, scale = rules[0], rules[1], rules[7]
    _, values, attempts, reposition = starts
    points, count, coords, half_moves, _, episodes, keys, returns, lengths, _ = new
    position, episode = points[row], old[5][row] + 1
    key = episode_key(old[4][row], episode)
    draws = absorb(absorb(key, 0), _START)
    num_points = draw_start(dims, position, draws, values, attempts, reposition, scratch, numbers)
    axis_mask = 0
    if seat == _AGENT_SEAT and opponent != ASKED:
        chances = absorb(absorb(key, 0), _HOST)
        axis_mask = name_set(dims, opponent, position, num_points, sets, chances)
    for p in range(num_points, position.shape[0]):
        for axis in range(len(dims)):
            position[p, axis] = -1
            seen[row, p, axis] = np.float32(-1.0)
    observe_position(dims, position, num_points, scale, seen[row])
    _write_set(dims, axis_mask, coords[row], seen_coords[row])
    count[row] = num_points
    half_moves[row] = np.int64(axis_mask != 0)
    episodes[row] = episode
    keys[row] = np.int64(key)
    returns[row] = np.float32(0.0)
    lengths[row] = 0


@compiled
def step_rows(
    begin, end, dims, sets, rules, starts, actions, answered, old, new, results
):  # fmt: skip
    """Plays or starts the rows begin..end-1; returns how many ended, far below 0 if it refuses.

    Reads the old state and writes every entry of the new one, but for the seeds, and of the
    results. A step that is refused leaves them half written. In a start the actions mark the rows.

        dims: as long as there are axes, see `resgym.kernels.cpu.rules`.
        sets, rules, starts: see `resgym.kernels.backend.Numbers`.
        answered: int64 [N], what agents who were asked choose. Hosts who are asked name their sets
            afterwards.
        old, new: the fields of `EpisodeState`; the new ones hold a state of before.
        results: seen, seen coords, reward, rewards of both, terminated, truncated, overflow, ended,
            final seen, final coords, final returns, final lengths, as in `StepResult`.
    """
    scratch = np.empty(2 * old[0].shape[1], np.int64)
    numbers = np.empty(starts[0] * len(dims), np.int64)
    return _step_rows(
        begin, end, dims, sets, rules, starts, scratch, numbers, actions, answered,
        old, new, results,
    )  # fmt: skip


@inlined
def _step_rows(
    begin, end, dims, sets, rules, starts, scratch, numbers, actions, answered,
    old, new, results,
):  # fmt: skip
    seat, opponent, reward_kind, on_illegal, mode, restarts, limit, scale = rules
    reposition = starts[3]
    (
        old_points, old_count, old_coords, old_half_moves, _, old_episode, old_key, old_returns,
        old_lengths, old_ended,
    ) = old  # fmt: skip
    (
        new_points, new_count, new_coords, new_half_moves, _, new_episode, new_key, new_returns,
        new_lengths, new_ended,
    ) = new  # fmt: skip
    (
        seen, seen_coords, rewards, both_rewards, terminated, truncated, overflows, ended,
        final_seen, final_coords, final_returns, final_lengths,
    ) = results  # fmt: skip
    dimension = len(dims)
    num_ended = 0
    for first in range(begin, end, _BLOCK):
        last = min(end, first + _BLOCK)
        _fill(seen, first, last, np.float32(-1.0))
        for row in range(first, last):
            position = new_points[row]
            before, stale = within(old_count[row], position), within(new_count[row], position)
            for p in range(before):
                for axis in range(dimension):
                    position[p, axis] = old_points[row, p, axis]
            count = before
            axis_mask = set_of_row(dims, old_coords[row])
            half_moves = old_half_moves[row]
            key = np.uint64(old_key[row])
            active = mode != STARTING and not old_ended[row]
            action = actions[row]
            legal = active and _is_legal(dims, action, seat, axis_mask, sets)
            if not legal and (on_illegal == _ERROR if active else mode == _DISABLED):
                return -2 * actions.shape[0]

            # The move, or the half-move.
            host_reward = reward = np.float32(0.0)
            finished = overflow = moved = False
            axis = action
            if legal:
                half_moves += 1
                moved = seat == _AGENT_SEAT or (seat == _BOTH_SEATS and axis_mask != 0)
                if not moved:
                    axis_mask = sets[action]
                    if seat == _HOST_SEAT and opponent == ASKED:
                        axis = answered[row]
                    elif seat == _HOST_SEAT:
                        draws = absorb(absorb(key, half_moves), _AGENT)
                        axis = answer_set(opponent, axis_mask, dimension, draws)
                    if seat == _HOST_SEAT:
                        half_moves += 1
                        moved = True
            if moved:
                if before > 1:
                    count = play_move(
                        dims, position, before, axis_mask, axis, reposition, scratch, numbers
                    )
                    if count < 0:
                        count, overflow = before, True
                axis_mask = 0
                finished = count <= 1
                host_reward = _host_reward(reward_kind, finished, before, count)
                reward = host_reward if seat == _HOST_SEAT else np.float32(0.0) - host_reward
                if seat == _AGENT_SEAT and not finished and opponent != ASKED:
                    draws = absorb(absorb(key, half_moves), _HOST)
                    axis_mask = name_set(dims, opponent, position, count, sets, draws)
                    half_moves += 1
            if seat == _BOTH_SEATS:
                both_rewards[row, 0] = host_reward
                both_rewards[row, 1] = reward

            # The end.
            if active and not legal and on_illegal >= _PENALTY:
                reward = _ILLEGAL_REWARD
                finished = on_illegal == _TERMINATE
            total = old_returns[row] + reward
            length = old_lengths[row] + np.int64(active)
            cut = active and not finished and (overflow or length >= limit)
            done = finished or cut
            num_ended += np.int64(done)
            rewards[row] = reward
            terminated[row] = finished
            truncated[row] = cut
            overflows[row] = overflow
            ended[row] = done
            final_returns[row] = new_returns[row] = total
            final_lengths[row] = new_lengths[row] = length

            # What is kept, and what is seen.
            for p in range(count, max(before, stale)):
                for j in range(dimension):
                    position[p, j] = -1
            observe_position(dims, position, count, scale, seen[row])
            _write_set(dims, axis_mask, new_coords[row], seen_coords[row])
            new_count[row] = count
            new_half_moves[row] = half_moves
            new_episode[row] = old_episode[row]
            new_key[row] = old_key[row]
            if mode == STARTING:
                done = old_ended[row] and action == 0
            new_ended[row] = done and mode != _SAME_STEP

        if not restarts:
            continue
        if mode == _SAME_STEP:
            _copy(seen, final_seen, first, last)
            for row in range(first, last):
                for axis in range(dimension):
                    final_coords[row, axis] = seen_coords[row, axis]
        for row in range(first, last):
            restarting = ended[row] if mode == _SAME_STEP else old_ended[row]
            if mode == STARTING:
                restarting = actions[row] != 0
            if restarting:
                _start_row(
                    dims, row, sets, rules, starts, scratch, numbers, old, new,
                    seen, seen_coords,
                )  # fmt: skip
    return num_ended
