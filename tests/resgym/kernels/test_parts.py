"""What only compiled functions call is compiled as a part of them."""

import numpy as np
import pytest

numba = pytest.importorskip("numba")

from resgym.kernels.cpu import parts  # noqa: E402
from resgym.kernels.cpu.compilation import inlined  # noqa: E402


def functions():
    """A part, and a function that calls it twice."""

    @inlined
    def cut(numbers, most):
        numbers[0] = min(numbers[0], most)
        return numbers.sum()

    @numba.njit
    def whole(numbers, most):
        return cut(numbers, most) + cut(numbers, most - 1)

    return cut, whole


def test_this_numba_compiles_parts():
    """Run with every numba that is supported: without parts the kernels compile twice as long."""
    assert parts.parts_work()
    cut, whole = functions()
    numbers = np.array([5, 1, 7])
    assert whole(numbers, 4) == 4 + 1 + 7 + 3 + 1 + 7
    assert list(numbers) == [3, 1, 7]
    # No machine code was made of it, and calling it is an error, not a crash.
    (result,) = cut.overloads.values()
    assert result.library.get_pointer_to_function("anything") == 0
    with pytest.raises(KeyError, match="only compiled functions can call cut"):
        cut(numbers, 4)


def test_a_numba_with_other_insides(monkeypatch):
    """Where parts do not work, functions are compiled in numba's own way."""
    monkeypatch.setattr(parts, "parts_work", lambda: False)
    cut, whole = functions()
    assert whole(np.array([5, 1, 7]), 4) == 23
    assert cut(np.array([5, 1, 7]), 4) == 12
