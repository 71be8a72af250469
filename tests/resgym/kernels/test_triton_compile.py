"""The Triton kernels compiled for a GPU, which needs none, and the cache of what was compiled."""

from __future__ import annotations

import errno
import os
import re
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

triton = pytest.importorskip("triton")

from triton import knobs  # noqa: E402
from triton.backends.compiler import GPUTarget  # noqa: E402
from triton.compiler import ASTSource  # noqa: E402
from triton.runtime import driver  # noqa: E402

from resgym.game import GameSpec  # noqa: E402
from resgym.kernels.cuda import cache as triton_cache  # noqa: E402
from resgym.kernels.cuda import grids as triton_launch  # noqa: E402
from resgym.kernels.cuda import kernels as triton_kernels  # noqa: E402
from resgym.kernels.cuda.cache import checked_cache  # noqa: E402

pytestmark = pytest.mark.skipif(triton_launch.INTERPRETED, reason="compiles, interprets not")

H200 = GPUTarget("cuda", 90, 32)
TYPES = {
    "*i64": "points counts old_points old_count old_half_moves seeds old_episode old_key "
    "old_lengths table new_points new_numbers new_count keys axis",
    "*fp32": "old_returns new_floats rewards seen final_seen",
    "*u8": "coords old_coords old_ended new_coords flags moved_flags overflow_flags",
    "*i8": "seen_coords final_coords",
}
KIND = {name: kind for kind, names in TYPES.items() for name in names.split()}


def compiled(kernel: Any, num_points: int, dimension: int, **flags: Any) -> Any:
    how = triton_launch.cut(num_points, dimension)
    constants = {**flags, "P": num_points, "D": dimension, "G": how.games, "R": how.rows}
    # The marks of the games to start are bytes, actions are not.
    kinds = {**KIND, "actions": "*u8" if flags.get("MODE") == triton_kernels.STARTING else "*i64"}
    signature = {
        name: "constexpr" if name in constants else kinds.get(name, "i64")
        for name in kernel.arg_names
    }
    source = ASTSource(fn=kernel, signature=signature, constexprs=constants)
    with checked_cache():
        return triton.compile(source, target=H200, options={"num_warps": 1})


def step_flags(num_points: int, dimension: int, **flags: Any) -> dict[str, Any]:
    usual = {
        "SEAT": 0, "OPPONENT": 0, "REWARD": 0, "ON_ILLEGAL": 1, "MODE": 0, "SCALE": True,
        "REPOSITION": False, "AXES": triton_launch.cut(num_points, dimension).axes,
        "DRAWN_AXES": triton_launch.drawn_axes(GameSpec(dimension, num_points)),
    }  # fmt: skip
    return {**usual, **flags}


@pytest.fixture(autouse=True)
def cache_folder(tmp_path: Path) -> Iterator[Path]:
    """An empty cache, and every warning anew."""
    triton_cache._warn.cache_clear()
    triton_cache._own_folder.cache_clear()
    with knobs.cache.scope():
        knobs.cache.dir = str(tmp_path / "cache")
        yield tmp_path / "cache"


def check_code(code: Any) -> None:
    text = code.asm["ptx"]
    assert len(code.asm["cubin"]) > 1000, "ptxas made nothing"
    assert not re.search(r"div\.(full|approx)", text), "a division that is not IEEE's"
    assert "bar.sync" not in text, "a program of one warp waits for nothing"
    assert ".local " not in text, "points have left the registers"


def test_observing_compiles() -> None:
    code = compiled(triton_kernels.observe_games, 5, 2, SCALE=True)
    check_code(code)
    assert "div.rn.f64" in code.asm["ptx"]


@pytest.mark.long
@pytest.mark.parametrize(
    ("num_points", "dimension", "flags"),
    [
        (20, 3, {}),
        (20, 3, {"SEAT": 1, "OPPONENT": 1, "REWARD": 3, "ON_ILLEGAL": 0, "MODE": 1}),
        (20, 5, {"SEAT": 2, "REWARD": 2, "ON_ILLEGAL": 3, "MODE": 2, "REPOSITION": True}),
        (50, 3, {"SCALE": False, "REWARD": 1, "OPPONENT": 2, "DRAWN_AXES": 1}),
        (20, 10, {}),
    ],
)
def test_the_step_compiles(num_points: int, dimension: int, flags: dict[str, Any]) -> None:
    check_code(
        compiled(
            triton_kernels.step_games, num_points, dimension,
            **step_flags(num_points, dimension, **flags),
        )
    )  # fmt: skip


@pytest.mark.long
def test_moves_and_starts_compile() -> None:
    check_code(compiled(triton_kernels.move_games, 5, 2, REPOSITION=True, AXES=2))
    starting = step_flags(20, 3, SEAT=1, OPPONENT=2, MODE=triton_kernels.STARTING)
    check_code(compiled(triton_kernels.step_games, 20, 3, **starting))
    check_code(compiled(triton_kernels.draw_games, 20, 3, REPOSITION=False, DRAWN_AXES=3))


class NoDevice:
    """As much of a driver as compiling a call needs."""

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, device: int) -> int:
        return 0

    def get_current_target(self) -> GPUTarget:
        return H200


