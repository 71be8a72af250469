"""Compiled functions: their parts, and their cache, damaged, stale, unwritable and shared."""

import errno
import importlib.util
import itertools
import logging
import os
import shutil
import warnings
from unittest.mock import Mock

import numpy as np
import pytest

numba = pytest.importorskip("numba")

from resgym.kernels.cpu import compilation as compiled  # noqa: E402
from resgym.kernels.cpu import parts  # noqa: E402

SOURCE = """
from resgym.kernels.cpu.compilation import compiled, inlined

@inlined
def helper(x):
    return x + {number}

@compiled
def function(x):
    return 2 * helper(x)
"""

numbers = itertools.count()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty cache, and every warning anew."""
    compiled._warn.cache_clear()
    compiled._tell.cache_clear()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")
    monkeypatch.setattr("sys.dont_write_bytecode", True)  # a cache by time and size as well
    return tmp_path / "cache" / "resgym" / "kernels"


def load(folder, number=3):
    """The function of a file beside the cache as a new process would find it."""
    path = folder.parents[2] / "sample.py"
    path.write_text(SOURCE.format(number=number))
    os.utime(path, (1, 1))  # Numba looks at the time and size of a file
    compiled._digest_of_sources.cache_clear()
    spec = importlib.util.spec_from_file_location(f"sample_{next(numbers)}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.function


def hits(function):
    return sum(function.stats.cache_hits.values())


def test_the_second_process_compiles_nothing_unless_a_source_has_changed(folder):
    first = load(folder)
    second = load(folder)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert first(1) == second(1) == 8
    assert (hits(first), hits(second)) == (0, 1)
    assert len([*folder.glob("*.nbc")]) == 1  # the code, without the index
    assert load(folder, number=5)(1) == 12


def test_who_waits_for_the_compiler_is_told_once(folder, caplog):
    caplog.set_level(logging.INFO, "resgym")
    function = load(folder)
    assert function(1) == 8
    assert function(1.5) == 9.0
    (record,) = caplog.records
    assert record.name == "resgym"
    assert "compiling" in record.message
    compiled._tell.cache_clear()
    assert load(folder)(1) == 8
    assert len(caplog.records) == 1, "loading takes no time"


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda it: it.chmod(0o777), "PermissionError"),
        (lambda it: it.symlink_to(it.rename(it.with_name("elsewhere"))), "PermissionError"),
        (lambda it: next(it.glob("*.nbi")).write_text(""), "kernels cannot be used, compiling in"),
        (lambda it: next(it.glob("*.nbc")).write_text(""), "kernels cannot be used, compiling in"),
        (lambda it: (shutil.rmtree(it), it.touch()), "there is no cache, compiling in memory"),
    ],
)
def test_a_cache_that_cannot_be_trusted_or_read_is_not_used(folder, spoil, message):
    """Others may have written its files; they are damaged; its folder is a file."""
    assert load(folder)(1) == 8
    assert folder.stat().st_mode & 0o777 == 0o700
    spoil(folder)
    with pytest.warns(RuntimeWarning, match=message):
        assert (function := load(folder))(1) == 8
    assert hits(function) == 0


def test_a_disk_that_refuses_the_file(folder, monkeypatch):
    monkeypatch.setattr(os, "replace", Mock(side_effect=OSError(errno.ENOSPC, "no space left")))
    function = load(folder)
    with pytest.warns(RuntimeWarning, match="cannot be used, compiling in memory"):
        assert function(1) == 8
    assert [*folder.iterdir()] == [], "a part of a file was left behind"


def functions():
    """A part, and a function that calls it twice."""

    @compiled.inlined
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
