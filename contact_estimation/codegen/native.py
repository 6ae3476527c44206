"""Hand-written C around generated C: compiled and cached like generated code, called through ctypes."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from pathlib import Path

import casadi as ca

from contact_estimation.codegen.compiler import OPTIMISE_FLAGS, shared_object
from contact_estimation.exceptions import CodegenError


def generate(functions: Sequence[ca.Function]) -> str:
    """Return the C text of several dense SX functions in one unit, exported under their own names."""
    generator = ca.CodeGenerator("functions.c", {"with_header": False})
    for function in functions:
        generator.add(function)
    return str(generator.dump())


def casadi_libraries(*names: str) -> tuple[str, ...]:
    """Return compiler flags for the headers and libraries that come with CasADi (``hpipm``, ``blasfeo``, ...).

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


def load_native(name: str, source: str, flags: tuple[str, ...] = ()) -> ctypes.CDLL:
    """Load C text as a shared object, compiled now or found in the cache.

    Args:
        name: part of the file's name.
        source: C text.
        flags: further compiler flags, for example :func:`casadi_libraries`.

    Raises:
        CodegenError: there is no compiler, it failed, or the object cannot be loaded.
    """
    target = shared_object(name, source, flags=(*OPTIMISE_FLAGS, *flags))
    try:
        return ctypes.CDLL(str(target))
    except OSError as error:
        raise CodegenError(f"{target} was compiled but cannot be loaded: {error}") from error
