"""casadi.Function to a compiled callable."""

import os
import subprocess
import sys
import warnings

import casadi as ca
import numpy as np
import pytest

from contact_estimation.codegen import (
    STRAIGHT_PASSES,
    CodegenWarning,
    compile_function,
    compile_functions,
    show_progress,
)
from contact_estimation.codegen.cache import locked
from contact_estimation.codegen.compiler import find_compiler
from contact_estimation.exceptions import CodegenError


@pytest.fixture
def function():
    a, b = ca.SX.sym("a", 2, 3), ca.SX.sym("b", 3)
    return ca.Function("step", [a, b], [a @ b, ca.densify(ca.sin(a))], ["a", "b"], ["ab", "sine"])


@pytest.fixture
def cache(tmp_path):
    tmp_path.chmod(0o700)
    return tmp_path


def expected(a, b):
    return a @ b, np.sin(a)


def test_compiled_and_interpreted_agree_and_keep_column_major_order(function, cache, monkeypatch):
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 3)), rng.normal(size=3)
    compiled = compile_function(function, cache=cache, fallback=False)
    assert compiled.backend == "c" and compiled.path.parent == cache
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.warns(CodegenWarning):
        interpreted = compile_function(function, cache=cache)
    for run in (compiled, interpreted):
        product, sine = run.evaluate(a, b)
        np.testing.assert_allclose(product.ravel(), a @ b, rtol=0, atol=1e-15)
        np.testing.assert_allclose(sine, np.sin(a), rtol=0, atol=1e-15)


def test_a_function_named_like_one_of_libc_is_called_all_the_same(function, cache):
    """'step' clashes with glibc unless the export is prefixed and bound symbolically."""
    x = ca.SX.sym("x")
    run = compile_function(ca.Function("advance", [x], [3 * x]), cache=cache, fallback=False)
    assert run.evaluate(2.0)[0].item() == 6.0


def test_the_second_time_nothing_is_compiled(function, cache, monkeypatch):
    first = compile_function(function, cache=cache, fallback=False)
    stamp = first.path.stat().st_mtime_ns

    def refuse(*_args):
        raise AssertionError("compiled again")

    monkeypatch.setattr("contact_estimation.codegen.compiler.compile_shared", refuse)
    second = compile_function(function, cache=cache, fallback=False)
    assert second.path == first.path and second.path.stat().st_mtime_ns == stamp


def test_other_flags_and_other_code_get_their_own_object(function, cache):
    x = ca.SX.sym("x")
    paths = {
        compile_function(function, cache=cache).path,
        compile_function(function, cache=cache, flags=("-O1",)).path,
        compile_function(ca.Function("step", [x], [x + 1]), cache=cache).path,
        compile_function(ca.Function("step", [x], [x + 2]), cache=cache).path,
    }
    assert len(paths) == 4


def test_bound_buffers_are_read_and_written_in_place(function, cache):
    run = compile_function(function, cache=cache)
    a, b, ab, sine = np.zeros(6), np.ones(3), np.zeros(2), np.zeros(6)
    call = run.bind([a, b], [ab, sine])
    a[:] = np.arange(6.0)
    call()
    np.testing.assert_allclose(ab, [6.0, 9.0])
    np.testing.assert_array_equal(run.outputs["ab"], 0.0)  # the object's own buffers stay


@pytest.mark.parametrize("bad", [np.zeros(5), np.zeros(6, np.float32), np.zeros((2, 3)), np.zeros(12)[::2]])
def test_a_buffer_of_another_size_type_or_layout_is_refused(function, cache, bad):
    run = compile_function(function, cache=cache)
    with pytest.raises(CodegenError, match="input 0 must be a flat contiguous float64 array of 6 entries"):
        run.bind([bad, np.zeros(3)], [np.zeros(2), np.zeros(6)])


def test_a_missing_buffer_is_not_read_as_zeros(function, cache):
    run = compile_function(function, cache=cache)
    with pytest.raises(CodegenError, match=r"2 inputs are needed \(a, b\), 1 were given"):
        run.bind([np.zeros(6)], [np.zeros(2), np.zeros(6)])
    with pytest.raises(CodegenError, match=r"2 outputs are needed \(ab, sine\), 3 were given"):
        run.bind([np.zeros(6), np.zeros(3)], [np.zeros(2), np.zeros(6), np.zeros(1)])


def test_sparse_arguments_are_refused():
    x = ca.SX.sym("x", ca.Sparsity.lower(3))
    with warnings.catch_warnings(), pytest.raises(CodegenError, match="dense"):
        warnings.simplefilter("error")  # it must not announce first that it runs on the virtual machine
        compile_function(ca.Function("sparse", [x], [2 * ca.densify(x)]))


