"""casadi.Function to compiled C with preallocated buffers; needs nothing else of the package."""

from contact_estimation.codegen.built import compile_all_built, compile_built
from contact_estimation.codegen.compile import CodegenWarning, CompiledFunction, compile_function, compile_functions
from contact_estimation.codegen.compiler import STRAIGHT_FLAGS, STRAIGHT_PASSES
from contact_estimation.codegen.expressions import Parts, call_named, named_function, symbols
from contact_estimation.codegen.progress import show_progress
from contact_estimation.codegen.recursion import DoubleBuffer, bind_recursion

__all__ = [
    "STRAIGHT_FLAGS",
    "STRAIGHT_PASSES",
    "CodegenWarning",
    "CompiledFunction",
    "DoubleBuffer",
    "Parts",
    "bind_recursion",
    "call_named",
    "compile_all_built",
    "compile_built",
    "compile_function",
    "compile_functions",
    "named_function",
    "show_progress",
    "symbols",
]
