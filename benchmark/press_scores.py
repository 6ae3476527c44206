#!/usr/bin/env python3
"""How well contact force and stiffness are told on recorded presses, and how much of it hangs on what was known before.

    python benchmark/press_scores.py [--shared DIR] [--save] [--starts N]

Observers with their shipped configuration, scored by the shared ``tools/score_press.py``: the contact IMM filter; the
momentum observer with the same friction calibration; the textbook momentum observer as the papers configure it. Then
the contact IMM filter on changed recordings (turned about the base, cropped so that they begin in the middle of a
contact, with noise added to the encoders), and with actuators that never saw the recording they are scored on (leave
one out): Coulomb friction and joint stiffness fitted on the other recording by :func:`actuators_from`. ``--save``
writes press_scores.md beside this file. ``--starts N`` does nothing of that: it starts the contact IMM filter at N
moments of each recording, and tells the force along the push then, its RMSE from 0.1 s to 3 s after, and the share of
that time in which more than 20 N are told as free.
"""

from __future__ import annotations

import argparse
import copy
import importlib.util
import os
import tempfile
from pathlib import Path

import numpy as np
import yaml

from contact_estimation.filters.registry import open_stream
from contact_estimation.io.npz import load_arrays
from contact_estimation.robot import Arm, load_arm
from contact_estimation.robot.friction import presliding_states
from contact_estimation.settings import find_config, load_yaml

FILES = ("ur_vertical_3", "ur_vertical_1")
OBSERVERS = ("contact_imm", "momentum_calibrated", "momentum_manufacturer", "momentum")
HEADINGS = (
    "z in contact [N]",
    "xy in contact [N]",
    "z free [N]",
    "K error [%]",
    "K settled [s]",
    "2 sigma x, y, z [%]",
)
RATE = 500
#: [N] along the tool from where it is pressed, as in the shared scoring tool.
PRESSED = 10.0


def scorer(shared: Path):
    """Return the function ``score`` of the shared scoring tool."""
    spec = importlib.util.spec_from_file_location("score_press", shared / "tools" / "score_press.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.score


def load(shared: Path, name: str) -> dict[str, np.ndarray]:
    """Arrays of a recorded press."""
    return load_arrays(shared / "data" / "ur16e_press" / f"{name}.npz")


def estimates(arm: Arm, data: dict[str, np.ndarray], config: str) -> dict[str, np.ndarray]:
    """Return what ``replay --export`` would write of force, its standard deviation [N, TCP axes], stiffness [N/m]."""
    stream = open_stream(arm, config)
    force, std, stiffness = np.empty((len(data["q"]), 3)), np.empty((len(data["q"]), 3)), np.empty(len(data["q"]))
    for k, (q, dq, tau) in enumerate(zip(data["q"], data["dq"], data["tau"])):
        found = stream.push(round(k * 1e9 / RATE) + 1, q, dq, tau)
        force[k], std[k], stiffness[k] = found.force_tcp, np.sqrt(np.diag(found.force_covariance)), found.stiffness
    return {"force": force, "std": std, "stiffness": stiffness}


def coverage(told: dict[str, np.ndarray], data) -> str:
    """Return the shares [%] of errors along each axis within 2 standard deviations while pressed, the sensor zeroed."""
    truth = data["f_tcp"] - data["f_tcp_zero_offset"]
    inside = np.abs(told["force"] - truth) < 2.0 * told["std"]
    return ", ".join(f"{100 * share:.0f}" for share in inside[truth[:, 2] < -PRESSED].mean(axis=0))


def figures(score, arm: Arm, data, config: str) -> dict[str, float | str | None]:
    """Return the figures of :data:`HEADINGS`; a part that the recording does not have is None."""
    told = estimates(arm, data, config)
    found = score({"force": told["force"], "stiffness": told["stiffness"]}, data)
    values = (
        found["contact"]["rmse_z"],
        found["contact"]["rmse_xy"],
        found.get("free", {}).get("rmse_z"),
        found["stiff"]["median_err_pct"],
        found["stiff"]["t20_s"],
        coverage(told, data),
    )
    return dict(zip(HEADINGS, values))


def turned(data, angle: float):
    """Return the same press with the arm turned about its vertical base axis [rad]."""
    c, s = np.cos(angle), np.sin(angle)
    rotation = np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]])
    return data | {
        "q": data["q"] + np.eye(data["q"].shape[1])[0] * angle,
        "x_tcp": data["x_tcp"] @ rotation.T,
        "R_tcp": rotation @ data["R_tcp"],
    }


