"""casadi.Function to compiled C with preallocated buffers; needs nothing else of the package."""

from contact_estimation.codegen.compile import CodegenWarning, CompiledFunction, compile_function

__all__ = ["CodegenWarning", "CompiledFunction", "compile_function"]
