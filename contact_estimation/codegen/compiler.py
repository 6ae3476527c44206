"""The C compiler: find it, name its version, turn one C file into one shared object."""

from __future__ import annotations

import functools
import hashlib
import os
import platform
import shlex
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

import casadi as ca

from contact_estimation.codegen.cache import VARIABLE, is_sealed, locked, open_cache, seal
from contact_estimation.exceptions import CodegenError

#: -Bsymbolic binds the object's own names first: a generated ``step`` must never resolve to libc's.
LINK_FLAGS = ("-shared", "-fPIC", "-Wl,-Bsymbolic", "-lm")
#: No -ffast-math: NaN checks of the callers rely on IEEE arithmetic.
OPTIMISE_FLAGS = ("-O3", "-march=native", "-fno-math-errno")
#: The register allocator looks at so many spilled values together; GCC's 500 take long where thousands live at once.
_FEW_SPILLS = "--param=lra-max-considered-reload-pseudos=20"
#: These leave out passes of GCC that take long in generated code and find nothing there: it is straight lines of
#: thousands of operations. Clang does not know them.
STRAIGHT_PASSES = (
    *("-fno-gcse", "-fno-gcse-after-reload", "-fno-tree-pre", "-fno-tree-vrp", "-fno-schedule-insns2"),
    *("-fno-code-hoisting", _FEW_SPILLS),
)
STRAIGHT_FLAGS = (*OPTIMISE_FLAGS, *STRAIGHT_PASSES)
#: For functions that run once in a while: they compile in half of that time.
RARE_FLAGS = ("-Og", *OPTIMISE_FLAGS[1:])
_SECONDS = 300


@dataclass(frozen=True)
class Compiler:
    """A C compiler on this machine.

    Attributes:
        command: its words.
        version: the first line it says of its version.
    """

    command: tuple[str, ...]
    version: str

    def known(self, flags: tuple[str, ...]) -> tuple[str, ...]:
        """Return the flags that this compiler has: Clang refuses to compile with those of passes of GCC alone."""
        return tuple(f for f in flags if f not in STRAIGHT_PASSES) if "clang" in self.version else flags


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
    """Return the compiler named by ``$CC``, else cc, gcc or clang; None without one."""
    if os.environ.get("CC"):
        return _probe(tuple(shlex.split(os.environ["CC"])))
    for name in ("cc", "gcc", "clang"):
        compiler = _probe((name,))
        if compiler is not None:
            return compiler
    return None


@functools.lru_cache(maxsize=1)
def machine() -> str:
    """Return what ``-march=native`` depends on: machines that share a home folder must not share compiled code."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.machine() + platform.processor()
    wanted = ("model name", "flags", "Features")
    seen: dict[str, str] = {}
    for line in lines:
        name, _, value = line.partition(":")
        if name.strip() in wanted:
            seen.setdefault(name.strip(), value.strip())
    return platform.machine() + "".join(sorted(seen.values()))


def determinants(compiler: Compiler, flags: tuple[str, ...]) -> tuple[str, ...]:
    """Return what a shared object depends on beside its C text."""
    return (compiler.version, machine(), *flags, *LINK_FLAGS, ca.CasadiMeta.version())


def shared_object(
    name: str, source: str, placeholder: str = "", flags: tuple[str, ...] = OPTIMISE_FLAGS, cache: Path | None = None
) -> Path:
    """Return the shared object of C text, compiled now or found in the cache whole and unchanged.

    Args:
        name: part of the file's name; the rest is a hash of everything the object depends on.
        source: C text.
        placeholder: word that is replaced by the file's name in the text before it is compiled.
        flags: compiler flags.
        cache: cache folder, default the user's.

    Raises:
        CodegenError: there is no compiler, it failed, or the cache cannot be used, as on a full disk.
    """
    folder, compiler = open_cache(cache), find_compiler()
    if compiler is None:
        raise CodegenError("no C compiler was found ($CC, cc, gcc, clang); install one (for example the package gcc)")
    key = "\0".join((source, *determinants(compiler, flags)))
    target = folder / f"ce_{name}_{hashlib.sha256(key.encode()).hexdigest()[:20]}.so"
    if is_sealed(target):
        return target
    try:
        with locked(target):
            if not is_sealed(target):
                text = source.replace(placeholder, target.stem) if placeholder else source
                compile_shared(compiler, text, target, flags)
    except OSError as error:
        raise CodegenError(
            f"the code cache {folder} cannot be written ({error.strerror}); make room, or choose another folder with "
            f"{VARIABLE}=/path/to/folder"
        ) from error
    return target


def compile_shared(compiler: Compiler, source: str, target: Path, flags: tuple[str, ...] = OPTIMISE_FLAGS) -> None:
    """Compile C text to a shared object, which appears whole or not at all.

    Args:
        compiler: the compiler.
        source: C text.
        target: the shared object.
        flags: compiler flags, libraries among them.

    Raises:
        CodegenError: the compiler failed (its first lines are quoted) or took longer than five minutes.
    """
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".build-") as folder:
        c_file, so_file = Path(folder) / "function.c", Path(folder) / "function.so"
        c_file.write_text(source)
        command = [*compiler.command, *compiler.known(flags), str(c_file), "-o", str(so_file), *LINK_FLAGS]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS)
        except subprocess.TimeoutExpired as error:
            raise CodegenError(
                f"{compiler.version} did not finish within {_SECONDS} s: {shlex.join(command)}"
            ) from error
        if done.returncode != 0:
            head = "\n".join(done.stderr.splitlines()[:8])
            raise CodegenError(f"{compiler.version} failed ({done.returncode}) on generated code:\n{head}")
        seal(so_file)
        so_file.chmod(0o500)
        os.replace(so_file, target)  # atomic: a second process sees the old state or the finished object
