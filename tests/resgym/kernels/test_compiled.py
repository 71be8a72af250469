"""The cache of compiled functions: damaged, stale, unwritable, and used by several processes."""

import errno
import importlib.util
import itertools
import logging
import os
import shutil
import warnings
from unittest.mock import Mock

import pytest

numba = pytest.importorskip("numba")

from resgym.kernels.cpu import compilation as compiled  # noqa: E402

SOURCE = """
import sys
from resgym.kernels.cpu.compilation import compiled, inlined

@inlined
def helper(x):
    return x + {number}

@compiled
def function(x):
    return 2 * helper(x)

if __name__ == "__main__":
    print(function(1))
"""

numbers = itertools.count()


@pytest.fixture(autouse=True)
def empty_cache(tmp_path, monkeypatch):
    """And every warning anew."""
    compiled._warn.cache_clear()
    compiled._tell.cache_clear()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")


@pytest.fixture
def write(tmp_path):
    def write(number=3):
        path = tmp_path / "sample.py"
        path.write_text(SOURCE.format(number=number))
        os.utime(path, (1, 1))  # Numba looks at the time and size of a file
        return path

    return write


def load(path):
    """The function of a file as a new process would find it."""
    compiled._digest_of_sources.cache_clear()
    spec = importlib.util.spec_from_file_location(f"sample_{next(numbers)}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.function


def folder_of(path):
    return path.parent / "cache" / "resgym" / "kernels"


def hits(function):
    return sum(function.stats.cache_hits.values())


def test_the_second_process_compiles_nothing_unless_a_source_has_changed(write):
    path = write(number=3)
    first, second = load(path), load(path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert first(1) == second(1) == 8
    assert (hits(first), hits(second)) == (0, 1)
    assert len([*folder_of(path).glob("*.nbc")]) == 1  # the code, without the index
    assert load(write(number=5))(1) == 12


def test_who_waits_for_the_compiler_is_told_once(write, caplog):
    caplog.set_level(logging.INFO, "resgym")
    function = load(write())
    assert function(1) == 8
    assert function(1.5) == 9.0
    (record,) = caplog.records
    assert record.name == "resgym"
    assert "compiling" in record.message
    compiled._tell.cache_clear()
    assert load(write())(1) == 8
    assert len(caplog.records) == 1, "loading takes no time"


def opened(folder):
    folder.chmod(0o777)


def linked(folder):
    folder.rename(folder.with_name("elsewhere"))
    folder.symlink_to("elsewhere")


def emptied(ending):
    return lambda folder: next(folder.glob(f"*.{ending}")).write_bytes(b"") and None


def replaced(folder):
    shutil.rmtree(folder)
    folder.touch()


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (opened, "PermissionError"),
        (linked, "PermissionError"),
        (emptied("nbi"), "kernels cannot be used, compiling in memory"),
        (emptied("nbc"), "kernels cannot be used, compiling in memory"),
        (replaced, "there is no cache, compiling in memory"),
    ],
)
def test_a_cache_that_cannot_be_trusted_or_read_is_not_used(write, spoil, message):
    """Others may have written its files; they are damaged; its folder is a file."""
    path = write()
    assert load(path)(1) == 8
    assert folder_of(path).stat().st_mode & 0o777 == 0o700
    spoil(folder_of(path))
    with pytest.warns(RuntimeWarning, match=message):
        assert (function := load(path))(1) == 8
    assert hits(function) == 0


def test_a_disk_that_refuses_the_file(write, monkeypatch):
    path = write()
    monkeypatch.setattr(os, "replace", Mock(side_effect=OSError(errno.ENOSPC, "no space left")))
    function = load(path)
    with pytest.warns(RuntimeWarning, match="cannot be used, compiling in memory"):
        assert function(1) == 8
    assert [*folder_of(path).iterdir()] == [], "a part of a file was left behind"
