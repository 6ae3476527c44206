"""Functions that an earlier start built are opened, and only where nothing they depend on has changed."""

import os
import time

import pytest

from contact_estimation import load_arm, open_stream
from contact_estimation.codegen import CodegenWarning, build_key, built
from contact_estimation.codegen.built import compile_all_built
from contact_estimation.codegen.cache import seal
from contact_estimation.filters.plausibility.exchange import build_exchanged
from contact_estimation.filters.sample_limits import build_limits

LIMITS = built._only, build_limits


class Width(int):
    """Somebody else's number: its code is not covered by the key."""


@pytest.fixture
def cache(tmp_path):
    tmp_path.chmod(0o700)
    return tmp_path


@pytest.fixture
def builds(monkeypatch):
    """Names of all functions that are built."""
    found, compile_functions = [], built.compile_functions

    def count(functions, **options):
        found.extend(function.name() for function in functions)
        return compile_functions(functions, **options)

    monkeypatch.setattr(built, "compile_functions", count)
    return found


def torque(functions):
    """What the compiled function of limits makes of an effort of 3 with a scale of 2."""
    run = functions["sample_limits"]
    run.inputs["effort"][:], run.inputs["scale"][:] = 3.0, 2.0
    run()
    return run.outputs["torque"].tolist()


def test_the_second_time_nothing_is_built(cache, builds):
    for _ in range(2):
        assert torque(compile_all_built(*LIMITS, 2, cache=cache)) == [6.0, 6.0]
    assert builds == ["sample_limits"]


@pytest.mark.parametrize("other", [{"flags": ("-O1",)}, {"rare": ("sample_limits",)}, {"width": 3}])
def test_other_arguments_and_other_flags_are_built_anew(cache, builds, other):
    compile_all_built(*LIMITS, 2, cache=cache)
    compile_all_built(*LIMITS, other.pop("width", 2), cache=cache, **other)
    assert len(builds) == 2


@pytest.mark.parametrize("kind", ["*.json", "*.so"])
def test_a_damaged_file_is_made_anew(cache, builds, kind):
    compile_all_built(*LIMITS, 2, cache=cache)
    (path,) = cache.glob(kind)
    content = path.read_bytes()
    path.unlink()
    path.write_bytes(content[:20] + b"?" + content[21:])
    assert torque(compile_all_built(*LIMITS, 2, cache=cache)) == [6.0, 6.0]
    assert len(builds) == 2 and path.read_bytes() == content


def test_an_object_that_cannot_be_loaded_is_built_and_runs_on_the_virtual_machine(cache, builds):
    compile_all_built(*LIMITS, 2, cache=cache)
    (path,) = cache.glob("*.so")
    path.unlink()
    path.write_bytes(b"no shared object")
    seal(path)
    with pytest.warns(CodegenWarning, match=r"virtual machine.*cannot be loaded \(file too short\).*noexec"):
        assert torque(compile_all_built(*LIMITS, 2, cache=cache)) == [6.0, 6.0]
    assert len(builds) == 2


def test_code_of_somebody_else_is_built_every_time(cache, builds):
    for _ in range(2):
        compile_all_built(*LIMITS, Width(2), cache=cache)
    assert len(builds) == 2 and not list(cache.glob("*.json"))


def test_a_robot_is_known_by_its_dynamics():
    keys = {build_key.build_key(build_exchanged, [load_arm(name), 3]) for name in ("ur16e", "ur16e", "fr3")}
    heavier = load_arm("ur16e")
    heavier.model.inertias[3].mass += 1e-12
    keys.add(build_key.build_key(build_exchanged, [heavier, 3]))
    assert len(keys) == 3 and None not in keys


def test_a_changed_source_file_is_another_key_and_none_while_the_old_one_may_be_in_use(tmp_path, monkeypatch):
    (tmp_path / "robot").mkdir()
    file, digests, tomorrow = tmp_path / "robot" / "gravity.py", [], time.time_ns() + 10**14
    for text in ("g = 9.81", "g = 9.82"):
        file.write_text(text)
        os.utime(file, (0, 0))  # the time of the change itself cannot be set
        build_key._read.cache_clear()  # as a new process begins
        digests.append(build_key.source_digest(tmp_path, since=tomorrow))
        assert build_key.source_digest(tmp_path) is None
    assert None not in digests and digests[0] != digests[1]
    monkeypatch.setattr(build_key, "_PACKAGE", tmp_path)
    assert build_key.build_key(build_limits, [2]) is None


def test_where_nothing_can_be_kept_compiling_says_why(cache, builds):
    cache.chmod(0o777)
    with pytest.warns(CodegenWarning, match="writable by others"):
        assert compile_all_built(*LIMITS, 2, cache=cache)["sample_limits"].backend == "vm"


@pytest.mark.parametrize("observer", ["contact_imm", "ekf", "momentum", "disturbance", "ukf"])
def test_a_second_start_of_an_observer_builds_nothing(builds, observer):
    open_stream("ur16e", observer)
    del builds[:]
    open_stream("ur16e", observer).warm_up()
    assert not builds
