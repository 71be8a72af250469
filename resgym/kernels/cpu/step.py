"""Steps and restarts of a range of rows, one row after the other.

Every line has its counterpart in `resgym.envs`, which is the reference: `TensorVectorEnv.step`,
`AlternatingPlayers._play`, `HironakaVectorEnv._play` and `Table.start`.
"""

from __future__ import annotations

import numpy as np

from resgym.game.rng import Stream
from resgym.kernels.cpu.compilation import compiled, inlined
from resgym.kernels.cpu.players import answer_set, name_set
from resgym.kernels.cpu.random_numbers import absorb, episode_key
from resgym.kernels.cpu.rules import draw_start, observe_position, play_move, set_of_row

__all__ = ["any_refused", "start_rows", "step_rows"]

# Indices in the tuples of `resgym.kernels.step`.
_HOST_SEAT, _AGENT_SEAT, _BOTH_SEATS = range(3)
_TERMINAL, _STEP, _SURVIVAL, _POINTS = range(4)
_ERROR, _NOOP, _PENALTY, _TERMINATE = range(4)
_SAME_STEP, _NEXT_STEP, _DISABLED = range(3)
_START, _HOST, _AGENT = Stream.START, Stream.HOST, Stream.AGENT
_ILLEGAL_REWARD = np.float32(-1.0)
_GIVEN = -1
_BLOCK = 256  # rows whose results stay in a core's cache


@inlined
def _is_legal(action, seat, axes, num_sets, dimension):
    """Whether an action is legal in the seat to play, given the named set."""
    if seat == _HOST_SEAT or (seat == _BOTH_SEATS and axes == 0):
        return 0 <= action < num_sets
    return 0 <= action < dimension and (axes >> action) & 1 == 1


@compiled
def any_refused(dims, actions, coords, ended, seat, on_illegal, mode, num_sets):
    """Whether the reference would raise an error: for an illegal action or an ended row."""
    for row in range(actions.shape[0]):
        if ended[row]:
            if mode == _DISABLED:
                return True
        elif on_illegal == _ERROR:
            axes = set_of_row(dims, coords[row])
            if not _is_legal(actions[row], seat, axes, num_sets, len(dims)):
                return True
    return False


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
def _write_set(dims, axes, coords, seen_coords):
    """Writes a set as flags, once as bool [D] and once as int8 [D]."""
    for axis in range(len(dims)):
        coords[axis] = (axes >> axis) & 1 == 1
        seen_coords[axis] = (axes >> axis) & 1


@inlined
def _fill(array, begin, end, value):
    """Fills the rows begin..end-1 of an array in one run: much faster than row by row."""
    flat = array[begin:end].reshape((end - begin) * array.shape[1] * array.shape[2])
    for index in range(flat.shape[0]):
        flat[index] = value


@inlined
def _copy(source, target, begin, end):
    """Copies the rows begin..end-1."""
    size = (end - begin) * source.shape[1] * source.shape[2]
    flat, to = source[begin:end].reshape(size), target[begin:end].reshape(size)
    for index in range(size):
        to[index] = flat[index]


@inlined
def _start_row(
    dims, row, seed, episode, seat, opponent, sets, scale, values, attempts, reposition, room,
    numbers, points, count, coords, half_moves, episodes, keys, returns, lengths, seen, seen_coords,
):  # fmt: skip
    """Starts an episode in a row: overwrites its fields and what is seen of it."""
    position = points[row]
    key = episode_key(seed, episode)
    draws = absorb(absorb(key, 0), _START)
    num_points = draw_start(dims, position, draws, values, attempts, reposition, room, numbers)
    axes = 0
    if seat == _AGENT_SEAT:
        axes = name_set(dims, opponent, position, num_points, sets, absorb(absorb(key, 0), _HOST))
    for p in range(num_points, position.shape[0]):
        for axis in range(len(dims)):
            position[p, axis] = -1
            seen[row, p, axis] = np.float32(-1.0)
    observe_position(dims, position, num_points, scale, seen[row])
    _write_set(dims, axes, coords[row], seen_coords[row])
    count[row] = num_points
    half_moves[row] = np.int64(axes != 0)
    episodes[row] = episode
    keys[row] = np.int64(key)
    returns[row] = np.float32(0.0)
    lengths[row] = 0


