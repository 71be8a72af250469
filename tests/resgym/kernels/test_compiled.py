"""The cache of compiled functions: damaged, stale, unwritable, and used by several processes."""

from __future__ import annotations

import errno
import importlib.util
import itertools
import logging
import os
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

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
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And every warning anew."""
    compiled._warn.cache_clear()
    compiled._tell.cache_clear()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    def write(number: int = 3) -> Path:
        path = tmp_path / "sample.py"
        path.write_text(SOURCE.format(number=number))
        os.utime(path, (1, 1))
        return path

    return write


def module_of(path: Path) -> Any:
    """The module of a file as a new process would find it."""
    compiled._digest_of_sources.cache_clear()
    spec = importlib.util.spec_from_file_location(f"sample_{next(numbers)}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def load(path: Path) -> Any:
    return module_of(path).function


def folder_of(path: Path) -> Path:
    return path.parent / "cache" / "resgym" / "kernels"


def files(path: Path) -> list[Path]:
    """The code, without the index."""
    return sorted(folder_of(path).glob("*.nbc"))


def hits(function: Any) -> int:
    return sum(function.stats.cache_hits.values())


def test_the_second_process_compiles_nothing(write: Callable[..., Path]) -> None:
    path = write()
    first, second = load(path), load(path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert first(1) == second(1) == 8
    assert hits(first) == 0
    assert hits(second) == 1
    assert len(files(path)) == 1


def test_who_waits_for_the_compiler_is_told_once(
    write: Callable[..., Path], caplog: pytest.LogCaptureFixture
) -> None:
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


@pytest.mark.parametrize("ending", ["nbi", "nbc"])
def test_a_damaged_file_is_not_used(write: Callable[..., Path], ending: str) -> None:
    path = write()
    load(path)(1)
    (file,) = folder_of(path).glob(f"*.{ending}")
    file.write_bytes(b"")
    function = load(path)
    with pytest.warns(RuntimeWarning, match="kernels cannot be used, compiling in memory"):
        assert function(1) == 8


def opened(folder: Path) -> None:
    folder.chmod(0o777)


def linked(folder: Path) -> None:
    folder.rename(folder.with_name("elsewhere"))
    folder.symlink_to("elsewhere")


@pytest.mark.parametrize("how", [opened, linked])
def test_files_that_others_may_have_written_are_not_read(
    write: Callable[..., Path], how: Callable[[Path], None]
) -> None:
    path = write()
    assert load(path)(1) == 8
    assert folder_of(path).stat().st_mode & 0o777 == 0o700
    how(folder_of(path))
    with pytest.warns(RuntimeWarning, match="PermissionError"):
        function = load(path)
    assert function(1) == 8
    assert hits(function) == 0


def test_a_change_of_what_it_is_made_of(write: Callable[..., Path]) -> None:
    """Numba looks at the time and size of one file; here both stay the same."""
    path = write(number=3)
    assert load(path)(1) == 8
    path = write(number=5)
    assert load(path)(1) == 12


def test_a_folder_that_cannot_be_written(
    write: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write()
    monkeypatch.setenv("XDG_CACHE_HOME", str(path))  # a file, no folder
    with pytest.warns(RuntimeWarning, match="there is no cache, compiling in memory"):
        function = load(path)
    assert function(1) == 8


def test_a_disk_that_refuses_the_file(
    write: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write()

    def refuse(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "no space left")

    monkeypatch.setattr(os, "replace", refuse)
    function = load(path)
    with pytest.warns(RuntimeWarning, match="cannot be used, compiling in memory"):
        assert function(1) == 8
    assert function(2) == 10
    assert [*folder_of(path).iterdir()] == [], "a part of a file was left behind"


def test_a_constant_of_the_rule_is_part_of_every_digest(tmp_path: Path) -> None:
    """Kernels freeze constants of `resgym.game`: with another one their files are worthless."""
    package = tmp_path / "resgym"
    for folder in ("game", "kernels"):
        shutil.copytree(Path(compiled.__file__).parents[2] / folder, package / folder)
    copied = module_of(package / "kernels" / "cpu" / "compilation.py")
    before = copied._digest_of_sources(package)
    rule = package / "game" / "spec.py"
    text = rule.read_text()
    rule.write_text(text.replace("MAX_COORDINATE = 2**59", "MAX_COORDINATE = 2**58"))
    copied._digest_of_sources.cache_clear()
    assert copied._digest_of_sources(package) != before
    rule.write_text(text)
    copied._digest_of_sources.cache_clear()
    assert copied._digest_of_sources(package) == before
