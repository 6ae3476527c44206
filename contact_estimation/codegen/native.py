"""Hand-written C around generated C: compiled and cached like generated code, called through ctypes."""

from __future__ import annotations

import ctypes
import fcntl
import hashlib
from pathlib import Path

import casadi as ca

from contact_estimation.codegen.cache import open_cache
from contact_estimation.codegen.compiler import LINK_FLAGS, OPTIMISE_FLAGS, compile_shared, find_compiler, machine
from contact_estimation.exceptions import CodegenError


def generate(functions: list[ca.Function]) -> str:
    """C text of several dense SX functions in one unit, exported under their own names."""
    generator = ca.CodeGenerator("functions.c", {"with_header": False})
    for function in functions:
        generator.add(function)
    return generator.dump()


def casadi_libraries(*names: str) -> tuple[str, ...]:
    """Compiler flags for the headers and libraries that come with CasADi (``hpipm``, ``blasfeo``, ...).

    Raises:
        CodegenError: this CasADi was built without one of them.
    """
    folder = Path(ca.__file__).resolve().parent
    for name in names:
        if not (folder / f"lib{name}.so").is_file():
            raise CodegenError(
                f"CasADi in {folder} has no lib{name}.so; install the wheel of CasADi from PyPI, which has it"
            )
    libraries = [f"-l{name}" for name in names]
    return (f"-I{folder / 'include'}", f"-L{folder}", f"-Wl,-rpath,{folder}", "-Wl,--no-as-needed", *libraries)


def load_native(name: str, source: str, flags: tuple[str, ...] = (), cache: Path | None = None) -> ctypes.CDLL:
    """Shared object of the C text ``source``, compiled or found in the cache.

    Args:
        name: for the file's name. flags: further flags, for example :func:`casadi_libraries`. cache: folder, default
        the user's.

    Raises:
        CodegenError: there is no compiler, or it failed.
    """
    folder, compiler = open_cache(cache), find_compiler()
    if compiler is None:
        raise CodegenError("no C compiler was found ($CC, cc, gcc, clang); install one (for example the package gcc)")
    flags = (*OPTIMISE_FLAGS, *flags)
    key = "\0".join((source, compiler.version, machine(), *flags, *LINK_FLAGS, ca.__version__))
    target = folder / f"ce_{name}_{hashlib.sha256(key.encode()).hexdigest()[:20]}.so"
    if not target.exists():
        with open(folder / ".lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # processes that start together compile once
            if not target.exists():
                compile_shared(compiler, source, target, flags)
    try:
        return ctypes.CDLL(str(target))
    except OSError as error:
        raise CodegenError(f"{target} was compiled but cannot be loaded: {error}") from error
