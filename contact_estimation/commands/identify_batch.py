"""``contact-estimation identify batch``: trajectory and parameters of a whole recording at once (paper 3)."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from contact_estimation.commands.output import Progress, add_json_flag, emit, emit_verdict
from contact_estimation.exceptions import IdentificationError

if TYPE_CHECKING:
    from contact_estimation.identify.batch.runner import Solved
    from contact_estimation.identify.batch.solver import Iteration

EXAMPLES = ("finger", "anchor")


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "recordings", nargs="*", metavar="RECORDING", help="bag or .npz archive; several share all parameters"
    )
    parser.add_argument("--model", metavar="SCENE", help="scene: a YAML file or a shipped name (ur16e_press)")
    parser.add_argument("--example", choices=EXAMPLES, help="a simulated recording with planted parameters instead")
    parser.add_argument(
        "--starts", type=int, default=1, help="example finger: random parameter starts (table IV; default 1)"
    )
    parser.add_argument("--seed", type=int, default=0, help="example: seed of motion, noise and starts (default 0)")
    parser.add_argument(
        "--duration", type=float, default=4.0, help="example finger: length of the recording [s] (default 4)"
    )
    parser.add_argument(
        "--cross-validate", type=int, metavar="K", help="example finger: K recordings (tables II and III)"
    )
    parser.add_argument(
        "--without",
        action="append",
        default=[],
        metavar="CHANNEL",
        help="predict this channel but do not use it (leave-one-sensor-out); may be repeated",
    )
    parser.add_argument("--mode", choices=("both", "trajectory", "parameters"), default="both", help="what is free")
    parser.add_argument(
        "--formulation", choices=("inverse", "forward"), help="unexplained forces or acceleration errors"
    )
    parser.add_argument("--window", type=float, nargs=2, metavar=("START", "END"), help="part of the recording [s]")
    parser.add_argument("--report", metavar="FILE.html", help="write a report with plots and an filmstrip")
    parser.add_argument("--output", metavar="FILE.npz", help="write trajectory, forces and parameters")
    add_json_flag(parser)


def run(args: argparse.Namespace) -> int:
    """Do what the arguments ask for."""
    if bool(args.recordings) == bool(args.example):
        raise IdentificationError("give either a RECORDING with --model SCENE, or --example finger|anchor")
    if args.starts < 1 or args.duration < 2.2 or (args.cross_validate or 2) < 2:
        raise IdentificationError(
            f"--starts {args.starts} must be 1 or more, --duration {args.duration} 2.2 s or more (the "
            "finger's programme), --cross-validate 2 or more"
        )
    if args.example == "anchor":
        return _anchor(args)
    if args.example == "finger" and args.cross_validate:
        return _cross_validate(args)
    if args.example == "finger" and args.without:
        return _leave_out(args)
    if args.example == "finger" and args.starts > 1:
        return _starts(args)
    return _recording(args)


def _starts(args: argparse.Namespace) -> int:
    from contact_estimation.studies.batch import monte_carlo

    bar = Progress(args.starts, "starts")
    runs = monte_carlo.random_starts(args.seed, args.starts, args.duration, progress=bar.update)
    bar.close()
    result = monte_carlo.summary(runs)
    if args.report:
        monte_carlo.write_starts(Path(args.report), runs, result)
    mean, std = result["values_mean"], result["values_std"]
    rows = "\n".join(f"  {name:20s} {mean[name]:12.5g} {std[name]:10.2g}" for name in mean)
    emit(
        args,
        result,
        f"{len(runs)} starts, {result['converged']} converged; worst errors: friction "
        f"{result['friction_error_pct']:.2f} %, contact stiffness {result['stiffness_error_pct']:.2f} %, tip spring "
        f"{result['spring_error_pct']:.2f} %; cost {result['cost_mean']:.1f}, spread "
        f"{result['cost_spread_pct']:.2f} %; "
        f"{result['iterations_median']:.0f} iterations of {result['seconds_per_iteration']:.2f} s, with "
        f"{result['corrections_median']:.0f} corrections at contact events (medians)\n"
        f"  parameter                    mean        std\n{rows}",
    )
    return 0


def _cross_validate(args: argparse.Namespace) -> int:
    from contact_estimation.studies.batch import monte_carlo

    seeds = [args.seed + k for k in range(args.cross_validate)]
    bar = Progress(2 * len(seeds), "cross-validation")
    found = monte_carlo.cross_validate(seeds, args.duration, progress=bar.update)
    bar.close()
    lines = ["parameters: " + ", ".join(found.names)]
    lines += [f"  recording {s}: " + " ".join(f"{x:10.4g}" for x in row) for s, row in zip(seeds, found.values)]
    lines.append(
        "cost of the trajectory with the parameters of: hand-set, " + ", ".join(f"recording {s}" for s in seeds)
    )
    lines += [f"  recording {s}: " + " ".join(f"{x:10.5g}" for x in row) for s, row in zip(seeds, found.costs)]
    lines.append(
        f"at worst {found.worst_other_pct:.2f} % above its own cost, {100 * found.worst_hand_set_share:.1f} % of the "
        "hand-set model's"
    )
    result: dict[str, Any] = {"parameters": found.names, "values": found.values, "costs": found.costs}
    result |= {"worst_other_pct": found.worst_other_pct, "worst_hand_set_share": found.worst_hand_set_share}
    emit(args, result, "\n".join(lines))
    return 0


def _leave_out(args: argparse.Namespace) -> int:
    from contact_estimation.studies.batch import finger, monte_carlo

    recording = finger.simulate(args.seed, args.duration)
    errors = {channel: monte_carlo.leave_out(recording, channel).rms_pct for channel in args.without}
    emit(
        args,
        {"leave_one_out_rms_pct": errors},
        "\n".join(
            f"{channel}: predicted from the other channels to {error:.2f} % RMS" for channel, error in errors.items()
        ),
    )
    return 0


def _anchor(args: argparse.Namespace) -> int:
    from contact_estimation.studies.batch import anchor

    found = anchor.compare(anchor.problem(args.seed))
    joint, em = found.rounds_to(5e-4)
    result = {
        "joint_rounds_to_half_mm": joint,
        "em_rounds_to_half_mm": em,
        "joint_error_mm": 1e3 * found.joint_error[-1],
        "em_error_mm": 1e3 * found.em_error[-1],
        "joint_cost": found.joint_cost[-1],
        "em_cost": found.em_cost[-1],
        "rounds": len(found.joint_cost) - 1,
        "joint_cost_trace": found.joint_cost,
        "em_cost_trace": found.em_cost,
        "joint_error_trace_mm": 1e3 * found.joint_error,
        "em_error_trace_mm": 1e3 * found.em_error,
    }
    lines = ["round      joint cost  error mm         EM cost  error mm"]
    lines += [
        f"{k:5d} {found.joint_cost[k]:15.5g} {1e3 * found.joint_error[k]:9.3f} {found.em_cost[k]:15.5g} "
        f"{1e3 * found.em_error[k]:9.3f}"
        for k in (*range(9), *range(9, len(found.joint_cost), 7))
    ]
    emit(args, result, "\n".join(lines))
    return 0


def _recording(args: argparse.Namespace) -> int:
    from contact_estimation.identify.batch import runner
    from contact_estimation.identify.batch.report import write_report
    from contact_estimation.settings import find_config

    bar = Progress(28, "iterations")
    steps: list[Iteration] = []

    def note(stage: int, iteration: Iteration) -> None:
        steps.append(iteration)
        bar.update(min(len(steps), 27), f"stage {stage}, cost {iteration.cost:.6g}, step {iteration.length:.2f}")

    if args.example == "finger":
        from contact_estimation.studies.batch import finger

        done = finger.identify(args.seed, args.duration, args.formulation or "inverse", args.mode, progress=note)
    else:
        if args.model is None:
            raise IdentificationError("--model SCENE is missing: a YAML file or the shipped ur16e_press")
        problem, settings = runner.prepare(
            args.recordings,
            find_config("scenes", args.model),
            tuple(args.without),
            tuple(args.window) if args.window else None,
            args.formulation,
        )
        done = runner.run(problem, settings, args.mode, progress=note)
    bar.close()
    if args.output:
        done.result.save(args.output)
    if args.report:
        write_report(Path(args.report), done, ", ".join(args.recordings) or f"simulated finger, seed {args.seed}")
    return emit_verdict(args, _figures(done), done.result.verdict, _text(done))


def _figures(done: Solved) -> dict[str, Any]:
    result = done.result
    return {
        "cost": result.cost,
        "iterations": done.estimate.iterations,
        "converged": done.estimate.converged,
        "stopped": done.estimate.reason,
        "unknowns": sum(done.problem.size),
        "parameters": {
            p.name: {
                "value": p.value,
                "std": p.std,
                "interval": [p.lower, p.upper],
                "interval_total": [p.lower_total, p.upper_total],
                "unit": p.unit,
                "note": p.note,
            }
            for p in result.parameters
        },
        "bodies": {
            each.body: {"mass": each.mass, "com": each.com, "inertia": each.inertia, "std": each.std}
            for each in result.inertias
        },
        "channels": {c.name: {"rms": c.rms, "normalised": c.normalised, "cost": c.cost} for c in result.channels},
        "contact_force_max_n": float((result.contact_force**2).sum(axis=1).max() ** 0.5),
    }


def _text(done: Solved) -> str:
    result = done.result
    lines = [
        f"{sum(done.problem.size)} unknowns, {done.estimate.iterations} iterations, cost {result.cost:.6g}: "
        f"{done.estimate.reason}"
    ]
    lines += [
        f"  {p.name:20s} {p.value:12.5g} [{p.lower:.5g}, {p.upper:.5g}] {p.unit}{f'  ({p.note})' if p.note else ''}"
        for p in result.parameters
    ]
    lines += [f"  {c.name:20s} rms {c.rms:.4g}, {c.normalised:.2f} of its noise" for c in result.channels]
    return "\n".join(lines)
