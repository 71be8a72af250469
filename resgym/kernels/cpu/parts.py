"""How numba compiles what only compiled functions call: to code that is optimised once, there.

Numba makes a finished library of every function: linked with all it calls, optimised, turned into
machine code, then linked into its caller and optimised again. Code that is called through k
functions is optimised k times over, and only the outermost result is used. A part stops after the
passes over single functions.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numba
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler


class _Part(JITCodeLibrary):  # type: ignore[misc]
    """A library that is linked into others and never runs by itself."""

    def _optimize_final_module(self) -> None:
        """Leaves that to the outermost caller."""

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True


class PartCompiler(Compiler):  # type: ignore[misc]
    """Numba's compiler where `parts_work`, stopping before anything can be called from Python."""

    def _compile_core(self) -> Any:
        if not (type(self) is _Trial or parts_work()):
            return super()._compile_core()
        state = self.state
        name = state.func_id.func_name
        state.library = _Part(state.targetctx.codegen(), name)
        state.flags.no_compile = True
        state.flags.no_cpython_wrapper = state.flags.no_cfunc_wrapper = True
        result = super()._compile_core()
        # Numba knows functions by such an object. Called from Python it is a KeyError.
        entry = f"{{only compiled functions can call {name}}}".format
        state.targetctx.insert_user_function(entry, result.fndesc, [result.library])
        return result._replace(entry_point=entry)


class _Trial(PartCompiler):
    """For the trial itself."""


@cache
def parts_work() -> bool:
    """Whether this numba compiles parts rightly: asked once a process, when one is compiled."""

    @numba.njit(pipeline_class=_Trial)  # type: ignore[untyped-decorator]
    def part(number: int) -> int:
        return number + 1

    @numba.njit  # type: ignore[untyped-decorator]
    def whole(number: int) -> int:
        return int(part(number) * 2)

    try:
        return bool(whole(1) == 4)
    except Exception:
        return False
