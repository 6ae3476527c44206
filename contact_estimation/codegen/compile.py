"""casadi.Function -> C -> cached shared object -> callable with preallocated buffers.

The same :class:`CompiledFunction` runs on CasADi's virtual machine where no compiler is found; that is announced once
by a :class:`CodegenWarning`, because it is 10 to 40 times slower.
"""

from __future__ import annotations

import fcntl
import hashlib
import warnings
from pathlib import Path

import casadi as ca
import numpy as np

from contact_estimation.codegen.cache import open_cache
from contact_estimation.codegen.compiler import LINK_FLAGS, OPTIMISE_FLAGS, compile_shared, find_compiler, machine
from contact_estimation.exceptions import CodegenError


class CodegenWarning(UserWarning):
    """Generated code runs slower than it could; the message says why and what to do."""


class CompiledFunction:
    """A casadi.Function with one preallocated float64 buffer per argument and result.

    Buffers are flat and column-major. ``inputs`` and ``outputs`` map CasADi's names to them; write the inputs in place,
    call the object, read the outputs. :meth:`bind` makes further zero-copy callables over buffers of the caller.

    Attributes:
        backend: ``"c"`` or ``"vm"``.
        function: the underlying casadi.Function.
        path: the shared object, None on the virtual machine.
    """

    def __init__(self, function: ca.Function, backend: str, path: Path | None):
        self.function, self.backend, self.path = function, backend, path
        self.inputs = {function.name_in(i): np.zeros(function.numel_in(i)) for i in range(function.n_in())}
        self.outputs = {function.name_out(i): np.zeros(function.numel_out(i)) for i in range(function.n_out())}
        self._run = self.bind(list(self.inputs.values()), list(self.outputs.values()))

    def __call__(self) -> None:
        """Evaluate from ``inputs`` into ``outputs``."""
        self._run()

    def bind(self, inputs: list[np.ndarray], outputs: list[np.ndarray]):
        """A callable without arguments that evaluates from ``inputs`` into ``outputs`` (flat float64 arrays, in
        CasADi's order).

        An output must not share memory with an input: generated code writes results while it still reads arguments.

        Raises:
            CodegenError: a buffer has the wrong size, type or layout.
        """
        function = self.function
        buffer, run = function.buffer()
        for kind, arrays, sizes, setter in (("input", inputs, function.numel_in, buffer.set_arg),
                                            ("output", outputs, function.numel_out, buffer.set_res)):
            for i, array in enumerate(arrays):
                flat = array.ndim == 1 and array.flags.c_contiguous
                if array.dtype != np.float64 or not flat or array.size != sizes(i):
                    raise CodegenError(f"{function.name()}: {kind} {i} must be a flat contiguous float64 array of "
                                       f"{sizes(i)} entries, found {array.dtype} of shape {array.shape}")
                setter(i, memoryview(array))
        keep = (buffer, inputs, outputs)  # the buffers must outlive the callable

        def call(run=run, keep=keep):
            run()

        return call

    def evaluate(self, *values) -> list[np.ndarray]:
        """Evaluate once from array-likes and return copies shaped like CasADi's results; convenient, not fast."""
        for buffer, value in zip(self.inputs.values(), values, strict=True):
            buffer[:] = np.asarray(value, dtype=float).ravel(order="F")
        self._run()
        shapes = [self.function.size_out(i) for i in range(self.function.n_out())]
        return [out.reshape(shape, order="F").copy() for out, shape in zip(self.outputs.values(), shapes)]


def compile_function(function: ca.Function, *, flags: tuple[str, ...] = OPTIMISE_FLAGS, cache: Path | None = None,
                     fallback: bool = True) -> CompiledFunction:
    """Compile ``function`` (dense arguments and results), or find it compiled in the cache.

    Args:
        function: any casadi.Function that can generate C.
        flags: compiler flags; part of the cache key.
        cache: cache folder, default :func:`~contact_estimation.codegen.cache.cache_directory`.
        fallback: run on CasADi's virtual machine, with a :class:`CodegenWarning`, when compiling is impossible.

    Raises:
        CodegenError: compiling is impossible and ``fallback`` is False, or arguments are not dense.
    """
    if function.nnz_in() != function.numel_in() or function.nnz_out() != function.numel_out():
        raise CodegenError(f"{function.name()}: arguments and results must be dense; densify them before compiling")
    try:
        path, name = _shared_object(function, tuple(flags), cache)
        return CompiledFunction(ca.external(name, str(path)), "c", path)
    except CodegenError as error:
        if not fallback:
            raise
        warnings.warn(f"{function.name()} runs on CasADi's virtual machine, 10 to 40 times slower: {error}",
                      CodegenWarning, stacklevel=2)
        return CompiledFunction(function, "vm", None)


def _shared_object(function: ca.Function, flags: tuple[str, ...], cache: Path | None) -> tuple[Path, str]:
    folder = open_cache(cache)
    compiler = find_compiler()
    if compiler is None:
        raise CodegenError("no C compiler was found ($CC, cc, gcc, clang); install one (for example the package gcc)")
    source = _generate(function, "ce_function")
    key = "\0".join((source, compiler.version, machine(), *flags, *LINK_FLAGS, ca.__version__))
    name = f"ce_{function.name()}_{hashlib.sha256(key.encode()).hexdigest()[:20]}"
    target = folder / f"{name}.so"
    if not target.exists():
        with open(folder / ".lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # processes that start together compile once
            if not target.exists():
                compile_shared(compiler, _generate(function, name), target, flags)
    return target, name


def _generate(function: ca.Function, name: str) -> str:
    """C text of ``function`` exported under ``name``; every other symbol is static."""
    kind = ca.SX if function.is_a("SXFunction") else ca.MX
    args = [kind.sym(function.name_in(i), function.sparsity_in(i)) for i in range(function.n_in())]
    names_in = [function.name_in(i) for i in range(function.n_in())]
    names_out = [function.name_out(i) for i in range(function.n_out())]
    renamed = ca.Function(name, args, function.call(args), names_in, names_out)
    generator = ca.CodeGenerator(f"{name}.c", {"with_header": False})
    generator.add(renamed)
    return generator.dump()