def cropped(data):
    """From the middle of the first contact on: the first sample is pressed."""
    force = data["f_tcp"][:, 2] - data["f_tcp_zero_offset"][2]
    return since(data, int(np.argmax(force < 0.5 * force.min())))


def since(data, start: int, end: int | None = None):
    """From the sample ``start`` to ``end``."""
    count = len(data["q"])
    return {name: values[start:end] if values.shape[:1] == (count,) else values for name, values in data.items()}


def start_figures(arm: Arm, data, start: int) -> tuple[float, float, float]:
    """Return what the contact IMM filter makes of a recording from the sample ``start`` on.

    Returns:
        Force along the push then [N]; RMSE from 0.1 to 3 s after [N]; share [%] of that time in which more than 20 N
        are told as free.
    """
    part, stream = since(data, start, start + 3 * RATE), open_stream(arm, "contact_imm")
    samples = zip(part["q"], part["dq"], part["tau"])
    found = [stream.push(round(k * 1e9 / RATE) + 1, *sample) for k, sample in enumerate(samples)][RATE // 10 :]
    truth = (part["f_tcp"] - part["f_tcp_zero_offset"])[:, 2]
    error = np.array([e.force_tcp[2] for e in found]) - truth[RATE // 10 :]
    free = np.array([e.mode == "free" and e.valid for e in found])
    silent = 100 * np.mean(free & (np.abs(truth[RATE // 10 :]) > 20.0))
    return float(truth[0]), float(np.sqrt(np.mean(error**2))), float(silent)


def starts(arm: Arm, data: dict[str, dict[str, np.ndarray]], count: int) -> str:
    """Return the table of starts at ``count`` moments of each recording, and what sums it up."""
    lines, found = ["| start | force [N] | RMSE [N] | silent [%] |", "|---|---|---|---|"], []
    for name, recording in data.items():
        moments = (np.linspace(0.04, 0.9, count) * len(recording["q"])).astype(int)
        for moment in moments.tolist():
            force, error, silent = start_figures(arm, recording, moment)
            lines.append(f"| {name}, {moment / RATE:.2f} s | {force:.0f} | {error:.1f} | {silent:.0f} |")
            found.append((error, silent))
    errors, silent = np.array(found).T
    text = f"{len(errors)} starts: RMSE {np.median(errors):.1f} N median, {errors.max():.1f} N worst"
    return "\n".join([*lines, "", f"{text}; silent for {silent.max():.0f} % of the three seconds at most."])


def noisy(data, std: float, seed: int = 0):
    """With white noise [rad] added to the encoders."""
    return data | {"q": data["q"] + std * np.random.default_rng(seed).standard_normal(data["q"].shape)}


def actuators_from(arm: Arm, data, shipped: dict, scale) -> dict:
    """Actuators whose Coulomb friction and joint stiffness come from ``data`` alone, with its measured force.

    Coulomb: least squares of tau - C dq - G + J^T f on a bias and the presliding state of every joint and on the
    contact's lever in the tool, which the force sensor does not tell, weighted by the torque noise. Stiffness: least
    squares of q - integral(dq) on (1, t, J^T f - G) of the elastic joints. Everything else (noise, spreads, breakaway
    lengths) is the shipped file's.
    """
    actuators = copy.deepcopy(shipped)
    friction, elastic = actuators["friction"], actuators["elastic"]
    q, dq, t = data["q"], data["dq"], np.arange(len(data["q"])) / RATE
    external, rigid, lever = np.empty_like(q), np.empty_like(q), np.empty((*q.shape, 3))
    for k, (row, speed) in enumerate(zip(q, dq)):
        force = data["R_tcp"][k] @ (data["f_tcp"][k] - data["f_tcp_zero_offset"])
        jacobian = arm.tcp_jacobian(row)
        external[k] = jacobian[:3].T @ force
        # J_w^T (R r x f) = -J_w^T [f]x R r
        cross = np.array([[0, -force[2], force[1]], [force[2], 0, -force[0]], [-force[1], force[0], 0]])
        lever[k] = -jacobian[3:].T @ cross @ data["R_tcp"][k]
        rigid[k] = arm.gravity(row) + arm.coriolis(row, speed)
    kernel = 1.0 - np.exp(-2 * np.pi * actuators["position_filter"] / RATE)
    travelled = np.cumsum(dq, axis=0) / RATE  # of the motors: friction turns with them
    smooth = travelled.copy()
    for k in range(1, len(q)):
        smooth[k] = smooth[k - 1] + kernel * (travelled[k] - smooth[k - 1])
    states = presliding_states(smooth, np.array(friction["presliding"]))
    torque = data["tau"] * scale - rigid + external
    n, noise, every = arm.n, np.array(actuators["torque_noise"]), 5
    rows = []
    for j in range(n):
        own = np.zeros((len(t), 2 * n))
        own[:, j], own[:, n + j] = 1.0, states[:, j]
        rows.append(np.hstack([own, -lever[:, j]])[::every] / noise[j])
    found = np.linalg.lstsq(np.vstack(rows), (torque / noise)[::every].T.ravel(), rcond=None)[0]
    friction["coulomb"] = np.maximum(found[n : 2 * n], 0.1).tolist()
    deflection = q - travelled + 0.5 * dq / RATE
    for i, j in enumerate(elastic["joints"]):
        columns = np.column_stack([np.ones(len(t)), t, external[:, j] - rigid[:, j]])
        elastic["stiffness"][i] = float(1.0 / np.linalg.lstsq(columns, deflection[:, j], rcond=None)[0][2])
    return actuators


def row(name: str, found: dict) -> str:
    """Return a table row."""
    return f"| {name} | " + " | ".join(cell(heading, value) for heading, value in found.items()) + " |"


def cell(heading: str, value: float | str | None) -> str:
    """Return a figure as text."""
    if value is None or isinstance(value, str):
        return value or "-"
    return f"{value:+.0f}" if heading == "K error [%]" else f"{value:.2f}"


def main() -> None:
    """Score everything and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--shared",
        type=Path,
        default=Path(os.environ.get("CONTACT_ESTIMATION_SHARED") or Path(__file__).resolve().parents[2] / "shared"),
    )
    parser.add_argument("--save", action="store_true")
    parser.add_argument("--starts", type=int, default=0, help="start at so many moments of each recording instead")
    args = parser.parse_args()
    data = {name: load(args.shared, name) for name in FILES}
    arm, score = load_arm("ur16e"), scorer(args.shared)
    if args.starts:
        print(starts(arm, data, args.starts))
        return
    lines = [
        "# Recorded presses of a UR16e",
        "",
        "`python benchmark/press_scores.py --save`; one shipped configuration per observer, "
        "figures by the shared scoring tool. Stiffness error is the median in contact against the least-squares slope "
        "of the contact samples; settled is the time until it stays within 20 %; "
        "2 sigma: share of errors in contact within two published standard deviations, the sensor zeroed; "
        "- is never, or not part of the recording.",
        "",
    ]
    head = ["|  | " + " | ".join(HEADINGS) + " |", "|---" * (len(HEADINGS) + 1) + "|"]
    changes = {
        "as recorded": lambda d: d,
        "turned by 0.9 rad": lambda d: turned(d, 0.9),
        "turned by -2 rad": lambda d: turned(d, -2.0),
        "begins pressed": cropped,
        **{f"encoder noise +{std} urad": lambda d, std=std: noisy(d, std * 1e-6) for std in (30, 60, 100)},
    }
    shipped = load_yaml(find_config("actuators", "ur16e"))
    scale = np.array(load_yaml(find_config("sensors", "ur16e_current"))["torque_scale"])
    with tempfile.TemporaryDirectory() as folder:
        for name in FILES:
            lines += [f"## {name}", "", *head]
            lines += [row(observer, figures(score, arm, data[name], observer)) for observer in OBSERVERS]
            lines += ["", "The contact IMM filter on changed recordings:", "", *head]
            lines += [
                row(text, figures(score, arm, change(data[name]), "contact_imm")) for text, change in changes.items()
            ]
            other = next(n for n in FILES if n != name)
            actuators = actuators_from(arm, data[other], shipped, scale)
            Path(folder, "actuators.yaml").write_text(yaml.safe_dump(actuators))
            coulomb = ", ".join(f"{c:.1f}" for c in actuators["friction"]["coulomb"])
            elastic = ", ".join(f"{k / 1e3:.1f}" for k in actuators["elastic"]["stiffness"])
            lines += [
                "",
                f"Leave one out: fitted on {other} (Coulomb {coulomb} Nm, joint stiffness {elastic} kNm/rad):",
                "",
                *head,
            ]
            for observer in OBSERVERS[:2]:
                config = load_yaml(find_config("observers", observer)) | {
                    "actuators": str(Path(folder, "actuators.yaml"))
                }
                path = Path(folder, f"{observer}.yaml")
                path.write_text(yaml.safe_dump(config))
                lines.append(row(observer, figures(score, arm, data[name], str(path))))
            lines.append("")
    table = "\n".join(lines)
    print(table)
    if args.save:
        (Path(__file__).parent / "press_scores.md").write_text(table)


if __name__ == "__main__":
    main()