@compiled
def step_rows(
    begin, end, dims, sets, seat, opponent, reward_kind, on_illegal, mode, limit, scale, num_drawn,
    values, attempts, reposition, actions, answers,
    old_points, old_count, old_coords, old_half_moves, seeds, old_episode, old_key, old_returns,
    old_lengths, old_ended,
    new_points, new_count, new_coords, new_half_moves, new_episode, new_key, new_returns,
    new_lengths, new_ended,
    seen, seen_coords, rewards, both_rewards, terminated, truncated, overflows, ended,
    final_seen, final_coords, final_returns, final_lengths,
):  # fmt: skip
    """Plays the rows begin..end-1; returns how many of them ended.

    Reads the old fields and writes every entry of the new ones and of the results; see
    `resgym.kernels.step` for what they are. No action may be one that `any_refused` finds. With
    the opponent -1 an agent's choices are ``answers``, and a host names no sets.
    """
    num_points, dimension = old_points.shape[1], len(dims)
    room = np.empty(2 * num_points, np.int64)
    numbers = np.empty(num_drawn * dimension, np.int64)
    num_ended = 0
    for first in range(begin, end, _BLOCK):
        last = min(end, first + _BLOCK)
        _fill(new_points, first, last, np.int64(-1))
        _fill(seen, first, last, np.float32(-1.0))
        for row in range(first, last):
            position = new_points[row]
            before = old_count[row]
            for p in range(before):
                for axis in range(dimension):
                    position[p, axis] = old_points[row, p, axis]
            count = before
            axes = set_of_row(dims, old_coords[row])
            half_moves = old_half_moves[row]
            key = np.uint64(old_key[row])
            active = not old_ended[row]
            action = actions[row]
            legal = active and _is_legal(action, seat, axes, sets.shape[0], dimension)

            # The move, or the half-move.
            host_reward = reward = np.float32(0.0)
            finished = overflow = moved = False
            axis = action
            if legal:
                half_moves += 1
                moved = seat == _AGENT_SEAT or (seat == _BOTH_SEATS and axes != 0)
                if not moved:
                    axes = sets[action]
                    if seat == _HOST_SEAT and opponent == _GIVEN:
                        axis = answers[row]
                    elif seat == _HOST_SEAT:
                        draws = absorb(absorb(key, half_moves), _AGENT)
                        axis = answer_set(opponent, axes, dimension, draws)
                    if seat == _HOST_SEAT:
                        half_moves += 1
                        moved = True
            if moved:
                if before > 1:
                    count = play_move(dims, position, before, axes, axis, reposition, room, numbers)
                    if count < 0:
                        count, overflow = before, True
                    for p in range(count, before):
                        for j in range(dimension):
                            position[p, j] = -1
                axes = 0
                finished = count <= 1
                host_reward = _host_reward(reward_kind, finished, before, count)
                reward = host_reward if seat == _HOST_SEAT else -host_reward
                if seat == _AGENT_SEAT and not finished and opponent != _GIVEN:
                    draws = absorb(absorb(key, half_moves), _HOST)
                    axes = name_set(dims, opponent, position, count, sets, draws)
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
            observe_position(dims, position, count, scale, seen[row])
            _write_set(dims, axes, new_coords[row], seen_coords[row])
            new_count[row] = count
            new_half_moves[row] = half_moves
            new_episode[row] = old_episode[row]
            new_key[row] = old_key[row]
            new_ended[row] = done and mode != _SAME_STEP

        if mode == _DISABLED:
            continue
        if mode == _SAME_STEP:
            _copy(seen, final_seen, first, last)
            for row in range(first, last):
                for axis in range(dimension):
                    final_coords[row, axis] = seen_coords[row, axis]
        for row in range(first, last):
            if ended[row] if mode == _SAME_STEP else old_ended[row]:
                _start_row(
                    dims, row, seeds[row], old_episode[row] + 1, seat, opponent, sets, scale,
                    values, attempts, reposition, room, numbers, new_points, new_count, new_coords,
                    new_half_moves, new_episode, new_key, new_returns, new_lengths, seen,
                    seen_coords,
                )  # fmt: skip
    return num_ended


@compiled
def start_rows(
    begin, end, dims, sets, seat, opponent, scale, num_drawn, values, attempts, reposition, mask,
    old_points, old_count, old_coords, old_half_moves, seeds, old_episode, old_key, old_returns,
    old_lengths, old_ended,
    new_points, new_count, new_coords, new_half_moves, new_episode, new_key, new_returns,
    new_lengths, new_ended,
    seen, seen_coords,
):  # fmt: skip
    """Starts episodes in the rows of begin..end-1 that ``mask`` marks, and observes all; returns 0.

    Reads the old fields and writes every entry of the new ones and of what is seen.
    """
    num_points, dimension = old_points.shape[1], len(dims)
    room = np.empty(2 * num_points, np.int64)
    numbers = np.empty(num_drawn * dimension, np.int64)
    _fill(seen, begin, end, np.float32(-1.0))
    _copy(old_points, new_points, begin, end)
    for row in range(begin, end):
        new_ended[row] = old_ended[row] and not mask[row]
        if mask[row]:
            _start_row(
                dims, row, seeds[row], old_episode[row] + 1, seat, opponent, sets, scale, values,
                attempts, reposition, room, numbers, new_points, new_count, new_coords,
                new_half_moves, new_episode, new_key, new_returns, new_lengths, seen, seen_coords,
            )  # fmt: skip
            continue
        observe_position(dims, new_points[row], old_count[row], scale, seen[row])
        _write_set(dims, set_of_row(dims, old_coords[row]), new_coords[row], seen_coords[row])
        new_count[row] = old_count[row]
        new_half_moves[row] = old_half_moves[row]
        new_episode[row] = old_episode[row]
        new_key[row] = old_key[row]
        new_returns[row] = old_returns[row]
        new_lengths[row] = old_lengths[row]
    return 0
