"""The checks of the doctor."""

from __future__ import annotations

import importlib
import importlib.metadata
import math
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

from contact_estimation.exceptions import CodegenError, ContactEstimationError

if TYPE_CHECKING:
    import numpy as np

    from contact_estimation.filters.ekf import Ekf

#: import name, distribution, needed, purpose. What is needed is what pyproject.toml requires.
_PACKAGES = (
    ("numpy", "numpy", True, "arrays"),
    ("scipy", "scipy", True, "filters, least squares, statistics"),
    ("casadi", "casadi", True, "symbolic dynamics, generated C"),
    ("pinocchio", "pin", True, "reads robot descriptions"),
    ("yaml", "PyYAML", True, "configuration"),
    ("rosbags", "rosbags", True, "bags without ROS"),
    ("matplotlib", "matplotlib", True, "pictures of reports"),
    ("mujoco", "mujoco", True, "physics engine of the simulated arms"),
    ("rtde_receive", "ur_rtde", False, "driver of Universal Robots"),
    ("pytest", "pytest", False, "runs the tests"),
)


class Finding(TypedDict, total=False):
    """What was found of one thing.

    Attributes:
        name: of the thing.
        ok: whether it works.
        needed: whether something does not work without it.
        version: of it, None where it has none.
        purpose: what it is for.
        remedy: what to do; empty for nothing.
        step_us: of the loop only: times [µs] of a step by backend and statistic.
        ratio: of the loop only: how many times faster generated code is.
    """

    name: str
    ok: bool
    needed: bool
    version: str | None
    purpose: str
    remedy: str
    step_us: dict[str, dict[str, float]]
    ratio: float


def packages() -> list[Finding]:
    """Look at the Python packages; each is really imported."""
    found = []
    for module, distribution, needed, purpose in _PACKAGES:
        problem = _import_problem(module)
        remedy = f"{module}: {problem}; pip install {distribution}" if problem and needed else ""
        version = _version(module, distribution)
        found.append(_finding(distribution, problem is None, version, purpose, remedy, needed))
    return found


def compiler() -> Finding:
    """Try the C compiler on a real function."""
    import casadi as ca

    from contact_estimation.codegen import compile_function
    from contact_estimation.codegen.compiler import find_compiler

    name, tool = "C compiler", find_compiler()
    purpose = "compiles the loop; without it everything runs 10 to 40 times slower"
    if tool is None:
        remedy = "no C compiler ($CC, cc, gcc, clang): install one, e.g. 'apt install gcc'"
        return _finding(name, False, None, purpose, remedy)
    x = ca.SX.sym("x", 2)
    try:
        with tempfile.TemporaryDirectory() as folder:
            start = time.perf_counter()
            sine = ca.Function("probe", [x], [ca.sin(x)], ["x"], ["y"])
            probe = compile_function(sine, cache=Path(folder), fallback=False)
            seconds = time.perf_counter() - start
            right = abs(probe.evaluate([1.0, 0.0])[0].sum() - math.sin(1.0)) < 1e-9
    except CodegenError as error:
        return _finding(name, False, tool.version, purpose, f"the C compiler does not work: {error}")
    remedy = "" if right else f"{tool.version} compiles sin(x) wrongly: use another compiler (CC=...)"
    return _finding(name, right, tool.version, f"{purpose} (a small function: {seconds:.2f} s)", remedy)


def cache() -> Finding:
    """Look at the folder of compiled functions: may it be used, and how full is it."""
    from contact_estimation.codegen.cache import cache_directory, open_cache

    path = str(cache_directory())
    try:
        files = list(open_cache().glob("*.so"))
    except CodegenError as error:
        return _finding("code cache", False, None, path, str(error))
    size = sum(file.stat().st_size for file in files) / 1e6
    return _finding("code cache", True, f"{len(files)} functions, {size:.1f} MB", path)


def ros() -> list[Finding]:
    """Look at ROS 2: the client library, this package's messages, and the tools that start nodes."""
    problem, version = _import_problem("rclpy"), _version("rclpy", "ros-jazzy-rclpy")
    purpose = "the nodes; the library and this command line do without"
    if problem is not None:
        remedy = f"for the nodes: source your ROS 2 Jazzy, or 'make demo' installs it from PyPI (rclpy: {problem})"
        return [_finding("rclpy", False, version, purpose, remedy)]
    problem = _import_problem("contact_estimation.msg")
    remedy = (
        f"the nodes need this package's messages ({problem}): build it with colcon and source the workspace, or run "
        "'make build'"
    )
    started = "'ros2 launch', 'ros2 bag'; not in the pip environment, where the demo starts the nodes itself"
    built = "contact_estimation/msg, built by cmake or colcon"
    return [
        _finding("rclpy", True, version, purpose),
        _finding("messages", problem is None, None, built, remedy if problem else ""),
        _finding("ros2", shutil.which("ros2") is not None, os.environ.get("ROS_DISTRO"), started),
    ]


