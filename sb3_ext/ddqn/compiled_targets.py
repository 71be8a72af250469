"""`targets`, compiled: one pass over a batch instead of a dozen operations on a few numbers a row.

Needs numba. What the operations of `targets` give on float32 tensors is given here bit by bit. A
mask of no rows stands for None.
"""

from __future__ import annotations

import numpy as np

from resgym.kernels.cpu.compilation import compiled, inlined

__all__ = ["bootstrap_targets", "choose"]

_ZERO = np.float32(0.0)


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
    """`targets.epsilon_greedy`.

    Args:
        values: float32 [B, A].
        noise: float32 [B, A + 1], uniform in [0, 1): the coin, then a number for each action.
        legal: bool [B, A] or [0, A].
        epsilon: float32.
        chosen: int64 [B], written.
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
    """`targets.td_target` of `targets.bootstrap_value`.

    Args:
        values: float32 [B, A], of the target network at the next observation.
        preferred: float32 [B, A], what is greatest for the action that counts: `values`, or those
            of the online network for double DQN.
        legal: bool [B, A] or [0, A].
        rewards: float32 [B].
        dones: float32 [B], 1 where the episode terminated.
        discounts: float32 [B], or [1] for all.
        result: float32 [B], written.
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
