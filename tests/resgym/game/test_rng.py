"""Random numbers against the published algorithm, and against what uniform means."""

import itertools

import torch
from hypothesis import given
from hypothesis import strategies as st

from resgym.game.rng import RowRandom, derive_seed
from tests.resgym.game import splitmix

SEEDS = st.integers(0, 2**63 - 1)
SMALL = st.integers(0, 10**6)
WORDS_64 = st.integers(-(2**63), 2**63 - 1)


def column(*values):
    return torch.tensor(values, dtype=torch.int64)


# The first outputs of SplitMix64 from the state 1234567, as published with the algorithm.
PUBLISHED = [0x599ED017FB08FC85, 0x2C73F08458540FA5, 0x883EBCE5A3F27C77, 0x3FBEF740E9177B3F]


def test_words_are_those_of_splitmix64():
    drawn = RowRandom(column(1234567)).words(4)[0].tolist()
    assert [word % 2**64 for word in drawn] == PUBLISHED
    assert list(itertools.islice(splitmix.words(1234567), 4)) == PUBLISHED


@given(SEEDS, SMALL, SMALL, st.integers(0, 3))
def test_keys_absorb_seed_episode_step_and_stream(seed, episode, step, stream):
    rng = RowRandom.for_episode(column(seed), column(episode)).at(step, stream)
    key = splitmix.step_key(seed, episode, step, stream)
    assert rng.key.tolist() == [splitmix.signed(key)]
    assert rng.split(7).key.tolist() == [splitmix.signed(splitmix.absorb(key, 7))]


@given(WORDS_64, st.lists(st.integers(1, 2**31), min_size=1, max_size=6), st.integers(1, 9))
def test_integers_and_floats_come_from_the_words(key, highs, n):
    rows = RowRandom(column(*[key] * len(highs)))
    words = list(itertools.islice(splitmix.words(key % 2**64), n))
    expected = [[splitmix.integer(word, high) for word in words] for high in highs]
    high = column(*highs)
    assert rows.integers(high, n).tolist() == expected
    assert rows.integers(high).tolist() == [row[0] for row in expected]
    assert rows.integers(highs[0], n)[0].tolist() == expected[0]
    uniform = rows.uniform(n)
    assert uniform.dtype == torch.float32
    assert uniform[0].tolist() == [(word >> 40) / 2**24 for word in words]
    assert rows.uniform()[0].item() == (words[0] >> 40) / 2**24


@given(st.integers(0, 2**70), st.lists(st.integers(-(2**63), 2**63), max_size=4))
def test_derived_seeds(seed, words):
    key = splitmix.finalise(seed + splitmix.GAMMA)
    for word in words:
        key = splitmix.absorb(key, word)
    assert derive_seed(seed, *words) == key >> 1
    assert 0 <= derive_seed(seed, *words) < 2**63
    assert derive_seed(seed, *words, 0) != derive_seed(seed, *words)