def test_one_binary_for_all_numbers_of_games(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a later step would compile again, or a capture would fail."""
    monkeypatch.setattr(driver, "_active", NoDevice())
    kernel = triton_kernels.observe_games
    kernel.device_caches.clear()
    for num_games in (1, 3, 16, 2**33):
        # Rows of odd length begin at addresses that are no multiple of 16.
        points = torch.zeros(2, 9, dtype=torch.int64)[1]
        counts = torch.zeros(33, dtype=torch.int64)[num_games % 3 :]
        with checked_cache():
            kernel.warmup(
                points, counts, torch.zeros(9), num_games, SCALE=True, P=3, D=3, G=4, R=4,
                num_warps=1, grid=(1,),
            )  # fmt: skip
    assert len(kernel.device_caches[0][0]) == 1
    kernel.device_caches.clear()


# The cache.


@triton.jit
def tiny(x, n):
    triton.language.store(x + triton.language.program_id(0), n)


class Hits:
    """Counts kernels found and compiled."""

    def __init__(self) -> None:
        self.seen: list[bool] = []

    def __call__(self, *, cache_hit: bool, **_: Any) -> None:
        self.seen.append(cache_hit)


def compile_tiny() -> tuple[bool, bytes]:
    """Whether it was found, and the binary."""
    hits = Hits()
    source = ASTSource(fn=tiny, signature={"x": "*i64", "n": "i64"}, constexprs={})
    with knobs.compilation.scope(), checked_cache():
        knobs.compilation.listener = hits
        code = triton.compile(source, target=H200)
    (found,) = hits.seen
    return found, code.asm["cubin"]


def test_the_second_time_it_is_found(cache_folder: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        first, second = compile_tiny(), compile_tiny()
    assert (first[0], second[0]) == (False, True)
    assert first[1] == second[1]
    assert len(list(cache_folder.rglob("*.sha256"))) == 1


@pytest.mark.parametrize("suffix", ["cubin", "json", "sha256"])
@pytest.mark.parametrize("damage", ["empty", "half", "one bit", "gone"])
def test_a_damaged_file_is_replaced(cache_folder: Path, suffix: str, damage: str) -> None:
    _, wanted = compile_tiny()
    (file,) = [
        each for each in cache_folder.rglob(f"*.{suffix}") if not each.name.startswith("__grp__")
    ]
    content = file.read_bytes()
    middle = len(content) // 2
    changed = {
        "empty": b"",
        "half": content[:middle],
        "one bit": content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :],
        "gone": b"",
    }[damage]
    file.write_bytes(changed)
    if damage == "gone":
        file.unlink()
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        found, binary = compile_tiny()
    assert not found, "a damaged file was used"
    assert binary == wanted
    assert len(seen) == 1
    assert "compiling again" in str(seen[0].message)
    assert compile_tiny() == (True, wanted), "the good file was not put in the place of the bad one"


def test_a_folder_that_cannot_be_written(cache_folder: Path) -> None:
    cache_folder.write_text("a file, no folder")
    with pytest.warns(RuntimeWarning, match="cannot be used, compiled for this process only"):
        found, binary = compile_tiny()
    assert not found
    assert len(binary) > 100
    assert cache_folder.read_text() == "a file, no folder"


def test_files_that_others_may_have_written_are_not_read(cache_folder: Path) -> None:
    _, wanted = compile_tiny()
    assert compile_tiny() == (True, wanted)
    (cache_folder / "triton").chmod(0o777)
    with pytest.warns(RuntimeWarning, match="can be written by others"):
        assert compile_tiny() == (False, wanted)


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EACCES, errno.EROFS])
def test_a_disk_that_refuses_the_file(
    cache_folder: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    replace = os.replace

    def refuse(source: str, target: str) -> None:
        if str(target).startswith(str(cache_folder)):
            raise OSError(code, os.strerror(code))
        replace(source, target)

    monkeypatch.setattr("triton.runtime.cache.os.replace", refuse)
    with pytest.warns(RuntimeWarning, match="cannot be written, compiled for this process only"):
        _, binary = compile_tiny()
    assert len(binary) > 100


def test_a_manager_of_the_user_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    class Mine(triton_cache.FileCacheManager):
        pass

    with knobs.cache.scope():
        knobs.cache.manager_class = Mine
        with checked_cache():
            assert knobs.cache.manager_class is Mine
    with checked_cache():
        assert knobs.cache.manager_class is triton_cache.CheckedCache
    assert knobs.cache.manager_class is not triton_cache.CheckedCache


@pytest.mark.long
def test_several_processes_at_once(cache_folder: Path) -> None:
    runs = [
        subprocess.Popen(
            [
                sys.executable, "-W", "error::RuntimeWarning", "-c",
                "from tests.resgym.kernels.test_triton_compile import compile_tiny;"
                "import hashlib; print(hashlib.sha256(compile_tiny()[1]).hexdigest())",
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join(filter(None, [os.getcwd(), *sys.path])),
                "TRITON_CACHE_DIR": str(cache_folder),
            },
        )
        for _ in range(2)
    ]  # fmt: skip
    results = [run.communicate(timeout=300) for run in runs]
    digests = {out for out, _ in results}
    assert len(digests) == 1, results
    assert digests != {""}, results
    assert compile_tiny()[0]
