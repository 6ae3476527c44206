"""``contact-estimation mpc TASK``: one closed loop of estimator, MPC and simulated arm, with and without online
estimation; for ``probe`` see :mod:`~contact_estimation.commands.mpc_probe`."""

from __future__ import annotations

import shlex

import numpy as np

from contact_estimation.commands import mpc_probe
from contact_estimation.commands.output import Progress, add_json_flag, emit
from contact_estimation.control.mpc.settings import SOLVERS
from contact_estimation.exceptions import ConfigError
from contact_estimation.experiments.closed_loop import ClosedLoop, load_loop_settings
from contact_estimation.experiments.mpc_report import mpc_report

#: Task -> robot it is for.
TASKS = {"plane": "fr3", "pivot": "fr3", "press": "ur16e", "probe": "ur16e"}


def configure(parser) -> None:
    """Arguments of the verb."""
    parser.add_argument("task", choices=TASKS, help="plane, pivot: paper 2, section 6.3; press: a stiff surface; "
                        "probe: explore an unknown surface first (paper 4)")
    parser.add_argument("--robot", help="robot (default: the task's own)")
    parser.add_argument(
        "--solver", choices=SOLVERS, default="rti", help="rti: one iteration per tick (default); ipopt: converged"
    )
    parser.add_argument("--seed", type=int, default=0, help="seed of noise, friction and gravity errors (default 0)")
    parser.add_argument(
        "--height-error", type=float, metavar="M", help="[m] how far the surface is from where the task supposes it"
    )
    parser.add_argument(
        "--force", type=float, metavar="N", help="[N] wanted force, instead of the task's own, in its direction"
    )
    parser.add_argument("--duration", type=float, metavar="S", help="[s] time under MPC")
    parser.add_argument("--runs", type=int, default=1, help="probe: number of random surfaces (default 1)")
    parser.add_argument("--report", metavar="DIR", help="write report.html with the figures of the paper redrawn")
    add_json_flag(parser)


def run(args) -> int:
    """Run the loop twice and print what was measured."""
    if args.task == "probe":
        if args.runs < 1 or args.height_error is not None or args.solver != "rti":
            raise ConfigError("mpc probe takes --runs of at least 1, and neither --height-error nor --solver")
        return mpc_probe.run(args)
    settings = load_loop_settings(args.task, args.robot or TASKS[args.task])
    records, progress = {}, Progress(2, f"mpc {args.task}")
    for i, adapt in enumerate((True, False)):
        progress.update(i, "online estimation" if adapt else "no estimation")
        loop = ClosedLoop(settings, args.seed, args.height_error, args.solver, adapt, force=args.force)
        records[adapt] = loop.run(args.duration)
    progress.update(2)
    progress.close()
    estimating, fixed = records[True], records[False]
    p50, p99 = np.percentile(estimating.solve_ms, [50, 99])
    result = {
        "force_rmse_estimating": estimating.force_rmse(),
        "force_rmse_fixed": fixed.force_rmse(),
        "solve_ms_p50": float(p50),
        "solve_ms_p99": float(p99),
        "max_impedance_force": max(estimating.max_spring, fixed.max_spring),
        "force_limit": estimating.force_limit,
    }
    lines = [
        f"{args.task} on {settings.robot}, solver {args.solver}, seed {args.seed}",
        f"force RMSE after 1 s      {result['force_rmse_estimating']:.2f} N with online estimation, "
        f"{result['force_rmse_fixed']:.2f} N without",
        f"mean error, last 2 s      {np.round(estimating.steady_error()[estimating.axes], 2)} N, "
        f"{np.round(fixed.steady_error()[fixed.axes], 2)} N",
        f"solve                     p50 {p50:.2f} ms, p99 {p99:.2f} ms",
        f"largest impedance force   {result['max_impedance_force']:.2f} N, limit {result['force_limit']:g} N",
    ]
    lines += [
        f"{name}: {count} ticks without a plan; first: {record.reasons[0]}"
        for name, record, count in (
            ("online estimation", estimating, len(estimating.reasons)),
            ("no estimation", fixed, len(fixed.reasons)),
        )
        if count
    ]
    if args.report:
        command = "contact-estimation " + shlex.join(_arguments(args, settings.robot))
        lines.append(
            f"report                    {mpc_report(args.report, args.task, settings, command, estimating, fixed)}"
        )
    emit(args, result, "\n".join(lines))
    return 0


def _arguments(args, robot: str) -> list[str]:
    """The command line that repeats this run."""
    words = ["mpc", args.task, "--robot", robot, "--solver", args.solver, "--seed", str(args.seed)]
    for option, value in (
        ("--height-error", args.height_error),
        ("--force", args.force),
        ("--duration", args.duration),
    ):
        if value is not None:
            words += [option, str(value)]
    return words
