"""The C compiler: find it, name its version, turn one C file into one shared object."""

from __future__ import annotations

import functools
import os
import platform
import shlex
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from contact_estimation.exceptions import CodegenError

#: -Bsymbolic binds the object's own names first: a generated ``step`` must never resolve to libc's.
LINK_FLAGS = ("-shared", "-fPIC", "-Wl,-Bsymbolic", "-lm")
#: No -ffast-math: NaN checks of the callers rely on IEEE arithmetic.
OPTIMISE_FLAGS = ("-O3", "-march=native", "-fno-math-errno")
_SECONDS = 300


@dataclass(frozen=True)
class Compiler:
    """A C compiler on this machine: command words and one line of version."""

    command: tuple[str, ...]
    version: str


@functools.lru_cache(maxsize=4)
def _probe(command: tuple[str, ...]) -> Compiler | None:
    if not command or shutil.which(command[0]) is None:
        return None
    try:
        done = subprocess.run([*command, "--version"], capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return Compiler(command, done.stdout.splitlines()[0] if done.stdout else command[0])


def find_compiler() -> Compiler | None:
    """The compiler named by ``$CC``, else cc, gcc or clang; None without one."""
    if os.environ.get("CC"):
        return _probe(tuple(shlex.split(os.environ["CC"])))
    for name in ("cc", "gcc", "clang"):
        compiler = _probe((name,))
        if compiler is not None:
            return compiler
    return None


@functools.lru_cache(maxsize=1)
def machine() -> str:
    """What ``-march=native`` depends on: a home folder shared by different machines must not share compiled code."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.machine() + platform.processor()
    wanted = ("model name", "flags", "Features")
    seen = {}
    for line in lines:
        name, _, value = line.partition(":")
        if name.strip() in wanted:
            seen.setdefault(name.strip(), value.strip())
    return platform.machine() + "".join(sorted(seen.values()))


def compile_shared(compiler: Compiler, source: str, target: Path, flags: tuple[str, ...] = OPTIMISE_FLAGS) -> None:
    """Compile C text ``source`` to the shared object ``target``, which appears whole or not at all.

    Raises:
        CodegenError: the compiler failed (its first lines are quoted) or took longer than five minutes.
    """
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".build-") as folder:
        c_file, so_file = Path(folder) / "function.c", Path(folder) / "function.so"
        c_file.write_text(source)
        command = [*compiler.command, *flags, str(c_file), "-o", str(so_file), *LINK_FLAGS]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS)
        except subprocess.TimeoutExpired as error:
            raise CodegenError(
                f"{compiler.version} did not finish within {_SECONDS} s: {shlex.join(command)}"
            ) from error
        if done.returncode != 0:
            head = "\n".join(done.stderr.splitlines()[:8])
            raise CodegenError(f"{compiler.version} failed ({done.returncode}) on generated code:\n{head}")
        so_file.chmod(0o500)
        os.replace(so_file, target)  # atomic: a second process sees the old state or the finished object
