"""``contact-estimation identify planar``: rigid contact of planar bodies, cubes and a pushing arm (paper 5)."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING, Any

from contact_estimation.commands.numbers import check_number
from contact_estimation.commands.output import Progress, emit, emit_verdict
from contact_estimation.exceptions import ConfigError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from contact_estimation.identify.planar.window import WindowEstimate

EXAMPLES = ("table1", "wheel", "arm-disk")


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    _add_sources(parser)
    parser.add_argument(
        "--laws", action="store_true", help="impacts: compare five impact laws on impacts that they were not fitted to"
    )
    parser.add_argument("--shape", help="drop, window: square:SIDE, ellipse:A,B (semi-axes) or wheel:SPOKES,LENGTH [m]")
    parser.add_argument("--friction", type=float, help="drop, window: Coulomb friction of the contact")
    parser.add_argument(
        "--friction-std", type=float, default=0.05, help="drop: uncertainty of --friction (default %(default)s)"
    )
    parser.add_argument(
        "--size-std",
        type=float,
        default=0.0,
        help="drop: uncertainty of the size in --shape, a share of it; above 0 it is estimated (default %(default)s)",
    )
    parser.add_argument(
        "--centre-std",
        type=float,
        metavar="SHARE",
        help="drop: how well the centre of mass is known, along each axis, as a share of the outline's radius, such as "
        "0.01; a drop that cannot check the centre is doubtful without it (default: not known)",
    )
    parser.add_argument(
        "--impact-duration",
        type=float,
        default=2e-3,
        metavar="SECONDS",
        help="drop: longest time an impact may last; a larger one allows softer contacts and widens the interval "
        "(default %(default)s)",
    )
    parser.add_argument(
        "--clockwise",
        action="store_true",
        help="drop, window: the recorded angle grows clockwise (default: from x to y, counter-clockwise)",
    )
    parser.add_argument("--seed", type=int, default=0, help="seed of drops, noise and resampling (default 0)")
    parser.add_argument("--drops", type=int, default=100, help="table1: drops per row (default 100)")
    parser.add_argument("--side", type=float, default=0.1048, help="tosses: side of the cube [m] (default 0.1048)")
    parser.add_argument("--rate", type=float, default=148.0, help="tosses: samples per second (default 148)")
    parser.add_argument(
        "--noise",
        type=float,
        help="wheel, arm-disk, window: white noise of the velocities [m/s, rad/s], a hundredth of it on the "
        "configurations (default 1e-3, arm-disk 1e-4)",
    )
    parser.add_argument("--figure", metavar="FILE.png", help="also draw what was found (not for --drop, --window)")


def _add_sources(parser: argparse.ArgumentParser) -> None:
    """Declare what is identified: an example, or one kind of recording."""
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument(
        "--example",
        choices=EXAMPLES,
        help="simulate and identify: the paper's table 1, its rimless wheel, its arm and disk",
    )
    what.add_argument(
        "--impacts",
        metavar="FILE.npz",
        help="planar impacts: pre, post (n, 6) at the instant of impact, contact rows n, d (n, 3), flags; where pre "
        "and post are apart, dt (n,) [s] is the time between them",
    )
    what.add_argument(
        "--tosses",
        metavar="FILE.npz",
        help="cube tosses: data (rows, 13) = quaternion wxyz, position, angular velocity (body), "
        "velocity; start, length",
    )
    what.add_argument(
        "--drop",
        metavar="FILE.npz",
        help="one recorded drop: t (N,), q (N, 3) = x, y, theta, optionally v (N, 3); needs --shape and --friction",
    )
    what.add_argument(
        "--window",
        metavar="FILE.npz",
        help="one body that slides, rolls or rests on the ground, m/I and the contact impulse of every step; the whole "
        "file is used: t (N,) even, q and v (N, 3), all finite, optionally force (N, 3) that acts besides gravity, and "
        "the noise q_std, v_std (3,), else --noise; needs --shape and --friction; for bounces use --drop",
    )


def run(args: argparse.Namespace) -> int:
    """Do what was asked and print it."""
    check_number("--drops", args.drops, least=1)
    check_number("--friction", args.friction, least=0, most=100)
    check_number("--friction-std", args.friction_std, least=0, most=100)
    check_number("--size-std", args.size_std, least=0, most=1)
    check_number("--centre-std", args.centre_std, least=0, most=1)
    check_number("--impact-duration", args.impact_duration, "s", above=0, most=1)
    check_number("--side", args.side, "m", above=0, most=100)
    check_number("--rate", args.rate, "Hz", above=0, most=1e6)
    check_number("--noise", args.noise, "m/s", least=0, most=100)
    if args.laws and not args.impacts:
        raise ConfigError("--laws compares impact laws; give it with --impacts")
    if args.figure and (args.drop or args.window):
        raise ConfigError("--figure draws examples, --impacts and --tosses; leave it out with --drop and --window")
    if args.impacts:
        return _impacts(args)
    if args.drop:
        return _drop(args)
    if args.tosses:
        return _tosses(args)
    if args.window:
        return _window(args)
    return {"table1": _table1, "wheel": _wheel, "arm-disk": _arm_disk}[args.example](args)


def _draw(args: argparse.Namespace, make: Callable[[], Figure]) -> None:
    """Write the figure ``make`` returns, where one was asked for."""
    if args.figure:
        from contact_estimation.viz.style import save_figure

        save_figure(make(), args.figure)


def _table1(args: argparse.Namespace) -> int:
    from contact_estimation.studies.planar.table1 import PAPER, SNRS, run_table

    with Progress(2 * len(SNRS) * args.drops, "drops") as bar:
        table = run_table(args.seed, args.drops, bar.update)
    lines = [
        f"error: of the mean of {args.drops} estimates, as in the paper; the other columns are of a single drop",
        "shape    SNR [dB]  error of m/I [%]  paper [%]  std of one drop [%]  mean |error| [%]  "
        "median |error| [%]  failed  | m/I at random: mean |error| [%]  over bound  prior's own [%]",
    ]
    for name, rows in table.items():
        for snr, row in rows.items():
            lines.append(
                f"{name:8} {snr:8d} {row.error_pct:17.2f} {PAPER[name][snr]:10.1f} {row.std_pct:20.2f} "
                f"{row.mean_absolute_pct:17.2f} {row.median_absolute_pct:19.2f} {row.failed:7d}"
                f"{row.bodies.mean_absolute_pct:35.2f} {row.bodies.bound_ratio:11.2f} {row.bodies.prior_pct:16.1f}"
            )

    def column(value: Callable[[Any], float]) -> dict[str, Any]:
        return {name: {str(snr): round(value(row), 4) for snr, row in rows.items()} for name, rows in table.items()}

    result = column(lambda row: row.error_pct)
    result["mean_absolute_error_of_one_drop"] = column(lambda row: row.mean_absolute_pct)
    result["bound_ratio"] = column(lambda row: row.bodies.bound_ratio)
    result["random_m_over_i_error"] = column(lambda row: row.bodies.mean_absolute_pct)
    result["random_m_over_i_prior_error"] = column(lambda row: row.bodies.prior_pct)
    _draw(args, lambda: _study_figures().table_figure(table))
    emit(args, result, "\n".join(lines))
    return 0


def _impacts(args: argparse.Namespace) -> int:
    from contact_estimation.identify.planar.impact_laws import compare_laws
    from contact_estimation.identify.planar.impacts import identify_impacts, load_impacts

    impacts, left_out = load_impacts(args.impacts)
    report = identify_impacts(impacts, left_out, seed=args.seed)
    model, signs = report.model, report.model.handedness
    result = {
        "m_over_i": model.m_over_i,
        "interval": list(report.interval),
        "interval_total": list(report.interval_total),
        "m_over_i_reverse": report.reverse,
        "common_jump": report.common_jump,
        "impulse_error_pct": report.impulse_error_pct,
        "restitution": model.restitution,
        "friction": model.friction,
        "handedness": {"normal": signs.normal, "tangent": signs.tangent, "margin": signs.margin},
        "used": report.used,
        "left_out": report.left_out,
    }
    turning = "turn the same way" if signs.consistent else "have opposite handedness"
    text = (
        f"m/I {model.m_over_i:.1f} 1/m^2, 95 % interval {report.interval[0]:.1f} to {report.interval[1]:.1f}, with "
        f"errors of levers and velocities {report.interval_total[0]:.1f} to {report.interval_total[1]:.1f}\n"
        f"angle and contact rows {turning} (normal {signs.normal:+d}, tangent {signs.tangent:+d}; the "
        f"next-best signs explain the rotations {signs.margin:.2f} times worse)\n"
        f"restitution {model.restitution:.3f}, friction {model.friction:.3f}\n"
        f"impulses of impacts not used in the fit: median error {report.impulse_error_pct:.1f} %\n"
        f"{report.used} impacts used, {report.left_out} left out (flagged or not finite)"
    )
    if args.laws:
        scores = compare_laws(impacts.contact_space(model.m_over_i, signs), impacts.jump[:, :2], seed=args.seed)
        result["laws"] = [score._asdict() for score in scores]
        text += "\nlaw                     restitution  friction  error of unseen impulses: median, 90 % below"
        for score in scores:
            text += f"\n{score.law:23} {score.restitution:11.3f} {score.friction:9.3f}"
            text += f" {score.error_pct:7.1f} %, {score.error_p90_pct:.1f} %"
    _draw(args, lambda: _figures().impacts_figure(impacts, report))
    return emit_verdict(args, result, report.verdict, text)


def _require_contact(args: argparse.Namespace, what: str) -> None:
    if args.shape is None or args.friction is None:
        raise ConfigError(f"{what} needs --shape and --friction, got {args.shape!r} and {args.friction!r}")


def _window(args: argparse.Namespace) -> int:
    import numpy as np

    from contact_estimation.identify.planar.errors_in_variables import StateNoise
    from contact_estimation.identify.planar.recorded_window import identify_recorded_window
    from contact_estimation.identify.planar.recordings import load_window, parse_shape

    _require_contact(args, "--window")
    recorded = load_window(args.window, args.clockwise)
    velocity = np.full(3, _noise(args, 1e-3)) if recorded.v_std is None else recorded.v_std
    noise = StateNoise(0.01 * velocity if recorded.q_std is None else recorded.q_std, velocity)
    found = identify_recorded_window(
        parse_shape(args.shape), args.friction, recorded.t, recorded.q, recorded.v, noise, recorded.force
    )
    units = {"m_over_i": "1/m^2", "mass": "kg", "inertia": "kg m^2"}
    lines = [
        f"{name} {value:.5g} {units[name]}, 95 % interval {found.intervals_total[name][0]:.5g} to "
        f"{found.intervals_total[name][1]:.5g}"
        for name, value in found.values.items()
        if np.isfinite(value)
    ]
    result = {
        **found.values,
        "interval": found.intervals,
        "interval_total": found.intervals_total,
        "normal_impulse": found.normal,
        "friction_impulse": found.tangent,
        "status": found.status,
        "scheme": found.scheme,
    }
    return emit_verdict(args, result, found.verdict, "\n".join(lines or ["no result"]))


def _drop(args: argparse.Namespace) -> int:
    from contact_estimation.identify.planar.contact_geometry import Told
    from contact_estimation.identify.planar.recorded_drop import identify_recorded_drop
    from contact_estimation.identify.planar.recordings import load_drop, parse_shape

    _require_contact(args, "--drop")
    t, q, v, left_out = load_drop(args.drop, args.clockwise)
    told = Told(parse_shape(args.shape), args.friction, args.friction_std, args.size_std, args.centre_std)
    found = identify_recorded_drop(told, t - t[0], q, v, impact_duration=args.impact_duration)
    impacts = [
        {"t": float(t[0] + time), "impulse_per_mass": jump[:2], "friction": float(friction)}
        for time, jump, friction in zip(found.times, found.jumps, found.friction)
    ]
    low, high = found.interval_total
    lines = [f"m/I {found.m_over_i:.4g} 1/m^2, 95 % interval {low:.4g} to {high:.4g} ({found.status})"]
    lines += [
        f"impact at {i['t']:.3f} s: impulse per mass {i['impulse_per_mass'][0]:+.3f} along the ground, "
        f"{i['impulse_per_mass'][1]:.3f} m/s off it"
        for i in impacts
    ]
    if left_out:
        lines.append(f"{left_out} samples are not finite and were left out")
    result = {
        "m_over_i": found.m_over_i,
        "interval": list(found.interval),
        "interval_total": list(found.interval_total),
        "impacts": impacts,
        "status": found.status,
        "reason": "; ".join(found.verdict.reasons),
        "left_out": left_out,
        **found.verdict.as_json(),
    }
    emit(args, result, "\n".join([*lines, found.verdict.as_text()]))
    return found.verdict.exit_code


def _wheel(args: argparse.Namespace) -> int:
    from contact_estimation.studies.planar.wheel import WHEEL, identify_wheel

    result = identify_wheel(_noise(args, 1e-3), args.seed)
    inertia = WHEEL.body_mass / WHEEL.mass_over_inertia
    lines = [
        f"spoke {i.spoke} at {i.t:.3f} s: impulse {i.simulated:.4f} N s simulated, {i.estimated:.4f} estimated, "
        f"error {i.error_pct:.2f} %"
        for i in result.impacts
    ]
    found = float(result.estimate.theta[1])
    lines.append(f"inertia {found:.4f} kg m^2 (true {inertia:.4f}); {_status(result.estimate)}")
    _draw(args, lambda: _study_figures().wheel_figure(result))
    return emit_verdict(
        args,
        {
            "interval_total": {"inertia": result.intervals[1]},
            "impacts": [{**i._asdict(), "error_pct": i.error_pct} for i in result.impacts],
            "worst_pct": max(i.error_pct for i in result.impacts),
            "inertia": found,
            "inertia_true": inertia,
            "status": result.estimate.status,
        },
        result.verdict,
        "\n".join(lines),
    )


def _arm_disk(args: argparse.Namespace) -> int:
    from contact_estimation.studies.planar.arm_disk import NAMES, identify_push

    result = identify_push(_noise(args, 1e-4), args.seed)
    lines = [
        f"{name:16} {found:9.5f}   true {true:9.5f}   error {100 * (found / true - 1):+6.2f} %"
        for name, found, true in zip(NAMES, result.estimate.theta, result.parameters)
    ]
    lines += [
        f"impulse of {name}: normal error {normal:.2f} %, friction error {tangent:.2f} %"
        for name, (normal, tangent) in result.impulse_error_pct.items()
    ]
    lines.append(f"{_status(result.estimate)}; excitation {result.estimate.identifiability.excitation:.2g}")
    _draw(args, lambda: _study_figures().arm_disk_figure(result))
    short = [name.split(" [")[0] for name in NAMES]
    return emit_verdict(
        args,
        {
            "interval_total": dict(zip(short, result.intervals)),
            "parameters": {
                name: {"found": float(found), "true": true}
                for name, found, true in zip(short, result.estimate.theta, result.parameters)
            },
            "impulse_error_pct": {
                name: {"normal": normal, "friction": tangent}
                for name, (normal, tangent) in result.impulse_error_pct.items()
            },
            "status": result.estimate.status,
        },
        result.verdict,
        "\n".join(lines),
    )


def _status(estimate: WindowEstimate) -> str:
    return f"{estimate.status}: {estimate.reason}" if estimate.reason else estimate.status


def _noise(args: argparse.Namespace, default: float) -> float:
    return float(default if args.noise is None else args.noise)


def _figures() -> ModuleType:
    """Import what draws recordings, only when a figure is wanted."""
    from contact_estimation.identify.planar import figures

    return figures


def _study_figures() -> ModuleType:
    """Import what draws studies, only when a figure is wanted."""
    from contact_estimation.studies.planar import figures

    return figures


def _tosses(args: argparse.Namespace) -> int:
    from contact_estimation.identify.planar.cube import fit_cube, identify_cube
    from contact_estimation.identify.planar.tosses import load_tosses

    tosses = load_tosses(args.tosses)
    fitted = fit_cube(tosses, args.side, args.rate)
    report = identify_cube(fitted, args.seed)
    axes, centre = ", ".join(f"{value:.0f}" for value in report.m_over_i_axes), [1e3 * c for c in report.centre]
    text = (
        f"m/I {report.m_over_i:.1f} 1/m^2, 95 % interval {report.interval[0]:.1f} to {report.interval[1]:.1f}; "
        f"along three axes {axes}\n"
        f"centre of mass {centre[0]:.1f}, {centre[1]:.1f}, {centre[2]:.1f} mm from the middle; "
        f"body axes renamed {report.renamings} times; corners blunt by {1e3 * report.corner_depth:.1f} mm\n"
        f"friction {report.friction:.3f} ({report.friction_interval[0]:.3f} to {report.friction_interval[1]:.3f}) "
        f"from {report.sliding} sliding impacts, restitution of a corner {report.restitution:.2f}\n"
        f"{report.impacts} single-corner impacts in {report.tosses} tosses; {100 * report.unexplained:.1f} % of "
        f"the change of rotation unexplained (sharp corners and a centre of mass in the middle would give m/I "
        f"{report.m_over_i_corner:.1f})\n"
        f"free fall makes a recorded metre {report.scale:.4f} m; the ground is at {1e3 * report.ground:+.2f} mm"
    )
    _draw(args, lambda: _figures().tosses_figure(fitted, report))
    return emit_verdict(args, vars(report) | {"interval_total": report.interval_total}, report.verdict, text)