@pytest.mark.parametrize(
    "fault",
    ["no compiler", "read-only cache", "cache of somebody else", "compiler that fails", "object that is not loaded"],
)
def test_without_compiled_code_the_machine_runs_it_and_says_why(function, cache, monkeypatch, fault):
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 3)), rng.normal(size=3)
    reason = {
        "no compiler": "no C compiler",
        "read-only cache": "read-only",
        "cache of somebody else": "belongs to user",
        "compiler that fails": "failed",
        "object that is not loaded": "cannot be loaded",
    }[fault]
    if fault == "no compiler":
        monkeypatch.setenv("CC", "no-such-compiler")
    elif fault == "read-only cache":
        cache.chmod(0o500)
    elif fault == "cache of somebody else":
        monkeypatch.setattr("contact_estimation.codegen.cache.os.getuid", lambda: 4711)
    else:
        script = cache / "compiler"
        # The second one writes an empty line where the object is wanted.
        work = 'echo "cannot do it" >&2; exit 3' if "fails" in fault else "while [ $1 != -o ]; do shift; done; echo >$2"
        script.write_text(f'#!/bin/sh\ncase "$1" in --version) echo broken 1.0;; *) {work};; esac\n')
        script.chmod(0o700)
        monkeypatch.setenv("CC", str(script))
    try:
        with pytest.warns(CodegenWarning, match=f"virtual machine.*{reason}"):
            run = compile_function(function, cache=cache)
        with pytest.raises(CodegenError, match=reason):
            compile_function(function, cache=cache, fallback=False)
    finally:
        cache.chmod(0o700)
    assert run.backend == "vm" and run.path is None
    for value, wanted in zip(run.evaluate(a, b), expected(a, b)):
        np.testing.assert_allclose(value.reshape(wanted.shape), wanted, atol=1e-15)


def test_processes_that_start_together_compile_once(cache, tmp_path):
    """Two processes race for the same object; both succeed, and one object is left."""
    program = (
        "import sys, casadi as ca; from contact_estimation.codegen import compile_function; x = ca.SX.sym('x', "
        "50);f = ca.Function('race', [x], [ca.sin(x) * ca.cumsum(x)]);r = compile_function(f, "
        "cache=sys.argv[1], fallback=False); assert r.evaluate([0.0] * 50)[0].sum() == 0"
    )
    runs = [subprocess.Popen([sys.executable, "-c", program, str(cache)]) for _ in range(2)]
    assert [run.wait(timeout=120) for run in runs] == [0, 0]
    assert len(list(cache.glob("*.so"))) == 1 and not list(cache.glob(".*"))


def test_the_compiler_of_the_environment_comes_first(monkeypatch, tmp_path):
    script = tmp_path / "mine"
    script.write_text("#!/bin/sh\necho mine 7.0\n")
    script.chmod(0o700)
    monkeypatch.setenv("CC", f"{script} -pipe")
    assert find_compiler().command == (str(script), "-pipe") and find_compiler().version == "mine 7.0"
    monkeypatch.setenv("CC", str(tmp_path / "absent"))
    assert find_compiler() is None


def slow_compiler(folder, monkeypatch):
    """A compiler that notes when it starts and ends, and takes at least 0.7 s."""
    script, log = folder / "slow", folder / "log"
    script.write_text(
        f'#!/bin/sh\ncase "$1" in --version) exec cc "$@";; esac\n'
        f'echo start >> {log}\nsleep 0.7\ncc "$@"\necho end >> {log}\n'
    )
    script.chmod(0o700)
    monkeypatch.setenv("CC", str(script))
    return log


def powers(count):
    x = ca.SX.sym("x")
    return [ca.Function(f"power_{k}", [x], [x**k]) for k in range(1, count + 1)]


@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="one core compiles one after the other")
def test_functions_are_compiled_side_by_side_and_in_order(cache, tmp_path, monkeypatch):
    log = slow_compiler(tmp_path, monkeypatch)
    found = compile_functions(powers(2), cache=cache, fallback=False)
    assert log.read_text().split()[:2] == ["start", "start"]
    assert [run.evaluate(3.0)[0].item() for run in found] == [3.0, 9.0]


@pytest.mark.parametrize("asked", [True, False])
def test_what_takes_longer_than_a_second_tells_its_progress_if_asked(cache, tmp_path, monkeypatch, capsys, asked):
    slow_compiler(tmp_path, monkeypatch)
    show_progress(asked)
    try:
        compile_functions(powers(2 * (os.cpu_count() or 1) + 1), cache=cache, fallback=False)
    finally:
        show_progress(False)
    last = f"codegen: {2 * (os.cpu_count() or 1) + 1} of {2 * (os.cpu_count() or 1) + 1} functions compiled"
    assert (last in capsys.readouterr().err) == asked


def test_locks_are_per_file_and_leave_nothing(cache):
    """Who holds the lock of one object keeps nobody from making another one."""
    with locked(cache / "other.so"):
        compile_functions(powers(1), cache=cache, fallback=False)
    assert [p.suffix for p in cache.iterdir()] == [".so"]


def test_rare_functions_are_compiled_for_compile_time(cache):
    first, second = powers(2)
    by_name = {run.function.name()[:10]: run.path for run in compile_functions([first, second], cache=cache)}
    again = compile_functions([first, second], cache=cache, rare=["power_2"])
    assert [run.path in by_name.values() for run in again] == [True, False]
    assert again[1].evaluate(3.0)[0].item() == 9.0


def test_clang_is_not_given_the_passes_of_gcc(cache, tmp_path, monkeypatch):
    """It ends with an error at an option it does not know; this one has its options and GCC's code."""
    clang = tmp_path / "clang"
    unknown = "|".join(f"*{flag}*" for flag in STRAIGHT_PASSES if flag != "-fno-gcse")
    clang.write_text(
        '#!/bin/sh\ncase "$*" in\n*--version) echo "Debian clang version 18.1.3"; exit;;\n'
        f'{unknown}) echo "clang: error: unknown argument" >&2; exit 1;;\nesac\nexec cc "$@"\n'
    )
    clang.chmod(0o700)
    monkeypatch.setenv("CC", str(clang))
    assert compile_functions(powers(1), cache=cache, fallback=False)[0].backend == "c"
