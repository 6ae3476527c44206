"""Compiled functions by what they are built from: a start opens what an earlier one built and compiled.

Writing expressions and C text takes most of a warm start. A record in the cache has, under the key of
:mod:`.build_key`, the names of the functions and of their shared objects. Without a key or a whole record everything is
built, and shared objects are found by their C text as always.
"""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

import casadi as ca

from contact_estimation.codegen.build_key import build_key
from contact_estimation.codegen.cache import is_sealed, open_cache, read_sealed, seal
from contact_estimation.codegen.compile import CompiledFunction, compile_functions, load_compiled
from contact_estimation.codegen.compiler import STRAIGHT_FLAGS, determinants, find_compiler
from contact_estimation.exceptions import CodegenError


def compile_built(build: Callable[..., ca.Function], *arguments: object) -> CompiledFunction:
    """Return the compiled function that ``build(*arguments)`` returns; see :func:`compile_all_built`."""
    (run,) = compile_all_built(_only, build, *arguments).values()
    return run


def compile_all_built(
    build: Callable[..., Sequence[ca.Function]],
    *arguments: object,
    flags: tuple[str, ...] = STRAIGHT_FLAGS,
    rare: Collection[str] = (),
    cache: Path | None = None,
) -> dict[str, CompiledFunction]:
    """Return the compiled functions that ``build(*arguments)`` returns, by name.

    Args:
        build: a function of this package that reads nothing but its arguments.
        arguments: its arguments.
        flags: compiler flags.
        rare: names of functions that run rarely.
        cache: cache folder, default the user's; all three as in
            :func:`~contact_estimation.codegen.compile.compile_functions`.
    """
    record = _record(build, arguments, flags, rare, cache)
    found = _open(record) if record else None
    if found is None:
        functions = build(*arguments)
        compiled = compile_functions(functions, flags=flags, rare=rare, cache=cache)
        found = {function.name(): run for function, run in zip(functions, compiled)}
        # Once more: a source file may have changed meanwhile, and what ran may have come from the new one.
        if record and record == _record(build, arguments, flags, rare, cache):
            _write(record, {name: run.path for name, run in found.items()})
    return found


def _only(build: Callable[..., ca.Function], *arguments: object) -> list[ca.Function]:
    return [build(*arguments)]


def _record(
    build: Callable[..., Sequence[ca.Function]],
    arguments: Sequence[object],
    flags: tuple[str, ...],
    rare: Collection[str],
    cache: Path | None,
) -> Path | None:
    """Return the file that has, or will have, the names of the shared objects; None where nothing may be kept."""
    compiler = find_compiler()
    key = None if compiler is None else build_key(build, arguments, *determinants(compiler, flags), *sorted(rare))
    if key is None:
        return None
    try:
        return open_cache(cache) / f"ce_built_{key[:40]}.json"
    except CodegenError:  # compiling says it
        return None


def _open(record: Path) -> dict[str, CompiledFunction] | None:
    """Return the functions of a record, None unless it and all of its shared objects are whole and can be loaded."""
    content = read_sealed(record)
    if content is None:
        return None
    paths = {name: record.with_name(file) for name, file in json.loads(content).items()}
    if not all(is_sealed(path) for path in paths.values()):
        return None
    try:
        return {name: load_compiled(path) for name, path in paths.items()}
    except CodegenError:  # building says it
        return None


def _write(record: Path, paths: dict[str, Path | None]) -> None:
    """Keep the names of shared objects, unless one is missing or there is no room: then it is built again."""
    names = {name: path.name for name, path in paths.items() if path is not None}
    if len(names) < len(paths):
        return
    with contextlib.suppress(OSError), tempfile.TemporaryDirectory(dir=record.parent, prefix=".build-") as folder:
        draft = Path(folder) / record.name
        draft.write_text(json.dumps(names))
        seal(draft)
        draft.chmod(0o400)
        os.replace(draft, record)  # atomic: a second process sees no record or a whole one
