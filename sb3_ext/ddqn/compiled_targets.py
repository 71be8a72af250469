"""`targets`, compiled: one pass over a batch instead of a dozen operations on a few numbers a row.

Needs numba. What the operations of `targets` give on float32 tensors is given here bit by bit, but
for means, which are taken of float64 sums here. A mask [0, A] stands for None.
"""

from __future__ import annotations

import numpy as np

from resgym.kernels.cpu.compilation import compiled, inlined

_ZERO, _HALF, _ONE = np.float32(0.0), np.float32(0.5), np.float32(1.0)


@inlined
def _best(values, legal, row):  # type: ignore[no-untyped-def]
    """The first of the largest legal values of a row; the first NaN if there is one."""
    masked = legal.shape[0] > 0
    best, chosen = -np.inf, 0
    for action in range(values.shape[1]):
        value = values[row, action]
        if masked and not legal[row, action]:
            continue
        if np.isnan(value):
            return action
        if value > best:
            best, chosen = value, action
    return chosen


@compiled
def choose(values, noise, legal, epsilon, chosen):  # type: ignore[no-untyped-def]
    """`targets.epsilon_greedy`, written to `chosen`, int64 [B].

    `noise`, float32 [B, A + 1] in [0, 1), holds the coin, then a number for each action.
    """
    masked = legal.shape[0] > 0
    for row in range(values.shape[0]):
        if noise[row, 0] < epsilon:
            most, action = np.float32(-2.0), 0
            for other in range(values.shape[1]):
                number = noise[row, other + 1]
                if masked and not legal[row, other]:
                    number = np.float32(-1.0)
                if number > most:
                    most, action = number, other
            chosen[row] = action
        else:
            chosen[row] = _best(values, legal, row)


@compiled
def bootstrap_targets(values, preferred, legal, rewards, dones, discounts, result):  # type: ignore[no-untyped-def]
    """`targets.td_target` of `targets.bootstrap_value`, written to `result`, float32 [B].

    `preferred`, float32 [B, A], is greatest for the action that counts: `values` itself, or those
    of the online network for double DQN. `discounts` are [B], or [1] for all.
    """
    masked, each = legal.shape[0] > 0, discounts.shape[0] > 1
    for row in range(values.shape[0]):
        if dones[row] > _ZERO:
            result[row] = rewards[row]
            continue
        value = values[row, _best(preferred, legal, row)]
        if masked:
            possible = False
            for action in range(values.shape[1]):
                possible |= legal[row, action]
            if not possible:
                value = _ZERO
        result[row] = rewards[row] + discounts[row if each else 0] * value


@compiled
def huber_loss(values, actions, target, predicted, gradient):  # type: ignore[no-untyped-def]
    """The loss of `targets.huber_terms`; writes `predicted`, and of `values` the gradient.

    `actions` are int64 [B, 1]; -1 is returned if there is no such action.
    """
    gradient[:] = _ZERO
    total, share = 0.0, np.float32(1.0) / np.float32(values.shape[0])
    for row in range(values.shape[0]):
        action = actions[row, 0]
        if not 0 <= action < values.shape[1]:
            return -1.0
        predicted[row] = values[row, action]
        error = predicted[row] - target[row]
        distance = abs(error)
        if distance < _ONE:
            total += _HALF * error * error
            gradient[row, action] = share * error
        else:  # NaN too, which has no sign
            total += distance - _HALF
            gradient[row, action] = share * np.sign(error)
    return total / values.shape[0]


@compiled
def measure(predicted, target, measured):  # type: ignore[no-untyped-def]
    """`targets.measures`, written to `measured`, float32 [4]."""
    of_values = of_targets = of_errors = 0.0
    largest = _ZERO
    for row in range(predicted.shape[0]):
        error = abs(predicted[row] - target[row])
        of_values += predicted[row]
        of_targets += target[row]
        of_errors += error
        if error > largest or np.isnan(error):
            largest = error
    measured[0] = of_values / predicted.shape[0]
    measured[1] = of_targets / predicted.shape[0]
    measured[2] = of_errors / predicted.shape[0]
    measured[3] = largest
