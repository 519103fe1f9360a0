"""How Numba compiles functions that only other compiled functions call.

By itself it optimises every function and makes machine code of it, and then does the same again
with the copy that is linked into each caller. A function that nothing but compiled code calls needs
neither: it is optimised where it ends up. That saves a third to a half of the compiling.
"""

from typing import Any

from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler

from .index_check import located_checks
from .remembering import remembered_calls

__all__ = ["InnerCompiler", "OuterCompiler"]


class InnerLibrary(JITCodeLibrary):  # type: ignore[misc]
    """Code that is there to be linked into other code."""

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        return 0

    @property
    def codegen(self) -> Any:
        return WithoutEnvironments(self._codegen)


class WithoutEnvironments:
    """A code generator that leaves environments to the code that is linked."""

    def __init__(self, codegen: Any) -> None:
        self._codegen = codegen

    def set_env(self, name: str, environment: Any) -> None:
        pass

    def __getattr__(self, name: str) -> Any:
        return getattr(self._codegen, name)


class InnerCompiler(Compiler):  # type: ignore[misc]
    """Compiles a function so that it can be linked, and no further."""

    def define_pipelines(self) -> Any:
        """Choose the library that the code goes into."""
        state = self.state
        state.library = InnerLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        return super().define_pipelines()


class OuterCompiler(Compiler):  # type: ignore[misc]
    """Compiles a function that Python calls, with the environments of all that is linked in."""

    def compile_extra(self, func: Any) -> Any:
        """Compile it."""
        with remembered_calls(), located_checks():
            result = super().compile_extra(func)
        engine = result.codegen._engine
        for environment in result._find_referenced_environments():
            if engine.get_global_value_address(environment.env_name):
                result.codegen.set_env(environment.env_name, environment)
        return result
