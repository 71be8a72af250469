"""The random numbers of the package in plain Python integers, from the published algorithm.

SplitMix64 (Steele, Lea and Flood, OOPSLA 2014): word k of a generator in state s is the finaliser
of s + k * gamma, all modulo 2^64.
"""

MASK = 2**64 - 1
GAMMA = 0x9E3779B97F4A7C15


def finalise(word):
    word &= MASK
    word = ((word ^ (word >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) & MASK
    return word ^ (word >> 31)


def absorb(key, word):
    return finalise((key ^ (word & MASK)) + GAMMA)


def step_key(seed, episode, step, stream):
    return absorb(absorb(absorb(finalise(seed + GAMMA), episode), step), stream)


def words(key):
    state = key
    while True:
        state = (state + GAMMA) & MASK
        yield finalise(state)


def integer(word, high):
    """Uniform in 0..high-1 by Lemire's multiply-shift on the upper 32 bits."""
    return ((word >> 32) * high) >> 32


def signed(word):
    """The same 64 bits as torch's int64 shows them."""
    return word - 2**64 if word >= 2**63 else word
