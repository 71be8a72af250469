"""The Triton kernels compiled for a GPU, which needs none."""

from __future__ import annotations

import re
from typing import Any

import pytest
import torch

triton = pytest.importorskip("triton")

from triton.backends.compiler import GPUTarget  # noqa: E402
from triton.compiler import ASTSource  # noqa: E402
from triton.runtime import driver  # noqa: E402

from resgym.kernels.cuda import backend as triton_launch  # noqa: E402
from resgym.kernels.cuda import kernels as triton_kernels  # noqa: E402

pytestmark = pytest.mark.skipif(triton_launch.INTERPRETED, reason="compiles, interprets not")

H200 = GPUTarget("cuda", 90, 32)
TYPES = {
    "*i64": "actions answered_axes old_points old_count old_half_moves seeds old_episode old_key "
    "old_lengths table new_points new_numbers",
    "*fp32": "old_returns new_floats rewards seen final_seen",
    "*u8": "old_coords old_ended new_coords flags",
    "*i8": "seen_coords final_coords",
}
KIND = {name: kind for kind, names in TYPES.items() for name in names.split()}


def compiled(kernel: Any, num_points: int, dimension: int, **flags: Any) -> Any:
    how = triton_launch.cut(num_points, dimension)
    constants = {**flags, "P": num_points, "D": dimension, "G": how.games, "R": how.rows}
    signature = {
        name: "constexpr" if name in constants else KIND.get(name, "i64")
        for name in kernel.arg_names
    }
    source = ASTSource(fn=kernel, signature=signature, constexprs=constants)
    return triton.compile(source, target=H200, options={"num_warps": 1})


def step_flags(**flags: Any) -> dict[str, Any]:
    usual = {
        "SEAT": 0, "OPPONENT": 0, "REWARD": 0, "ON_ILLEGAL": 1, "MODE": 0, "RESTARTS": True,
        "SCALE": True, "REPOSITION": False,
    }  # fmt: skip
    return {**usual, **flags}


def check_code(code: Any) -> None:
    text = code.asm["ptx"]
    assert len(code.asm["cubin"]) > 1000, "ptxas made nothing"
    assert not re.search(r"div\.(full|approx)", text), "a division that is not IEEE's"
    assert "bar.sync" not in text, "a program of one warp waits for nothing"
    assert ".local " not in text, "points have left the registers"


@pytest.mark.long
@pytest.mark.parametrize(
    ("num_points", "dimension", "flags"),
    [
        (20, 3, {}),
        (20, 3, {"SEAT": 1, "OPPONENT": 1, "REWARD": 3, "ON_ILLEGAL": 0, "MODE": 1}),
        (20, 5, {"SEAT": 2, "REWARD": 2, "ON_ILLEGAL": 3, "MODE": 2, "RESTARTS": False}),
        (20, 4, {"REPOSITION": True}),
        (50, 3, {"SCALE": False, "REWARD": 1, "OPPONENT": 2}),
        (20, 10, {}),
        (20, 3, {"OPPONENT": -1}),
        (20, 3, {"SEAT": 1, "OPPONENT": -1, "RESTARTS": False}),
        (20, 3, {"SEAT": 1, "OPPONENT": 2, "MODE": triton_kernels.STARTING}),
    ],
)
def test_the_step_compiles(num_points: int, dimension: int, flags: dict[str, Any]) -> None:
    check_code(
        compiled(
            triton_kernels.step_games, num_points, dimension,
            **step_flags(**flags),
        )
    )  # fmt: skip


class NoDevice:
    """As much of a driver as compiling a call needs."""

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, device: int) -> int:
        return 0

    def get_current_target(self) -> GPUTarget:
        return H200


@pytest.mark.long
def test_one_binary_for_all_numbers_of_games(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a later step would compile again, or a capture would fail."""
    monkeypatch.setattr(driver, "_active", NoDevice())
    kernel = triton_kernels.step_games
    kernel.device_caches.clear()
    kinds = {"*i64": torch.int64, "*fp32": torch.float32, "*u8": torch.uint8, "*i8": torch.int8}
    how = triton_launch.cut(3, 3)
    constants = {**step_flags(), "P": 3, "D": 3, "G": how.games, "R": how.rows}
    for num_games in (1, 3, 16, 2**33):
        # Rows of odd length begin at addresses that are no multiple of 16.
        given = {
            name: torch.zeros(33, dtype=kinds[KIND[name]])[num_games % 3 :]
            if name in KIND
            else num_games
            for name in kernel.arg_names
            if name not in constants
        }
        kernel.warmup(**given, **constants, num_warps=1, grid=(1,))
    assert len(kernel.device_caches[0][0]) == 1
    kernel.device_caches.clear()
