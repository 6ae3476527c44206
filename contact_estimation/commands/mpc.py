"""``contact-estimation mpc TASK``: a closed loop of estimator, MPC and simulated arm.

It runs with and without online estimation; for ``probe`` see :mod:`~contact_estimation.commands.mpc_probe`.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

import numpy as np

from contact_estimation.commands.inputs import add_tool_argument, add_workers_arguments
from contact_estimation.commands.numbers import check_number
from contact_estimation.commands.output import Progress, command_line, emit
from contact_estimation.control.mpc.settings import SOLVERS
from contact_estimation.control.registry import CONTROLLERS
from contact_estimation.exceptions import ConfigError

if TYPE_CHECKING:
    from contact_estimation.studies.mpc.closed_loop import LoopRecord

#: Task -> robot it is for.
TASKS = {
    "plane": "fr3",
    "pivot": "fr3",
    "wipe": "fr3",
    "edge": "fr3",
    "sequence": "fr3",
    "press": "ur16e",
    "probe": "ur16e",
}
#: Name of a loop, and whether the controller takes contacts and disturbance from the estimates.
_LOOPS = (("online estimation", True), ("no estimation", False))


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "task",
        choices=TASKS,
        help="plane, pivot: paper 2, section 6.3; wipe: a tilted, rough plane; "
        "edge: slide over it and come back; sequence: a task in steps; press: a stiff surface; "
        "probe: explore an unknown surface first (paper 4)",
    )
    parser.add_argument("--robot", help="robot (default: the task's own)")
    add_tool_argument(parser)
    parser.add_argument(
        "--solver",
        choices=SOLVERS,
        default="rti",
        help="rti: one iteration per tick (default); sqp: converged; ipopt: an older name of sqp",
    )
    parser.add_argument("--controller", choices=CONTROLLERS, default="mpc", help="controller (default mpc)")
    parser.add_argument("--observer", metavar="NAME", help="observer configuration (default: the task's own)")
    parser.add_argument(
        "--stiffness", type=float, metavar="N_PER_M", help="[N/m] of the simulated surface, unknown to the estimator"
    )
    parser.add_argument("--seed", type=int, default=0, help="seed of noise, friction and gravity errors (default 0)")
    parser.add_argument(
        "--height-error", type=float, metavar="M", help="[m] how far the surface is from where the task supposes it"
    )
    parser.add_argument(
        "--force", type=float, metavar="N", help="[N] target force, instead of the task's own, in its direction"
    )
    parser.add_argument("--duration", type=float, metavar="S", help="[s] time under MPC")
    parser.add_argument(
        "--steps", metavar="NAME", help="sequence: steps, by name or the path of a YAML (default: the task's own)"
    )
    parser.add_argument("--runs", type=int, default=1, help="probe: number of random surfaces (default 1)")
    add_workers_arguments(parser)
    parser.add_argument("--report", metavar="DIR", help="write report.html with the figures of the paper redrawn")


def run(args: argparse.Namespace) -> int:
    """Run the loop twice and print what was measured."""
    _check(args)
    if args.task == "probe":
        from contact_estimation.commands import mpc_probe

        return mpc_probe.run(args)
    from contact_estimation.commands import mpc_sequence
    from contact_estimation.studies.mpc.closed_loop import ClosedLoop, LoopOptions, load_loop_settings

    settings = load_loop_settings(args.task, args.robot or TASKS[args.task])
    if args.task == "sequence":
        return mpc_sequence.run(args, settings)
    records = []
    with Progress(2, f"mpc {args.task}") as progress:
        for i, (name, adapt) in enumerate(_LOOPS):
            progress.update(i, name)
            options = LoopOptions(
                seed=args.seed,
                height_error=args.height_error,
                controller=args.controller,
                solver=args.solver,
                adapt=adapt,
                force=args.force,
                stiffness=args.stiffness,
                observer=args.observer,
                tool=args.tool,
            )
            records.append(ClosedLoop(settings, options).run(args.duration))
        progress.update(2)
    estimating, fixed = records
    result = _figures(estimating, fixed)
    lines = [
        f"{args.task} on {settings.robot}, controller {args.controller}, solver {args.solver}, seed {args.seed}",
        *_lines(result, estimating, fixed),
    ]
    if args.report:
        from contact_estimation.studies.mpc.mpc_report import mpc_report

        page = mpc_report(args.report, args.task, settings, command_line(args), estimating, fixed)
        lines.append(f"report                    {page}")
    emit(args, result, "\n".join(lines))
    return 0


def _check(args: argparse.Namespace) -> None:
    """Refuse options that the task has no use for.

    Raises:
        ConfigError: names them.
    """
    if args.task == "probe":
        foreign = (args.height_error, args.observer, args.stiffness, args.tool or None)
        if args.runs < 1 or foreign != (None,) * 4 or (args.solver, args.controller) != ("rti", "mpc"):
            raise ConfigError(
                "mpc probe takes --runs of at least 1, and none of --height-error, --solver, --controller, --observer, "
                "--stiffness, --tool"
            )
    elif args.runs != 1:
        raise ConfigError(f"--runs is for mpc probe; mpc {args.task} runs once: give --seed for another run")
    if args.steps is not None and args.task != "sequence":
        raise ConfigError(f"--steps is for mpc sequence; mpc {args.task} has no steps")
    check_number("--stiffness", args.stiffness, "N/m", above=0, most=1e9, hint="for example 5000")
    check_number("--duration", args.duration, "s", above=0, most=86400)
    check_number("--height-error", args.height_error, "m", least=-1, most=1)
    check_number("--force", args.force, "N", above=0, most=1e6)


def _figures(estimating: LoopRecord, fixed: LoopRecord) -> dict[str, float | None]:
    """Return what ``--json`` prints: forces [N] and times [ms]; no time where nothing was solved."""
    times = estimating.solve_ms
    p50, p99 = np.percentile(times, [50, 99]).tolist() if times.size else (None, None)
    return {
        "force_rmse_estimating": estimating.force_rmse(),
        "force_rmse_fixed": fixed.force_rmse(),
        "solve_ms_p50": p50,
        "solve_ms_p99": p99,
        "max_impedance_force": max(estimating.max_spring, fixed.max_spring),
        "force_limit": estimating.force_limit,
    }


def _lines(result: dict[str, float | None], estimating: LoopRecord, fixed: LoopRecord) -> list[str]:
    """Return the figures in words, and why ticks had no plan."""
    p50, p99 = result["solve_ms_p50"], result["solve_ms_p99"]
    lines = [
        f"force RMSE after 1 s      {result['force_rmse_estimating']:.2f} N with online estimation, "
        f"{result['force_rmse_fixed']:.2f} N without",
        f"mean error, last 2 s      {np.round(estimating.steady_error()[estimating.axes], 2)} N, "
        f"{np.round(fixed.steady_error()[fixed.axes], 2)} N",
        f"solve                     {'nothing was solved' if p50 is None else f'p50 {p50:.2f} ms, p99 {p99:.2f} ms'}",
        f"largest impedance force   {result['max_impedance_force']:.2f} N, limit {result['force_limit']:g} N",
    ]
    return lines + [
        f"{name}: {len(record.reasons)} ticks without a plan; first: {record.reasons[0]}"
        for (name, _), record in zip(_LOOPS, (estimating, fixed))
        if record.reasons
    ]