def loop(robot: str, observer: str, count: int = 3000) -> Finding:
    """Time one EKF step here: generated C, CasADi's virtual machine, and a whole sample with all checks.

    Args:
        robot: whose loop.
        observer: EKF configuration.
        count: samples to time.
    """
    import numpy as np

    from contact_estimation.codegen import CompiledFunction, compile_function
    from contact_estimation.filters.ekf import Ekf
    from contact_estimation.filters.registry import open_stream

    try:
        stream = open_stream(robot, observer)
        ekf, arm = stream.observer, stream.arm
        if not isinstance(ekf, Ekf):
            purpose = f"'{observer}' is no EKF, so there is no step to time"
            return _finding("loop", False, observer, purpose, "name an EKF configuration with --observer")
        compiled, machine = compile_function(ekf.function), CompiledFunction(ekf.function, "vm", None)
    except ContactEstimationError as error:
        return _finding("loop", False, f"{robot}, {observer}", str(error), str(error), needed=True)
    q = 0.5 * (arm.lower + arm.upper) + 0.1
    samples = [(q + 1e-4 * np.sin(0.01 * k), np.zeros(arm.n), arm.gravity(q)) for k in range(count)]
    for k, sample in enumerate(samples[:100]):
        stream.push_fast(2_000_000 * k, *sample)
    arguments = _running_arguments(ekf, q, samples[0][2])
    for backend in (compiled, machine):
        for name, buffer in backend.inputs.items():
            buffer[:] = arguments[name]
    costs = {"step, generated C": _times(lambda k: compiled(), range(count))} if compiled.backend == "c" else {}
    costs["step, virtual machine"] = _times(lambda k: machine(), range(count // 3))
    costs["sample with checks"] = _times(lambda k: stream.push_fast(2_000_000 * k, *samples[k]), range(100, count))
    costs["sample to estimate"] = _times(lambda k: stream.push(2_000_000 * (count + k), *samples[k]), range(count))
    found = _finding("loop", True, f"{robot}, {observer}", "time per 500 Hz sample, of 2000 µs")
    found["step_us"] = costs
    if compiled.backend == "c":
        found["ratio"] = costs["step, virtual machine"]["p50"] / costs["step, generated C"]["p50"]
    return found


def _running_arguments(ekf: Ekf, q: np.ndarray, tau: np.ndarray) -> dict[str, Any]:
    """Arguments of a running filter's step, so that no special value changes the cost."""
    from contact_estimation.filters.kalman import pack_array

    noise = ekf.settings.measurement_noise
    return {
        "xi": ekf.state,
        "P": pack_array(ekf.covariance),
        "phi": ekf.contacts.initial(q)[0],
        "tau": tau,
        "h": 0.002,
        "q_m": q,
        "noise_q": noise.position,
        "intensity": 0.0,
        "tau_m": tau,
        "noise_tau": noise.torque,
        "torque_intensity": 0.0,
    }


def _times(call: Callable[[int], object], counts: range) -> dict[str, float]:
    """Median and 99th percentile [µs] of ``call(k)``."""
    clock, times = time.perf_counter_ns, []
    for k in counts:
        start = clock()
        call(k)
        times.append((clock() - start) / 1e3)
    return {"p50": statistics.median(times), "p99": statistics.quantiles(times, n=100)[98]}


def _finding(name: str, ok: bool, version: str | None, purpose: str, remedy: str = "", needed: bool = False) -> Finding:
    return {"name": name, "ok": bool(ok), "needed": needed, "version": version, "purpose": purpose, "remedy": remedy}


def _import_problem(module: str) -> str | None:
    """Why ``module`` cannot be imported, or None. A broken package may raise anything."""
    try:
        importlib.import_module(module)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


def _version(module: str, distribution: str) -> str | None:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        if _import_problem(module) is not None:
            return None
        return getattr(importlib.import_module(module), "__version__", None)
