"""casadi.Function -> C -> cached shared object -> callable with preallocated buffers.

Without a compiler the same :class:`CompiledFunction` runs on CasADi's virtual machine. A :class:`CodegenWarning`
announces that once, because it is 10 to 40 times slower.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np

from contact_estimation.codegen.cache import VARIABLE
from contact_estimation.codegen.compiler import RARE_FLAGS, STRAIGHT_FLAGS, find_compiler, shared_object
from contact_estimation.codegen.progress import Progress
from contact_estimation.exceptions import CodegenError

#: Name under which a function is generated first: the object's own name has the hash of that text in it.
_PLACEHOLDER = "ce_function"


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
        inputs: buffer of every argument.
        outputs: buffer of every result.
    """

    def __init__(self, function: ca.Function, backend: str, path: Path | None) -> None:
        self.function, self.backend, self.path = function, backend, path
        self.inputs = {function.name_in(i): np.zeros(function.numel_in(i)) for i in range(function.n_in())}
        self.outputs = {function.name_out(i): np.zeros(function.numel_out(i)) for i in range(function.n_out())}
        self._run = self.bind(list(self.inputs.values()), list(self.outputs.values()))

    def __call__(self) -> None:
        """Evaluate from ``inputs`` into ``outputs``."""
        self._run()

    def bind(self, inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray]) -> Callable[[], None]:
        """Return a callable without arguments that evaluates from and into buffers of the caller.

        An output must not share memory with an input: generated code writes results while it still reads arguments.

        Args:
            inputs: flat float64 arrays in CasADi's order.
            outputs: flat float64 arrays in CasADi's order.

        Raises:
            CodegenError: a buffer is missing or one too many, or has the wrong size, type or layout.
        """
        function = self.function
        buffer: Any
        buffer, run = function.buffer()
        for kind, names, arrays, sizes, setter in (
            ("input", self.inputs, inputs, function.numel_in, buffer.set_arg),
            ("output", self.outputs, outputs, function.numel_out, buffer.set_res),
        ):
            if len(arrays) != len(names):  # generated code would read zeros in place of a missing one
                raise CodegenError(
                    f"{function.name()}: {len(names)} {kind}s are needed ({', '.join(names)}), {len(arrays)} were given"
                )
            for i, array in enumerate(arrays):
                flat = array.ndim == 1 and array.flags.c_contiguous
                if array.dtype != np.float64 or not flat or array.size != sizes(i):
                    raise CodegenError(
                        f"{function.name()}: {kind} {i} must be a flat contiguous float64 array of "
                        f"{sizes(i)} entries, found {array.dtype} of shape {array.shape}"
                    )
                setter(i, array.data)
        keep = (buffer, inputs, outputs)  # the buffers must outlive the callable

        def call(run: Callable[[], None] = run, keep: object = keep) -> None:
            run()

        return call

    def evaluate(self, *values: object) -> list[np.ndarray]:
        """Evaluate once from array-likes and return copies shaped like CasADi's results; convenient, not fast."""
        for buffer, value in zip(self.inputs.values(), values, strict=True):
            buffer[:] = np.asarray(value, dtype=float).ravel(order="F")
        self._run()
        shapes = [self.function.size_out(i) for i in range(self.function.n_out())]
        return [out.reshape(shape, order="F").copy() for out, shape in zip(self.outputs.values(), shapes)]


def compile_function(
    function: ca.Function, *, flags: tuple[str, ...] = STRAIGHT_FLAGS, cache: Path | None = None, fallback: bool = True
) -> CompiledFunction:
    """Compile ``function``, or find it compiled in the cache; see :func:`compile_functions`.

    Args:
        function: dense arguments and results.
        flags: of the compiler.
        cache: folder of compiled code; None: the user's.
        fallback: whether CasADi's virtual machine may run it where nothing compiles.
    """
    return compile_functions([function], flags=flags, cache=cache, fallback=fallback)[0]


def compile_functions(
    functions: Sequence[ca.Function],
    *,
    flags: tuple[str, ...] = STRAIGHT_FLAGS,
    cache: Path | None = None,
    fallback: bool = True,
    rare: Collection[str] = (),
) -> list[CompiledFunction]:
    """Compile functions side by side, one compiler per core, or find them compiled in the cache.

    Args:
        functions: casadi.Functions that can generate C, with dense arguments and results.
        flags: compiler flags; part of the cache key.
        cache: cache folder, default :func:`~contact_estimation.codegen.cache.cache_directory`.
        fallback: run on CasADi's virtual machine, with a :class:`CodegenWarning`, when compiling or loading is
            impossible.
        rare: names of functions that run so rarely that compiling them fast matters more than their speed.

    Returns:
        The compiled functions, in the order of ``functions``.

    Raises:
        CodegenError: compiling or loading is impossible and ``fallback`` is False, or arguments are not dense.
    """
    for function in functions:
        if function.nnz_in() != function.numel_in() or function.nnz_out() != function.numel_out():
            raise CodegenError(f"{function.name()}: arguments and results must be dense; densify them before compiling")
    compiles = find_compiler() is not None
    with ThreadPoolExecutor(os.cpu_count()) as pool, Progress(len(functions)) as progress:
        # CasADi is asked from one thread only; the others wait for compilers, which are processes of their own.
        chosen = [RARE_FLAGS if f.name() in rare else flags for f in functions]
        jobs = [
            pool.submit(shared_object, f.name(), _generate(f) if compiles else "", _PLACEHOLDER, own, cache)
            for f, own in zip(functions, chosen)
        ]
        for _ in as_completed(jobs):
            progress.advance()
    compiled = []
    for function, job in zip(functions, jobs):
        try:
            compiled.append(load_compiled(job.result()))
        except CodegenError as error:
            if not fallback:
                raise
            warnings.warn(
                f"{function.name()} runs on CasADi's virtual machine, 10 to 40 times slower: {error}",
                CodegenWarning,
                stacklevel=2,
            )
            compiled.append(CompiledFunction(function, "vm", None))
    return compiled


def load_compiled(path: Path) -> CompiledFunction:
    """Load the function that a shared object of the cache is named after.

    Args:
        path: of the shared object.

    Raises:
        CodegenError: the system does not load it, as from a file system that is mounted noexec.
    """
    try:
        function = ca.external(path.stem, str(path))
    except RuntimeError as error:
        reason = str(error).partition(f"Error code: {path}: ")[2].partition("\n")[0]
        raise CodegenError(
            f"{path} cannot be loaded ({reason or error}); if its file system is mounted noexec, choose another folder "
            f"with {VARIABLE}=/path/to/folder"
        ) from error
    return CompiledFunction(function, "c", path)


def _generate(function: ca.Function) -> str:
    """C text of ``function`` exported under the placeholder; every other symbol is static."""
    kind: Any = ca.SX if function.is_a("SXFunction") else ca.MX
    args = [kind.sym(function.name_in(i), function.sparsity_in(i)) for i in range(function.n_in())]
    names_in = [function.name_in(i) for i in range(function.n_in())]
    names_out = [function.name_out(i) for i in range(function.n_out())]
    renamed = ca.Function(_PLACEHOLDER, args, function.call(args, True, False), names_in, names_out)
    generator = ca.CodeGenerator(f"{_PLACEHOLDER}.c", {"with_header": False})
    generator.add(renamed)
    return str(generator.dump())
