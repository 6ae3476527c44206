"""``contact-estimation identify batch``: trajectory and parameters of a whole recording at once (paper 3)."""

from __future__ import annotations

import argparse
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from contact_estimation.commands.inputs import add_workers_arguments, executor_of
from contact_estimation.commands.numbers import check_number
from contact_estimation.commands.output import Progress, check_output_file, emit_verdict
from contact_estimation.exceptions import ConfigError, IdentificationError

if TYPE_CHECKING:
    from contact_estimation.identify.batch.problem import Problem
    from contact_estimation.identify.batch.result import Result
    from contact_estimation.identify.batch.runner import Plan, Solved
    from contact_estimation.identify.batch.solver import Iteration

EXAMPLES = ("finger", "anchor")
#: Use of the verb -> options that it takes; every use has --seed.
_TAKES: dict[str, tuple[str, ...]] = {
    "--example anchor": (),
    "--example finger": ("duration", "without", "mode", "formulation", "report", "output"),
    "--example finger --starts": ("duration", "starts", "report", "workers", "cluster"),
    "--example finger --cross-validate": ("duration", "cross_validate", "without", "formulation"),
    "RECORDING": ("model", "window", "starts", "without", "mode", "formulation", "report", "output"),
    "RECORDING --cross-validate": ("model", "window", "cross_validate", "without", "formulation"),
}
#: Option -> its default.
_DEFAULTS = {"duration": 4.0, "starts": 1, "mode": "both", "without": []} | dict.fromkeys(
    ("model", "window", "cross_validate", "formulation", "report", "output", "workers", "cluster")
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "recordings", nargs="*", metavar="RECORDING", help="bag or .npz archive; several share all parameters"
    )
    parser.add_argument("--model", metavar="SCENE", help="scene: a YAML file or a shipped name (ur16e_press)")
    parser.add_argument("--example", choices=EXAMPLES, help="a simulated recording with planted parameters instead")
    parser.add_argument(
        "--starts",
        type=int,
        default=_DEFAULTS["starts"],
        help="parameter starts, of which the best counts: the nominal values, then random ones inside the bounds; of "
        "the example finger all are random (default 1: the nominal values)",
    )
    parser.add_argument("--seed", type=int, default=0, help="seed of the starts and of an example (default 0)")
    parser.add_argument(
        "--duration",
        type=float,
        default=_DEFAULTS["duration"],
        help="example finger: length of the recording [s] (default 4)",
    )
    parser.add_argument(
        "--cross-validate",
        type=int,
        metavar="K",
        help="K recordings, each with the others' parameters: those given, K equal parts of one, or K examples",
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
    parser.add_argument(
        "--window",
        type=float,
        nargs=2,
        metavar=("START", "END"),
        help="use only the samples from START to END of every RECORDING, in seconds after its first sample (default: "
        "all)",
    )
    parser.add_argument("--report", metavar="FILE.html", help="write a report with plots and a filmstrip")
    parser.add_argument("--output", metavar="FILE.npz", help="write trajectory, forces and parameters")
    add_workers_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Do what the arguments ask for."""
    if bool(args.recordings) == bool(args.example):
        raise IdentificationError("give either RECORDING with --model SCENE, or --example finger|anchor")
    check_number("--starts", args.starts, least=1)
    check_number("--duration", args.duration, "s", least=2.2, most=1000, hint="the finger's programme takes 2.2 s")
    check_number("--cross-validate", args.cross_validate, least=2, most=1000)
    for end in args.window or ():
        check_number("--window", end, "s")
    if args.window and args.example:
        raise IdentificationError("--window is a part of a RECORDING; an example has --duration")
    _check(args)
    for option, file, ending in (("--output", args.output, ".npz"), ("--report", args.report, "")):
        check_output_file(file and Path(file), [Path(recording) for recording in args.recordings], option, ending)
    if args.example == "anchor":
        return _anchor(args)
    if args.cross_validate:
        return _cross_validate(args)
    if args.example == "finger" and args.starts > 1:
        return _finger_starts(args)
    return _identify(args)


def _check(args: argparse.Namespace) -> None:
    """Refuse options that are not for what is asked.

    Raises:
        ConfigError: names them, and those that are.
    """
    use = f"--example {args.example}" if args.example else "RECORDING"
    if args.example != "anchor" and args.cross_validate:
        use += " --cross-validate"
    elif args.example == "finger" and args.starts > 1:
        use += " --starts"
    foreign = [
        name for name, default in _DEFAULTS.items() if getattr(args, name) != default and name not in _TAKES[use]
    ]
    if foreign:
        wrong, right = (", ".join(f"--{name.replace('_', '-')}" for name in names) for names in (foreign, _TAKES[use]))
        raise ConfigError(f"identify batch {use} has no use for {wrong}; it takes --seed{', ' if right else ''}{right}")
    if args.starts > 1 and args.mode == "trajectory":
        raise ConfigError("--mode trajectory holds the parameters where they start; give it without --starts")


def _task(args: argparse.Namespace) -> tuple[Problem, Plan]:
    """Pose the problem of the recordings together, or of the simulated finger."""
    if args.example == "finger":
        from contact_estimation.studies.batch import finger

        return _finger(args, args.seed), finger.PLAN
    return _prepared(args, args.recordings, args.window)


def _finger(args: argparse.Namespace, seed: int) -> Problem:
    from contact_estimation.studies.batch import finger

    return finger.problem(finger.simulate(seed, args.duration), args.formulation or "inverse", without=args.without)


def _prepared(args: argparse.Namespace, recordings: list[str], window: list[float] | None) -> tuple[Problem, Plan]:
    from contact_estimation.identify.batch import runner
    from contact_estimation.settings import find_config

    if args.model is None:
        raise IdentificationError("--model SCENE is missing: a YAML file or the shipped ur16e_press")
    scene = find_config("scenes", args.model)
    part = (window[0], window[1]) if window else None
    return runner.prepare(recordings, scene, tuple(args.without), part, args.formulation)


def _identify(args: argparse.Namespace) -> int:
    """One estimate, from the nominal parameters or from random starts."""
    from contact_estimation.identify.batch.left_out import left_out
    from contact_estimation.identify.batch.report import write_report
    from contact_estimation.identify.batch.runner import run as solve
    from contact_estimation.identify.batch.starts import best_of

    problem, plan = _task(args)
    parameters, rng = problem.scene.parameters, np.random.default_rng([args.seed, 1])
    steps: list[Iteration] = []

    def note(stage: int, iteration: Iteration) -> None:
        steps.append(iteration)
        bar.update(len(steps), f"stage {stage}, cost {iteration.cost:.6g}, step {iteration.length:.2f}")

    starts = [parameters.nominal, *(parameters.sample(rng) for _ in range(args.starts - 1))]
    with Progress(28 * args.starts, "iterations") as bar:
        solved = [solve(problem, plan, args.mode, note, p) for p in starts]
    done = solved[0]
    if len(solved) > 1:
        best, verdict = best_of([each.result for each in solved])
        done = next(each for each in solved if each.result is best)
        done = done._replace(result=replace(best, verdict=verdict))
    if args.output:
        done.result.save(args.output)
    if args.report:
        write_report(Path(args.report), done, ", ".join(args.recordings) or f"simulated finger, seed {args.seed}")
    predicted = {name: left_out(problem, done.estimate.solution, name).rms_pct for name in args.without}
    figures = _figures(done) | ({"leave_one_out_rms_pct": predicted} if predicted else {})
    if len(solved) > 1:
        figures["starts"] = {
            "cost": [each.result.cost for each in solved],
            "parameters": {name: [each.result.values()[name] for each in solved] for name in parameters.names},
        }
    lines = [_text(done)]
    lines += [f"{name}: predicted from the other channels to {error:.2f} % RMS" for name, error in predicted.items()]
    return emit_verdict(args, figures, done.result.verdict, "\n".join(lines))


def _finger_starts(args: argparse.Namespace) -> int:
    """Table IV and figure 5 of paper 3."""
    from contact_estimation.identify.batch.starts import best_of
    from contact_estimation.studies.batch import monte_carlo

    executor = executor_of(args, args.starts)
    with Progress(args.starts, "starts") as bar:
        runs = monte_carlo.random_starts(args.seed, args.starts, args.duration, executor, bar.update)
    result = monte_carlo.summary(runs)
    if args.report:
        monte_carlo.write_starts(Path(args.report), runs, result)
    best, verdict = best_of([each.result for each in runs])
    mean, std = result["values_mean"], result["values_std"]
    rows = "\n".join(f"  {name:20s} {mean[name]:12.5g} {std[name]:10.2g}" for name in mean)
    return emit_verdict(
        args,
        result | {"interval_total": _intervals(best)},
        verdict,
        f"{len(runs)} starts, {result['converged']} converged; worst errors: friction "
        f"{result['friction_error_pct']:.2f} %, contact stiffness {result['stiffness_error_pct']:.2f} %, tip spring "
        f"{result['spring_error_pct']:.2f} %; cost {result['cost_mean']:.1f}, spread "
        f"{result['cost_spread_pct']:.2f} %; "
        f"{result['iterations_median']:.0f} iterations of {result['seconds_per_iteration']:.2f} s, with "
        f"{result['corrections_median']:.0f} corrections at contact events (medians)\n"
        f"  parameter                    mean        std\n{rows}",
    )


def _cross_validate(args: argparse.Namespace) -> int:
    """Tables II and III of paper 3."""
    from contact_estimation.identify.batch.cross_validation import cross_validate

    problems, plan, hand_set, names = _parts(args)
    with Progress(2 * len(problems), "cross-validation") as bar:
        found = cross_validate(problems, plan, hand_set, progress=bar.update)
    lines = ["parameters: " + ", ".join(found.names)]
    lines += [f"  {name}: " + " ".join(f"{x:10.4g}" for x in row) for name, row in zip(names, found.values)]
    lines.append("cost of the trajectory with the parameters of: hand-set, " + ", ".join(names))
    lines += [f"  {name}: " + " ".join(f"{x:10.5g}" for x in row) for name, row in zip(names, found.costs)]
    share = found.worst_hand_set_share
    lines.append(f"at worst {found.worst_other_pct:.2f} % above its own cost, {100 * share:.1f} % of hand-set")
    result: dict[str, Any] = {"parameters": found.names, "values": found.values, "costs": found.costs}
    result |= {"worst_other_pct": found.worst_other_pct, "worst_hand_set_share": share}
    ends = [_intervals(each) for each in found.results]
    result["interval_total"] = {
        name: [min(each[name][0] for each in ends), max(each[name][1] for each in ends)] for name in found.names
    }
    return emit_verdict(args, result, found.verdict, "\n".join(lines))


def _parts(args: argparse.Namespace) -> tuple[list[Problem], Plan, np.ndarray | None, list[str]]:
    """Problems to cross-validate, how to solve them, parameters to compare with (None: nominal), and their names."""
    count = args.cross_validate
    if args.example == "finger":
        from contact_estimation.studies.batch import finger

        seeds = [args.seed + k for k in range(count)]
        problems = [_finger(args, seed) for seed in seeds]
        hand_set = problems[0].scene.parameters.vector(finger.HAND_SET)
        return problems, finger.PLAN, hand_set, [f"seed {seed}" for seed in seeds]
    if len(args.recordings) > 1:
        if count != len(args.recordings):
            raise IdentificationError(
                f"--cross-validate {count} does not fit {len(args.recordings)} recordings; say --cross-validate "
                f"{len(args.recordings)}, or give one recording to be cut into {count} parts"
            )
        tasks = [_prepared(args, [each], args.window) for each in args.recordings]
        return [problem for problem, _ in tasks], tasks[0][1], None, [Path(each).name for each in args.recordings]
    whole, plan = _prepared(args, args.recordings, args.window)
    ends = np.linspace(whole.grid[0], whole.grid[-1], count + 1).tolist()
    parts = [_prepared(args, args.recordings, list(span))[0] for span in pairwise(ends)]
    return parts, plan, None, [f"{start:.2f} to {end:.2f} s" for start, end in pairwise(ends)]


def _intervals(result: Result) -> dict[str, list[float]]:
    return {p.name: [p.lower_total, p.upper_total] for p in result.parameters}


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
    result["interval_total"] = _intervals(found.result)
    return emit_verdict(args, result, found.result.verdict, "\n".join(lines))


def _figures(done: Solved) -> dict[str, Any]:
    result = done.result
    return {
        "interval_total": _intervals(result),
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
        f"  {p.name:20s} {p.value:12.5g} [{p.lower_total:.5g}, {p.upper_total:.5g}] {p.unit}"
        f"{f'  ({p.note})' if p.note else ''}"
        for p in result.parameters
    ]
    lines += [
        f"  {c.name:20s} rms {c.rms:.4g}, {c.normalised:.2f} of its noise"
        for c in result.channels
        if np.isfinite(c.rms)  # of a channel that is left out the prediction is told
    ]
    return "\n".join(lines)
