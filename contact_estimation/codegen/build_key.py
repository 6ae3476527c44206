"""The key of generated code by what it is built from, so that a start need not write expressions and C text again.

A builder is a function of its arguments and of source code alone. The key is a hash of both, of the versions of the
libraries that builders use, and of what a compiler adds. There is no key, and everything is built as usual, where that
is not certain:

- an argument holds code from elsewhere, such as a contact law of the user's;
- a source file changed after this process started, so that what runs may not be what is on disk.
"""

from __future__ import annotations

import functools
import hashlib
import io
import os
import pickle
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import BuiltinFunctionType, FunctionType
from typing import Any

_PACKAGE = Path(__file__).parents[1]
#: What builders of generated code may use: modules of these layers and those beside them (docs/architecture.md).
LAYERS = ("codegen", "robot", "contact", "dynamics", "filters")
_LIBRARIES = ("numpy", "casadi", "pinocchio")


def _process_start() -> int:
    """Return when this process started [ns since the epoch], 0 where the system does not say."""
    try:
        ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
    except (OSError, ValueError, IndexError):
        return 0
    age = time.clock_gettime_ns(time.CLOCK_BOOTTIME) - ticks * 1_000_000_000 // os.sysconf("SC_CLK_TCK")
    return time.time_ns() - age


#: A child that was forked runs what its parent has imported, so that its own start does not count.
_STARTED = _process_start()


class _Writer(pickle.Pickler):
    """Writes arguments to the last bit, and refuses code that the key does not cover."""

    def reducer_override(self, value: Any) -> Any:
        """Write ``value`` as it says itself, else as usual."""
        if isinstance(value, (type, FunctionType, BuiltinFunctionType)):
            if not _is_known(value.__module__ or ""):
                raise pickle.PicklingError(f"the key does not cover {value.__module__}")
        elif hasattr(value, "determinants"):
            return type(value), (value.determinants,)
        return NotImplemented


def _is_known(module: str) -> bool:
    """Return whether the key covers the code of a module."""
    top, _, rest = module.partition(".")
    if top != _PACKAGE.name:
        return top in _LIBRARIES or top in sys.stdlib_module_names
    return rest.partition(".")[0] in LAYERS or "." not in rest


def build_key(build: Callable[..., Any], arguments: Sequence[Any], *others: str) -> str | None:
    """Return the key of what a builder makes of arguments, None where something else may determine that.

    Args:
        build: a function that reads nothing but its arguments.
        arguments: its arguments. An object with an attribute ``determinants`` is determined by that.
        others: what else the code depends on.
    """
    sources = source_digest(_PACKAGE)
    if sources is None:
        return None
    content = io.BytesIO()
    try:
        _Writer(content).dump((build, arguments, others))
    except (pickle.PicklingError, TypeError, AttributeError):  # of what cannot be written: generators, locks, lambdas
        return None
    versions = [f"{name} {sys.modules[name].__version__}" for name in _LIBRARIES if name in sys.modules]
    key = "\0".join((sources, sys.version, *versions)).encode() + content.getvalue()
    return hashlib.sha256(key).hexdigest()


def source_digest(package: Path, since: int = _STARTED) -> str | None:
    """Return the hash of a package's source code, None where a file changed after ``since`` [ns] or cannot be read."""
    try:
        files, digest = _read(package)
        changed = max((os.stat(file).st_ctime_ns for file in files), default=since)
    except OSError:
        return None
    return digest if changed < since else None


@functools.cache
def _read(package: Path) -> tuple[list[str], str]:
    """Return the source files of a package's :data:`LAYERS` and the hash of their names and contents."""
    folders = [package.glob("*.py"), *((package / layer).rglob("*.py") for layer in LAYERS)]
    files = sorted(str(file) for folder in folders for file in folder)
    digest = hashlib.sha256()
    for file in files:
        content = Path(file).read_bytes()
        digest.update(f"{os.path.relpath(file, package)}\0{len(content)}\0".encode() + content)
    return files, digest.hexdigest()
